"""Marks are weighed against what the recogniser hears in the draft voice's reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest

from studio.hearing.mark_weighing import find_suspects, weigh_suspects
from studio.hearing.recognition import RecognisedWord, Transcript, split_words
from studio.hearing.transcript_diff import compare_transcript, hear
from studio.hearing.word_sounds import EspeakSounds, find_places
from studio.hearing.word_times import WordFit

TEXT = "The lamp is still burning, and nobody has climbed the stairs."
SAID = "the lamp is still burning and nobody has climbed the stairs"
MISHEARD = "tha lam is stil burnin an no body haz clime the stares"

FAULTS = [
    SAID.replace("still ", ""),
    SAID.replace("is still ", ""),
    SAID.replace("has ", ""),
    SAID.replace("still", "still still"),
    SAID.replace("has climbed", "has climbed has climbed"),
    SAID.replace("stairs", "wagon"),
    SAID.replace("lamp", "dog"),
    SAID.replace("nobody", "nobody orange"),
    SAID + " the stairs",
    SAID.replace("the lamp ", "", 1),
    SAID.replace("still ", "").replace("stairs", "wagon"),
    "musik wir haben alles gegen den rest der welt gesagt",
    "",
]


@pytest.fixture(scope="module")
def sounds() -> Iterator[EspeakSounds]:
    found = EspeakSounds()
    yield found
    found.close()


def transcript(said: str) -> Transcript:
    words = tuple(
        RecognisedWord(word, at / 2, (at + 1) / 2) for at, word in enumerate(split_words(said))
    )
    return Transcript(said, words)


Weigh = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def weigh(sounds: EspeakSounds) -> Weigh:
    def weigh(
        said: str, reading: str, fits: Sequence[WordFit] = (), text: str = TEXT
    ) -> list[tuple[str, str]]:
        """The kinds of marks, and their words."""
        heard, read = (
            hear(text, transcript(one), language="en", read_sounds=sounds)
            for one in (said, reading)
        )
        marks = weigh_suspects(find_suspects(heard), heard, read, fits)
        return [(mark.kind.value, text[mark.start : mark.end]) for mark in marks]

    return weigh


def fits(lengths: dict[str, float] | None = None, distance: float = 1.0) -> list[WordFit]:
    """A take that fits the reading, but for words of other lengths."""
    found, at = [], 0
    for word in TEXT.split():
        at = TEXT.index(word, at)
        length = (lengths or {}).get(word, 1.0)
        found.append(WordFit(at, at + len(word), length, distance))
    return found


@pytest.mark.parametrize("said", FAULTS)
def test_a_recogniser_that_hears_the_reading_well_is_believed(said, weigh, sounds):
    plain = compare_transcript(TEXT, transcript(said), language="en", read_sounds=sounds)
    assert plain
    assert weigh(said, SAID) == [(one.kind.value, TEXT[one.start : one.end]) for one in plain]
    assert weigh(said, SAID.replace("stairs", "stares"), fits()) == weigh(said, SAID)


@pytest.mark.parametrize("said", FAULTS[:-2])
def test_it_is_believed_too_where_it_mishears_one_word_of_the_reading(said, weigh):
    assert weigh(said, SAID.replace("burning", "barn"))


@pytest.mark.parametrize(
    ("said", "reading"),
    [
        (SAID.replace("has ", ""), SAID.replace("has ", "")),
        (SAID.replace("lamp", "lad"), SAID.replace("lamp", "lad")),
        ("la stil burn an no clim stars bottle", "la stil burn an no clim stars bottle"),
        (SAID, MISHEARD),
    ],
)
def test_what_is_misheard_in_the_reading_too_is_no_mark(said, reading, weigh):
    assert not weigh(said, reading)


def test_a_take_that_fits_the_reading_is_doubted_less(weigh):
    said = MISHEARD.replace("haz ", "").replace("stil", "stul")
    read = MISHEARD.replace("haz ", "az ")
    assert weigh(said, read, fits({"has": 0.33}, distance=1.4)) == [("missing", "has")]
    assert not weigh(said, read, fits())


def test_a_word_said_twice_and_written_as_one_is_found(weigh):
    text = "We wait until the key comes back."
    reading = "we wate until tha ke coms bak"
    assert weigh("we wate until tha keke coms bak", reading, text=text) == [("repeated", "key")]
    assert not weigh(reading, reading, text=text)


def test_text_without_words_and_a_reading_of_nothing(weigh):
    assert weigh("", "", text="🎉 🎉") == []
    assert weigh(FAULTS[0], "") == [("missing", "still")]


@pytest.mark.parametrize(
    ("text", "heard", "places", "expected"),
    [
        ("withakey", "withake", (4, 5, 8), [4, 5, 7]),
        ("abc", "", (0, 1, 3), [0, 0, 0]),
        ("", "abc", (0,), [0]),
        ("thekey", "xthekey", (3, 6), [4, 7]),
    ],
)
def test_places_of_a_text_are_found_in_what_was_heard(text, heard, places, expected):
    assert find_places(text, heard, places) == expected
