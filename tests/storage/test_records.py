"""One flipped bit of a record with a checksum is put right; whatever else has changed is not."""

from __future__ import annotations

import random

import pytest

from studio.storage.records import RecordFormat, add_checksum, mend

KIND = RecordFormat("The record")
RECORDS = [
    {},
    {"name": "Ida", "tags": ["warm", "Ä “quoted”"], "figures": {"a": 0.5, "b": None}},
    {"lines": {f"{number:012x}": number for number in range(300)}},
]


def flip(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


@pytest.mark.parametrize("record", RECORDS)
def test_each_bit_that_flips_is_put_right(record) -> None:
    data = KIND.encode(record)
    places = range(8 * len(data))
    for place in random.Random(9).sample(places, min(len(places), 600)):
        assert mend(flip(data, place)) == data
    assert KIND.decode(mend(flip(data, 8 * len(data) - 1))) == record


def test_a_record_as_it_was_written_stays() -> None:
    data = KIND.encode(RECORDS[1])
    assert mend(data) == data


@pytest.mark.parametrize("record", RECORDS)
def test_of_two_flipped_bits_none_is_guessed(record) -> None:
    data, chosen = KIND.encode(record), random.Random(11)
    for _ in range(60):
        first, second = chosen.sample(range(8 * len(data)), 2)
        damaged = flip(flip(data, first), second)
        assert mend(damaged) == damaged
        with pytest.raises(ValueError, match=r"\S"):
            KIND.decode(damaged)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"{\n", b'{\n "sum": "', b'{"name": "Ida"}', b"\xff" * 40, bytes(100), b"[]\n"],
)
def test_what_has_no_checksum_stays(data) -> None:
    assert mend(data) == data


def test_a_long_record_is_not_searched() -> None:
    data = add_checksum(b'{\n "text": "' + b"a" * 300_000 + b'"}\n')
    damaged = flip(data, 8 * 100)
    assert mend(damaged) == damaged
