"""`/v1/dialogs` tells which lines may not be right, as they are made and at the end."""

from __future__ import annotations

from fastapi.testclient import TestClient
from scenes import OpenStudio
from speech_client import app_of, events_of
from wandering import WanderingDraft

SCRIPT = "Ida: All is well.\nTom: I saw a heron in the marsh.\nIda: Good night."


def test_a_doubtful_line_is_told_with_its_step_and_at_the_end(open_studio: OpenStudio) -> None:
    with TestClient(app_of(open_studio(WanderingDraft()))) as client:
        answer = client.post("/v1/dialogs", json={"input": SCRIPT, "stream": True})
        assert answer.status_code == 201, answer.text
        *steps, done = events_of(answer.text)
    [one] = done["dialog"]["doubtful"]
    assert (one["segment"], one["line"], one["kinds"]) == (1, 2, ["tail"])
    told = [(step["segment"], step["status"]) for step in steps[1:] if step["doubtful"]]
    assert told == [(1, "saved")]
    [step] = [step for step in steps[1:] if step["doubtful"]]
    assert step["doubtful"] == [one["message"]]
