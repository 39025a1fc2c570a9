"""What was said against the text: each kind of difference, and what is none."""

from collections.abc import Iterator

import pytest

from studio.dialog.pronunciation import Pronunciation, PronunciationRules
from studio.hearing.recognition import RecognisedWord, Transcript, split_words
from studio.hearing.transcript_diff import MarkKind, WordMark, compare_transcript
from studio.hearing.word_sounds import EspeakSounds

TEXT = "The lamp is still burning, and nobody has climbed the stairs."
SAID = "the lamp is still burning and nobody has climbed the stairs"


@pytest.fixture(scope="module")
def sounds() -> Iterator[EspeakSounds]:
    found = EspeakSounds()
    yield found
    found.close()


def transcript(said: str) -> Transcript:
    """Words of half a second each."""
    words = enumerate(split_words(said))
    return Transcript(said, tuple(RecognisedWord(word, at / 2, (at + 1) / 2) for at, word in words))


@pytest.fixture
def marks(sounds):
    def compare(
        text: str, said: str, language: str = "en", **options
    ) -> list[tuple[str, str, str]]:
        found = compare_transcript(
            text, transcript(said), language=language, read_sounds=sounds, **options
        )
        return [(mark.kind.value, text[mark.start : mark.end], mark.recognised) for mark in found]

    return compare


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (SAID, []),
        (SAID.replace("still ", ""), [("missing", "still", "")]),
        (SAID.replace("is still ", ""), [("missing", "is still", "")]),
        (SAID.replace("still", "still still"), [("repeated", "still", "still")]),
        (SAID.replace("has climbed", "has climbed has climbed"),
         [("repeated", "has climbed", "has climbed")]),
        (SAID.replace("stairs", "wagon"), [("replaced", "stairs", "wagon")]),
        (SAID.replace("nobody", "nobody orange"), [("extra", "", "orange")]),
        (SAID + " the stairs", [("repeated", "the stairs", "the stairs")]),
        (SAID.replace("the lamp ", "", 1), [("missing", "The lamp", "")]),
        (SAID.replace("still ", "").replace("stairs", "wagon"),
         [("missing", "still", ""), ("replaced", "stairs", "wagon")]),
    ],
)  # fmt: skip
def test_each_fault_is_found_in_its_place(said, expected, marks):
    assert marks(TEXT, said) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("The night knows no peace.", "the knight nose know piece"),
        ("The cat sat on the mat.", "thuh katt zat on the matt"),
        ("It was in 1984.", "it was in nineteen eighty four"),
        ("Twenty-two men came at 18:45.", "22 men came at eighteen forty five"),
        ("It cost $1,999.99, 35 % more.",
         "it cost $1,999.99 35% more"),
        ("Call 555-0199.", "call five five five oh one nine nine"),
        ("I don't know, we've seen it.", "i do not know we have seen it"),
        ("I am going to go; we will not.", "i'm gonna go we won't"),
        ("Dr. Smith lives in the bedroom.", "doctor smith lives in the bed room"),
        ("[laugh] Stop it, <b>now</b>!", "stop it now"),
        ("Stop 🎉 it & go.", "stop it and go"),
        ("No, no, no!", "no no no"),
        ("I'm sure they'd've gone.", "i am sure they would have gone"),
        ("It's 5 km to the lab, e.g. by car.", "its five kilometers to the lab for example by car"),
        ("It fell to -5°C.", "it fell to minus five degrees celsius"),
        ("Louis XIV reads chapter IV.", "louis the fourteenth reads chapter four"),
        ("I have 2 1/2 cups, and ¾ left.", "i have two and a half cups and three quarters left"),
        ("Visit www.example.com on May 25.", "visit example dot com on may twenty fifth"),
    ],
)  # fmt: skip
def test_what_sounds_the_same_is_the_same(text, said, marks):
    assert not marks(text, said)


