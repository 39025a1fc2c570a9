"""Lists of pronunciations as files: each format reads back, and bad lines are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.formats.pronunciation_lists import (
    ListFormat,
    read_pronunciations,
    write_pronunciations,
)
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS, Pronunciation, check_pronunciation
from studio.errors import BadInput

PAIR = (Pronunciation("Hoxha", "hodja"),)

words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20)
entries = (
    st.builds(Pronunciation, words, words, st.booleans(), st.booleans())
    .filter(lambda one: one.written.strip())
    .filter(lambda one: _is_kept(one))
    .map(check_pronunciation)
)
lists = st.lists(entries, min_size=1, max_size=6, unique_by=lambda one: one.written)


def _is_kept(entry: Pronunciation) -> bool:
    try:
        check_pronunciation(entry)
    except BadInput:
        return False
    return True


def by_word(found: tuple[Pronunciation, ...] | list[Pronunciation]) -> dict[str, Pronunciation]:
    return {one.written: one for one in found}


@given(lists)
def test_a_table_reads_back_whole(listed: list[Pronunciation]) -> None:
    found, notices = read_pronunciations(write_pronunciations(listed, ListFormat.CSV), "x.csv")
    assert by_word(found) == by_word(listed)
    assert notices == ()


@given(lists)
def test_text_reads_back_but_for_capitals_and_what_is_off(listed: list[Pronunciation]) -> None:
    data = write_pronunciations(listed, ListFormat.TEXT)
    kept = {one.written: one.spoken for one in listed if one.enabled}
    if not kept:
        with pytest.raises(BadInput):
            read_pronunciations(data, "x.txt")
        return
    found, _ = read_pronunciations(data, "x.txt")
    assert {one.written: one.spoken for one in found} == kept


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("Hoxha = hodja", "list.txt"),
        ("# names\n\n  Hoxha=hodja  \r\n", "list"),
        ("Hoxha,hodja", "list.csv"),
        ("written,spoken\nHoxha,hodja", "list.csv"),
        ("Alias;Word\nhodja;Hoxha", "list.csv"),
        ("id\tWord\tPronunciation\n7\tHoxha\thodja", "list.tsv"),
        ('{"Hoxha": "hodja"}', "list.json"),
        ('[{"written": "Hoxha", "spoken": "hodja"}]', "list"),
        ('{"pronunciations": [{"written": "Hoxha", "spoken": "hodja"}]}', "list.json"),
    ],
)
def test_lists_of_many_kinds_are_read(data: str, name: str) -> None:
    assert read_pronunciations(data.encode("utf-8-sig"), name)[0] == PAIR
    assert read_pronunciations(data.encode("utf-16"), name)[0] == PAIR


def test_columns_of_a_table_say_what_else_holds() -> None:
    table = "written,spoken,match case,enabled\nUS,you ess,yes,no\nA,B,,\n"
    found, _ = read_pronunciations(table.encode(), "x.csv")
    assert found == (Pronunciation("US", "you ess", True, False), Pronunciation("A", "B"))


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"", "x.txt", "is empty"),
        (b"# nothing\n", "x.txt", "holds no pronunciations"),
        (b"a = b\nno sign", "x.txt", "Line 2: .*has no “=”"),
        (b"a = b\n = c", "x.txt", "Line 2: "),
        (b"a = " + b"b" * 201, "x.txt", "Line 1: .*Shorten it"),
        (b"a,b,maybe", "x.csv", "Line 1: .*neither yes nor no"),
        (b"{", "x.json", "JSON can't be used"),
        (b"[" * 100_000, "x.json", "JSON can't be used"),
        (b'["a"]', "x.json", "JSON can't be used"),
        (b'{"a": {"b": 1}}', "x.json", "JSON can't be used"),
        (b'["\\ud800"]', "x.json", "JSON can't be used"),
        (b"%PDF-1.7 a = b", "x.txt", "is a PDF"),
    ],
)
def test_what_is_no_list_is_refused_with_its_place(data: bytes, name: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        read_pronunciations(data, name)


def test_too_long_a_list_is_refused() -> None:
    data = "".join(f"w{n} = x\n" for n in range(MAX_PRONUNCIATIONS + 1))
    with pytest.raises(BadInput, match="2,000 are the most"):
        read_pronunciations(data.encode(), "x.txt")
