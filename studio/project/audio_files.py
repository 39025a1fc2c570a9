"""Recordings that audio lines of a project play."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO, Protocol

from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.guarded import decode_guarded
from studio.errors import AudioRejected
from studio.project import folder as places
from studio.project.checks import file_name
from studio.project.folder import ProjectFolder

_MARK_CHARS = 8
_STEM_BYTES = 150
_BLOCK_BYTES = 1 << 20


class Digest(Protocol):
    """What `hashlib` makes."""

    def update(self, data: bytes, /) -> None:
        """Take bytes in."""
        ...


def bring_audio(folder: ProjectFolder, name: str, file: BinaryIO) -> str:
    """Keep a recording; the same one twice is kept once.

    A file of that name with other content stays, and the new one gets a name beside it, so that
    no take becomes one of another recording.

    Raises:
        BadInput: No file can have that name.
        AudioRejected: It can't be decoded or is too large; nothing is kept then.
        StorageFailed: It can't be written.
    """
    path = PurePath(file_name(name))
    arriving = folder.root / places.AUDIO / f".{secrets.token_hex(8)}.part"
    digest = hashlib.sha256()
    folder.disk.make_folder(arriving.parent)
    try:
        folder.disk.write_whole(arriving, _blocks(file, name, digest))
        kept = f"{_cut(path.stem)}-{digest.hexdigest()[:_MARK_CHARS]}{_cut(path.suffix, 10)}"
        target = arriving.with_name(kept)
        if not target.exists():
            decode_guarded(arriving, display_name=name)
            folder.disk.move(arriving, target)
    finally:
        folder.disk.remove(arriving)
    return kept


def _blocks(file: BinaryIO, name: str, digest: Digest) -> Iterator[bytes]:
    """The content, block by block, taken into a digest; no more than a recording may have."""
    left = DEFAULT_LIMITS.max_bytes
    while block := file.read(_BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            most_mb = DEFAULT_LIMITS.max_bytes // 1_000_000
            raise AudioRejected(f"“{name}” is larger than {most_mb} MB. Cut it first.")
        digest.update(block)
        yield block


def _cut(text: str, most_bytes: int = _STEM_BYTES) -> str:
    """The beginning of a name; systems count the bytes of it, and most end at 255."""
    return text.encode()[:most_bytes].decode(errors="ignore")
