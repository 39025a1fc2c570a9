"""A project's files as they were at one moment, to be read while it is worked on.

The snapshot is held in memory, the journal only grows, and takes and recordings never change once
they are there. So nobody has to wait while they are packed or copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studio.project import folder as places
from studio.project.document import Document
from studio.project.space import is_unheard

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Moment:
    """What a project was.

    Attributes:
        snapshot: The bytes of its file.
        journal_bytes: How much of the journal there was.
        document: As it was, or a little later than the snapshot.
    """

    root: Path
    snapshot: bytes
    journal_bytes: int
    document: Document

    def journal(self) -> Iterator[bytes]:
        """The journal as it was, block by block."""
        left = self.journal_bytes
        with (self.root / places.JOURNAL).open("rb") as file:
            while left and (block := file.read(min(left, _BLOCK_BYTES))):
                left -= len(block)
                yield block

    def files(self, *, deleted: bool = True) -> Iterator[Path]:
        """Takes and recordings.

        Args:
            deleted: Also the audio of takes that only an undo could bring back; without it they
                are as if they had been freed.
        """
        for path in sorted((self.root / places.TAKES).rglob("*")):
            line_id, take_id = path.parent.name, path.stem
            is_kept = deleted or not is_unheard(self.document, line_id, take_id)
            if path.suffix == ".json" or (path.suffix == ".wav" and is_kept):
                yield path
        for path in sorted((self.root / places.AUDIO).glob("[!.]*")):
            yield path
