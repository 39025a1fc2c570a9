"""Zip files: written whatever the clock says, and from outside counted before they are read.

`zipfile` refuses times before 1980, which a machine without a battery has until it learns the time.
"""

from __future__ import annotations

import errno
import lzma
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

_END = struct.Struct("<4s4H2LH")
_END64_AND_LOCATOR = struct.Struct("<4sQ2H2L4Q4sLQL")
_END_SIGN, _END64_SIGN, _LOCATOR64_SIGN, _MEMBER_SIGN = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2"
_MAX_COMMENT_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20

_USUAL_ENTRY_BYTES = 500
"""More than the directory has for any member whose name a disk takes."""


_FIRST_TIME, _LAST_TIME = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)


class ZipWriter(zipfile.ZipFile):
    """A new zip file; what is added by its name has the present time, as near as a zip has it."""

    def __init__(self, file: IO[bytes], compression: int = zipfile.ZIP_STORED) -> None:
        super().__init__(file, "w", compression, strict_timestamps=False)

    def writestr(
        self,
        zinfo_or_arcname: str | zipfile.ZipInfo,
        data: Any,
        compress_type: int | None = None,
        compresslevel: int | None = None,
    ) -> None:
        """As in `zipfile`."""
        if isinstance(zinfo_or_arcname, str):
            zinfo_or_arcname = build_zip_info(zinfo_or_arcname)
            zinfo_or_arcname.compress_type = self.compression
            zinfo_or_arcname.external_attr = 0o600 << 16
        super().writestr(zinfo_or_arcname, data, compress_type, compresslevel)


def build_zip_info(name: str) -> zipfile.ZipInfo:
    """A member of that name with the present time."""
    return zipfile.ZipInfo(name, min(max(time.localtime()[:6], _FIRST_TIME), _LAST_TIME))


@contextmanager
def _damage_errors() -> Iterator[None]:
    try:
        yield
    except (
        zlib.error, lzma.LZMAError, EOFError, NotImplementedError,
        OverflowError, ValueError,  # a place or a size that no file has
    ) as error:  # fmt: skip
        raise zipfile.BadZipFile(str(error)) from error
    except OSError as error:
        if error.errno not in (None, errno.EINVAL):
            raise
        # Bzip2's, which has no number, or that of a place before the file's beginning.
        raise zipfile.BadZipFile(error.strerror or str(error)) from error


def open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Open a zip from outside, of a file that can be sought in."""
    with _damage_errors():
        return zipfile.ZipFile(file)


def read_member(
    archive: zipfile.ZipFile, member: str | zipfile.ZipInfo, block_bytes: int
) -> Iterator[bytes]:
    """Unpack a member, block by block; raises as `open_zip`."""
    with _damage_errors(), archive.open(member) as source:
        while block := source.read(block_bytes):
            yield block


def count_members(file: BinaryIO) -> int:
    """How many members a zip file has, at most; 0 of another file, which can be sought in.

    `zipfile` takes 10 µs and 600 bytes for each, as many as the directory holds and whatever its
    end says. This takes a hundredth of that.
    """
    start, size_bytes = _find_directory(file)
    count, kept, left = 0, b"", size_bytes
    file.seek(start)
    while block := file.read(min(_BLOCK_BYTES, left)):
        left -= len(block)
        block = kept + block
        count += block.count(_MEMBER_SIGN)
        kept = block[1 - len(_MEMBER_SIGN) :]
    file.seek(0)
    return max(count, size_bytes // _USUAL_ENTRY_BYTES)


def _find_directory(file: BinaryIO) -> tuple[int, int]:
    """Where the directory begins and its length in bytes, found as `zipfile` finds it."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _MAX_COMMENT_BYTES - _END.size))
    tail = file.read()
    place = len(tail) - _END.size
    if place < 0 or not (tail.startswith(_END_SIGN, place) and tail.endswith(b"\0\0")):
        place = tail.rfind(_END_SIGN)
    if place < 0 or len(tail) - place < _END.size:
        return 0, 0
    end, size_bytes = size - len(tail) + place, _END.unpack_from(tail, place)[5]
    file.seek(max(0, end - _END64_AND_LOCATOR.size))
    before = file.read(min(end, _END64_AND_LOCATOR.size))
    if len(before) == _END64_AND_LOCATOR.size:
        found = _END64_AND_LOCATOR.unpack(before)
        if found[0] == _END64_SIGN and found[10] == _LOCATOR64_SIGN:
            end, size_bytes = end - len(before), found[8]
    size_bytes = min(size_bytes, end)
    return end - size_bytes, size_bytes
