"""Words that are written have the times of those that are spoken in their place."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.directions import cut_directions
from studio.dialog.pronunciation import Pronunciation, PronunciationRules, build_spoken_words
from studio.dialog.text_view import TextView
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


def view_of(written: str, **entries: str) -> TextView:
    """What is said of a text, with the pronunciations of some words."""
    listed = (Pronunciation(one.replace("_", " "), spoken) for one, spoken in entries.items())
    return build_spoken_words(written, PronunciationRules(listed), None)


def placed(written: str, **entries: str) -> list[tuple[str, float, float]]:
    view = view_of(written, **entries)
    found = place_in_written(said(view.text), view, written)
    assert all(written[one.start : one.end] == one.word for one in found)
    return [(one.word, one.start_s, one.end_s) for one in found]


def test_one_word_for_one() -> None:
    assert placed("Ask Dr. Who", Dr="Doctor") == [("Ask", 0, 1), ("Dr", 1, 2), ("Who", 2, 3)]


def test_stage_directions_have_no_time() -> None:
    assert placed("(whispering) How softly, (softly) for it") == [
        ("How", 0, 1), ("softly", 1, 2), ("for", 2, 3), ("it", 3, 4),
    ]  # fmt: skip


def test_words_without_spaces_stay_apart() -> None:
    spoken = "今天虫庆天气很好。"
    words, at = [], 0
    for number, word in enumerate(("今天", "虫", "庆", "天气", "很好")):
        at = spoken.index(word, at)
        words.append(WordTime(word, at, at + len(word), float(number), number + 1.0))
    written = "（低声）今天重庆天气很好。"
    placed_words = place_in_written(words, view_of(written, 重="虫"), written)
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
    view = cut_directions(written)
    words = place_in_written(said(view.text), view, written)
    line = show_line(TimedLine(1, "Ida", written, 0.0, 9.0, words))
    assert line.text == shown
    assert [line.text[one.start : one.end] for one in line.words] == [one.word for one in words]


def test_many_for_one() -> None:
    assert placed("the UI now", UI="user interface") == [
        ("the", 0, 1), ("UI", 1, 3), ("now", 3, 4),
    ]  # fmt: skip


def test_one_for_many() -> None:
    assert placed("go very very shortly now", very_very_shortly="soon")[1:4] == [
        ("very", 1, 1.267), ("very", 1.267, 1.533), ("shortly", 1.533, 2),
    ]  # fmt: skip


def test_what_isn_t_spoken_has_no_time() -> None:
    assert placed("go, hm, now", hm="") == [("go", 0, 1), ("now", 1, 2)]


def test_words_of_a_piece_find_their_place_in_the_whole() -> None:
    words, written = said("late it is"), "How late it is."
    assert [one.start for one in place_in_written(words, TextView(written), written)] == [4, 9, 12]


def test_words_in_tags_and_before_are_nobodys() -> None:
    written = "late [laugh] laugh, it is"
    words = place_in_written(said("laugh it is"), TextView(written), written)
    assert [one.start for one in words] == [13, 20, 23]


@given(st.lists(st.sampled_from("abcd")), st.dictionaries(st.sampled_from("abc"), st.text("ab ")))
def test_any_pronunciations(written: list[str], entries: dict[str, str]) -> None:
    times = placed(" ".join(written), **entries)
    assert all(start <= end for _, start, end in times)
    assert all(one[2] <= other[1] for one, other in pairwise(times))
