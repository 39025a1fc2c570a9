import contextlib
from itertools import pairwise

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.planning import cut_sentences, split_text
from studio.errors import ScriptError

WORDS = ["one", "two,", "three.", "Four", "don't", "[clear throat]", "—", "z.B.", "5", "(six)", "…"]


def joined(pieces):
    return "".join("".join(pieces).split())


def test_short_text_is_one_piece():
    assert split_text("  One. Two.  ", 300) == ["One. Two."]
    assert split_text("   ", 300) == []


def test_sentences_are_packed():
    text = "One is here. Two is here. Three is here. Four."
    assert split_text(text, 26) == ["One is here. Two is here.", "Three is here. Four."]


def test_abbreviations_end_no_sentence_of_their_language():
    german = "Das war am 3. Mai im kleinen Ort. Danach nie wieder."
    assert split_text(german, 40, "de-AT")[0] == "Das war am 3. Mai im kleinen Ort."
    assert split_text("I met Dr. Ames there. Then we went home.", 25)[0] == "I met Dr. Ames there."


@pytest.mark.parametrize(
    ("text", "max_chars", "pieces"),
    [
        ("If it rains, we stay; if not, we go", 22, ["If it rains, we stay;", "if not, we go"]),
        ("He came — and went “away,” she said", 28, ["He came — and went “away,”", "she said"]),
        ("若下雨，我们就留下。若天晴，就走", 10, ["若下雨，我们就留下。", "若天晴，就走"]),
        ("若天气很好，我们就走", 7, ["若天气很好，", "我们就走"]),
        ("إذا أمطرت، نبقى هنا", 12, ["إذا أمطرت،", "نبقى هنا"]),
    ],
)
def test_long_sentences_are_cut_at_clauses(text, max_chars, pieces):
    assert split_text(text, max_chars) == pieces


@pytest.mark.parametrize(
    ("text", "max_chars", "pieces"),
    [
        ("one two three four", 9, ["one two", "three", "four"]),
        ("a well-known don't", 10, ["a", "well-known", "don't"]),
        ("我们今天去公园玩", 3, ["我们今", "天去公", "园玩"]),
        ("カタカナ語です", 4, ["カタカナ", "語です"]),
        ("你好吗？再见", 3, ["你好", "吗？", "再见"]),
    ],
)
def test_long_clauses_are_cut_at_words(text, max_chars, pieces):
    assert split_text(text, max_chars) == pieces


def test_tags_stay_whole():
    text = "Well [clear throat] I never [laugh] did <prosody rate=x> that"
    pieces = split_text(text, 18)
    for tag in ("[clear throat]", "[laugh]", "<prosody rate=x>"):
        assert any(tag in piece for piece in pieces)


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "Well, " + "x" * 10_000, "[clear throat]" + "x" * 9_990]
)
def test_a_word_too_long_is_refused(text):
    with pytest.raises(ScriptError, match=r"A word of (9,9|10,0)\d\d characters .* 300"):
        split_text(text, 300)


@given(st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join), st.integers(14, 60))
def test_words_and_tags_survive_whole(text, max_chars):
    pieces = split_text(text, max_chars)
    assert " ".join(pieces).split() == text.split()
    assert all(0 < len(piece) <= max_chars for piece in pieces)
    for piece, following in pairwise(pieces):
        assert len(piece) + len(following) + 1 > max_chars


@given(
    st.text(max_size=300) | st.text("ab .,，。[]<>'\u0301\u200d🇩我アก", max_size=300),
    st.integers(1, 60),
    st.sampled_from([None, "de", "zh", "x-unknown", "ar"]),
)
def test_nothing_but_white_space_is_lost(text, max_chars, language):
    try:
        pieces = split_text(text, max_chars, language)
    except ScriptError:
        return
    assert joined(pieces) == "".join(text.split())
    assert all(piece == piece.strip() and 0 < len(piece) <= max_chars for piece in pieces)


def _split(text, max_chars=300):
    with contextlib.suppress(ScriptError):
        split_text(text, max_chars)


def test_a_line_of_10_000_characters_takes_little():
    text = "The lamp went out, and nobody said a word about it for a long while. " * 150
    assert_linear(lambda chars: _split(text[:chars]), 10_000)


LONGEST = [
    ("word ", 20_000),
    ("我", 100_000),
    ("🇩🇪", 50_000),
    ("🇩", 99_999),
    (".", 100_000),
    ("[", 100_000),
    ("<a", 50_000),
    ("a\u0301", 50_000),
    ("a.", 50_000),
    ("a:\u200d", 33_000),
    ("\u200d", 100_000),
    ("!? ", 33_000),
    ("(“", 50_000),
    ("a, ", 33_000),
    ("'", 100_000),
    ("1,", 50_000),
    ('א"', 50_000),
    ("日本語の文章を、ここに書く。", 7_000),
    ("今日は！", 25_000),
]


longest_lines = pytest.mark.parametrize(
    ("repeated", "times"), LONGEST, ids=[f"text{idx}" for idx in range(len(LONGEST))]
)


@longest_lines
def test_the_longest_line_takes_linear_time(repeated, times):
    assert_split_in_linear_time(repeated, times // 4, 5_000)


@pytest.mark.campaign
@longest_lines
def test_the_longest_line_takes_linear_time_at_its_whole_length(repeated, times):
    assert_split_in_linear_time(repeated, times, 20_000)


def assert_split_in_linear_time(repeated, times, max_chars):
    behind = "a" if repeated == "🇩" else ""
    assert_linear(lambda times: _split(repeated * times + behind), times)
    assert_linear(lambda times: _split(repeated * times + behind, max_chars), times)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I met Ms. Ames today.", "en"),
        ("Mx. Lee is here.", "en"),
        ("We drove to Ft. Worth.", "en"),
        ("In Vol. 2 it says so.", "en"),
        ("It is approx. 5 miles.", "en"),
        ("M. Dupont arrive.", "fr"),
        ("Mme. Vale arrive.", "fr"),
        ("“Stop!” Tom said.", "en"),
        ("“Why?” I asked.", "en"),
        ('"Are you there?" Ida asked.', "en"),
    ],
)
def test_a_title_and_what_is_quoted_end_no_sentence(text: str, language: str) -> None:
    assert cut_sentences(text, language) == [text]


@pytest.mark.parametrize(
    ("text", "language", "count"),
    [
        ("“Go!” Tom left.", "en", 2),
        ("Stop. Tom said so.", "en", 2),
        ("वह आया। वह गया।", "hi", 2),
        ("他来了。他走了！", "zh", 2),
        ("هل جاء؟ نعم.", "ar", 2),
    ],
)
def test_marks_of_every_script_end_a_sentence(text: str, language: str, count: int) -> None:
    assert len(cut_sentences(text, language)) == count
