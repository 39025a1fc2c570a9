"""JSON files with the version of their format and a checksum, and the steps from older versions.

The first row of a file, `sum`, is the CRC-32 of all other bytes. The first studios wrote neither a
checksum nor, in most kinds of file, a version; such a file counts as version 0.
"""

from __future__ import annotations

import codecs
import errno
import json
import re
import secrets
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.errors import FormatNewer
from studio.storage.disk import Disk, open_file, read_file, read_json

MAX_TIME_S = 253_402_300_000.0
"""In the year 9999, the last that dates can have."""

Record = dict[str, Any]
Step = Callable[[Record], Record]
"""Makes a record of one version a record of the next."""

_OPENING = b"{\n"
_SUM_ROW = re.compile(rb'\{\n "sum": "([0-9a-f]{8})",\n')
_SPOILT_SUM_ROW = re.compile(rb'\{\n ".{3}": ".{8}",\n', re.DOTALL)
"""One that can't be read as such any more; no file began so before there were checksums."""
_VERSION = re.compile(rb'"version": ?(\d{1,9})(?=\s*[,}])')
_MAX_VERSION = 10**9
_HEAD_BYTES = 256
_ROW_BYTES = len(b'{\n "sum": "00000000",\n')
_MAX_MENDED_BYTES = 1 << 18
_CRC_POLYNOMIAL = 0xEDB88320


def keep_unchanged(record: Record) -> Record:
    """The step between versions of which the older one is a valid newer one as it is."""
    return record


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """A kind of record.

    Attributes:
        name: What messages call it.
        steps: The step from each version to the next, from version 0 on.
        further: Fields that the newest version adds to the last one that has a step. A record
            without them states that last one, so that an earlier studio reads it.
        latest: Fields that a still newer version adds to those, likewise.
    """

    name: str
    steps: tuple[Step, ...] = (keep_unchanged,)
    further: frozenset[str] = frozenset()
    latest: frozenset[str] = frozenset()

    @property
    def version(self) -> int:
        return len(self.steps)

    @property
    def newest(self) -> int:
        return self.version + (2 if self.latest else 1 if self.further else 0)

    def version_of(self, record: Mapping[str, Any]) -> int:
        """The version that a record with these fields states."""
        if any(record.get(name) for name in self.latest):
            return self.version + 2
        return self.version + any(record.get(name) for name in self.further)

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """A file's content, with version and checksum."""
        stated = {"version": self.version_of(record), **record}
        return add_checksum(json.dumps(stated, ensure_ascii=False, indent=1).encode() + b"\n")

    def decode(self, data: bytes, *, by_hand: bool = False) -> Record:
        """Read a file's content as a record of the current version, without version and checksum.

        With `by_hand`, people may edit such a file, so that its checksum isn't compared.

        Raises:
            ValueError: It is malformed, or has changed since it was written.
        """
        data = restore_rows(data)
        if not by_hand:
            check_sum(data)
        record = read_json(data)
        if not isinstance(record, dict):
            raise ValueError("it is no record")
        record.pop("sum", None)
        return self.upgrade(record)

    def upgrade(self, record: Record) -> Record:
        """A record of any version up to this as one of this version, without the version itself.

        Raises:
            ValueError: Its version is no number of a version.
            FormatNewer: A newer studio wrote it.
        """
        record = dict(record)
        version = record.pop("version", 0)
        if type(version) is not int or not 0 <= version < _MAX_VERSION:  # neither 1.0 nor true
            raise ValueError("its version is no whole number")
        if version > self.newest:
            raise FormatNewer(
                f"{self.name} was made by a newer studio (version {version} of its format; this "
                f"one knows {self.newest}). Use the newer one to open it."
            )
        for step in self.steps[version:]:
            record = step(record)
        return record

    def is_current(self, data: bytes) -> bool:
        """Whether the head of a file states a version that needs no step."""
        return self.version <= _read_head_version(data[:_HEAD_BYTES]) <= self.newest

    def write(
        self, disk: Disk, path: Path, record: Mapping[str, Any], *, synced: bool = True
    ) -> None:
        """Write a file; one of another version that it replaces is kept beside it."""
        self.keep_original(disk, path)
        disk.write_whole(path, self.encode(record), synced=synced)

    def keep_original(self, disk: Disk, path: Path) -> None:
        """Copy a file of another version, before it is replaced by one of this version."""
        try:
            with open_file(path) as file:
                head = file.read(_HEAD_BYTES)
        except OSError:
            return
        version = _read_head_version(head)
        if not self.version <= version <= self.newest:
            kept = path.with_name(f"{path.stem}.version-{version}{path.suffix}")
            if not kept.exists():
                disk.copy(path, kept)


