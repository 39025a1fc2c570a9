"""Counts the members of a zip file from outside before `zipfile` makes an object of each."""

from __future__ import annotations

import struct
from typing import BinaryIO

_END = struct.Struct("<4s4H2LH")
_END64_AND_LOCATOR = struct.Struct("<4sQ2H2L4Q4sLQL")
_END_SIGN, _END64_SIGN, _LOCATOR64_SIGN, _MEMBER_SIGN = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2"
_MAX_COMMENT_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 20

_USUAL_ENTRY_BYTES = 500
"""More than the directory has for any member whose name a disk takes."""


def count_members(file: BinaryIO) -> int:
    """How many members a zip file has, at most; 0 of another file.

    `zipfile` takes 10 µs and 600 bytes for each, as many as the directory holds and whatever its
    end says. This takes a hundredth of that.

    Args:
        file: Seekable.
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
