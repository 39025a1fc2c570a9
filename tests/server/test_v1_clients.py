"""Each client's own way to list voices and models and to speak, request by request."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace

import httpx
import openai
import pytest
import soundfile
from fastapi.testclient import TestClient
from live import live
from speech_client import app_of, duration_s
from voice_like import voice_like

from studio.backends.base import Capabilities
from studio.backends.espeak.backend import DraftBackend
from studio.errors import SettingError
from studio.services.studio import Studio, StudioOptions
from studio.settings import Settings


class Cloning(DraftBackend):
    """Speaks in the voice of a recording only, as Qwen3-TTS Base does."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, cloning=True, builtin_voice=False, presets=())


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """With the voices of Ida and Tom."""
    workspace = tmp_path_factory.mktemp("clients") / "workspace"
    with Studio.open(StudioOptions(workspace, "draft"), lambda _: Cloning()) as studio:
        yield studio


@pytest.fixture(scope="module")
def sample() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, voice_like(6.0).samples, 24_000, format="WAV")
    return file.getvalue()


@pytest.fixture(scope="module")
def address(studio: Studio, sample: bytes) -> Iterator[str]:
    with live(app_of(studio)) as address:
        for name in ("Ida", "Tom"):
            added = add_voice(f"{address}/v1", name, sample)
            assert added.status_code == 200, added.text
        yield f"{address}/v1"


def add_voice(address: str, name: str, sample: bytes, **more: str) -> httpx.Response:
    """As vLLM-Omni's documentation does it with curl."""
    form = {"consent": "recorded on 2026-01-05", "name": name} | more
    files = {"audio_sample": ("voice.wav", sample, "audio/wav")}
    return httpx.post(f"{address}/audio/voices", data=form, files=files, timeout=60)


def test_open_webui(address: str) -> None:
    voices = httpx.get(f"{address}/audio/voices").json().get("voices", [])
    assert {voice["id"]: voice["name"] for voice in voices} == {"Ida": "Ida", "Tom": "Tom"}
    models = httpx.get(f"{address}/audio/models").json().get("models", [])
    assert [model["id"] for model in models] == ["draft"]
    asked = {"model": "tts-1", "input": "Good evening.", "voice": "alloy"}
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert duration_s(spoken.content, "mp3") > 0.3


def test_sillytavern(address: str) -> None:
    asked = {
        "input": "Good evening.", "response_format": "mp3", "voice": "nova", "speed": 1,
        "model": "tts-1",
    }  # fmt: skip
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert duration_s(spoken.content, "mp3") > 0.3


def test_home_assistant(address: str) -> None:
    data = httpx.get(f"{address}/audio/voices").json()["data"]
    assert [voice["id"] for voice in data] == ["Ida", "Tom"]
    asked = {
        "model": "gpt-4o-mini-tts", "input": "Good evening.", "voice": "shimmer",
        "response_format": "mp3", "speed": 1.0, "instructions": None,
    }  # fmt: skip
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert duration_s(spoken.content, "mp3") > 0.3


def test_librechat(address: str) -> None:
    asked = {"input": "Good evening.", "model": "tts-1", "voice": "alloy", "backend": ""}
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert duration_s(spoken.content, "mp3") > 0.3


def test_vllm_omni(address: str, sample: bytes) -> None:
    listed = httpx.get(f"{address}/audio/voices", params={"legacy": True}).json()
    assert listed["voices"] == ["Ida", "Tom"]
    assert [voice["name"] for voice in listed["uploaded_voices"]] == ["Ida", "Tom"]
    added = add_voice(address, "Mara", sample, ref_text="Did anybody hear the bell?")
    assert added.status_code == 200, added.text
    assert added.json()["success"] is True
    voice = added.json()["voice"]
    assert (voice["name"], voice["mime_type"]) == ("Mara", "audio/wav")
    assert voice["ref_text"] == "Did anybody hear the bell?"
    assert voice["file_size"] > 100_000
    asked = {
        "input": "Good evening.", "voice": "Mara", "language": "English", "stream": True,
        "response_format": "pcm", "max_new_tokens": 2048, "task_type": "Base",
    }  # fmt: skip
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert duration_s(spoken.content, "pcm") > 0.3
    gone = httpx.delete(f"{address}/audio/voices/Mara")
    assert gone.json()["success"] is True
    assert httpx.delete(f"{address}/audio/voices/Mara").status_code == 404


