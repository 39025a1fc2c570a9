import pytest
from dialog_strategies import dialogs
from growth import assert_linear, count_calls
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.model import (
    Audio,
    Dialog,
    Silence,
    Speech,
    Unspoken,
    find_reading_language,
    is_speakable,
)
from studio.dialog.planning import (
    AudioSegment,
    FailedSegment,
    PlanCheck,
    SilenceSegment,
    SpeechLimits,
    SpeechSegment,
    plan,
    split_plain_lines,
)
from studio.dialog.script import parse_script

LIMITS = SpeechLimits(
    max_chars=300,
    tags=frozenset(("laugh",)),
    params={"speed": (0.5, 2.0)},
    languages=frozenset(("de", "en-gb", "en-us", "pt-BR")),
)


def planned(script, limits=LIMITS, **options):
    return plan(parse_script(script).dialog, limits, **options)


def check(lines, limits):
    dialog = Dialog(tuple(lines))
    return PlanCheck().plan(
        dialog, limits, languages_of=lambda _name: (), moods_of=lambda _name: ()
    )


def only(script, limits=LIMITS):
    (segment,) = planned(script, limits).segments
    return segment


def test_every_kind_of_line_gets_its_index():
    script = "Anna: One.\n[pause:1s]\n[audio: x.wav]\nBen: Two [pause:250ms] three."
    assert planned(script).segments == (
        SpeechSegment(0, 0, 1, "Anna", "One."),
        SilenceSegment(1, 1, 2, 1.0),
        AudioSegment(2, 2, 3, "x.wav"),
        SpeechSegment(3, 3, 4, "Ben", "Two"),
        SilenceSegment(4, 3, 4, 0.25),
        SpeechSegment(5, 3, 4, "Ben", "three."),
    )


def test_lines_without_a_source_are_numbered_by_their_order():
    dialog = Dialog((Silence(1.0), Speech("Anna", ""), Audio("x")))
    segments = plan(dialog, LIMITS).segments
    assert [segment.line_number for segment in segments] == [1, 2, 3]
    assert "This line is empty" in segments[1].message


def test_long_text_is_split_and_shares_its_settings():
    text = "This sentence is rather long, as it should be. " * 5
    script = f"[Anna | lang:de | seed:4 | speed:1.5] {text}"
    segments = planned(script, SpeechLimits(100, params={"speed": (0.5, 2)}), seed=9).segments
    assert [segment.segment_idx for segment in segments] == [0, 1, 2]
    assert {segment.seed for segment in segments} == {4}
    assert {segment.language for segment in segments} == {"de"}
    assert all(segment.params == {"speed": 1.5} for segment in segments)
    assert " ".join(segment.text for segment in segments) == text.strip()


def test_the_seed_of_the_plan_serves_lines_without_one():
    segments = planned("Anna: a\n[Ben | seed:0] b", seed=9).segments
    assert [segment.seed for segment in segments] == [9, 0]


def test_one_speaker_has_one_spelling():
    segments = planned("Anna: a\nANNA: b\nanna:").segments
    assert [segment.speaker for segment in segments] == ["Anna"] * 3


@pytest.mark.parametrize("text", ["", "\u200b\u200e"])
def test_an_empty_line_fails_and_says_what_to_do(text):
    failed = only(f"\n\n\nAnna: {text}")
    assert isinstance(failed, FailedSegment)
    assert failed.message == "This line is empty. Write what Anna says, or delete the line."


@pytest.mark.parametrize(
    "text",
    ["[sigh]", "[footsteps]", "<b></b>", "[pause] …", "[sigh] [pause]"],
)
def test_text_without_letter_or_digit_fails(text):
    failed = only(f"Anna: {text}")
    assert isinstance(failed, FailedSegment)
    assert failed.message.startswith("Nothing to say here")
    assert failed.text == text


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [("…", 1.0), ("...", 1.0), ("(…)", 1.0), ("[...]", 1.0), ("😀 👩‍🚀", 0.5), ("?!", 0.5),
     ("—", 0.5), ("♪ ♪", 0.5), ("。。。", 0.5), ("*", 0.5)],
)  # fmt: skip
def test_a_line_of_nothing_but_signs_is_a_pause(text, duration_s):
    assert only(f"Anna: {text}") == SilenceSegment(0, 0, 1, duration_s)


@pytest.mark.parametrize("text", ["5", "Ж", "你", "ا", "😀 yes", "[laugh] 5"])
def test_text_with_anything_to_speak_is_spoken(text):
    assert only(f"Anna: {text}") == SpeechSegment(0, 0, 1, "Anna", text)


