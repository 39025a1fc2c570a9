"""`pronunciations` of a dialog for other programs: heard, documented, and refused in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hearing import HearingDraft
from scenes import OpenStudio
from speech_client import app_of, events_of

SCRIPT = "Ida: Mr Hoxha is here.\nTom: Who?"


@pytest.fixture
def voice() -> HearingDraft:
    return HearingDraft()


@pytest.fixture
def client(open_studio: OpenStudio, voice: HearingDraft) -> Iterator[TestClient]:
    with TestClient(app_of(open_studio(voice))) as client:
        yield client


def rendered(client: TestClient, pronunciations: list[dict[str, Any]]) -> dict[str, Any]:
    body = {"input": SCRIPT, "stream": True, "pronunciations": pronunciations}
    answer = client.post("/v1/dialogs", json=body)
    assert answer.status_code == 201, answer.text
    return events_of(answer.text)[-1]["dialog"]


def test_words_are_said_as_the_body_says(client: TestClient, voice: HearingDraft) -> None:
    rendered(client, [{"written": "hoxha", "spoken": "hodja"}])
    assert sorted(voice.heard) == ["Mister hodja is here.", "Who?"]


def test_a_line_of_which_nothing_is_left_is_told(client: TestClient, voice: HearingDraft) -> None:
    (failure,) = rendered(client, [{"written": "Who", "spoken": ""}])["failed"]
    assert failure["line"] == 2
    assert "pronunciations leave nothing" in failure["message"]
    assert voice.heard == ["Mister Hoxha is here."]


@pytest.mark.parametrize(
    "pronunciations",
    [
        "hoxha = hodja",
        {"hoxha": "hodja"},
        [7],
        [{}],
        [{"written": ""}],
        [{"written": " \u200b"}],
        [{"written": "a" * 201}],
        [{"written": "a", "spoken": "b" * 201}],
        [{"written": "a", "spoken": None}],
        [{"written": "a", "match_case": "perhaps"}],
        [{"written": "a", "regex": True}],
        [{"written": "a"}] * 2_001,
        [{"written": "\ud800"}],
    ],
    ids=range(13),
)
def test_what_is_no_list_is_refused_in_the_shape_of_the_others(
    client: TestClient, pronunciations: object
) -> None:
    body = json.dumps({"input": SCRIPT, "pronunciations": pronunciations})
    answer = client.post("/v1/dialogs", content=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_a_hostile_list_makes_no_dialog_endless(client: TestClient, voice: HearingDraft) -> None:
    body = {
        "input": "\n".join(f"Ida: {'a ' * 600}" for _ in range(60)),
        "pronunciations": [{"written": "a", "spoken": "b" * 200}],
    }
    answer = client.post("/v1/dialogs", json=body)
    assert answer.status_code == 400
    assert "too long to speak" in answer.json()["error"]["message"]
    assert voice.heard == []


def test_the_document_tells_of_it(client: TestClient) -> None:
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    field = schemas["DialogBody"]["properties"]["pronunciations"]
    assert field["maxItems"] == 2_000
    assert schemas["PronunciationFields"]["properties"]["written"]["maxLength"] == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It cost $4.50.", "It cost four dollars fifty."),
        ("**Bold** word", "Bold word"),
        ("See [the link](https://example.com/a/b).", "See the link."),
        ("[The link](https://example.com/a)", "The link"),
        ("Hello ***there***", "Hello there"),
        ("# Title", "Title"),
        ("`code` it", "code it"),
        ("~~gone~~ kept", "gone kept"),
        ("<b>Hi</b> you", "Hi you"),
        ("<speak>Hello</speak>", "Hello"),
        ("Tom &amp; Ida", "Tom and Ida"),
        ("Hello 😀 there", "Hello there"),
    ],
)
def test_speech_has_words_and_no_markup(
    client: TestClient, voice: HearingDraft, text: str, said: str
) -> None:
    body = {"model": "draft", "voice": "m1", "input": text}
    assert client.post("/v1/audio/speech", json=body).status_code == 200
    assert voice.heard == [said]


@pytest.mark.parametrize("text", ["...", "😀", "—"])
def test_speech_without_a_word_is_a_pause(
    client: TestClient, voice: HearingDraft, text: str
) -> None:
    body = {"model": "draft", "voice": "m1", "input": text, "response_format": "pcm"}
    answer = client.post("/v1/audio/speech", json=body)
    assert answer.status_code == 200
    assert len(answer.content) >= 24_000  # half a second of 16 bits
    assert not any(answer.content)
    assert voice.heard == []