def test_openais_own(address: str) -> None:
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["draft"]
        assert client.models.retrieve("draft").id == "draft"
        assert client.models.retrieve("tts-1").id == "tts-1"
        with pytest.raises(openai.NotFoundError, match="There is no model “gpt-9”"):
            client.models.retrieve("gpt-9")
        for voice in ("alloy", "verse"):
            spoken = client.audio.speech.create(
                model="tts-1", voice=voice, input="Good evening.", response_format="wav"
            )
            assert spoken.content[:4] == b"RIFF"


def test_openais_voices_differ_stay_and_may_be_chosen(
    address: str, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def speak(client: httpx.Client | TestClient, voice: str) -> bytes:
        asked = {"input": "Good evening.", "voice": voice, "response_format": "pcm", "seed": 1}
        answer = client.post("/v1/audio/speech", json=asked)
        assert answer.status_code == 200, answer.text
        return answer.content

    with TestClient(app_of(studio)) as client:
        ida = speak(client, "Ida")
        assert speak(client, "alloy") == speak(client, "ALLOY") == ida
        refused = client.post("/v1/audio/speech", json={"input": "Oh.", "voice": "Nobody"})
        assert "There is no voice “Nobody”" in refused.json()["error"]["message"]
    chosen = {"alloy": "Tom", "narrator": "Ida"}
    monkeypatch.setattr(studio, "options", replace(studio.options, voice_names=chosen))
    with TestClient(app_of(studio)) as client:
        assert speak(client, "alloy") == speak(client, "Tom")
        assert speak(client, "Narrator") == speak(client, "Ida")


@pytest.mark.parametrize("consent", ["", " ", "no", "False"])
def test_a_voice_needs_its_owners_consent(address: str, sample: bytes, consent: str) -> None:
    refused = add_voice(address, "Nobody", sample, consent=consent)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "consent")
    assert "Nobody" not in httpx.get(f"{address}/audio/voices").text


def test_what_is_no_recording_is_refused(address: str) -> None:
    refused = add_voice(address, "Nobody", b"not a recording")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "audio_sample")
    assert refused.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("audio_format", ["WAV", "Mp3", None])
def test_a_format_may_be_null_or_in_capitals(address: str, audio_format: str | None) -> None:
    asked = {"input": "Oh.", "voice": "Ida", "response_format": audio_format, "speed": None}
    spoken = httpx.post(f"{address}/audio/speech", json=asked, timeout=60)
    assert spoken.status_code == 200, spoken.text
    assert duration_s(spoken.content, (audio_format or "mp3").lower()) > 0.1


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"voice": ""}, "voice"),
        ({"voice": [1]}, "voice"),
        ({"voice": {"id": 5}}, "voice"),
        ({"voice": {}}, "voice"),
        ({"input": 5}, "input"),
        ({"input": None}, "input"),
        ({"speed": "fast"}, "speed"),
        ({"speed": 9}, "speed"),
        ({"response_format": "ogg"}, "response_format"),
        ({"params": [1]}, "params"),
    ],
)
def test_an_error_names_the_field_and_no_validator(address: str, given: dict, param: str) -> None:
    refused = httpx.post(f"{address}/audio/speech", json={"input": "Oh."} | given)
    error = refused.json()["error"]
    assert (refused.status_code, error["param"]) == (400, param)
    for internal in ("constrained", "VoiceId", "function", "Value error", "dictionary", "model"):
        assert internal not in error["message"]


def test_the_setting_for_names_is_checked_at_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEREAD_VOICE_NAMES", "Alloy = Ida, echo=Old Tom")
    assert Settings.from_environment().voice_names == {"alloy": "Ida", "echo": "Old Tom"}
    monkeypatch.setenv("TABLEREAD_VOICE_NAMES", "alloy")
    with pytest.raises(SettingError, match="=alloy can't be used: write pairs"):
        Settings.from_environment()
