"""What a voice hears of a text: whole words, the longest first, each place once."""

from __future__ import annotations

import random
import re
import sys
import tracemalloc
import unicodedata

import pytest
from dialog_strategies import texts
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.model import (
    MAX_LINE_CHARS,
    Dialog,
    Speech,
    SpeechLimits,
    SpokenText,
    normalize_spoken_text,
)
from studio.dialog.planning import FailedSegment, Plan, SilenceSegment, SpeechSegment, plan
from studio.dialog.pronunciation import (
    MAX_PRONUNCIATION_CHARS,
    MAX_PRONUNCIATIONS,
    Pronunciation,
    PronunciationRules,
    check_pronunciation,
    check_pronunciations,
)
from studio.dialog.tags import TAG
from studio.errors import BadInput

LIMITS = SpeechLimits(max_chars=200, tags=frozenset({"laugh"}))


def spoken(text: str, *pairs: tuple[str, str], **flags: bool) -> str:
    return PronunciationRules(Pronunciation(*pair, **flags) for pair in pairs).spoken(text)


def planned(text: str, *pairs: tuple[str, str]) -> Plan:
    pronounce = PronunciationRules(Pronunciation(*pair) for pair in pairs).spoken
    return plan(Dialog((Speech("Ida", text),)), LIMITS, pronounce=pronounce)


@pytest.mark.parametrize(
    ("text", "pair", "heard_as"),
    [
        ("Mr Hoxha came.", ("Hoxha", "hodja"), "Mr hodja came."),
        ("HOXHA’s", ("hoxha", "hodja"), "hodja’s"),
        ("Hoxhas and Preoxha", ("Hoxha", "hodja"), "Hoxhas and Preoxha"),
        ("A Hoxha-like Hoxha_2", ("Hoxha", "hodja"), "A hodja-like Hoxha_2"),
        ("two words here", ("two words", "2 w"), "2 w here"),
        ("two  words", ("two words", "2 w"), "2 w"),
        ("C++ and C", ("C++", "see plus plus"), "see plus plus and C"),
        ("R&D, R & D", ("&", "and"), "R and D, R and D"),
        ("O’Hara", ("O'Hara", "oh hara"), "oh hara"),
        ("Cafe\u0301 life", ("Café", "kaffay"), "kaffay life"),
        ("STRASSE", ("Straße", "shtrasse"), "shtrasse"),
        ("Well um yes.", ("um", ""), "Well yes."),
        ("Yes um.", ("um", ""), "Yes."),
        ("Well, um, yes.", ("um", ""), "Well, yes."),
        ("Um, yes.", ("um", ""), "yes."),
        ("TM™ Co™op", ("™", ""), "TM Coop"),
        ("東京駅へ", ("東京", "とうきょう"), "とうきょう駅へ"),
        ("서울은 크다", ("서울", "소울"), "소울은 크다"),
        ("NHKは", ("NHK", "エヌエイチケイ"), "エヌエイチケイは"),
        ("ไปกรุงเทพวันนี้", ("กรุงเทพ", "เมืองหลวง"), "ไปเมืองหลวงวันนี้"),
        ("กี", ("ก", "x"), "กี"),
        ("हिन्दी में", ("हिन्द", "x"), "हिन्दी में"),
    ],
)
def test_whole_words_are_said_otherwise(text: str, pair: tuple[str, str], heard_as: str) -> None:
    assert spoken(normalize_spoken_text(text), pair) == heard_as


def test_tags_and_pauses_stay_as_they_are() -> None:
    pairs = (("laugh", "ha"), ("pause", "stop"), ("break", "snap"), ("s", "ess"))
    text = "[laugh] laugh [pause:1s] (pause 2 s) <break time='1s'/> pause s"
    tags = "[laugh] ha [pause:1s] (pause 2 s) <break time='1s'/> stop ess"
    assert spoken(text, *pairs) == tags


def test_the_longest_goes_first_and_a_shorter_one_where_it_does_not_end_with_a_word() -> None:
    pairs = (("New", "Neu"), ("New York", "Nyork"), ("York", "Jork"))
    assert spoken("New York, New Yorker, York", *pairs) == "Nyork, Neu Yorker, Jork"


def test_the_longest_goes_first_whether_or_not_its_capitals_count() -> None:
    short = Pronunciation("New", "nu", match_case=True), Pronunciation("new", "nu")
    long = Pronunciation("New York", "Nyork", match_case=True), Pronunciation("new york", "Nyork")
    for one, other in ((short[0], long[1]), (short[1], long[0])):
        for entries in ([one, other], [other, one]):
            assert PronunciationRules(entries).spoken("New York, New") == "Nyork, nu"


def test_nothing_is_replaced_twice() -> None:
    assert spoken("cat dog", ("cat", "dog"), ("dog", "cat")) == "dog cat"


