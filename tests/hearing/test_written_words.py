"""Words that are written have the times of those that are spoken in their place."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.directions import cut_directions
from studio.hearing.draft_reading import find_words
from studio.hearing.timing_files import TimedLine, show_line
from studio.hearing.word_times import WordTime
from studio.hearing.written_words import place_in_written


def said(text: str) -> list[WordTime]:
    """A second for each word."""
    return [
        WordTime(text[start:end], start, end, float(at), at + 1.0)
        for at, (start, end) in enumerate(find_words(text))
    ]


def placed(spoken: str, written: str) -> list[tuple[str, float, float]]:
    found = place_in_written(said(spoken), written)
    assert all(written[one.start : one.end] == one.word for one in found)
    return [(one.word, one.start_s, one.end_s) for one in found]


def test_one_word_for_one() -> None:
    assert placed("Ask Doctor Who", "Ask Dr. Who") == [("Ask", 0, 1), ("Dr", 1, 2), ("Who", 2, 3)]


def test_stage_directions_have_no_time() -> None:
    assert placed("How softly, for it", "(whispering) How softly, (softly) for it") == [
        ("How", 0, 1), ("softly", 1, 2), ("for", 2, 3), ("it", 3, 4),
    ]  # fmt: skip


def test_words_without_spaces_stay_apart() -> None:
    spoken = "今天虫庆天气很好。"
    words, at = [], 0
    for number, word in enumerate(("今天", "虫", "庆", "天气", "很好")):
        at = spoken.index(word, at)
        words.append(WordTime(word, at, at + len(word), float(number), number + 1.0))
    placed_words = place_in_written(words, "（低声）今天重庆天气很好。")
    assert [(one.word, one.start_s) for one in placed_words] == [
        ("今天", 0), ("重", 1), ("庆", 2), ("天气", 3), ("很好", 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[laugh] Well, [pause 1s] I never [sigh].", "Well, I never."),
        ("(whispering) Wait (softly) here [sigh] [laugh], Ben [cough]", "Wait here, Ben"),
        ("[direction: to Ben] So you came[laugh]back.", "So you came back."),
        ("Out.[pause:2s]Now (and I mean it)!", "Out. Now (and I mean it)!"),
        ("No tags, 日本 🚤.", "No tags, 日本 🚤."),
        ("[pause 1s]", ""),
    ],
)
def test_captions_show_what_is_said(written: str, shown: str) -> None:
    words = place_in_written(said(cut_directions(written)), written)
    line = show_line(TimedLine(1, "Ida", written, 0.0, 9.0, words))
    assert line.text == shown
    assert [line.text[one.start : one.end] for one in line.words] == [one.word for one in words]


def test_many_for_one() -> None:
    assert placed("the user interface now", "the UI now") == [
        ("the", 0, 1), ("UI", 1, 3), ("now", 3, 4),
    ]  # fmt: skip


def test_one_for_many() -> None:
    assert placed("go soon now", "go very very shortly now")[1:4] == [
        ("very", 1, 1.267), ("very", 1.267, 1.533), ("shortly", 1.533, 2),
    ]  # fmt: skip


def test_what_isn_t_spoken_has_no_time() -> None:
    assert placed("go now", "go, hm, now") == [("go", 0, 1), ("now", 1, 2)]


def test_words_of_a_piece_find_their_place_in_the_whole() -> None:
    words = said("late it is")
    assert [one.start for one in place_in_written(words, "How late it is.")] == [4, 9, 12]


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abcd")))
def test_any_two_texts(spoken: list[str], written: list[str]) -> None:
    times = placed(" ".join(spoken), " ".join(written))
    assert all(start <= end for _, start, end in times)
    assert all(one[2] <= other[1] for one, other in pairwise(times))
