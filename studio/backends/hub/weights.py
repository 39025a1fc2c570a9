"""Weights of a model, from a folder, the hub's cache or a download; and their fingerprint."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from huggingface_hub import constants

from studio.backends.base import LoadProgress, WeightFile, WeightSource
from studio.backends.hub.cache import model_folder, snapshot
from studio.errors import FormatNewer, ModelUnavailable, StorageFailed
from studio.storage.disk import hash_file, read_file
from studio.storage.records import RecordFormat

MAX_HEADER_BYTES = 100_000_000
"""Longest header that safetensors allows."""


def fetch_weights(source: WeightSource, progress: Callable[[LoadProgress], None]) -> Path:
    """Download a model's files where they aren't on this machine.

    What is in the hub's cache is taken as it is; the hub isn't asked whether there is a newer one.

    Args:
        source: Its needs are glob patterns of paths in the model; every file that matches one is
            fetched, and each must match at least one. `*` also matches `/`. `a|b` needs one of the
            two: `a` where there is one, and else `b`.
        progress: Gets bytes, file and speed; when it raises `Cancelled` the download stops, and
            the next call goes on from there.

    Returns:
        A folder that holds the files.

    Raises:
        ModelUnavailable: They can't be had; names the remedy. The next call tries again.
    """
    needs = source.needs
    if is_local(source.source):
        return _checked_folder(Path(source.source).expanduser(), needs)
    folder = weights_at_hand(source.source, needs)
    if folder is None or _discard_broken(folder, needs):
        # The client takes longer to import than all the rest of a start.
        from studio.backends.hub.download import download
        from studio.backends.hub.weight_places import fetch_from_places

        if source.has_places:
            folder = fetch_from_places(source, progress)
        else:
            folder = download(source, *_split_revision(source.source), progress)
    return _checked_folder(folder, needs)


def lacks_best(source: WeightSource) -> bool:
    """Whether a need is met by another alternative than its first, which may be had now. Cheap."""
    folder = weights_at_hand(source.source, source.needs)
    if folder is None or not source.has_places or constants.HF_HUB_OFFLINE:
        return False
    return not all((folder / need.split("|")[0]).is_file() for need in source.needs)


def fetch_best(source: WeightSource, progress: Callable[[LoadProgress], None]) -> None:
    """Download the first alternatives of what is needed, where they can be had."""
    from studio.backends.hub.weight_places import fetch_from_places

    try:
        fetch_from_places(source, progress, only_best=True)
    except ModelUnavailable as error:
        log.info("%s", error)


class WeightState(StrEnum):
    """What became of a file that a catalogue states."""

    WHOLE = "whole"
    MISSING = "missing"
    BROKEN = "broken"
    UNKNOWN = "of a content that nobody has published"


def verify_weights(source: WeightSource) -> Iterator[tuple[WeightFile, WeightState]]:
    """Compare each file of a source with its bytes and SHA-256; reads all of it."""
    local = is_local(source.source)
    folder = Path(source.source) if local else snapshot(*_split_revision(source.source))
    for file in source.stated.values():
        path = folder / file.path if folder is not None else None
        yield file, _verify(path, file) if path and path.is_file() else WeightState.MISSING


def _verify(path: Path, file: WeightFile) -> WeightState:
    size_bytes = path.stat().st_size
    if file.size_bytes and (size_bytes > file.size_bytes or not size_bytes):
        return WeightState.BROKEN
    if not file.sha256:
        return WeightState.UNKNOWN
    return WeightState.WHOLE if hash_file(path) == file.sha256 else WeightState.BROKEN


def weights_at_hand(source: str, needs: Sequence[str]) -> Path | None:
    """The folder that holds all of a model's files; None when some aren't on this machine.

    Cheap: asks no network, imports no model library and looks into no file of weights.
    """
    folder = Path(source).expanduser() if is_local(source) else snapshot(*_split_revision(source))
    return folder if folder is not None and missing(folder, needs) is None else None


def to_fetch(source: str, needs: Sequence[str]) -> str | None:
    """What a load would have to download, as a sentence with the remedy; None when all is here."""
    if weights_at_hand(source, needs) is not None:
        return None
    if is_local(source):
        return f"Its folder {source} isn't complete; put the model's files there."
    return (
        f"Its weights ({source}) are not on this machine yet; choose it by name to download them."
    )


def list_weights(sources: Iterable[WeightSource]) -> frozenset[Path]:
    """The files of some weights in the hub's cache, whether or not all of them are there.

    Cheap: asks no network and reads no weights. Local folders have none, as they are the user's.
    """
    return frozenset(
        path
        for one in sources
        if not is_local(one.source)
        for folder in [snapshot(*_split_revision(one.source))]
        if folder is not None
        for path in needed_files(folder, (*one.needs, *one.stated))
    )


def discard_weights(
    sources: Iterable[WeightSource], *, keep: frozenset[Path] = frozenset()
) -> None:
    """Delete weights from the hub's cache, and what interrupted downloads left of them.

    Args:
        sources: Of the weights; local folders stay, as they are the user's.
        keep: Files that other models need, which may come from the same place on the hub.

    Raises:
        StorageFailed: The system forbids it.
    """
    try:
        for one in sources:
            if is_local(one.source):
                continue
            for path in list_weights([one]) - keep:
                path.unlink(missing_ok=True)
            _sweep_model(model_folder(_split_revision(one.source)[0]))
    except OSError as error:
        raise StorageFailed(
            f"The file {error.filename} can't be deleted ({error.strerror}); delete it by hand."
        ) from error


def _sweep_model(model: Path) -> None:
    """Delete what no file of a snapshot links to, and a model without files altogether."""
    files = [path for path in (model / "snapshots").rglob("*") if path.is_file()]
    if all(path.name.startswith(_NOTE_PREFIX) for path in files):
        if model.exists():
            shutil.rmtree(model)
        return
    linked = {path.resolve() for path in files}
    for blob in (model / "blobs").iterdir():
        if blob.resolve() not in linked:
            blob.unlink()


def is_local(source: str) -> bool:
    """Whether a source names a folder rather than a model on the hub, which is `owner/model`."""
    path = Path(source).expanduser()
    name = source.partition("@")[0]
    looks_so = source.startswith((".", "~")) or "\\" in source or name.count("/") > 1
    return looks_so or path.is_absolute() or path.is_dir()


def _split_revision(source: str) -> tuple[str, str | None]:
    """A hub name without its revision, and the revision."""
    name, _, revision = source.partition("@")
    return name, revision or None


def missing(folder: Path, needs: Sequence[str]) -> str | None:
    """The first pattern, or shard of split weights, that no file in a folder matches."""
    for need in needs:
        files = list(_matching(folder, need))
        if not files:
            return need.replace("|", " or ")
        for path in files:
            if path.name.endswith(".safetensors.index.json"):
                for shard in sorted(_shards(path)):
                    if not (path.parent / shard).is_file():
                        return shard
    return None


def needed_files(folder: Path, needs: Iterable[str]) -> list[Path]:
    """The files in a folder that are loaded; of alternatives, those of the first that is there."""
    return list(dict.fromkeys(path for need in needs for path in _matching(folder, need)))


def _checked_folder(folder: Path, needs: Sequence[str]) -> Path:
    if not folder.is_dir():
        raise ModelUnavailable(
            f"The model's folder {folder} isn't there; correct its path, or give the model's "
            "name on the hub."
        )
    lacking = missing(folder, needs)
    if lacking is not None:
        raise ModelUnavailable(
            f"The model's folder {folder} has no file {lacking}; copy the whole model there."
        )
    for path in _broken(folder, needs):
        raise ModelUnavailable(
            f"The file {path} is broken or cut short; copy or download it again."
        )
    return folder


def _discard_broken(folder: Path, needs: Sequence[str]) -> bool:
    """Remove broken files from the hub's cache; whether there were any."""
    broken = list(_broken(folder, needs))
    for path in broken:
        path.resolve().unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    return bool(broken)


