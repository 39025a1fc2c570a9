"""What is asked of a server: vLLM-Omni's published fields, by each kind of checkpoint."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile
from contract import LINE, whole
from remote_process import serving

from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest
from studio.backends.options import BackendOptions, RemoteOptions
from studio.backends.remote.backend import RemoteBackend
from studio.backends.remote.discovery import (
    VLLM_OMNI_FIELDS,
    DiscoveredTraits,
    RemoteVoice,
    ServerCapabilities,
    SpeechTask,
)
from studio.backends.remote.speech_request import RemoteLine, speech_body
from studio.errors import SampleRejected, SpeechFailed
from studio.voices.speaker import Sample, Voice


def sample(duration_s=3.0, transcript=None):
    times_s = np.arange(round(duration_s * 24_000)) / 24_000
    sound = (0.3 * np.sin(2 * np.pi * 220 * times_s)).astype(np.float32)
    return Sample(Clip(sound), "0" * 64, transcript)


@pytest.fixture(scope="module")
def kinds():
    with serving("base", "custom", "design") as servers:
        yield dict(zip(("base", "custom", "design"), servers, strict=True))


@pytest.fixture
def ask(kinds):
    """Speaks one line on servers of these kinds; what each was asked."""
    made = []

    def ask_one(voice, *names, text=LINE, **fields):
        for server in kinds.values():
            server.reset()
        options = RemoteOptions(urls=tuple(kinds[name].url for name in names))
        made.append(RemoteBackend(BackendOptions(remote=options)))
        made[-1].load(lambda _: None)
        conditioning = made[-1].condition(voice)
        assert len(whole(made[-1].speak(SpeechRequest(text, conditioning, **fields))))
        seen = {name: kinds[name].requests for name in names}
        return {name: requests[0] for name, requests in seen.items() if requests}

    yield ask_one
    for backend in made:
        backend.unload()


def test_a_sample_with_its_transcript(ask):
    body = ask(Voice("Anna", sample(transcript="As it was.")), "base", seed=7, language="de")[
        "base"
    ]
    head, _, data = body.pop("ref_audio").partition(",")
    assert head == "data:audio/wav;base64"
    assert soundfile.info(io.BytesIO(base64.b64decode(data))).frames == 72_000
    assert body == {
        "model": "Qwen/Qwen3-TTS-12Hz-1.7B-Base",
        "input": LINE,
        "task_type": "Base",
        "ref_text": "As it was.",
        "language": "German",
        "seed": 7,
        "max_new_tokens": 147,
        "response_format": "pcm",
        "stream": True,
        "stream_format": "audio",
    }


def test_a_sample_without_transcript_gives_its_timbre_alone(ask):
    body = ask(Voice("Anna", sample()), "base")["base"]
    assert body["x_vector_only_mode"] is True
    assert "ref_text" not in body


def test_a_long_sample_is_cut_to_what_the_server_takes(ask):
    data = ask(Voice("Anna", sample(40)), "base")["base"]["ref_audio"].partition(",")[2]
    assert soundfile.info(io.BytesIO(base64.b64decode(data))).duration == 30


def test_a_long_sample_with_transcript_is_refused_with_the_remedy(ask):
    with pytest.raises(SampleRejected, match=r"Anna lasts 40 s; .* 30 s"):
        ask(Voice("Anna", sample(40, "Too long.")), "base")


def test_a_preset_and_words_on_how_to_speak(ask):
    body = ask(Voice("Anna", preset="Ryan", description="Whispering."), "custom")["custom"]
    assert (body["task_type"], body["voice"]) == ("CustomVoice", "Ryan")
    assert body["instructions"] == "Whispering."


def test_a_described_voice(ask):
    body = ask(Voice("Anna", description="An old sailor."), "design")["design"]
    assert (body["task_type"], body["instructions"]) == ("VoiceDesign", "An old sailor.")
    assert "voice" not in body


def test_another_speed_is_not_streamed(ask):
    body = ask(Voice("Anna"), "custom", params={"speed": 1.5})["custom"]
    assert body["speed"] == 1.5
    assert "stream" not in body
    assert "stream_format" not in body


def test_what_a_server_tells_outranks_its_fields():
    described = RemoteVoice("Ida", description="An old sailor.")
    told = ServerCapabilities(
        "qwen3",
        VLLM_OMNI_FIELDS,
        ("vivian",),
        traits=DiscoveredTraits(cloning=False, described_voices=True),
    )
    assert not told.clones
    assert told.refusal(RemoteVoice("Ida", ref_audio="data:audio/wav;base64,")) is not None
    body = speech_body(RemoteLine(LINE, described, 7, "de"), told)
    assert (body["task_type"], body["instructions"]) == ("VoiceDesign", "An old sailor.")
    assert body["language"] == "de"
    silent = ServerCapabilities("any", VLLM_OMNI_FIELDS)
    assert silent.clones
    assert "task_type" not in speech_body(RemoteLine(LINE, described, 7), silent)


@pytest.mark.parametrize("takes", [True, False])
def test_words_on_how_to_speak_go_where_they_are_taken(takes):
    told = DiscoveredTraits(cloning=False, instructions=takes)
    can = ServerCapabilities("qwen3", VLLM_OMNI_FIELDS, ("vivian",), traits=told)
    voice = RemoteVoice("Ida", preset="vivian", description="angrily")
    assert speech_body(RemoteLine(LINE, voice, 7), can).get("instructions") == (
        "angrily" if takes else None
    )


def test_every_line_has_a_seed_so_that_it_can_be_taken_up(ask):
    assert ask(Voice("Anna"), "custom")["custom"]["seed"] >= 0


def test_each_voice_goes_to_a_server_that_has_it(ask):
    voices = {
        "base": Voice("Anna", sample()),
        "custom": Voice("Anna", preset="vivian"),
        "design": Voice("Anna", description="An old sailor."),
    }
    for kind, voice in voices.items():
        assert kind in ask(voice, kind)
    assert list(ask(voices["base"], "custom", "base")) == ["base"]
    assert list(ask(voices["custom"], "base", "custom")) == ["custom"]


@pytest.mark.parametrize(
    ("voice", "kind", "says"),
    [
        (Voice("Anna"), "base", "Anna has no sample"),
        (Voice("Anna", sample()), "custom", "can't clone Anna's sample.*vivian.*Base"),
        (Voice("Anna", preset="nobody"), "custom", "no voice “nobody”.*vivian"),
        (Voice("Anna"), "design", "Anna has no description"),
        (Voice("Anna", description="x" * 501), "design", "500 characters"),
    ],
)
def test_a_voice_that_no_server_has_is_refused_with_the_remedy(ask, voice, kind, says):
    with pytest.raises(SampleRejected, match=says):
        ask(voice, kind)


@pytest.mark.parametrize(
    ("fields", "says"), [({"language": "tlh"}, "language “tlh”.*en"), ({"text": "…"}, "nothing")]
)
def test_a_line_that_cannot_be_spoken_is_told_before_it_is_sent(ask, fields, says):
    with pytest.raises(SpeechFailed, match=says):
        ask(Voice("Anna"), "custom", **fields)


class TestBodies:
    """Bodies for servers that the tests don't have."""

    LINE = RemoteLine("Good evening.", RemoteVoice("Anna", preset="alloy"), seed=7, language="de")

    def test_only_known_fields_are_sent(self):
        assert speech_body(self.LINE, ServerCapabilities("tts-1")) == {
            "model": "tts-1",
            "input": "Good evening.",
            "voice": "alloy",
            "response_format": "wav",
        }

    def test_where_the_rate_is_not_sure_a_header_tells_it(self):
        body = speech_body(
            self.LINE, ServerCapabilities("fish", VLLM_OMNI_FIELDS | {"sample_rate"})
        )
        assert (body["response_format"], body["stream_format"]) == ("wav", "audio")
        assert body["language"] == "de"
        assert "task_type" not in body
        assert "max_new_tokens" not in body
        assert "sample_rate" not in body  # most models refuse it

    def test_small_checkpoints_get_no_instructions(self):
        line = RemoteLine("Good evening.", RemoteVoice("Anna", description="Calm."), seed=7)
        for size, sent in (("0.6B", False), ("1.7B", True)):
            can = ServerCapabilities(
                f"Qwen3-TTS-12Hz-{size}-CustomVoice",
                VLLM_OMNI_FIELDS,
                ("ryan",),
                SpeechTask.CUSTOM_VOICE,
            )
            assert ("instructions" in speech_body(line, can)) is sent

    def test_a_server_that_wants_a_voice_beside_the_sample_gets_one(self):
        line = RemoteLine("Good evening.", RemoteVoice("Anna", ref_audio="data:,"), seed=7)
        can = ServerCapabilities("any", VLLM_OMNI_FIELDS, ("ida",), voice_required=True)
        assert speech_body(line, can)["voice"] == "ida"

    def test_speakers_without_a_choice_keep_their_voice_and_differ(self):
        can = ServerCapabilities("any")
        names = [f"Speaker {number}" for number in range(40)]
        given = [can.voice_name(RemoteVoice(name)) for name in names]
        assert given == [can.voice_name(RemoteVoice(name)) for name in names]
        assert len(set(given)) > 5


@pytest.mark.slow
def test_lines_of_other_voices_go_on_when_the_server_of_one_voice_dies():
    with serving("base", "custom") as (base, custom):
        options = RemoteOptions(urls=(base.url, custom.url), retry_s=0.02, patience_s=0.1)
        backend = RemoteBackend(BackendOptions(remote=options))
        backend.load(lambda _: None)
        cloned = SpeechRequest(LINE, backend.condition(Voice("Anna", sample())))
        preset = SpeechRequest(LINE, backend.condition(Voice("Tom", preset="ryan")))
        assert len(whole(backend.speak(cloned)))
        base.kill()
        with pytest.raises(SpeechFailed, match="No speech server with this voice answers"):
            whole(backend.speak(cloned))
        assert len(whole(backend.speak(preset)))
        backend.unload()
