"""Where marked words stand in what the voice gets."""

from __future__ import annotations

import pytest

from studio.dialog.pronunciation import Pronunciation, PronunciationRules, build_spoken_words
from studio.hearing.spoken_places import find_spoken_span


def find(
    written: str, span: tuple[int, int], spoken: str, **entries: str
) -> tuple[int, int] | None:
    rules = PronunciationRules(Pronunciation(one, said) for one, said in entries.items())
    return find_spoken_span(written, span, build_spoken_words(written, rules, None), spoken)


def said(written: str, part: str, spoken: str, entries: dict[str, str] | None = None) -> str | None:
    start = written.index(part)
    span = find(written, (start, start + len(part)), spoken, **(entries or {}))
    return spoken[slice(*span)] if span else None


TWO_WORDS = {"Nguyen": "New yen"}


@pytest.mark.parametrize(
    ("written", "part", "spoken", "found", "entries"),
    [
        ("All is well.", "is", "All is well.", "is", {}),
        ("All is well.", "l is w", "All is well.", "All is well", {}),
        ("Well [pause 1s] is it?  Well,  yes.", "Well,", "Well is it? Well, yes.", "Well", {}),
        ("Mrs Nguyen came home.", "Nguyen", "Mrs Win came home.", "Win", {"Nguyen": "Win"}),
        (
            "Mrs Nguyen came home.",
            "Nguyen came",
            "Mrs New yen came home.",
            "New yen came",
            {"Nguyen": "New yen"},
        ),
        ("I laughed [laugh] at it.", "laughed", "I laughed at it.", "laughed", {}),
        ("Don’t go.", "t", "Don't go.", "Don't", {}),
        ("灯还亮着，走吧。", "亮着", "灯还亮着，走吧。", "亮着", {}),
    ],
)
def test_marked_words_are_found(
    written: str, part: str, spoken: str, found: str, entries: dict[str, str]
) -> None:
    assert said(written, part, spoken, entries) == found


def test_of_words_that_come_again_the_marked_one_is_found() -> None:
    written, spoken = "No [sigh] no, no.", "No no, no."
    assert find(written, (10, 12), spoken) == (3, 5)
    assert find(written, (14, 16), spoken) == (7, 9)


def test_what_isnt_said_isnt_found() -> None:
    assert said("Well, [laugh] come in.", "[laugh]", "Well, come in.") is None
    assert find("Come in.", (4, 5), "Come in.") is None
    assert find("Come in.", (7, 8), "Come in.") is None
    assert find("", (0, 4), "") is None