def test_a_line_of_pauses_is_silence():
    segments = planned("Anna: [pause:1s] (pause)").segments
    assert segments == (SilenceSegment(0, 0, 1, 1.0), SilenceSegment(1, 0, 1, 0.5))


def test_marks_left_over_between_pauses_are_dropped():
    segments = planned("Anna: Wait [pause:1s]. [pause:2s] …").segments
    assert [type(segment) for segment in segments] == [SpeechSegment, *[SilenceSegment] * 2]


def test_what_cannot_be_heard_is_not_spoken_but_stays_in_the_dialog():
    script = "Anna: he\u200bll\u200do \u202ethere\u2069, a\u00adgain\ufeff"
    assert only(script).text == "hello there, again"
    assert "\u200b" in parse_script(script).dialog.lines[0].text


def test_joiners_that_spell_words_stay():
    assert only("Anna: می\u200cخواهم").text == "می\u200cخواهم"
    assert only("Anna: क्\u200dष").text == "क्\u200dष"


@pytest.mark.parametrize("value", ["9", "0.49", "fast", "true"])
def test_a_setting_out_of_range_fails_the_line_with_its_range(value):
    failed = only(f"[Anna | speed:{value}] Hi.")
    assert isinstance(failed, FailedSegment)
    assert failed.message.startswith("“speed” is ")
    assert failed.message.endswith("this voice takes 0.5 to 2.")


def test_an_unknown_setting_is_dropped_with_one_notice():
    result = planned("[Anna | warmth:1 | speed:1] a\n[Ben | warmth:2] b")
    assert [dict(segment.params) for segment in result.segments] == [{"speed": 1}, {}]
    (notice,) = result.notices
    assert notice.line_number == 1
    assert "“warmth”" in notice.message


@pytest.mark.parametrize(
    ("code", "spoken"),
    [("de", "de"), ("de-AT", "de"), ("DE", "de"), ("en", "en-gb"), ("en-US", "en-us"),
     ("en-US-x-drawl", "en-us"), ("en-AU", "en-gb"), ("pt", "pt-BR")],
)  # fmt: skip
def test_languages_match_by_their_primary_subtag(code, spoken):
    assert only(f"[Anna | lang:{code}] Hi.").language == spoken


def test_an_unknown_language_fails_and_lists_the_known():
    failed = only("[Anna | lang:fr] Salut.")
    assert isinstance(failed, FailedSegment)
    assert "does not speak “fr”. It speaks de, en-gb, en-us, pt-BR." in failed.message
    many = SpeechLimits(300, languages=frozenset(f"{a}{b}" for a in "abcde" for b in "abcde"))
    assert "and 13 more" in only("[Anna | lang:fr] Salut.", many).message


def test_any_language_passes_where_none_are_listed():
    assert only("[Anna | lang:fr] Salut.", SpeechLimits(300)).language == "fr"


def test_sounds_are_kept_in_one_form_where_the_voice_has_them():
    assert only("Anna: Oh [ LAUGH ] no.").text == "Oh [laugh] no."


def test_sounds_the_voice_lacks_are_left_out_with_one_notice_each():
    result = planned("Anna: Oh [sigh], no [Sigh].\nBen: [sigh] Yes [cough] indeed.")
    assert [segment.text for segment in result.segments] == ["Oh, no.", "Yes indeed."]
    assert [notice.line_number for notice in result.notices] == [1, 2]
    assert "can't perform [sigh]" in result.notices[0].message


def test_unknown_tags_stay_and_are_noticed():
    result = planned("Anna: Oh [footsteps] <b>no</b>.\nBen: Yes [footsteps]")
    assert result.segments[0].text == "Oh [footsteps] <b>no</b>."
    assert ["read aloud" in notice.message for notice in result.notices] == [True] * 2


def test_a_word_too_long_fails_alone():
    script = f"Anna: a\nBen: {'x' * 10_000}\nCleo: c"
    first, failed, last = planned(script).segments
    assert (first.text, last.text) == ("a", "c")
    assert isinstance(failed, FailedSegment)
    assert failed.message.startswith("A word of 10,000 characters")


def test_a_bad_pause_in_a_line_made_by_hand_fails_alone():
    dialog = Dialog((Speech("A", "x [pause:10h]"), Speech("B", "y")))
    failed, spoken = plan(dialog, LIMITS).segments
    assert isinstance(failed, FailedSegment)
    assert spoken.text == "y"


