"""When words and sentences are said, by the names of OpenAI's speech-to-text."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator

import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from gated import GatedDraft
from scenes import OpenStudio
from speech_client import app_of, events_of

from studio.services.studio import Studio

SCRIPT = "Ida: Good evening. Is it late?\n[pause:500ms]\nTom: Well [pause:1s] no."


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(app_of(studio)) as client:
        yield client


@pytest.fixture
def dialog_id(client: TestClient) -> str:
    answer = client.post("/v1/dialogs", json={"input": SCRIPT, "stream": True})
    return events_of(answer.text)[-1]["dialog"]["id"]


def test_a_dialog_s_words_and_sentences(client: TestClient, dialog_id: str) -> None:
    both = {"timestamp_granularities[]": ["word", "segment"]}
    body = client.get(f"/v1/dialogs/{dialog_id}/timestamps", params=both).json()
    assert body["task"] == "align"
    assert body["text"] == "Good evening. Is it late?\nWell no."
    assert [one["word"] for one in body["words"]] == [
        "Good", "evening", "Is", "it", "late", "Well", "no",
    ]  # fmt: skip
    assert [one["text"] for one in body["segments"]][:2] == ["Good evening.", "Is it late?"]
    assert {one["speaker"] for one in body["segments"]} == {"Ida", "Tom"}
    words = body["words"]
    assert words[5]["start"] - words[4]["end"] > 0.5
    assert words[6]["start"] - words[5]["end"] > 1
    assert all(0 <= one["start"] < one["end"] <= body["duration"] for one in words)


@pytest.mark.parametrize(
    ("wanted", "names"),
    [([], {"segments"}), (["word"], {"words"}), (["segment"], {"segments"})],
)
@pytest.mark.parametrize("name", ["timestamp_granularities[]", "timestamp_granularities"])
def test_only_what_is_asked_for(
    client: TestClient, dialog_id: str, wanted: list[str], names: set[str], name: str
) -> None:
    asked = {name: wanted}
    body = client.get(f"/v1/dialogs/{dialog_id}/timestamps", params=asked).json()
    assert body.keys() & {"words", "segments"} == names


def test_files_of_a_dialog(client: TestClient, dialog_id: str) -> None:
    at = f"/v1/dialogs/{dialog_id}/timestamps"
    grid = client.get(at, params={"format": "TextGrid"})
    assert grid.text.startswith('File type = "ooTextFile"')
    assert "dialog.TextGrid" in grid.headers["content-disposition"]
    assert client.get(at, params={"format": "rhubarb.tsv"}).text.startswith("0.00\tX\n")
    assert client.get(at, params={"format": "mp3"}).status_code in (400, 422)
    assert client.get(at, params={"timestamp_granularities[]": "letter"}).status_code in (400, 422)


def test_names_that_differ_in_case_are_one_speaker_and_directions_no_words(
    client: TestClient,
) -> None:
    script = "IDA: (whispering) Good evening.\nIda: [laugh] Well, (softly) no."
    answer = client.post("/v1/dialogs", json={"input": script, "stream": True})
    at = f"/v1/dialogs/{events_of(answer.text)[-1]['dialog']['id']}/timestamps"
    body = client.get(at, params={"timestamp_granularities[]": ["word", "segment"]}).json()
    assert [one["word"] for one in body["words"]] == ["Good", "evening", "Well", "no"]
    assert [one["text"] for one in body["segments"]] == ["Good evening.", "Well, no."]
    grid = client.get(at, params={"format": "TextGrid"}).text
    assert 'name = "IDA"' in grid
    assert 'name = "Ida"' not in grid


def test_no_times_while_it_is_rendered(open_studio: OpenStudio) -> None:
    draft = GatedDraft()
    studio = open_studio(draft)
    with TestClient(app_of(studio)) as client:
        begun = client.post("/v1/dialogs", json={"input": "Ida: Wait."}).json()
        answer = client.get(f"/v1/dialogs/{begun['id']}/timestamps")
        draft.let_through(1)
    assert answer.status_code == 409


def test_speech_ends_with_the_times_of_its_words(client: TestClient) -> None:
    asked = {
        "input": "Good evening, Tom. Nobody came.",
        "stream_format": "sse",
        "response_format": "wav",
        "timestamp_granularities": ["word", "segment"],
    }
    plain = events_of(client.post("/v1/audio/speech", json=asked).text)
    fast = events_of(client.post("/v1/audio/speech", json=asked | {"speed": 2.0}).text)
    assert plain[-1]["type"] == fast[-1]["type"] == "speech.audio.done"
    words = plain[-1]["words"]
    assert [one["word"] for one in words] == ["Good", "evening", "Tom", "Nobody", "came"]
    assert [one["text"] for one in plain[-1]["segments"]] == ["Good evening, Tom.", "Nobody came."]
    sound = b"".join(base64.b64decode(one["audio"]) for one in plain[:-1])
    samples, rate_hz = soundfile.read(io.BytesIO(sound), dtype="float32")
    loud = np.flatnonzero(np.abs(samples) > 0.02) / rate_hz
    assert words[0]["start"] == pytest.approx(loud[0], abs=0.1)
    assert words[-1]["end"] == pytest.approx(loud[-1], abs=0.15)
    directed = events_of(
        client.post("/v1/audio/speech", json=asked | {"input": "(softly) Good evening."}).text
    )
    assert [one["word"] for one in directed[-1]["words"]] == ["Good", "evening"]
    assert directed[-1]["segments"][0]["text"] == "Good evening."
    half = [one["start"] / 2 for one in words]
    assert [one["start"] for one in fast[-1]["words"]] == pytest.approx(half, abs=0.002)


def test_speech_without_events_has_no_place_for_times(client: TestClient) -> None:
    asked = {"input": "Good evening.", "timestamp_granularities": ["word"]}
    answer = client.post("/v1/audio/speech", json=asked)
    assert answer.status_code == 400
    assert "stream_format" in answer.json()["error"]["message"]
