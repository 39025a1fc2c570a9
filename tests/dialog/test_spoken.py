"""What is said of a text: a table of phrases, the places of the words, time, and odd input."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.spoken import say

_PHRASES = Path(__file__).with_name("spoken_phrases.tsv").read_text("utf-8").splitlines()
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ja", "zh")


def test_the_table_has_enough_phrases_of_each_language() -> None:
    counted = [row.partition("\t")[0][:2] for row in _PHRASES]
    assert len(counted) >= 900
    assert all(counted.count(one) >= 40 for one in _LANGUAGES[:6])


@pytest.mark.parametrize("row", _PHRASES)
def test_a_phrase_is_said_as_people_say_it(row: str) -> None:
    language, written, spoken = row.split("\t")
    assert say(written, language).text == spoken


def test_words_know_the_place_that_they_come_from() -> None:
    written = "Pay $4.50 to Dr. Lee, now."
    said = say(written, "en")

    def find(words: str) -> str:
        at = said.text.index(words)
        start, end = said.find_source(at, at + len(words))
        return written[start:end]

    assert said.text == "Pay four dollars fifty to Doctor Lee, now."
    assert find("four dollars fifty") == find("dollars") == "$4.50"
    assert find("Doctor") == "Dr."
    assert [find(one) for one in ("Pay", "to", "Lee", "now")] == ["Pay", "to", "Lee", "now"]


@given(st.text("aA1$€%.,-:/#@&*_<[( Dr\u00b2½ª°hIVXé😀", max_size=60), st.sampled_from(_LANGUAGES))
def test_places_are_in_order_and_within_both_texts(text: str, language: str) -> None:
    said = say(text, language)
    at = from_at = 0
    kept = []
    for start, end, from_start, from_end in said.places:
        assert at <= start <= end <= len(said.text)
        assert from_at <= from_start < from_end <= len(text)
        kept.append((said.text[at:start], text[from_at:from_start]))
        at, from_at = end, from_end
    kept.append((said.text[at:], text[from_at:]))
    assert all(one == other for one, other in kept)


@pytest.mark.parametrize("text", ["In 1984 kostet das 3,50 €.", "¡Hola! 😀", "", " ", "..."])
def test_a_language_that_is_not_known_passes_unchanged(text: str) -> None:
    assert say(text, "xx").text == text
    assert say(text, None).text == text


def test_tags_and_pauses_stay_as_they_are() -> None:
    text = "One [laugh] 2 [pause:1.5s] 3 <break time='2s'/> 4 (pause 3s) 5 [5 minutes later]"
    said = say(text, "en").text
    for tag in ("[laugh]", "[pause:1.5s]", "<break time='2s'/>", "(pause 3s)", "[5 minutes later]"):
        assert tag in said
    assert "two" in said
    assert "five" in said


def test_a_run_of_very_many_digits_stays_as_it_is() -> None:
    assert say("1" * 20_000, "en").text == "1" * 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "sign",
    ["1", "1,", "1 ", "$", "1-", "a@", "a.b/", "[", "*a", "W-w-", "o", "1:", "1/2 ", "&amp;", "I",
     "Henry V", "12.05.", "😀", "3 x ", "_", "+1 ", "http://", "No. ", "](", "1.1", "5 May ",
     "5 ft. ", "<b>", "<", "(1) ", "mm", "hm-", "a-", "0 ", "A", "Dr. ", "St. A", "1h", "XX "],
)  # fmt: skip
def test_the_time_is_linear(sign: str) -> None:
    unheard = count()  # what was said once is remembered

    def work(chars: int) -> object:
        return say(f"{next(unheard)} " + sign * (chars // len(sign)), "en")

    assert_linear(work, 12_000)