def _broken(folder: Path, needs: Sequence[str]) -> Iterator[Path]:
    for path in needed_files(folder, needs):
        if not _readable(path):
            yield path


def _readable(path: Path) -> bool:
    """Whether a file isn't empty and, for safetensors, as long as its header says."""
    size_bytes = path.stat().st_size
    if path.suffix != ".safetensors":
        return size_bytes > 0
    with path.open("rb") as file:
        header_bytes = int.from_bytes(file.read(8), "little")
        if header_bytes > min(size_bytes, MAX_HEADER_BYTES):
            return False
        try:
            header = json.loads(file.read(header_bytes))
            ends = [entry["data_offsets"][1] for key, entry in header.items() if key[:2] != "__"]
        except (ValueError, KeyError, TypeError, AttributeError):
            return False
    return 8 + header_bytes + max(ends, default=0) == size_bytes


def _shards(index: Path) -> set[str]:
    try:
        return set(json.loads(index.read_bytes())["weight_map"].values())
    except (ValueError, KeyError) as error:
        raise ModelUnavailable(f"The file {index} is broken; copy or download it again.") from error


def _matching(folder: Path, need: str) -> list[Path]:
    """The files in a folder that match the first of the alternatives that any matches."""
    for pattern in need.split("|"):
        if found := list(_match_one(folder, pattern)):
            return found
    return []


