"""The page's routes of pronunciations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from shared_studio import front_of, routes_of

from studio.services.studio import Studio

SCRIPT = "Ida: Mr Hoxha is here.\nTom: Who?"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(routes_of(front_of(studio, apart=False))) as client:
        yield client


@pytest.fixture
def at(client: TestClient) -> str:
    made = client.post("/studio/projects", json={"name": "Scene", "text": SCRIPT})
    return f"/studio/projects/{made.json()['project_id']}"


def put(client: TestClient, at: str, *entries: dict[str, Any]) -> dict[str, Any]:
    edit = {"op": "pronounce", "put": list(entries)}
    rev = client.get(at).json()["rev"]
    body = {"base_rev": rev, "client": "ida", "ops": [edit]}
    answer = client.post(f"{at}/edits", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["changes"]


def test_an_edit_tells_the_list_and_the_lines_it_touched(client: TestClient, at: str) -> None:
    changes = put(client, at, {"written": "Hoxha", "spoken": "hodja"})
    entry = {"written": "Hoxha", "spoken": "hodja", "match_case": False, "enabled": True}
    assert changes["pronunciations"] == [entry]
    (line,) = changes["lines"].values()
    assert (line["text"], line["spoken"]) == ("Mr Hoxha is here.", "Mister hodja is here.")
    body = client.get(at).json()
    assert body["pronunciations"] == [entry]
    assert [one["spoken"] for one in body["lines"]] == ["Mister hodja is here.", None]


def test_what_a_list_reaches(client: TestClient, at: str) -> None:
    put(client, at, {"written": "Hoxha", "spoken": "[wobble] hodja"}, {"written": "Zog"})
    asked = {"entry": {"written": " here ", "spoken": "there"}}
    told = client.post(f"{at}/pronunciations/reach", json=asked).json()
    assert told["lines"] == {"Hoxha": 1, "Zog": 0, "here": 1}
    assert "[wobble] would be read aloud" in told["hints"]["Hoxha"][0]
    assert told["asked"] == "here"
    assert told["example"] == ["Mr Hoxha is here.", "Mr [wobble] hodja is there."]
    assert client.post(f"{at}/pronunciations/reach", json={}).json()["example"] is None


@pytest.mark.parametrize("speaker", ["Ida", "Nobody yet"])
def test_a_spoken_form_is_heard_in_a_voice_of_the_cast(
    client: TestClient, at: str, speaker: str
) -> None:
    body = {"speaker": speaker, "text": "hodja"}
    answer = client.post(f"{at}/pronunciations/hear", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.content.startswith(b"RIFF")


@pytest.mark.parametrize(
    "body",
    [{"speaker": "Ida", "text": " "}, {"speaker": "", "text": "a"}, {"speaker": "[", "text": "a"}],
)
def test_what_cannot_be_heard_is_refused(client: TestClient, at: str, body: dict[str, str]) -> None:
    answer = client.post(f"{at}/pronunciations/hear", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


@pytest.mark.parametrize("suffix", ["csv", "txt"])
def test_a_list_goes_out_and_comes_in(client: TestClient, at: str, suffix: str) -> None:
    put(client, at, {"written": HOSTILE, "spoken": "=1+1"}, {"written": "Hoxha", "spoken": ""})
    file = client.get(f"{at}/pronunciations/file?format={suffix}")
    assert "attachment" in file.headers["content-disposition"]
    url = f"{at}/pronunciations/read?name=list.{suffix}"
    read = client.post(url, content=file.content).json()
    assert {one["written"]: one["spoken"] for one in read["entries"]} == {
        HOSTILE: "=1+1",
        "Hoxha": "",
    }
    assert read["notices"] == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "“list.txt” is empty."),
        (b"no list", "Line 1: “no list” has no “=”."),
        (b"a = " + b"b" * 300, "has 300 characters; a pronunciation takes 200"),
        (b"x" * 2_000_000, "has no “=”"),
        (b"x" * 2_000_001, "The list is larger than 2 MB."),
    ],
)
def test_what_is_no_list_is_refused(client: TestClient, at: str, data: bytes, why: str) -> None:
    before = client.get(f"{at}/pronunciations").json()
    answer = client.post(f"{at}/pronunciations/read?name=list.txt", content=data)
    assert answer.status_code == 400
    assert why in answer.json()["error"]["message"]
    assert client.get(f"{at}/pronunciations").json() == before
