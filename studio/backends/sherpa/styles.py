"""Styles, as which Kokoro and Kitten keep their voices: by name, and mixed by a formula.

A formula is a name, or a sum such as `0.75*jm_kumo+0.25*jf_alpha`, or two of them: of `X|Y` the
first half of X's numbers, which make the timbre, and the last half of Y's: melody and pace.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from studio.audio.clip import Samples
from studio.errors import ModelUnavailable

_TERM = r"\s*(?:(\d+(?:\.\d+)?)\s*\*\s*)?([A-Za-z]\w*)\s*"
_SUM = re.compile(rf"\s*[+-]?{_TERM}(?:[+-]{_TERM})*")
_SIGNED_TERM = re.compile(rf"([+-]?){_TERM}")
_ARCHIVE = b"PK\x03\x04"
_JOINED = "voices.bin"


def parse_formula(formula: str) -> list[list[tuple[float, str]]]:
    """A formula's one or two sums, each of weights and names.

    Raises:
        ValueError: It isn't one; the message names it.
    """
    halves = formula.split("|")
    if len(halves) > 2 or not all(map(_SUM.fullmatch, halves)):
        raise ValueError(f"“{formula}” is no formula of styles")
    found = (_SIGNED_TERM.findall(half.strip()) for half in halves)
    return [[(float(f"{sign}{weight or 1}"), name) for sign, weight, name in one] for one in found]


class StyleTable:
    """The styles in some folders, read when they are asked for; any number of threads."""

    def __init__(
        self, folders: Sequence[Path], order: Sequence[str], rows: int, width: int
    ) -> None:
        """Look for archives of NumPy's, a `voices.bin`, and NAME.bin of one style each; cheap.

        Args:
            folders: Or files; the first that has a name counts.
            order: Of the styles that stand one behind the other in a `voices.bin`.
            rows: Of a style in a .bin: one for each number of phonemes.
            width: Numbers of such a row.

        Raises:
            ModelUnavailable: An archive is broken; the message names it.
        """
        self._order, self._shape = tuple(order), (rows, width)
        self._files: dict[str, Path] = {}
        for folder in reversed(folders):
            files = [folder] if folder.is_file() else [*folder.glob("*.npz"), *folder.glob("*.bin")]
            for file in sorted(files):
                stat = file.stat()
                names = _list_names(file, stat.st_size // (4 * rows * width), stat.st_mtime_ns)
                found = self._order[: len(names)] if file.name == _JOINED else names
                self._files |= dict.fromkeys(found, file)
        self.mix = lru_cache(maxsize=32)(self._mix)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def has(self, formula: str) -> bool:
        """Whether all styles of a formula are there."""
        return all(name in self._files for terms in parse_formula(formula) for _, name in terms)

    def _mix(self, formula: str) -> Samples:
        """A style: float32 [rows, width].

        Raises:
            ModelUnavailable: It needs one that isn't there, or whose file is broken.
        """
        sums: list[Samples] = []
        for terms in parse_formula(formula):
            (weight, name), *more = terms
            sums.append(weight * self._read(name))
            for weight, name in more:
                sums[-1] = sums[-1] + weight * self._read(name)
        half = sums[0].shape[1] // 2
        return np.hstack([sums[0][:, :half], sums[-1][:, half:]])

    def _read(self, name: str) -> Samples:
        if name not in self._files:
            raise ModelUnavailable(f"There is no style “{name}” among this model's files.")
        file, (rows, width) = self._files[name], self._shape
        try:
            if _is_archive(file):
                with np.load(file) as archive:
                    style = np.asarray(archive[name], np.float32)
                return style.reshape(-1, style.shape[-1])
            place = self._order.index(name) if file.name == _JOINED else 0
            offset = 4 * place * rows * width
            return np.fromfile(file, "<f4", rows * width, offset=offset).reshape(rows, width)
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise _broken(file) from error


@lru_cache(maxsize=256)
def _list_names(file: Path, styles: int, mtime_ns: int) -> Sequence[str]:
    """The names in an archive; else that of the file, as often as it has styles."""
    del mtime_ns  # in the cache's key
    if not _is_archive(file):
        return [file.stem] * styles
    try:
        with zipfile.ZipFile(file) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, zipfile.BadZipFile) as error:
        raise _broken(file) from error


def _is_archive(file: Path) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(_ARCHIVE)) == _ARCHIVE


def _broken(file: Path) -> ModelUnavailable:
    return ModelUnavailable(
        f"The file of styles {file} is broken. Remove it and download it again."
    )