def test_a_short_word_doesnt_hide_in_its_neighbour(marks):
    assert marks("Am I a man?", "am i man") == [("missing", "a", "")]
    assert marks("No, no, no! Stop it.", "no no stop it") == [("missing", "No", "")]


def test_a_word_with_a_pronunciation_may_be_said_either_way(marks):
    rules = PronunciationRules(
        [Pronunciation("Siobhan", "Shivawn"), Pronunciation("Qx", "quicksilver bird")]
    )
    text = "Siobhan saw the Qx today."
    assert not marks(text, "shivawn saw the quicksilver bird today", pronounce=rules.view)
    assert marks(text, "shivawn saw the today", pronounce=rules.view) == [("missing", "Qx", "")]


def test_other_languages(marks):
    text = "Das Haus kostet 35 Euro."
    assert not marks(text, "das haus kostet fünfunddreißig euro", "de")
    assert marks(text, "das kostet 35 euro", "de") == [("missing", "Haus", "")]
    text = "Dr. Kern zahlt 1.250,50 € bzw. -3 Euro."
    assert not marks(
        text, "doktor kern zahlt tausendzweihundertfünfzig euro fünfzig beziehungsweise"
        " minus drei euro", "de",
    )  # fmt: skip
    assert not marks("La Sra. Paz espera a Ud.", "la señora paz espera a usted", "es")
    assert marks("灯还亮着。", "灯 亮着", "zh") == [("missing", "还", "")]
    assert marks("Xabcd efgh.", "xabcd", "xx") == [("missing", "efgh", "")]


@pytest.mark.parametrize("said", ["", "musik wir haben alles gegen den rest der welt gesagt"])
def test_something_else_altogether_is_one_mark(said, marks):
    assert marks(TEXT, said) == [("unlike", TEXT[:-1], said)]


def guessed(*words: tuple[str, float]) -> Transcript:
    found = tuple(RecognisedWord(word, probability=sure) for word, sure in words)
    return Transcript(" ".join(word for word, _ in words), found)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([("Come", 0.9), ("pack", 0.9), ("now", 0.9)], ["replaced"]),
        ([("Come", 0.9), ("pack", 0.3), ("now", 0.9)], []),
        ([("Come", 0.9), ("now", 0.9)], ["missing"]),
        ([("Come", 0.3), ("now", 0.9)], []),
        ([("Come", 0.9), ("home", 0.9), ("fox", 0.3), ("now", 0.9)], []),
    ],
)
def test_what_a_recogniser_guesses_is_no_mark(said, expected, sounds):
    found = compare_transcript("Come home now.", guessed(*said), language="en", read_sounds=sounds)
    assert [mark.kind for mark in found] == expected


def test_a_mark_of_a_number_stands_on_the_written_one(marks):
    text = "It is 15% more."
    assert marks(text, "it is fifteen percent more") == []
    assert marks(text, "it is fifteen more") == [("missing", "15%", "")]
    assert marks(text, "it is sixty percent more") == [("replaced", "15%", "sixty")]


def test_twenty_thousand_digits_hold_nothing_up(marks):
    digits = "7" * 20_000
    assert marks(f"Say {digits} now.", "say seven now")


def test_text_without_words_has_no_marks(marks):
    assert not marks("😀🎉", "")
    assert not marks("😀🎉", "grinning face")


def test_a_mark_says_when_it_was_said(sounds):
    said = transcript(SAID.replace("stairs", "wagon"))
    (mark,) = compare_transcript(TEXT, said, language="en", read_sounds=sounds)
    assert mark == WordMark(MarkKind.REPLACED, 54, 60, "stairs", "wagon", 5.0, 5.5)


def test_letters_alone_do_where_there_is_no_espeak():
    (mark,) = compare_transcript(TEXT, transcript(SAID.replace("lamp ", "")), language="en")
    assert (mark.kind, mark.written) == (MarkKind.MISSING, "lamp")
