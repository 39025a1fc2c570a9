"""Several samples of one speaker, tags, consent, and folders of earlier versions."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.model import Dialog
from studio.dialog.planning import SpeechLimits, plan
from studio.errors import BadInput, Conflict, NotFound, SampleRejected
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import find_mood_sample

LIMITS = SpeechLimits(max_chars=200)


@pytest.fixture
def library(tmp_path):
    return SpeakerLibrary(tmp_path / "speakers")


@pytest.fixture
def anna(library, recording):
    """Anna with a main sample and an angry one."""
    library.add("Anna", sample=recording("main.wav"), transcript="Well.")
    return library.add_mood(
        "Anna",
        " Angry ",
        recording("angry.wav", pitch_hz=220),
        transcript="No!",
        consent_at="2026-01-02T03:04:05+01:00",
    )


def planned(script):
    return plan(read_dialog_text(script).dialog, LIMITS).segments


def test_a_mood_is_kept_with_its_transcript_and_consent(tmp_path, library, anna):
    again = SpeakerLibrary(tmp_path / "speakers").get("anna")
    assert again == anna
    (angry,) = again.moods
    assert (angry.mood, angry.transcript) == ("Angry", "No!")
    assert angry.consent_at == "2026-01-02T02:04:05+00:00"
    assert library.measure_length_s(angry.path) == 4.0
    names = sorted(path.name for path in angry.path.parent.iterdir())
    assert names == [f"mood-{angry.sample_id}.wav", "sample.wav", "speaker.json"]
    assert again.transcript == "Well."


def test_a_mood_has_30_letters_at_most(library, anna, recording):
    library.add_mood("Anna", "x" * 30, recording("b.wav"))
    assert library.get("Anna").moods[-1].mood == "x" * 30
    with pytest.raises(BadInput, match="longer than 30 letters"):
        library.add_mood("Anna", "y" * 31, recording("c.wav"))


def test_lines_choose_a_sample_by_their_mood(library, anna):
    cast = Cast(library, {})
    lines = ("Anna: One.", *(f"[Anna | mood:{mood}] Go." for mood in ("angry", "neutral", "sad")))
    script = "\n".join(lines)
    voices = [cast.load_voice(one.speaker, one.mood) for one in planned(script)]
    main, angry, neutral, sad = (voice.sample.sha256 for voice in voices)
    assert main == neutral == sad != angry
    assert voices[1].sample.transcript == "No!"


def test_a_voice_of_another_kind_has_none_of_a_speaker_s_moods(library, anna, recording):
    assert Cast(library, {}).list_moods("anna") == ("Angry",)
    assert Cast(library, {"Anna": recording("own.wav")}).list_moods("anna") == ()
    voice = Cast(library, {}).load_voice("Anna")
    assert Cast(library, {}, given={"Anna": voice}).list_moods("anna") == ()


def test_the_mood_stays_with_every_piece_of_a_long_line(library, anna):
    long = "This is one sentence of many, all of them angry. " * 20
    pieces = planned(f"[Anna | mood:angry] {long}")
    assert len(pieces) > 1
    assert {piece.mood for piece in pieces} == {"angry"}
    assert all("mood" not in piece.params for piece in pieces)


def test_a_mood_is_no_unknown_setting_of_the_voice():
    assert plan(read_dialog_text("[Anna | mood:angry] Go.").dialog, LIMITS).notices == ()


def test_a_mood_without_a_sample_is_told_once(library, anna):
    cast = Cast(library, {})
    script = (
        "[Anna | mood:sad] A.\n[Anna | mood:SAD] B.\n[Anna | mood:angry] C.\n[Ben | mood:sad] D."
    )
    notices = cast.find_notices(planned(script))
    assert [notice.line_number for notice in notices] == [1, 4]
    assert "Anna has no sample for the mood “sad”" in notices[0].message


def test_a_mood_may_stand_without_a_main_sample(library, recording):
    library.add("Ben")
    library.add_mood("Ben", "low", recording())
    cast = Cast(library, {})
    assert cast.load_voice("Ben").sample is None
    assert cast.load_voice("Ben", "low").sample is not None


def test_a_missing_mood_fails_its_own_lines_and_is_a_problem(library, anna):
    anna.moods[0].path.unlink()
    cast = Cast(library, {})
    assert cast.load_voice("Anna").sample is not None
    with pytest.raises(SampleRejected, match="sample of Anna can't be found"):
        cast.load_voice("Anna", "angry")
    assert any("Angry sample of Anna" in problem for problem in library.list_problems())


@pytest.mark.parametrize("mood", ["angry", "ANGRY", " Angry"])
def test_a_mood_is_there_once(library, anna, recording, mood):
    with pytest.raises(Conflict, match="already"):
        library.add_mood("Anna", mood, recording())


@pytest.mark.parametrize(
    ("mood", "remedy"),
    [("", "one or two words"), ("a|b", "one or two words"), ("Neutral", "main sample")],
)
def test_a_mood_that_no_line_could_name_is_refused(library, anna, recording, mood, remedy):
    with pytest.raises(BadInput, match=remedy):
        library.add_mood("Anna", mood, recording())
    with pytest.raises(BadInput, match=remedy):
        library.update_mood("Anna", anna.moods[0].sample_id, mood=mood)
    assert library.get("Anna") == anna


def test_a_mood_is_changed_and_removed(library, anna):
    sample_id = anna.moods[0].sample_id
    changed = library.update_mood("Anna", sample_id, mood="furious", transcript=None)
    assert (changed.moods[0].mood, changed.moods[0].transcript) == ("furious", None)
    assert changed.moods[0].consent_at == anna.moods[0].consent_at
    assert find_mood_sample(changed, "FURIOUS") is not None
    without = library.remove_mood("Anna", sample_id)
    assert without.moods == ()
    assert without.sample.is_file()
    assert not anna.moods[0].path.exists()
    with pytest.raises(NotFound, match="isn't there any more"):
        library.remove_mood("Anna", sample_id)


def test_moods_have_a_bound(library, make_clip):
    library.add("Anna")
    for number in range(20):
        library.add_mood("Anna", f"mood {number}", make_clip(1.0))
    with pytest.raises(BadInput, match="Remove one first"):
        library.add_mood("Anna", "one more", make_clip(1.0))


def test_a_folder_of_an_earlier_version_reads_as_before(tmp_path, library, recording):
    folder = tmp_path / "speakers" / "old"
    folder.mkdir(parents=True)
    recording("sample.wav").rename(folder / "sample.wav")
    record = {
        "version": 1,
        "name": "Old Ida",
        "has_sample": True,
        "transcript": "Hello.",
        "language": None,
        "preset": None,
        "description": None,
        "colour": "#046bd0",
    }
    (folder / "speaker.json").write_text(json.dumps(record), encoding="utf-8")
    speaker = library.get("old ida")
    assert (speaker.transcript, speaker.tags, speaker.moods) == ("Hello.", (), ())
    assert speaker.sample == folder / "sample.wav"
    assert Cast(library, {}).load_voice("Old Ida").sample.transcript == "Hello."
    assert library.update("Old Ida", tags=["north"]).tags == ("north",)


def test_tags_are_told_apart_whatever_their_case(library):
    speaker = library.add("Anna", tags=["Old", " warm ", "old", "OLD"])
    assert speaker.tags == ("Old", "warm")
    assert library.update("Anna", tags=[]).tags == ()
    assert library.update("Anna", tags=["x" * 30]).tags == ("x" * 30,)


@pytest.mark.parametrize("tags", [["x" * 31], ["\u200b"], ["a"] * 21])
def test_tags_that_cannot_be_used_are_refused(library, tags):
    with pytest.raises(BadInput, match="20 tags at most"):
        library.add("Anna", tags=tags)


def test_record_files_in_hand_made_folders_never_lead_outside(tmp_path, library):
    folder = tmp_path / "speakers" / "evil"
    folder.mkdir(parents=True)
    moods = [{"sample_id": "../../etc", "mood": "x"}]
    record = {"name": "Evil", "colour": "#046bd0", "moods": moods}
    (folder / "speaker.json").write_text(json.dumps(record), encoding="utf-8")
    assert library.find("Evil") is None
    assert any("evil" in problem for problem in library.list_problems())


@settings(max_examples=30)
@given(mood=st.text(max_size=40))
def test_any_mood_that_is_kept_can_be_named_by_a_script(library, make_clip, mood):
    from studio.dialog.model import Speech
    from studio.dialog.script import write_script

    if library.find("Anna") is None:
        library.add("Anna")
    try:
        kept = library.add_mood("Anna", mood, make_clip(1.0))
    except BadInput:
        return
    (sample,) = kept.moods
    written = write_script(Dialog((Speech("Anna", "Go.", params={"mood": sample.mood}),)))
    (segment,) = planned(written)
    assert find_mood_sample(kept, segment.mood) is not None
    library.remove_mood("Anna", sample.sample_id)
