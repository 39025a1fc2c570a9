"""The journal of a project: every change ever made, one line each, with its checksum.

A line is `{"sum":"<crc32 of the entry>","entry":{...}}`. A torn or changed line ends the journal:
what comes after it is put aside when it is opened.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.errors import EngineBusy, StorageFailed
from studio.storage.disk import Disk, read_json, storage_errors

_HEAD_BYTES = len('{"sum":"00000000","entry":')
_END = b"}\n"
_MAX_ENTRY_BYTES = 200_000_000
"""Ten times what the largest edit takes; more of one line is never read."""

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry and the bytes of the journal it takes."""

    start: int
    end: int
    entry: Entry


class Journal:
    """An append-only file. One writer; the caller sees to that."""

    def __init__(self, path: Path, disk: Disk) -> None:
        """Open or begin a journal; a torn end is cut off.

        Raises:
            StorageFailed: It can't be read or written.
        """
        self._path = path
        self._disk = disk
        self.put_aside: Path | None = None
        with storage_errors(path):
            # Unbuffered: what `append` wrote outlives the process from that moment on.
            self._file = path.open("a+b", buffering=0)
        self._size = self._file.seek(0, 2)
        self._unsynced = False

    @property
    def size_bytes(self) -> int:
        """Where the next entry goes."""
        return self._size

    def append(self, entry: Entry) -> int:
        """Add an entry; it survives the end of the process, and after `sync` that of the machine.

        Returns:
            Where it starts.

        Raises:
            StorageFailed: It can't be written; the journal is as it was.
            EngineBusy: The project was closed meanwhile.
        """
        if self._file.closed:
            raise build_closed_error()
        start = self._size
        data = _encode_entry(entry)
        try:
            # Also clears away what an earlier failure left behind and could not.
            self._cut(start)
            self._disk.append(self._file, data, self._path)
        except StorageFailed:
            self._cut(start)
            raise
        self._size = start + len(data)
        self._unsynced = True
        return start

    def read(self, start: int) -> Entry:
        """The entry that starts there.

        Raises:
            StorageFailed: It has changed since.
        """
        return self._at(start).entry

    def replay(self, start: int = 0) -> Iterator[StoredEntry]:
        """Entries from one's start on; at the first that isn't whole, the rest is put aside."""
        while start < self._size:
            try:
                placed = self._at(start)
            except StorageFailed:
                self._drop_from(start)
                return
            yield placed
            start = placed.end

    def sync(self) -> None:
        """See that all entries are on the disk itself; others may append meanwhile.

        Raises:
            StorageFailed: The disk can't take them.
        """
        unsynced, self._unsynced = self._unsynced, False
        if not unsynced:
            return
        try:
            self._disk.sync(self._file, self._path)
        except StorageFailed:
            self._unsynced = True
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _at(self, start: int) -> StoredEntry:
        with storage_errors(self._path):
            self._file.seek(start)
            data = b""
            while not data.endswith(b"\n") and (more := self._file.readline(_MAX_ENTRY_BYTES)):
                data += more
                if len(data) > _MAX_ENTRY_BYTES:
                    break
        entry = _decode_entry(data)
        if entry is None:
            raise StorageFailed(f"The history in “{self._path.name}” is damaged at byte {start}.")
        return StoredEntry(start, start + len(data), entry)

    def _drop_from(self, start: int) -> None:
        """Cut the rest off; where whole lines would go with it, a copy of all stays beside."""
        self._file.seek(start)
        torn = self._file.read()
        if torn.count(b"\n") > (0 if torn.endswith(b"\n") else 1):
            self.put_aside = self._path.with_name(f"{self._path.stem}.damaged-{start}.jsonl")
            self._disk.write_whole(self.put_aside, self._path.read_bytes())
        self._cut(start)

    def _cut(self, size: int) -> None:
        """Needs no room on the disk."""
        with storage_errors(self._path):
            self._file.truncate(size)
        self._size = size


def build_closed_error() -> EngineBusy:
    """What who comes a moment too late is told."""
    return EngineBusy("This project was just put away. Try again.", retry_after_s=1.0)


def read_entries(path: Path) -> Iterator[StoredEntry]:
    """The whole entries at the beginning of a journal that nobody has open."""
    start = 0
    with path.open("rb") as file:
        while line := file.readline(_MAX_ENTRY_BYTES):
            entry = _decode_entry(line)
            if entry is None:
                return
            yield StoredEntry(start, start + len(line), entry)
            start += len(line)


def _encode_entry(entry: Entry) -> bytes:
    body = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    return b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + _END


def _decode_entry(line: bytes) -> Entry | None:
    body = line[_HEAD_BYTES : -len(_END)]
    if line[:_HEAD_BYTES] != b'{"sum":"%08x","entry":' % zlib.crc32(body) or not line.endswith(
        _END
    ):
        return None
    try:
        entry = read_json(body)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
