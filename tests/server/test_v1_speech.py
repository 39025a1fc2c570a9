from __future__ import annotations

import base64
import errno
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest
import soundfile
from fastapi.testclient import TestClient
from gated import GatedDraft
from live import live
from scenes import OpenStudio, dialog_of, finish
from shared_studio import front_of
from speech_client import FORMATS, TEXT, app_of, curl, duration_s, events_of
from voice_like import voice_like

from studio.audio.clip import STUDIO_RATE_HZ, Clip, write_wav
from studio.backends.base import Capabilities, Conditioning, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import DiskFull, OutOfMemory
from studio.services import speech_requests
from studio.services.studio import Studio
from studio.voices.speaker import Voice


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(app_of(studio)) as client:
        yield client


@pytest.fixture
def address(studio: Studio) -> Iterator[str]:
    with live(app_of(studio)) as address:
        yield address


@pytest.fixture
def official(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0) as client:
        yield client


def speak(client: TestClient, **body: object) -> bytes:
    answer = client.post("/v1/audio/speech", json={"input": TEXT, "response_format": "pcm"} | body)
    assert answer.status_code == 200, answer.text
    return answer.content


def refused(client: TestClient, **body: object) -> dict:
    answer = client.post("/v1/audio/speech", json={"input": TEXT} | body)
    assert answer.status_code == 400
    return answer.json()["error"]


def recording(seconds: float = 3.0) -> str:
    time_s = np.arange(round(seconds * 16_000)) / 16_000
    tone = 0.3 * np.sin(2 * np.pi * 150 * time_s) * (0.6 + 0.4 * np.sin(6 * np.pi * time_s))
    file = io.BytesIO()
    soundfile.write(file, tone, 16_000, format="WAV")
    return f"data:audio/wav;base64,{base64.b64encode(file.getvalue()).decode()}"


@pytest.mark.parametrize("audio_format", FORMATS)
def test_the_official_client_gets_every_format_of_the_same_length(
    official: openai.OpenAI, audio_format: str
) -> None:
    def heard(wanted: str) -> float:
        answer = official.audio.speech.create(
            model="tts-1", voice="alloy", input=TEXT, response_format=wanted
        )
        return duration_s(answer.read(), wanted)

    # MP3 and AAC carry the delay and the padding of their encoders.
    assert heard(audio_format) == pytest.approx(heard("pcm"), abs=0.1)


def test_the_official_client_lists_models_and_reads_errors(official: openai.OpenAI) -> None:
    assert [model.id for model in official.models.list()] == ["draft"]
    with pytest.raises(openai.NotFoundError) as missing:
        official.audio.speech.create(model="nobody", voice="alloy", input=TEXT)
    assert "/v1/models" in missing.value.body["message"]
    with pytest.raises(openai.BadRequestError) as wrong:
        official.audio.speech.create(model="tts-1", voice="alloy", input=TEXT, speed=40)
    assert wrong.value.param == "speed"


def test_models_tell_what_they_can(client: TestClient) -> None:
    (card,) = client.get("/v1/models").json()["data"]
    can, draft = card["capabilities"], DraftBackend().capabilities
    assert (can["cloning"], can["builtin_voice"]) == (False, True)
    assert can["presets"] == [preset.preset_id for preset in draft.presets]
    assert can["languages"]["de"] == draft.languages["de"]
    assert can["sample_rate_hz"] == STUDIO_RATE_HZ
    assert can["streaming"] is draft.streaming
    assert can["instructions"] is False