LOST_ERRORS = frozenset({errno.EIO, errno.EISDIR, errno.ELOOP})
"""Of a file that no right and no free descriptor makes readable again."""


def set_aside(disk: Disk, path: Path) -> Path:
    """Copy a damaged file, under a name that tells it apart from other damaged ones.

    One that the disk can't read is moved there.

    Raises:
        OSError, StorageFailed: It can't be read or written.
    """
    try:
        checksum, keep = f"{zlib.crc32(read_file(path)):08x}", disk.copy
    except OSError as error:
        if error.errno not in LOST_ERRORS:
            raise
        checksum, keep = f"unread-{secrets.token_hex(4)}", disk.move
    kept = path.with_name(f"{path.stem}.damaged-{checksum}{path.suffix}")
    keep(path, kept)
    return kept


def add_checksum(data: bytes) -> bytes:
    """Insert a first row with the CRC-32 of all other bytes of a JSON object."""
    return _OPENING + b' "sum": "%08x",\n' % zlib.crc32(data) + data[len(_OPENING) :]


def restore_rows(data: bytes) -> bytes:
    """A file's content as it was written, where another program put other ends to its rows.

    Or a mark of UTF-8 before them: neither can be a part of its JSON.
    """
    if b"\r" in data[:_HEAD_BYTES] or data.startswith(codecs.BOM_UTF8):
        return data.removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    return data


def check_sum(data: bytes) -> None:
    """Check that content, as `restore_rows` returns it, is as it was written.

    The files of the first studios have no checksum.

    Raises:
        ValueError: It has changed.
    """
    row = _SUM_ROW.match(data)
    fits = row is None or int(row[1], 16) == zlib.crc32(_OPENING + data[row.end() :])
    if not fits or (row is None and _SPOILT_SUM_ROW.match(data)):
        raise ValueError("it doesn't fit its checksum")


def mend(data: bytes) -> bytes:
    """A file's content as it was written where one bit has flipped since; else as it is.

    Each bit changes a CRC-32 in its own way, whatever the others are: the last one by its
    polynomial, and each before it by one more step of the register.
    """
    row, rest = data[:_ROW_BYTES], data[_ROW_BYTES:]
    whole = add_checksum(_OPENING + rest)
    if (int.from_bytes(whole[:_ROW_BYTES]) ^ int.from_bytes(row)).bit_count() < 2:
        return whole
    if len(data) > _MAX_MENDED_BYTES or not _SUM_ROW.fullmatch(row):
        return data
    wanted, change = int(whole[11:19], 16) ^ int(row[11:19], 16), 1
    for place in range(8 * len(rest)):
        change = change >> 1 ^ (_CRC_POLYNOMIAL if change & 1 else 0)
        if change == wanted:
            mended = bytearray(data)
            mended[-1 - place // 8] ^= 0x80 >> place % 8
            return bytes(mended)
    return data


def _read_head_version(head: bytes) -> int:
    """The version that the first rows state, where each studio writes it; 0 if they don't."""
    found = _VERSION.search(head)
    return int(found[1]) if found else 0