@given(dialogs, st.integers(1, 50), st.sets(st.sampled_from(["laugh", "clear throat"])))
def test_every_plan_is_in_order_and_within_limits(dialog, max_chars, tags):
    result = plan(dialog, SpeechLimits(max_chars, frozenset(tags), {"speed": (0.5, 2)}))
    assert [segment.segment_idx for segment in result.segments] == list(range(len(result.segments)))
    line_idxs = [segment.line_idx for segment in result.segments]
    assert line_idxs == sorted(line_idxs)
    spoken = {idx for idx, line in enumerate(dialog) if not isinstance(line, Unspoken)}
    assert set(line_idxs) == spoken
    for segment in result.segments:
        if isinstance(segment, SpeechSegment):
            assert 0 < len(segment.text) <= max_chars
            assert is_speakable(segment.text)


@given(dialogs, st.sampled_from([frozenset(), frozenset({"laugh"})]))
def test_lines_set_aside_as_plain_have_no_notices_and_begin_no_speaker_unseen(dialog, tags):
    limits = SpeechLimits(max_chars=30, tags=tags)
    whole = plan(dialog, limits, moods_of=lambda _name: ("sad",))
    others, plain = split_plain_lines(dialog, limits)
    part = plan(others, limits, moods_of=lambda _name: ("sad",))
    assert part.notices == whole.notices

    def first_ones(*segments):
        """The first line of each speaker in each mood, of what is spoken."""
        first = {}
        for one in sorted(segments, key=lambda one: one.line_number):
            if isinstance(one, SpeechSegment):
                first.setdefault((one.speaker, one.mood), one.line_number)
        return first

    assert first_ones(*plain, *part.segments) == first_ones(*whole.segments)


@given(
    dialogs,
    st.integers(1, 60),
    st.sets(st.sampled_from(["laugh", "clear throat"])),
    st.sampled_from([1.0, 2.5]),
)
def test_a_check_says_what_a_plan_does(dialog, max_chars, tags, wide_weight):
    limits = SpeechLimits(max_chars, frozenset(tags), {"speed": (0.5, 2)}, wide_weight=wide_weight)
    voices = {"languages_of": lambda _name: (), "moods_of": lambda _name: ("sad",)}
    whole, checked = plan(dialog, limits, **voices), PlanCheck().plan(dialog, limits, **voices)
    assert checked.notices == whole.notices

    def failures(result):
        return [one.message for one in result.segments if isinstance(one, FailedSegment)]

    def voices(result):
        spoken = (one for one in result.segments if isinstance(one, SpeechSegment))
        return list(dict.fromkeys((one.line_idx, one.speaker, one.mood) for one in spoken))

    assert failures(checked) == failures(whole)
    assert voices(checked) == voices(whole)


@pytest.mark.parametrize(
    "text",
    [
        "日本語の文章をここに書く" * 40,
        "カタカナ" * 40,
        "a b " + "x" * 60,
        "ก็" * 60,
        "👨‍👩‍👧" * 60,
        "か\u3099" * 60,
    ],
)
def test_a_check_finds_the_words_that_are_too_long(text):
    limits = SpeechLimits(max_chars=50)
    checked, whole = (
        check((Speech("Ida", text),), limits),
        plan(Dialog((Speech("Ida", text),)), limits),
    )
    assert isinstance(checked.segments[0], FailedSegment) == (
        isinstance(whole.segments[0], FailedSegment)
    )


def test_a_check_looks_into_50_000_brackets():
    lines = [Speech("Ida", "<b>x</b> " * 5_001)] * 6
    lines += [Speech("Ida", "<i>x</i>"), Speech("Ida", "x" * 2_000)]
    checked = check(lines, LIMITS)
    assert [one.message[:3] for one in checked.notices] == ["<b>"]
    assert "A word of 2,000 characters" in checked.segments[-1].message


@pytest.mark.parametrize(
    ("piece", "most_calls"), [("<b>x</b> ", 15_000), ("a [pause:1s] ", 65_000)]
)
def test_a_line_of_many_tags_is_planned_in_few_calls(piece, most_calls):
    dialog = Dialog((Speech("Ida", piece * 1_000),))
    plan(dialog, LIMITS)
    assert count_calls(lambda: plan(dialog, LIMITS)) < most_calls