def test_capitals_that_count_go_before_those_that_do_not() -> None:
    entries = [Pronunciation("us", "uss"), Pronunciation("US", "you ess", match_case=True)]
    assert PronunciationRules(entries).spoken("us US Us") == "uss you ess uss"
    assert PronunciationRules(entries[1:]).spoken("us US Us") == "us you ess Us"


def test_what_is_switched_off_does_nothing() -> None:
    assert spoken("cat", ("cat", "dog"), enabled=False) == "cat"
    assert not PronunciationRules([Pronunciation("cat", "dog", enabled=False)])


@given(texts)
def test_without_entries_text_is_the_same(text: str) -> None:
    assert PronunciationRules().spoken(text) is text


words = st.text("abcdé東ü", min_size=1, max_size=4).filter(str.strip)
lists = st.dictionaries(words, st.text("xyzß ", max_size=5), max_size=6).map(
    lambda pairs: PronunciationRules(
        check_pronunciation(Pronunciation(*pair)) for pair in pairs.items()
    )
)
lines = st.lists(
    st.one_of(words, st.sampled_from(["[laugh]", "(pause:1s)", "<b>", "[abc]", ",", "A É"])),
    max_size=12,
).map(" ".join)


@given(lists, lines)
def test_where_no_spoken_form_holds_a_written_one_twice_is_once(
    pronounce: PronunciationRules, text: str
) -> None:
    once = pronounce.spoken(text)
    assert pronounce.spoken(once) == once
    assert pronounce.used(once) == frozenset()


@given(lists, lines)
def test_tags_are_untouched_whatever_the_list(pronounce: PronunciationRules, text: str) -> None:
    assert TAG.findall(pronounce.spoken(text)) == TAG.findall(text)


@given(lists, lines)
def test_what_is_used_is_what_changes_the_text(pronounce: PronunciationRules, text: str) -> None:
    if not pronounce.used(text):
        assert pronounce.spoken(text) is text


def replaced_simply(entries: list[Pronunciation], text: str) -> list[str]:
    """The words that are replaced, found by trying every entry at every place."""
    found, at = [], 0
    while at < len(text):
        fitting = [
            (stop, entry.match_case, entry.written)
            for entry in entries
            for stop in range(at + 1, len(text) + 1)
            if form(text[at:stop], entry) == form(entry.written, entry)
            and not joined(text, at)
            and not joined(text, stop)
        ]
        at += 1
        if fitting:
            at, _, written = max(fitting, key=lambda one: one[:2])
            found.append(written)
    return found


def form(text: str, entry: Pronunciation) -> str:
    return text if entry.match_case else text.casefold()


