"""Phonemes for models that speak from phonemes, with the clauses' punctuation."""

import pytest

from studio.backends.espeak.phonemizer import Clause, Phonemizer
from studio.backends.sherpa.kokoro_phonemes import TIE, adapt
from studio.errors import SpeechFailed


@pytest.fixture(scope="module")
def phonemizer():
    phonemizer = Phonemizer(workers=1)
    yield phonemizer
    phonemizer.close()


def test_clauses_keep_their_marks(phonemizer):
    (clauses,) = phonemizer.read(["Hello, world; is it you? Yes: me!"], "en-US")
    assert clauses == [
        Clause("həlˈoʊ", ","),
        Clause("wˈɜːld", ";"),
        Clause("ɪz ɪt juː", "?"),
        Clause("jˈɛs", ":"),
        Clause("mˈiː", "!"),
    ]


@pytest.mark.parametrize(
    ("sentence", "marks"),
    [
        ("Dr. Smith has 3.5 apples.", ["", "."]),
        ("He said “come in.” Then he left — at once…", [".", ",", "."]),
        ("Well... no", [".", ""]),
        ("(Really!)", ["!"]),
    ],
)
def test_a_full_stop_of_an_abbreviation_is_no_mark(sentence, marks, phonemizer):
    (clauses,) = phonemizer.read([sentence], "en-US")
    assert [clause.mark for clause in clauses] == marks


def test_sentences_stay_apart_and_silent_ones_are_empty(phonemizer):
    read = phonemizer.read(["One.", "…", "Two."], "en-US")
    assert [len(clauses) for clauses in read] == [1, 0, 1]


def test_what_is_read_in_another_language_has_no_label(phonemizer):
    (clauses,) = phonemizer.read(["J'aime the weather."], "fr", tie=TIE)
    assert "(" not in clauses[0].ipa
    assert "en" not in clauses[0].ipa


def test_an_unknown_language_is_refused(phonemizer):
    with pytest.raises(SpeechFailed, match="“tlh”"):
        phonemizer.read(["Hello."], "tlh")


@pytest.mark.parametrize(
    ("text", "language", "letters"),
    [
        ("judge", "en-US", "ʤˈʌʤ"),
        ("nature", "en-US", "nˈAʧəɹ"),
        ("go now", "en-US", "ɡˌO nˈW"),
        ("boy time", "en-GB", "bˈY tˈIm"),
        ("go", "en-GB", "ɡˌQ"),
        ("button", "en-US", "bˈʌtᵊn"),
        ("ça va", "fr", "sa vˈa"),
    ],
)
def test_kokoro_has_letters_of_its_own_for_diphthongs(text, language, letters, phonemizer):
    (clauses,) = phonemizer.read([text], language, tie=TIE)
    assert adapt(clauses[0].ipa, language).replace("ˌ", "ˈ") == letters.replace("ˌ", "ˈ")