class Instructed(DraftBackend):
    """Has presets only, and keeps the voices it is asked for."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.asked: list[Voice] = []

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, builtin_voice=False)

    def condition(self, voice: Voice) -> Conditioning:
        self.asked.append(voice)
        return super().condition(voice)


def test_instructions_go_with_a_preset(open_studio: OpenStudio) -> None:
    backend = Instructed()
    preset = backend.capabilities.presets[0].preset_id
    with TestClient(app_of(open_studio(backend))) as client:
        speak(client, voice=preset, instructions="Whisper.")
        speak(client, instructions="Whisper louder.")  # the first one, where none is named
        speak(client, voice=preset)
    assert [(one.preset, one.description) for one in backend.asked] == [
        (preset, "Whisper."),
        (preset, "Whisper louder."),
        (preset, None),
    ]


def test_curl_saves_a_file(address: str, tmp_path) -> None:
    path = tmp_path / "line.wav"
    body = json.dumps({"model": "draft", "input": TEXT, "response_format": "wav"})
    header = "Content-Type: application/json"
    done = curl(f"{address}/v1/audio/speech", "-H", header, "-d", body, "-o", str(path))
    assert done.returncode == 0
    assert soundfile.info(path).samplerate == STUDIO_RATE_HZ


def test_the_first_bytes_come_before_the_line_is_finished(open_studio: OpenStudio) -> None:
    backend = GatedDraft(half_first=True)
    body = {"input": TEXT, "response_format": "pcm"}
    with (
        live(app_of(open_studio(backend))) as address,
        httpx.stream("POST", f"{address}/v1/audio/speech", json=body, timeout=60) as answer,
    ):
        chunks = answer.iter_raw()
        first = next(chunks)
        assert backend.in_speak == 1  # the gate holds the line open
        assert first
        backend.let_through(1)
        assert len(first) + sum(map(len, chunks)) > STUDIO_RATE_HZ


def test_a_caller_who_leaves_frees_the_slot(open_studio: OpenStudio) -> None:
    backend = GatedDraft(half_first=True)
    studio = open_studio(backend, max_concurrency=1)
    body = {"input": TEXT, "response_format": "pcm"}
    with live(app_of(studio)) as address, httpx.Client(base_url=address, timeout=60) as client:
        with client.stream("POST", "/v1/audio/speech", json=body) as answer:
            next(answer.iter_raw())
        # The one slot is free for the next one only when the first has let go of it.
        with client.stream("POST", "/v1/audio/speech", json=body) as answer:
            chunks = answer.iter_raw()
            next(chunks)
            assert backend.in_speak == 1
            backend.let_through(1)
            assert sum(map(len, chunks)) > STUDIO_RATE_HZ


def test_an_answer_that_was_sent_whole_counts_as_done(open_studio: OpenStudio, caplog) -> None:
    may_save = threading.Event()

    def save(path: Path, clip: Clip) -> None:
        assert may_save.wait(60)
        write_wav(path, clip)

    studio = open_studio(save=save)
    caplog.set_level(logging.INFO, logger="studio.engine.job")
    with live(app_of(studio)) as address, httpx.Client(base_url=address, timeout=60) as client:
        body = {"input": TEXT, "response_format": "pcm"}
        assert client.post("/v1/audio/speech", json=body).content
        time.sleep(0.2)  # the server closes the render, whose file isn't saved yet
        may_save.set()
        deadline_s = time.monotonic() + 60
        while not caplog.messages:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert " done: " in caplog.messages[0]


def test_16_at_once_come_back_uncrossed(address: str, client: TestClient) -> None:
    texts = [f"This is message number {number}, for you alone." for number in range(16)]
    alone = {text: speak(client, input=text, voice="nova") for text in texts}

    def ask(text: str) -> bytes:
        body = {"input": text, "voice": "nova", "response_format": "pcm"}
        return httpx.post(f"{address}/v1/audio/speech", json=body, timeout=120).content

    with ThreadPoolExecutor(16) as pool:
        together = dict(zip(texts, pool.map(ask, texts), strict=True))
    assert together == alone
    assert len(set(together.values())) == 16


def test_events_carry_the_same_audio(client: TestClient) -> None:
    whole = speak(client)
    answer = client.post(
        "/v1/audio/speech",
        json={"input": TEXT, "response_format": "pcm", "stream_format": "sse"},
    )
    assert answer.headers["content-type"].startswith("text/event-stream")
    *deltas, done = events_of(answer.text)
    assert b"".join(base64.b64decode(event["audio"]) for event in deltas) == whole
    assert done["type"] == "speech.audio.done"
    assert done["usage"]["input_tokens"] == len(TEXT)


@pytest.mark.parametrize("speed", [0.25, 0.5, 1.5, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(client: TestClient, speed: float) -> None:
    plain = np.frombuffer(speak(client), dtype=np.int16)
    fast = np.frombuffer(speak(client, speed=speed), dtype=np.int16)
    assert len(fast) * speed == pytest.approx(len(plain), rel=0.05)
    assert _centre_hz(fast) == pytest.approx(_centre_hz(plain), rel=0.2)


def _centre_hz(pcm: np.ndarray) -> float:
    power = np.abs(np.fft.rfft(pcm.astype(np.float64))) ** 2
    return float((power * np.fft.rfftfreq(len(pcm), 1 / STUDIO_RATE_HZ)).sum() / power.sum())


def test_the_same_seed_gives_the_same_sound(client: TestClient) -> None:
    assert speak(client, seed=7) == speak(client, seed=7)


def test_a_recording_in_the_request_is_the_voice(client: TestClient, studio: Studio) -> None:
    cloned = speak(client, voice="nova", ref_audio=recording(), ref_text="A tone.")
    assert cloned != speak(client, voice="nova")
    assert studio.speakers.find("nova") is None  # nothing of it is kept


@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("http://127.0.0.1:9/secret.wav", "Nothing is fetched"),
        ("file:///etc/passwd", "Nothing is fetched"),
        ("data:audio/wav;base64,!!!", "base64"),
        ("data:audio/wav;base64,aGVsbG8=", "not a recording"),
        (recording(0.2), "1 s or more"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused(
    client: TestClient, reference: str, says: str
) -> None:
    assert says in refused(client, ref_audio=reference)["message"]


def test_the_librarys_speaker_and_a_preset_are_voices(client: TestClient, studio: Studio) -> None:
    studio.speakers.add("Ida")
    body = client.get("/v1/audio/voices").json()
    kinds = {card["id"]: card["kind"] for card in body["data"]}
    assert kinds["Ida"] == "speaker"
    preset = next(name for name, kind in kinds.items() if kind == "preset")
    assert [voice["id"] for voice in body["voices"]] == list(kinds)
    assert speak(client, voice=preset) != speak(client, voice="Ida")
    assert speak(client, voice={"id": "Ida"}) == speak(client, voice="Ida")


def test_a_preset_is_named_by_id_label_or_with_its_engine(
    client: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    low = speak(client, voice="Low 1")
    assert speak(client, voice="LOW 1") == speak(client, voice="draft/Low 1") == low
    assert speak(client, voice="Bright 4") != low
    says = refused(client, voice="kokoro/af_heart")
    assert "is a voice of Kokoro, and one engine speaks all of a scene" in says["message"]
    assert says["param"] == "voice"
    body = {"input": "Zed: Oh.", "voices": {"Zed": "Low 1"}}
    assert client.post("/v1/dialogs", json=body).status_code == 201
    # What whoever runs the studio says that a name means goes before a voice of that name.
    named = replace(studio.options, voice_names={"low 1": "Bright 4"})
    monkeypatch.setattr(studio, "options", named)
    assert speak(client, voice="Low 1") != low


def test_a_language_is_a_code_or_a_name(client: TestClient) -> None:
    german = speak(client, language="German")
    assert german == speak(client, language="de")
    assert german != speak(client, language="Auto") == speak(client)
    assert "does not speak" in refused(client, language="tlh")["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"input": ""},
        {"input": "[sigh]"},
        {"input": 7},
        {"voice": ""},
        {"voice": "x" * 150},
        {"response_format": "exe"},
        {"speed": "fast"},
        {"speed": 0},
        {"seed": -1},
        {"task_type": "VoiceDesign"},
        {"task_type": "Other"},
        {"stream_format": "x"},
    ],
)
def test_what_cannot_be_used_is_refused_in_openais_shape(client: TestClient, body: dict) -> None:
    error = refused(client, **body)
    assert error["type"] == "invalid_request_error"
    assert error["message"].endswith(".")
    assert set(error) == {"message", "type", "param", "code"}


def test_an_unknown_voice_is_404_with_the_nearest_names(
    client: TestClient, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio.speakers.add("Marguerite", sample=voice_like(1))
    answer = client.post("/v1/audio/speech", json={"input": TEXT, "voice": "Margerite"})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert error["message"].startswith("There is no voice “Margerite”; there is “Marguerite”")
    assert (error["type"], error["param"], error["code"]) == (
        "not_found_error",
        "voice",
        "NotFound",
    )
    body = {"input": "Ida: Oh.", "voices": {"Ida": "Margerite"}}
    error = client.post("/v1/dialogs", json=body).json()["error"]
    assert error["param"] == "voices.Ida"
    for known in ({}, {"voice": "alloy"}, {"voice": "Nova"}, {"voice": {"id": "marguerite"}}):
        speak(client, **known)
    monkeypatch.setattr(studio, "options", replace(studio.options, any_voice=True))
    speak(client, voice="Margerite")


@pytest.mark.parametrize(
    "sent",
    [
        {"model": "tts-1-1106"},
        {"model": "tts-1-hd-1106"},
        {"model": "gpt-4o-mini-tts-2025-12-15"},
        {"n": 1, "max_chunk_len": 200, "streaming_strategy": "token"},
    ],
)
def test_what_known_clients_send_is_taken(client: TestClient, sent: dict) -> None:
    speak(client, **sent)


def test_an_empty_format_is_the_usual_one(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech", json={"input": TEXT, "response_format": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/mpeg")


@pytest.mark.parametrize(
    ("address", "body", "param", "said"),
    [
        ("audio/speech", {"input": ""}, "input", "can't be used"),
        ("audio/speech", {"input": "Oh.", "nope": 1}, "nope", "no parameter “nope”"),
        ("audio/speech", {"input": "Oh.", "params": {"nope": 1}}, "params.nope", "no parameter"),
        ("audio/speech", {"input": "Oh.", "params": {"speed": 99}}, "params.speed", "speed"),
        ("audio/speech", {"input": "Oh.", "model": "nope"}, "model", "no model “nope”"),
        ("audio/speech", {"input": "Oh.", "ref_audio": "nope"}, "ref_audio", "data URL"),
        ("dialogs", {"input": [{"type": "speech"}]}, "input", "lacks"),
        ("dialogs", {"input": "A: B", "params": {"nope": 1}}, "params.nope", "no parameter"),
        (
            "dialogs",
            {"input": "A: B", "characters": {"A": {"params": {"nope": 1}}}},
            "characters.A.params.nope",
            "no parameter",
        ),
    ],
)
def test_an_error_names_the_path_of_its_field(
    client: TestClient, address: str, body: dict, param: str, said: str
) -> None:
    error = client.post(f"/v1/{address}", json=body).json()["error"]
    assert error["param"] == param
    assert said in error["message"]


def test_a_body_that_is_no_json_and_a_wrong_method_are_told_in_words(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/v1/audio/speech", content='{"input": "Oh', headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, None)
    assert error["message"].startswith("The body is no JSON: Unterminated string")
    assert error["message"].endswith("at character 10.")
    wrong = client.get("/v1/audio/speech")
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (
        405,
        "GET can't be used at this address.",
    )


def test_a_full_queue_is_429_at_once(open_studio: OpenStudio) -> None:
    studio = open_studio(GatedDraft())
    jobs = [studio.render(dialog_of(5_002))]  # of which three are being spoken
    speech_requests.QUEUE_LIMIT.check(studio.engine)
    jobs.append(studio.render(dialog_of(1)))
    with TestClient(app_of(studio)) as client:
        answer = client.post("/v1/audio/speech", json={"input": TEXT})
        for job in jobs:
            studio.engine.cancel(job)
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert answer.json()["error"]["code"] == "EngineBusy"


def test_what_cannot_be_spoken_has_a_status_before_any_sound(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    backend.faults[TEXT] = OutOfMemory("There is no memory left.")
    backend.let_through(4)
    with TestClient(app_of(open_studio(backend))) as client:
        answer = client.post("/v1/audio/speech", json={"input": TEXT})
    assert answer.status_code == 500
    assert answer.json()["error"]["message"] == "There is no memory left."


def test_a_text_the_voice_has_no_sound_for_is_the_callers(client: TestClient) -> None:
    answer = client.post("/v1/audio/speech", json={"input": "\U000319db", "voice": "alloy"})
    assert answer.status_code == 422
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_failure_on_the_way_is_an_event_or_a_broken_answer(open_studio: OpenStudio) -> None:
    backend = GatedDraft(half_first=True)
    backend.faults[TEXT] = ValueError("the model broke")
    body = {"input": TEXT, "response_format": "pcm"}
    with live(app_of(open_studio(backend))) as address:

        def heard(**more: str) -> Iterator[str]:
            url = f"{address}/v1/audio/speech"
            with httpx.stream("POST", url, json=body | more, timeout=60) as answer:
                pieces = answer.iter_text()
                yield next(pieces)
                # Not before something was heard, or it would have been a status.
                backend.let_through(1)
                yield from pieces

        assert events_of("".join(heard(stream_format="sse")))[-1]["type"] == "error"
        with pytest.raises(httpx.RemoteProtocolError):
            list(heard())


def test_nothing_is_left_behind(studio: Studio) -> None:
    readings = studio.options.workspace / "readings"
    with TestClient(app_of(studio)) as client:
        speak(client)
        refused(client, input="[sigh]")
        # Folders go after the answer, which doesn't wait for that.
        deadline_s = time.monotonic() + 60
        while any(readings.iterdir()):
            assert time.monotonic() < deadline_s
            time.sleep(0.01)


def test_a_key_is_asked_for_when_one_is_set(studio: Studio) -> None:
    front = front_of(studio, apart=False, key="sk-studio")
    with TestClient(app_of(studio, front.require_key)) as client:
        for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic sk-studio"}):
            answer = client.get("/v1/models", headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"]["code"] == "invalid_api_key"
        right = {"Authorization": "Bearer sk-studio"}
        assert client.get("/v1/models", headers=right).status_code == 200


def test_a_body_without_an_end_is_no_stall(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as half:
        half.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        assert httpx.get(f"{address}/v1/models", timeout=60).status_code == 200


def test_a_full_disk_breaks_no_speech_off(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TestClient(app_of(open_studio())) as client:
        expected = speak(client, input=TEXT * 10)

    def refuse(path: Path, clip: Clip) -> None:
        raise DiskFull(f"“{path.name}” can't be written: No space left on device.")

    def refuse_folder(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    studio = open_studio(save=refuse)
    with TestClient(app_of(studio)) as client:
        assert speak(client, input=TEXT * 10) == expected
        monkeypatch.setattr(speech_requests.tempfile, "mkdtemp", refuse_folder)
        assert speak(client, input=TEXT * 10) == expected
        answer = client.post("/v1/dialogs", json={"input": "Ida: A dialog is kept."})
        assert answer.status_code == 507
        assert "No space left" in answer.json()["error"]["message"]


def test_a_dialog_stops_at_the_first_line_that_finds_no_room(open_studio: OpenStudio) -> None:
    spoken: list[str] = []

    class Counting(DraftBackend):
        def speak(self, request: SpeechRequest) -> Iterator[object]:
            spoken.append(request.text)
            return super().speak(request)

    def refuse(path: Path, clip: Clip) -> None:
        raise DiskFull(f"“{path.name}” can't be written: No space left on device.")

    studio = open_studio(Counting(), save=refuse)
    job = studio.render(dialog_of(80))
    finish(job)
    assert (job.state, len(job.list_failures())) == ("cancelled", 1)
    assert "No space left" in job.fatal_message
    assert job.records[79].state == "cancelled"
    assert len(spoken) < 20
