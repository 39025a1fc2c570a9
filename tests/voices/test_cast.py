from concurrent.futures import ThreadPoolExecutor

import pytest

from studio.errors import SampleRejected
from studio.voices.cast import Cast
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Voice, VoiceKinds


@pytest.fixture
def library(tmp_path):
    return SpeakerLibrary(tmp_path / "speakers")


def test_a_name_nobody_knows_has_the_built_in_voice(library):
    assert Cast(library, {}).load_voice("Anna") == Voice("Anna")


def test_the_library_gives_sample_preset_and_description(library, recording):
    library.add("Anna", sample=recording(), transcript="Hello.", preset="alto", description="warm")
    voice = Cast(library, {}).load_voice("aNNA")
    assert (voice.speaker, voice.preset, voice.description) == ("Anna", "alto", "warm")
    assert voice.sample.transcript == "Hello."
    assert voice.sample.clip.duration_s == 4.0


def test_a_sample_given_for_the_dialog_goes_first(library, recording):
    library.add("Anna", sample=recording(), transcript="Hello.")
    voice = Cast(library, {"ANNA": recording("other.wav", duration_s=5.0)}).load_voice("Anna")
    assert voice.sample.clip.duration_s == 5.0
    assert voice.sample.transcript is None


def test_a_voice_of_the_library_speaks_for_another_name(library, recording):
    anna = library.add("Anna", sample=recording(), transcript="Hello.")
    cast = Cast(library, {}, {"BEN": anna.speaker_id})
    assert cast.load_voice("Ben").sample.sha256 == cast.load_voice("Anna").sample.sha256
    library.rename("Anna", "Hanna")
    assert cast.load_voice("ben").speaker == "Hanna"
    library.remove("Hanna")
    with pytest.raises(SampleRejected, match="chosen for Ben was removed"):
        cast.load_voice("Ben")


def test_a_voices_language_goes_before_the_scripts(library, recording):
    library.add("Anna", sample=recording(), language="fr")
    library.add("Ben", sample=recording())
    cast = Cast(library, {"Cleo": recording()}, language="de")
    assert cast.list_languages("ANNA") == ("fr", "de")
    assert cast.list_languages("Ben") == ("de",)
    assert cast.list_languages("Cleo") == ("de",)
    assert Cast(library, {}).list_languages("Anna") == ("fr",)


def test_a_lost_or_broken_sample_concerns_its_speaker_only(tmp_path, library, recording):
    library.add("Anna", sample=recording()).sample.unlink()
    library.add("Ben", sample=recording()).sample.write_bytes(b"no sound")
    library.add("Cleo", sample=recording())
    cast = Cast(library, {"Dora": tmp_path / "gone.wav"})
    for name, message in (("Anna", "found at"), ("Ben", "can't be used"), ("Dora", r"gone\.wav")):
        with pytest.raises(SampleRejected, match=f"sample of {name} .*{message}"):
            cast.load_voice(name)
    assert cast.load_voice("Cleo").sample is not None


def test_a_sample_is_decoded_once_until_it_changes(library, recording):
    library.add("Anna", sample=recording())
    cast = Cast(library, {})
    with ThreadPoolExecutor(8) as pool:
        clips = [voice.sample.clip for voice in pool.map(cast.load_voice, ["Anna"] * 16)]
    assert all(clip is clips[0] for clip in clips)
    library.update("Anna", transcript="Now known.")
    assert cast.load_voice("Anna").sample.clip is clips[0]
    assert cast.load_voice("Anna").sample.transcript == "Now known."
    library.set_sample("Anna", recording("b.wav", duration_s=6.0))
    assert cast.load_voice("Anna").sample.clip.duration_s == 6.0


def test_a_voice_that_an_engine_cannot_make_is_explained(library, recording):
    library.add("Anna", description="warm")
    library.add("Ben", sample=recording())
    library.add("Cleo", preset="alto")
    cast = Cast(library, {})
    engines = {
        "no sample": VoiceKinds(builtin=False, cloning=True),
        "no description": VoiceKinds(builtin=False, described=True),
        "none of this": VoiceKinds(builtin=False, presets=frozenset({"alto"})),
    }
    found = {
        lack: [name for name in ("Anna", "Ben", "Cleo", "Dora") if lack in (why(name) or "")]
        for lack, kinds in engines.items()
        for why in [lambda name, kinds=kinds: cast.explain_missing_voice(name, None, kinds)]
    }
    assert found == {
        "no sample": ["Anna", "Cleo", "Dora"],
        "no description": ["Ben", "Cleo", "Dora"],
        "none of this": ["Anna", "Ben", "Dora"],
    }
    assert cast.explain_missing_voice("Dora", None, VoiceKinds()) is None
