"""The speaker library over HTTP: uploads, samples by mood, previews, acting, voice files."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from acting import ActingDraft
from fastapi.testclient import TestClient
from test_routes import client_of
from voice_like import voice_like

from studio.services.studio import Studio

Send = Callable[..., dict[str, Any]]


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with client_of(studio) as client:
        yield client


def sound(duration_s: float = 4.0, *, pitch_hz: float = 140.0, rate_hz: int = 24_000) -> bytes:
    file = io.BytesIO()
    clip = voice_like(duration_s, pitch_hz=pitch_hz, rate_hz=rate_hz)
    soundfile.write(file, clip.samples, rate_hz, format="WAV")
    return file.getvalue()


def heard(answer: Any) -> tuple[np.ndarray, int]:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/wav"
    return soundfile.read(io.BytesIO(answer.content))


@pytest.fixture
def send(client: TestClient) -> Send:
    """Send a recording; what was found."""

    def sent(body: bytes | None = None, name: str = "my voice.wav") -> dict[str, Any]:
        answer = client.post("/studio/uploads", params={"name": name}, content=body or sound())
        assert answer.status_code == 201, answer.text
        return answer.json()

    return sent


@pytest.fixture
def ida(client: TestClient, send: Send) -> dict[str, Any]:
    """A speaker with a sample."""
    body = {"name": "Ida", "sample": {"upload_id": send()["upload_id"], "consent": True}}
    return client.post("/studio/speakers", json=body).json()


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    return answer.json()["error"]["message"]


def test_an_upload_is_checked_cut_repaired_and_heard(client: TestClient, send: Send) -> None:
    found = send()
    assert (found["file_name"], found["duration_s"]) == ("my voice.wav", 4.0)
    assert found["problems"] == []
    assert len(found["outline"]) == 600
    path = f"/studio/uploads/{found['upload_id']}"
    cut = {"start_s": 1.0, "end_s": 1.8}
    short = client.post(f"{path}/check", json=cut).json()
    assert (short["part_s"], short["before"]) == (0.8, None)
    assert [one["code"] for one in short["problems"]] == ["too_short"]
    repaired = client.post(f"{path}/check", json={"repaired": True}).json()
    assert repaired["before"] == found["levels"]
    assert repaired["levels"]["speech_db"] == pytest.approx(-20, abs=0.5)
    samples, rate_hz = heard(client.get(f"{path}/audio.wav", params=cut))
    assert (len(samples), rate_hz) == (19_200, 24_000)
    assert client.delete(path).status_code == 204
    assert "Choose it again" in message(client.post(f"{path}/check", json={}), 404)


def bomb(folder: Path) -> bytes:
    """A small FLAC of unstated length that decodes to 1.3 GB."""
    path = folder / "bomb.flac"
    with soundfile.SoundFile(path, "w", 48_000, 8, subtype="PCM_16", format="FLAC") as file:
        for _ in range(90):
            file.write(np.zeros((480_000, 8), dtype=np.int16))
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0
    data[22:26] = bytes(4)
    assert len(data) < 1_000_000
    return bytes(data)


def written(samples: np.ndarray, rate_hz: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format="WAV")
    return file.getvalue()


def flac_of(minutes: int) -> bytes:
    file = io.BytesIO()
    with soundfile.SoundFile(file, "w", 8_000, 1, subtype="PCM_16", format="FLAC") as out:
        for _ in range(minutes):
            out.write(np.zeros(480_000, dtype=np.int16))
    return file.getvalue()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _: written(np.zeros(0), 24_000), "“bad.wav” holds no sound. Choose another"),
        (lambda _: flac_of(120), "longer than 10 minutes, the most that is taken. Cut out"),
        (
            lambda _: b"These are words.\n" * 99,
            "“bad.wav” is not a recording that can be read. Use",
        ),
        (lambda _: written(np.zeros((100, 9)), 24_000), "9 channels; 8 are the most. Export it"),
        (lambda _: written(np.zeros(100), 384_000), "384,000 samples a second; 192,000 are"),
        pytest.param(
            bomb,
            "longer than 10 minutes, the most that is taken. Cut out",
            marks=pytest.mark.slow,
        ),
        (lambda _: b"", "“bad.wav” is empty (0 bytes). Copy or record it again."),
    ],
    ids=["0 s", "2 h", "text", "9 channels", "384 kHz", "bomb", "empty"],
)
def test_what_cannot_be_taken_in_gets_one_message(
    client: TestClient, tmp_path: Path, make: Callable[[Path], bytes], said: str
) -> None:
    answer = client.post("/studio/uploads", params={"name": "bad.wav"}, content=make(tmp_path))
    assert said in message(answer, 400)
    assert list((tmp_path / "workspace" / "uploads").iterdir()) == []


def test_eight_channels_at_192_khz_are_taken_and_said_to_be_mixed(send: Send) -> None:
    samples = np.stack([voice_like(3.0, rate_hz=192_000).samples] * 8, axis=1)
    found = send(written(samples, 192_000))
    assert (found["channels"], found["rate_hz"]) == (8, 192_000)
    assert [one["code"] for one in found["problems"]] == ["channels"]


def test_a_repair_says_how_the_recording_was_converted(client: TestClient, send: Send) -> None:
    for channels, said in ((2, ["2 channels mixed into one"]), (1, [])):
        samples = np.stack([voice_like(3.0).samples] * channels, axis=1)
        path = f"/studio/uploads/{send(written(samples, 24_000))['upload_id']}/check"
        steps = client.post(path, json={"repaired": True}).json()["steps"]
        assert [step for step in steps if "channels" in step] == said


def test_a_voice_needs_consent_and_keeps_it(client: TestClient, send: Send, studio: Studio) -> None:
    sample = {"upload_id": send()["upload_id"], "transcript": "Well.", "end_s": 3.5}
    body = {"name": "Ida", "tags": ["old"], "language": "de", "sample": sample}
    assert "Confirm that you may use this voice" in message(
        client.post("/studio/speakers", json=body), 400
    )
    assert studio.speakers.list() == ()
    sample["consent"] = True
    made = client.post("/studio/speakers", json=body)
    assert made.status_code == 201
    (main,) = made.json()["samples"]
    assert (main["sample_id"], main["mood"], main["seconds"]) == ("main", None, 3.5)
    assert main["consent_at"] == studio.speakers.get("Ida").consent_at
    assert made.json()["tags"] == ["old"]
    again = client.post("/studio/speakers", json=body | {"name": "Ada"})
    assert "Choose it again" in message(again, 404)


def test_a_name_without_a_voice_gets_the_sample(
    client: TestClient, send: Send, studio: Studio
) -> None:
    known = studio.speakers.add("Mara", colour="#112233")
    sample = {"upload_id": send()["upload_id"], "consent": True, "transcript": "I was here."}
    made = client.post("/studio/speakers", json={"name": "mara", "sample": sample}).json()
    assert (made["speaker_id"], made["colour"]) == (known.speaker_id, "#112233")
    assert studio.speakers.get("Mara").transcript == "I was here."
    sample["upload_id"] = send()["upload_id"]
    second = client.post("/studio/speakers", json={"name": "MARA", "sample": sample})
    assert "“Mara” already" in message(second, 409)


def test_samples_by_mood_are_added_changed_heard_and_removed(
    client: TestClient, send: Send, ida: dict[str, Any]
) -> None:
    path = f"/studio/speakers/{ida['speaker_id']}"
    sample = {"upload_id": send(sound(pitch_hz=220))["upload_id"], "mood": "angry", "consent": True}
    added = client.post(f"{path}/samples", json=sample)
    assert added.status_code == 201
    main, angry = added.json()["samples"]
    assert angry["mood"] == "angry"
    sounds = [
        heard(client.get(f"{path}/samples/{one['sample_id']}.wav"))[0] for one in (main, angry)
    ]
    assert not np.array_equal(*sounds)
    assert np.array_equal(sounds[0], heard(client.get(f"{path}/sample.wav"))[0])
    mood = f"{path}/samples/{angry['sample_id']}"
    changed = client.patch(mood, json={"mood": "furious", "consent": False}).json()["samples"][1]
    assert (changed["mood"], changed["consent_at"]) == ("furious", None)
    assert client.patch(mood, json={"mood": "neutral"}).status_code == 400
    said = client.patch(f"{path}/samples/main", json={"transcript": "Well."}).json()["samples"][0]
    assert said["transcript"] == "Well."
    assert len(client.delete(mood).json()["samples"]) == 1
    assert client.get(f"{mood}.wav").status_code == 404
    assert client.delete(f"{path}/samples/main").json()["samples"] == []
    assert client.get(f"{path}/sample.wav").status_code == 404


def test_what_was_removed_is_listed_restored_and_deleted(
    client: TestClient, ida: dict[str, Any]
) -> None:
    path = f"/studio/speakers/{ida['speaker_id']}"
    before = heard(client.get(f"{path}/sample.wav"))[0]
    (former,) = client.delete(f"{path}/samples/main").json()["formers"]
    assert (former["sample_id"], former["mood"], former["removed"]) == ("main", None, True)
    kept = f"{path}/formers/{former['former_id']}"
    assert client.post(f"{kept}/restore").json()["samples"] == ida["samples"]
    assert np.array_equal(heard(client.get(f"{path}/sample.wav"))[0], before)
    assert client.post(f"{kept}/restore").status_code == 404
    (former,) = client.delete(f"{path}/samples/main").json()["formers"]
    gone = client.delete(f"{path}/formers/{former['former_id']}").json()
    assert (gone["formers"], gone["samples"]) == ([], [])
    assert client.delete(path).status_code == 204
    (removed,) = client.get("/studio/speakers").json()["removed"]
    assert (removed["speaker_id"], removed["name"]) == (ida["speaker_id"], ida["name"])
    trash = f"/studio/speakers/removed/{ida['speaker_id']}"
    assert client.post(f"{trash}/restore").json()["name"] == ida["name"]
    assert client.post(f"{trash}/restore").status_code == 404
    assert client.delete(path).status_code == 204
    assert client.delete(trash).status_code == 204
    assert client.delete(trash).status_code == 404
    assert client.get("/studio/speakers").json()["removed"] == []


def test_a_speaker_is_made_from_a_preset_and_changed(client: TestClient) -> None:
    listed = client.get("/studio/speakers").json()
    offer = listed["offer"]
    assert (offer["backend"], offer["voice_conversion"]) == ("draft", False)
    body = {"name": "Tom", "preset": offer["presets"][0]["preset_id"]}
    tom = client.post("/studio/speakers", json=body).json()
    path = f"/studio/speakers/{tom['speaker_id']}"
    changed = client.patch(path, json={"preset": None, "description": "hoarse", "tags": ["a", "A"]})
    assert (changed.json()["preset"], changed.json()["description"]) == (None, "hoarse")
    assert changed.json()["tags"] == ["a"]
    assert client.get("/studio/speakers").json()["speakers"] == [changed.json()]
    state = client.get("/studio/state").json()["speakers"]
    assert [one["name"] for one in state] == ["Tom"]


def test_the_state_tells_when_a_speaker_changed(client: TestClient, ida: dict[str, Any]) -> None:
    before = client.get("/studio/state").json()["speakers"]
    assert client.get("/studio/state").json()["speakers"] == before
    client.patch(f"/studio/speakers/{ida['speaker_id']}", json={"language": "fr"})
    assert client.get("/studio/state").json()["speakers"] != before


def test_a_sentence_is_heard_in_a_voice_and_leaves_no_trace(
    client: TestClient, ida: dict[str, Any], studio: Studio
) -> None:
    path = f"/studio/speakers/{ida['speaker_id']}/preview"
    samples, rate_hz = heard(client.post(path, json={"text": "A short sentence."}))
    assert rate_hz == 24_000
    assert len(samples) > 12_000
    assert not studio.projects.list_summaries()
    again, _ = heard(client.post(path, json={"text": "A short sentence."}))
    assert np.array_equal(samples, again)
    assert "Write a sentence" in message(client.post(path, json={"text": " \n"}), 400)
    assert "500 are the most" in message(client.post(path, json={"text": "a " * 400}), 400)
    assert message(client.post(path, json={"text": "[laugh]"}), 422)
    unknown = client.post(path, json={"text": "A.", "language": "tlh"})
    assert "does not speak “tlh”" in message(unknown, 422)


def test_a_voice_is_heard_before_it_is_kept(client: TestClient, send: Send, studio: Studio) -> None:
    path = f"/studio/uploads/{send()['upload_id']}/preview"
    samples, _ = heard(client.post(path, json={"text": "A short sentence.", "repaired": True}))
    assert len(samples) > 12_000
    assert studio.speakers.list() == ()
    too_short = client.post(path, json={"text": "A.", "end_s": 0.3})
    assert "a voice needs" in message(too_short, 422)


@pytest.fixture
def acting(open_studio: Any) -> ActingDraft:
    return ActingDraft()


@pytest.fixture
def stage(acting: ActingDraft, open_studio: Any) -> Iterator[TestClient]:
    """A client of a studio whose backend converts."""
    with client_of(open_studio(acting)) as client:
        yield client


def test_a_line_is_acted_in_a_speakers_voice(stage: TestClient) -> None:
    assert stage.get("/studio/speakers").json()["offer"]["voice_conversion"]
    ida = stage.post("/studio/speakers", json={"name": "Ida"}).json()
    path = f"/studio/speakers/{ida['speaker_id']}/act"
    samples, rate_hz = heard(stage.post(path, content=sound(2.0, rate_hz=48_000)))
    assert (len(samples), rate_hz) == (48_000, 24_000)
    assert "between 0.2 and 60" in message(stage.post(path, content=sound(0.1)), 400)
    assert "“The recording” is not a recording" in message(stage.post(path, content=b"words"), 400)
    unknown = stage.post("/studio/speakers/nobody/act", content=sound())
    assert "isn't in the library" in message(unknown, 404)


def test_a_backend_that_cannot_convert_says_so(client: TestClient, ida: dict[str, Any]) -> None:
    answer = client.post(f"/studio/speakers/{ida['speaker_id']}/act", content=sound())
    assert "can't change the voice of a recording" in message(answer, 400)


def test_a_voice_is_saved_as_a_file_and_brought_in(client: TestClient, ida: dict[str, Any]) -> None:
    path = f"/studio/speakers/{ida['speaker_id']}"
    client.patch(path, json={"name": "Ida/Ä"})
    saved = client.get(f"{path}/voice")
    assert saved.headers["content-disposition"] == (
        "attachment; filename*=utf-8''Ida_%C3%84.voice.zip"
    )
    with zipfile.ZipFile(io.BytesIO(saved.content)) as pack:
        assert sorted(pack.namelist()) == ["sample.wav", "speaker.json"]
        assert json.loads(pack.read("speaker.json"))["consent_at"]
    brought = client.post("/studio/speakers/import", content=saved.content)
    assert brought.status_code == 201
    assert brought.json()["name"] == "Ida/Ä 2"
    assert brought.json()["samples"] == ida["samples"]
    refused = client.post("/studio/speakers/import", content=b"no zip")
    assert "no voice file" in message(refused, 400)