def test_5_000_lines_are_planned_quickly():
    text = "She looked up, at last, and laughed. [pause:200ms] “No,” she said, “not tonight.” "
    line = Speech("Anna", (text * 5).strip())

    def planned(lines):
        assert len(plan(Dialog((line,) * lines), LIMITS).segments) == 11 * lines

    assert_linear(planned, 5_000)


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("[laugh] [pause:1s] Hello.", [1.0, "[laugh] Hello."]),
        ("Hello. [pause:1s] [laugh]", ["Hello. [laugh]", 1.0]),
        ("One. [pause:1s] [laugh] [pause:2s] Two.", ["One.", 1.0, 2.0, "[laugh] Two."]),
        ("[laugh] [pause:1s] [laugh]… [pause:1s] Oh.", [1.0, 1.0, "[laugh] [laugh]… Oh."]),
    ],
)
def test_a_tag_alone_between_pauses_joins_the_words_beside_it(text, spoken):
    segments = planned(f"Anna: {text}").segments
    assert [getattr(one, "text", None) or one.duration_s for one in segments] == spoken


def test_a_tag_that_fits_beside_no_words_is_left_out_and_said():
    result = planned(
        "Anna: Just ten. [pause:1s] [laugh]", SpeechLimits(10, tags=frozenset(("laugh",)))
    )
    assert [getattr(one, "text", None) for one in result.segments] == ["Just ten.", None]
    assert "no room for [laugh]" in result.notices[0].message


def test_many_tags_between_pauses_are_joined_in_linear_time():
    limits = SpeechLimits(300, tags=frozenset(("laugh",)))

    def work(times):
        text = "[laugh] [pause:1s] " * times + "Oh."
        plan(Dialog((Speech("Ida", text),)), limits)

    assert_linear(work, 40_000)


@pytest.mark.parametrize("text", ["[laugh]", "[laugh] [laugh]…", "[laugh] [pause:1s]"])
def test_tags_without_any_word_are_refused_before_they_are_spoken(text):
    assert "Add a word" in only(f"Anna: {text}").message


@pytest.mark.parametrize(
    ("told", "spoken"),
    [
        ((), None),
        (("de",), "de"),
        (("de-AT", "pt-BR"), "de"),
        (("fr", "pt"), "pt-BR"),
        (("fr",), None),
        (("en",), "en-us"),
    ],
)
def test_a_line_without_a_language_has_its_voices_then_its_scripts(told, spoken):
    limits = SpeechLimits(300, languages=frozenset(("de", "en-us", "pt-BR")))
    script = "Anna: Olá.\n[Anna | lang:de] Hallo."
    first, second = planned(script, limits, languages_of=lambda _name: told).segments
    assert (first.language, second.language) == (spoken, "de")


def test_what_the_voice_would_choose_itself_is_not_asked_for():
    limits = SpeechLimits(300, languages=frozenset(("en-us", "cmn")), guess=lambda _text: "en-US")
    assert (
        planned("Anna: Hi.", limits, languages_of=lambda _name: ("en",)).segments[0].language
        is None
    )
    found = planned("Anna: Hi.", limits, languages_of=lambda _name: ("zh",)).segments[0]
    assert found.language == "cmn"


def test_a_backend_of_one_language_is_told_none():
    limits = SpeechLimits(300, languages=frozenset(("en",)))
    assert (
        planned("Anna: Hi.", limits, languages_of=lambda _name: ("en",)).segments[0].language
        is None
    )


@pytest.mark.parametrize("takes", [True, False])
def test_how_a_line_is_spoken_goes_to_backends_that_take_words_for_it(takes):
    result = planned(
        '[Anna | instruct:"in a low voice"] Hi.', SpeechLimits(300, instructions=takes)
    )
    assert result.segments[0].instruct == ("in a low voice" if takes else None)
    assert len(result.notices) == (0 if takes else 1)


def test_wide_characters_are_cut_at_their_punctuation_to_what_can_be_spoken():
    text = "他说，今天的天气很好。我们去公园吧！好不好？当然，走吧。" * 8
    segments = planned(f"Anna: {text}", SpeechLimits(200, wide_weight=2.5)).segments
    assert max(len(one.text) for one in segments) <= 80
    assert "".join(one.text for one in segments) == text
    assert all(one.text.endswith(("。", "！", "？")) for one in segments)


def test_the_language_a_text_is_read_in_is_asked_for_only_where_nobody_names_it():
    def reads_as(*known, said=(), guess="en-GB"):
        limits = SpeechLimits(300, languages=frozenset(known), guess=lambda _: guess)
        return find_reading_language("Hello.", said, limits)

    assert reads_as("en", "de") == "en-GB"
    assert reads_as("en") == "en", "nothing else is spoken"
    assert reads_as("en", "de", said=["de"]) is None
    assert reads_as("en", "de", said=["fr"]) == "en-GB"
    assert reads_as("en", "de", guess="de") == "de"
    assert find_reading_language("Hello.", (), SpeechLimits(300)) is None