def _match_one(folder: Path, pattern: str) -> Iterator[Path]:
    """The files in a folder whose path within it matches."""
    plain = not set(pattern) & set("*?[")  # then the folder, which may hold much else, is left be
    for path in [folder / pattern] if plain else sorted(folder.rglob("*")):
        if path.is_file() and fnmatchcase(path.relative_to(folder).as_posix(), pattern):
            yield path


_NOTE_PREFIX = ".tableread-"
_NOTE = f"{_NOTE_PREFIX}identity.json"
_NOTE_FORMAT = RecordFormat("The note beside the weights")
_PROBES, _PROBE_BYTES = 16, 65_536
_DIGITS = 16

log = logging.getLogger(__name__)


def identify_weights(folder: Path, needs: Sequence[str]) -> str:
    """16 hexadecimal digits that stay while the files' content does.

    Once they were made of the files' times, and takes know them so. The first time they still are,
    and a note beside the files keeps them for this content; a copy of the folder, or a backup that
    touches its files, changes nothing then. Where no note can be written, times count.
    """
    paths = sorted(path.resolve() for path in needed_files(folder, needs))
    stats = [path.stat() for path in paths]
    marks = tuple(
        (path, stat.st_size, stat.st_mtime_ns) for path, stat in zip(paths, stats, strict=True)
    )
    return _identify(folder / _NOTE, marks)


@functools.lru_cache(maxsize=16)
def _identify(note: Path, marks: tuple[tuple[Path, int, int], ...]) -> str:
    content = _content_digest(marks)
    known = _read_note(note)
    if known.get("content") == content:
        return str(known["identity"])
    identity = _time_digest(marks)
    try:
        note.write_bytes(_NOTE_FORMAT.encode({"content": content, "identity": identity}))
    except OSError:
        log.info("%s can't be written; the weights count as changed when they are touched", note)
    return identity


def _read_note(note: Path) -> dict[str, object]:
    try:
        known = _NOTE_FORMAT.decode(read_file(note))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, FormatNewer) as error:
        log.warning("%s can't be read, so lines may count as changed: %s", note, error)
        return {}
    return known if "identity" in known else {}


def _time_digest(marks: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, size_bytes, mtime_ns in marks:
        digest.update(f"{path.name} {size_bytes} {mtime_ns}\n".encode())
    return digest.hexdigest()[:_DIGITS]


def _content_digest(marks: tuple[tuple[Path, int, int], ...]) -> str:
    """Digest of samples at fixed places of each file, whatever the files are called."""
    return hashlib.sha256("".join(sorted(map(_sample_digest, marks))).encode()).hexdigest()


def _sample_digest(mark: tuple[Path, int, int]) -> str:
    path, size_bytes, _ = mark
    digest = hashlib.sha256(str(size_bytes).encode())
    for sample in read_samples(path, size_bytes):
        digest.update(sample)
    return digest.hexdigest()


def read_samples(path: Path, size_bytes: int) -> Iterator[bytes]:
    """A megabyte of a file at fixed places, which tells weights apart without reading gigabytes."""
    with path.open("rb") as file:
        for probe in range(_PROBES):
            file.seek(size_bytes * probe // _PROBES)
            yield file.read(_PROBE_BYTES)
