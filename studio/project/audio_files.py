"""Recordings that audio lines of a project play: imported, and found when no line plays them."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import BinaryIO, Protocol

from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.guarded_decode import decode_guarded
from studio.errors import AudioRejected
from studio.project import folder as layout
from studio.project.document import Document, check_audio_name
from studio.project.folder import ProjectFolder

_HASH_CHARS = 8
_MAX_STEM_BYTES = 150
_BLOCK_BYTES = 1 << 20


class Hasher(Protocol):
    """What `hashlib` makes."""

    def update(self, data: bytes, /) -> None:
        """Take bytes in."""
        ...


def import_audio(folder: ProjectFolder, name: str, file: BinaryIO) -> str:
    """Keep a recording; the same one twice is kept once.

    A file of that name with other content stays, and the new one gets a name beside it, so that
    no take becomes one of another recording.

    Raises:
        BadInput: No file can have that name.
        AudioRejected: It can't be decoded or is too large; nothing is kept then.
        StorageFailed: It can't be written.
    """
    path = PurePath(check_audio_name(name))
    arriving = folder.root / layout.AUDIO_FOLDER / f".{secrets.token_hex(8)}.part"
    digest = hashlib.sha256()
    folder.disk.make_folder(arriving.parent)
    try:
        folder.disk.write_whole(arriving, _read_blocks(file, name, digest))
        stem, suffix = _truncate_name(path.stem), _truncate_name(path.suffix, 10)
        kept = f"{stem}-{digest.hexdigest()[:_HASH_CHARS]}{suffix}"
        target = arriving.with_name(kept)
        if not target.exists():
            decode_guarded(arriving, display_name=name)
            folder.disk.move(arriving, target)
    finally:
        folder.disk.remove(arriving)
    return kept


def _read_blocks(file: BinaryIO, name: str, digest: Hasher) -> Iterator[bytes]:
    """The content, block by block, taken into a digest; no more than a recording may have."""
    left = DEFAULT_LIMITS.max_bytes
    while block := file.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            most_mb = DEFAULT_LIMITS.max_bytes // 1_000_000
            raise AudioRejected(f"“{name}” is larger than {most_mb} MB. Cut it first.")
        digest.update(block)
        yield block


def _truncate_name(text: str, most_bytes: int = _MAX_STEM_BYTES) -> str:
    """The beginning of a name; systems count the bytes of it, and most end at 255."""
    return text.encode()[:most_bytes].decode(errors="ignore")


UNUSED_AFTER_S = 3600.0
"""A recording comes in before the line that plays it, from pages that may be slow."""


def find_unused_audio(audio: Path, document: Document) -> list[Path]:
    """Recordings that no line plays. Young ones are left out: their line may just be on its way."""
    played = {line.path for line in document}
    found: list[Path] = []
    with suppress(FileNotFoundError):  # there are none, or the project is being removed
        for path in audio.iterdir():
            age_s = time.time() - path.stat().st_mtime
            if path.name not in played and age_s >= UNUSED_AFTER_S:
                found.append(path)
    return found