def joined(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    if unicodedata.category(text[at])[0] == "M":
        return True
    return all(
        unicodedata.category(one)[0] in "LMN" and one != "東" for one in text[at - 1 : at + 1]
    )


odd_words = st.text("aAbßsSﬁfiİ東é\u0323 -'&", min_size=1, max_size=5)


@given(
    st.lists(st.builds(Pronunciation, odd_words, match_case=st.booleans()), max_size=5),
    st.lists(odd_words, max_size=5).map("".join),
)
def test_the_search_finds_what_trying_everything_finds(
    entries: list[Pronunciation], text: str
) -> None:
    kept: dict[str, Pronunciation] = {}
    for entry in entries:
        written = unicodedata.normalize("NFC", entry.written)
        marked = Pronunciation(written, f"<{len(kept)}>", entry.match_case)
        if not any(form(one.written, entry) == form(written, entry) for one in kept.values()):
            kept[written] = marked
    text = unicodedata.normalize("NFC", text)
    pronounce = PronunciationRules(kept.values())
    marks = re.findall(r"<\d+>", pronounce.spoken(text))
    by_mark = {one.spoken: one.written for one in kept.values()}
    assert [by_mark[one] for one in marks] == replaced_simply(list(kept.values()), text)


def steps_of(pronounce: PronunciationRules, text: str) -> int:
    """How many calls the search makes, those into the interpreter's own functions included."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    pronounce.spoken(text[:1_000])  # the list is made ready, and pairs of characters are known
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        pronounce.spoken(text)
    finally:
        sys.setprofile(before)
    return calls


HOSTILE_LISTS = {
    "phrases": ([f"{'a ' * (n % 97)}b{n}" for n in range(MAX_PRONUNCIATIONS)], "a "),
    "all phrases": ([("a " * 99)[: n % 197 + 1] for n in range(MAX_PRONUNCIATIONS)], "a "),
    "one word": (["a" * (n % 200 + 1) for n in range(MAX_PRONUNCIATIONS)], f"{'a' * 150}c "),
    "no spaces": (["東" * (n % 190 + 1) + str(n) for n in range(MAX_PRONUNCIATIONS)], "東"),
    "nested": (["東" * (n % 200 + 1) for n in range(MAX_PRONUNCIATIONS)], f"{'東' * 150}京"),
    "marks": (["क" + "\u093c" * (n % 199) for n in range(MAX_PRONUNCIATIONS)], "क" + "\u093c" * 9),
}


@pytest.mark.parametrize("name", HOSTILE_LISTS)
def test_the_most_hostile_list_takes_linear_time(name: str) -> None:
    written, word = HOSTILE_LISTS[name]
    pronounce = PronunciationRules(check_pronunciations(map(Pronunciation, written)))
    text = word * (6_000 // len(word))
    once, twice = steps_of(pronounce, text), steps_of(pronounce, text + text)
    assert once <= 100 * len(text)
    assert twice <= 2.2 * once + 1_000


@pytest.mark.parametrize(
    ("piece", "pair"),
    [
        ("river ", ("river", "reever")),
        ("a ", ("a", "")),
        ("a&", ("&", "and")),
        ("[laugh] a ", ("a", "ay")),
        ("(I say) <b>a</b> ", ("a", "ay")),
        ("😀", ("😀", "🙂")),
        ("😀", ("😀", "")),
        ("日本a", ("本", "hon")),
        ("é ", ("É", "eh")),
    ],
)
def test_text_of_nothing_but_known_words_takes_no_step_for_each(
    piece: str, pair: tuple[str, str]
) -> None:
    pronounce = PronunciationRules([Pronunciation(*pair)])
    text = piece * 3_000
    assert steps_of(pronounce, text) <= 300
    assert pronounce.spoken(text) == spoken(text, pair, (f"{pair[0]} no more", "?"))


pieces = st.sampled_from(
    [
        *"aAß東é&,'ʼ😀[]<>(!",
        "\u0323",
        "a ",
        ", ",
        "[laugh]",
        "<b>",
        "(pause)",
        "[pause:1s] ",
        "<break>",
    ]
)


@given(
    st.dictionaries(
        st.lists(pieces, min_size=1, max_size=2).map("".join),
        st.sampled_from(["", *"xX,é&東 \u0323"]),
    ),
    st.lists(pieces, max_size=30).map("".join),
    st.booleans(),
)
def test_phrases_that_are_not_there_change_nothing(
    pairs: dict[str, str], text: str, match_case: bool
) -> None:
    entries = [Pronunciation(*pair, match_case) for pair in pairs.items()]
    phrases = [Pronunciation(f"{one.written} no more", "?", match_case) for one in entries]
    alone, along = PronunciationRules(entries), PronunciationRules([*entries, *phrases])
    assert alone.spoken(text) == along.spoken(text)
    assert alone.used(text) == along.used(text)


def test_a_longer_list_makes_plain_text_hardly_slower() -> None:
    text = "The keeper of the lighthouse counts her steps and comes down again. " * 50
    entries = [Pronunciation(f"Keeper{n} of", "x") for n in range(MAX_PRONUNCIATIONS)]
    few, many = (steps_of(PronunciationRules(entries[:size]), text) for size in (10, len(entries)))
    assert many <= 1.5 * few


PHRASES = ["the river", "the river is", "river is quiet", "is quiet and", "quiet and the", "and"]
MANY_CANDIDATES = {
    "phrases that overlap": (PHRASES, "the river is quiet and "),
    "phrases that go on otherwise": ([f"{one} too" for one in PHRASES], "the river is quiet and "),
    "nested phrases": (["a " * size + f"b{size}" for size in range(90)], "a "),
    "without spaces": (["東" * size + str(size) for size in range(1, 190)], "東"),
    "Thai": (["กรุงเทพ", "วัน", *(f"กร{n}" for n in range(50))], "ไปกรุงเทพวันนี้และพรุ่งนี้ "),
    "Lao": (["ລາວ", *(f"ລ{n}" for n in range(50))], "ພາສາລາວແລະ "),
    "Khmer": (["ខ្មែរ", *(f"ខ{n}" for n in range(50))], "ភាសាខ្មែរ ប្រទេស "),
    "Burmese": (["မြန်မာ", *(f"မ{n}" for n in range(50))], "မြန်မာ ဘာသာ "),
    "Hindi": (["हिन्दी", "पाठ", *(f"पा{n}" for n in range(50))], "हिन्दी में लिखा हुआ पाठ "),
}


@pytest.mark.parametrize("name", MANY_CANDIDATES)
def test_only_words_that_are_found_take_steps(name: str) -> None:
    written, piece = MANY_CANDIDATES[name]
    pronounce = PronunciationRules(check_pronunciations(map(Pronunciation, written)))
    text = piece * (6_000 // len(piece))
    assert steps_of(pronounce, text) <= 2 * len(text)


def test_long_words_that_are_many_are_found_as_few_are() -> None:
    choose = random.Random(1)
    signs = [chr(sign) for sign in range(0x4E00, 0x5200)]
    written = ["".join(choose.choices(signs, k=200)) for _ in range(300)]
    pronounce = PronunciationRules(map(Pronunciation, [*written, "ss" * 90]))
    text = " ".join([*written[::2], *(one[:-1] for one in written[1::2]), "ß" * 90])
    for _ in range(3):  # by then, it takes too much memory to know all of them
        assert pronounce.used(text) == {*written[::2], "ss" * 90}


def test_the_beginning_of_a_long_line_is_said_without_searching_the_rest() -> None:
    """A list of its characters would be 4 MB."""
    pairs = [("river is", "stream is"), *((f"word {number}", "w") for number in range(9))]
    rules = PronunciationRules(Pronunciation(*pair) for pair in pairs)
    text = "The river is quiet, and so is the hill. " * 12_500
    assert rules.spoken(text, most_chars=300).startswith("The stream is quiet, and so is the hill.")
    tracemalloc.start()
    try:
        assert len(rules.spoken(text, most_chars=300)) >= 300
        assert rules.find_first(text) == "river is"
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 500_000


def test_entries_are_kept_in_one_form() -> None:
    entry = check_pronunciation(Pronunciation("  Cafe\u0301\u200b  au\nlait ", " x  y "))
    assert (entry.written, entry.spoken) == ("Café au lait", "x y")
    assert unicodedata.is_normalized("NFC", entry.written)


@pytest.mark.parametrize(
    "entry",
    [
        Pronunciation(""),
        Pronunciation(" \u200b "),
        Pronunciation("a" * 201),
        Pronunciation("a", "b" * 201),
    ],
)
def test_what_cannot_be_kept_is_refused(entry: Pronunciation) -> None:
    with pytest.raises(BadInput, match=r"[.]"):
        check_pronunciation(entry)


def test_a_list_has_an_end() -> None:
    entries = [Pronunciation(f"w{n}") for n in range(MAX_PRONUNCIATIONS + 1)]
    assert len(check_pronunciations([*entries[1:], entries[1]])) == MAX_PRONUNCIATIONS
    with pytest.raises(BadInput, match="2,000 are the most"):
        check_pronunciations(entries)


def test_the_plan_holds_what_is_heard() -> None:
    (segment,) = planned("Mr Hoxha [laugh] came.", ("Hoxha", "hodja")).segments
    assert isinstance(segment, SpeechSegment)
    assert segment.text == "Mr hodja [laugh] came."


def test_a_pause_in_a_spoken_form_is_a_pause() -> None:
    segments = planned("One beat two.", ("beat", "[pause:1s]")).segments
    assert [type(one) for one in segments] == [SpeechSegment, SilenceSegment, SpeechSegment]


def test_a_tag_in_a_spoken_form_that_would_be_read_aloud_is_told() -> None:
    (notice,) = planned("Ha.", ("Ha", "[snigger] ha")).notices
    assert "[snigger] would be read aloud" in notice.message


def test_a_line_of_which_nothing_is_left_is_told_and_not_spoken() -> None:
    (segment,) = planned("Um, um.", ("um", "")).segments
    assert isinstance(segment, FailedSegment)
    assert "The pronunciations leave nothing of this line to speak: “Um, um.”" in segment.message
    assert segment.text == "Um, um."


def test_a_line_that_grows_beyond_measure_is_told() -> None:
    text = "a " * (MAX_LINE_CHARS // 100)
    (segment,) = planned(text, ("a", "b" * MAX_PRONUNCIATION_CHARS)).segments
    assert isinstance(segment, FailedSegment)
    assert "too long to speak" in segment.message


def test_only_what_is_added_to_a_dialog_counts() -> None:
    spoken_text = SpokenText(lambda text, _: text + "!")
    text = "x" * 50_000
    assert {spoken_text.of(text) for _ in range(60)} == {text + "!"}  # 3 MB, of 5 that may be added
    assert spoken_text.grown_chars == 60


def test_a_dialog_that_grows_beyond_measure_is_told() -> None:
    pronounce = PronunciationRules([Pronunciation("a", "b" * MAX_PRONUNCIATION_CHARS)]).spoken
    dialog = Dialog((Speech("Ida", "a " * 450),) * 70)
    segments = plan(dialog, SpeechLimits(max_chars=100_000), pronounce=pronounce).segments
    failed = [one for one in segments if isinstance(one, FailedSegment)]
    assert failed
    assert sum(len(one.text) for one in segments if isinstance(one, SpeechSegment)) < 5_100_000


def test_words_that_begin_alike_are_told_apart() -> None:
    pairs = (("New", "a"), ("New Jersey", "b"), ("New York", "c"), ("New York City", "d"))
    text = "New York and New Jersey, New York City or New Ross."
    assert spoken(text, *pairs) == "c and b, d or a Ross."
