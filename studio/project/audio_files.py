"""Recordings that audio lines of a project play."""

from __future__ import annotations

import hashlib
from pathlib import PurePath
from typing import BinaryIO

from studio.audio.decode import DEFAULT_LIMITS
from studio.audio.guarded import decode_guarded
from studio.errors import AudioRejected, StudioError
from studio.project import folder as places
from studio.project.checks import file_name
from studio.project.folder import ProjectFolder

_MARK_CHARS = 8


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
    data = file.read(DEFAULT_LIMITS.max_bytes + 1)
    if len(data) > DEFAULT_LIMITS.max_bytes:
        most_mb = DEFAULT_LIMITS.max_bytes // 1_000_000
        raise AudioRejected(f"“{name}” is larger than {most_mb} MB. Cut it first.")
    mark = hashlib.sha256(data).hexdigest()[:_MARK_CHARS]
    kept = f"{path.stem[:100]}-{mark}{path.suffix[:10]}"
    target = folder.root / places.AUDIO / kept
    if not target.exists():
        folder.disk.make_folder(target.parent)
        folder.disk.write_whole(target, data)
        try:
            decode_guarded(target, display_name=name)
        except StudioError:
            folder.disk.remove(target)
            raise
    return kept
