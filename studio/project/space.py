"""What a project holds on the disk that nobody hears, and how it is freed.

That is the audio of deleted takes, of takes whose line was deleted, recordings that no line plays,
and files torn by the end of a process. Undo of a deletion then finds a take's record without its
audio: what it was made of.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from studio.project.document import Document
from studio.project.takes import TakeShelf, line_folders

UNUSED_AFTER_S = 3600.0
"""A recording comes in before the line that plays it, from pages that may be slow."""


@dataclass(frozen=True, slots=True)
class Held:
    """A number of files, or of projects, and their bytes together."""

    count: int = 0
    size_bytes: int = 0

    def __add__(self, other: Held) -> Held:
        """Both together."""
        return Held(self.count + other.count, self.size_bytes + other.size_bytes)


def held_in(folder: Path) -> Held:
    """All files of a folder."""
    # Not `rglob`, which trips over what is deleted or moved back while it looks.
    return sizes_of(Path(at) / name for at, _, names in os.walk(folder) for name in names)


def is_unheard(document: Document, line_id: str, take_id: str) -> bool:
    """Whether a take can be heard only after an undo; a locked one counts as heard."""
    if take_id in document.locked_takes:
        return False
    return line_id not in document.lines or take_id in document.deleted_takes


def unheard(takes: Path, document: Document) -> Held:
    """What the folder of a project's takes holds in vain, told by the names of its files.

    Also of a project that isn't open: nothing but the folder is read.
    """
    found: list[Path] = []
    with suppress(FileNotFoundError):  # the project is being removed
        for folder in line_folders(takes):
            names = {path.name for path in folder.iterdir()}
            for path in map(folder.joinpath, names):
                is_torn = path.suffix == ".part" or f"{path.stem}.json" not in names
                if path.suffix in (".part", ".wav") and (
                    is_torn or is_unheard(document, folder.name, path.stem)
                ):
                    found.append(path)
    return sizes_of(found)


def unused(audio: Path, document: Document) -> list[Path]:
    """Recordings that no line plays. Young ones are left out: their line may just be on its way."""
    played = {line.path for line in document}
    found: list[Path] = []
    with suppress(FileNotFoundError):  # there are none, or the project is being removed
        for path in audio.iterdir():
            age_s = time.time() - path.stat().st_mtime
            if path.name not in played and age_s >= UNUSED_AFTER_S:
                found.append(path)
    return found


def free_unheard(shelf: TakeShelf, document: Document) -> Held:
    """Free what an open project's takes hold in vain; what deleted them has to be on the disk.

    Every file goes by itself, so however it ends, each take is whole or gone.

    Raises:
        StorageFailed: A file can't be removed; those before it are.
    """
    freed = Held()
    for take in shelf:
        if is_unheard(document, take.line_id, take.take_id) and not shelf.is_gone(take):
            freed += Held(1, shelf.free(take))
    torn = shelf.free_torn()
    return freed + Held(len(torn), sum(torn))


def sizes_of(files: Iterable[Path]) -> Held:
    """Those of some files that are there."""
    sizes: list[int] = []
    for path in files:
        with suppress(FileNotFoundError):  # a render finishes its files while they are counted
            sizes.append(path.stat().st_size)
    return Held(len(sizes), sum(sizes))
