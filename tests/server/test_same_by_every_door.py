"""One script with everything a script can hold is the same scene by page, `render` and `/v1`."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import soundfile
from fastapi import FastAPI
from fastapi.testclient import TestClient
from speech_client import app_of, events_of

from studio.app import main
from studio.dialog.formats.dialog_file import Format, export_dialog, read_dialog_text
from studio.dialog.gaps import spread_gap
from studio.dialog.model import Silence, name_key
from studio.dialog.planning import FailedSegment, SilenceSegment, SpeechSegment
from studio.engine.job import Job
from studio.engine.renderer import Renderer
from studio.server.error_responses import HANDLERS
from studio.server.route_table import studio_routes
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp

SCRIPT = f"""# a comment
Ida: Did you hear that?
[pause:500ms]
Tom: Hear what? (pause 1.5s) Oh. [pause] [laugh] <break time="1s"/> Well.
[Mrs. Vale] It is only the wind,
which has a key, apparently.

And it goes on.
[Ida | lang:de | speed:1.2 | seed:7] Das war nicht der Wind.
[ida | mood:angry | pitch:3] It was the door.
[Tom | instruct:"in a low voice"] Who is [there]?
[pause]
Tom: …
Mrs. Vale: {"So it goes on and on, and nobody knows why. " * 26}
[Ida | speed:2] This is fast.
[pause:0.25s]
"""
CHAT = "[10:02, 09/03/2024] Mara: Are\nyou up?\n[10:03, 09/03/2024] Tomas: Since five."
ANSWER = (
    "Sure! Here's a short scene:\n\n# The Weir\n\n**[INTRO MUSIC]**\n\n**Mara:** *(whispering)* "
    "Are you **up**?\n\n**Tomas:** Since five. (coughs)\n\nLet me know if you'd like more!"
)
ITEMS = export_dialog(read_dialog_text(SCRIPT).dialog, Format.JSON).decode()
PATIENCE_S = 60

Scene = tuple[list[tuple[Any, ...]], list[float], bytes]
"""The segments of speech, all pauses, and the samples."""


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """The jobs of every door, in the order in which they begin."""
    begun: list[Job] = []
    submit = Renderer.submit

    def record(self: Renderer, job: Job) -> None:
        begun.append(job)
        submit(self, job)

    monkeypatch.setattr(Renderer, "submit", record)
    return begun


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    app = FastAPI(
        routes=[
            *studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None),
            *app_of(studio).routes,
        ],
        exception_handlers=HANDLERS,
    )
    with TestClient(app) as client:
        yield client


def scene_of(jobs: list[Job], wav: bytes, silences: tuple[float, ...] = ()) -> Scene:
    """What the jobs planned, and the sound that came of it."""
    segments = [one for job in jobs for one in job.spec.plan.segments]
    jobs.clear()
    spoken = [
        (name_key(one.speaker), one.text, *_settings(one))
        for one in segments
        if isinstance(one, SpeechSegment)
    ]
    spoken += [
        (name_key(one.speaker), one.message) for one in segments if isinstance(one, FailedSegment)
    ]
    inside = [one.duration_s for one in segments if isinstance(one, SilenceSegment)]
    return (
        spoken,
        sorted([*inside, *silences]),
        soundfile.read(io.BytesIO(wav), dtype="int16")[0].tobytes(),
    )


def _settings(one: SpeechSegment) -> tuple[Any, ...]:
    seed = one.seed if one.seed_is_own else None
    return one.language, seed, dict(one.params), one.mood, one.instruct


def by_command(jobs: list[Job], folder: Path, text: str, *options: str) -> Scene:
    script, out = folder / "scene.txt", folder / "scene.wav"
    script.write_text(text)
    workspace = str(folder / "of the command")
    order = ["render", str(script), "-o", str(out), "--workspace", workspace, *options]
    assert main(order) in (0, 1)
    return scene_of(jobs, out.read_bytes())


def by_dialogs(jobs: list[Job], client: TestClient, given: object, **more: object) -> Scene:
    answer = client.post("/v1/dialogs", json={"input": given, "stream": True, **more})
    assert answer.status_code == 201, answer.text
    dialog = events_of(answer.text)[-1]["dialog"]
    return scene_of(jobs, client.get(f"/v1/dialogs/{dialog['id']}/audio").content)


def by_page(
    jobs: list[Job],
    client: TestClient,
    studio: Studio,
    *ops: dict[str, object],
    **body: object,
) -> Scene:
    made = client.post("/studio/projects", json=body)
    assert made.status_code == 201, made.text
    path = f"/studio/projects/{made.json()['project_id']}"
    session = studio.projects.open(path.rpartition("/")[2])
    if ops:
        edit = {"base_rev": session.rev, "client": "ida", "ops": list(ops)}
        answer = client.post(f"{path}/edits", json=edit)
        assert answer.status_code == 200, answer.text
    client.post(f"{path}/render", json={})
    deadline = time.monotonic() + PATIENCE_S
    while session.busy:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lines = session.document.to_dialog()
    silences = tuple(line.duration_s for line in lines if isinstance(line, Silence))
    return scene_of(jobs, client.get(f"{path}/export?format=wav").content, silences)


@pytest.mark.parametrize(
    "text", [SCRIPT, ITEMS, CHAT, ANSWER], ids=["script", "items", "chat", "answer"]
)
def test_a_script_is_the_same_scene_by_every_door(
    text: str,
    client: TestClient,
    studio: Studio,
    jobs: list[Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TTS_BACKEND", "draft")
    rendered = by_command(jobs, tmp_path, text)
    assert by_page(jobs, client, studio, name="Scene", text=text) == rendered
    given = json.loads(text) if text == ITEMS else text
    assert by_dialogs(jobs, client, given) == rendered
    spoken, pauses, samples = rendered
    if text == ANSWER:
        assert [one[:2] for one in spoken] == [("mara", "Are you up?"), ("tomas", "Since five.")]
        return
    if text == CHAT:
        assert [one[:2] for one in spoken] == [("mara", "Are you up?"), ("tomas", "Since five.")]
        return
    assert pauses == [0.25, 0.5, 0.5, 0.5, 1.0, 1.0, 1.5]
    assert len(samples) > 2 * 4.25 * 24_000
    assert ("ida", "Das war nicht der Wind.", "de", 7, {"speed": 1.2}, None, None) in spoken
    assert {one[0] for one in spoken} == {"ida", "tom", "mrs. vale"}


def test_a_characters_settings_are_the_same_by_every_door(
    client: TestClient,
    studio: Studio,
    jobs: list[Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TTS_BACKEND", "draft")
    text = "Ida: It was the door.\nTom: So it was.\n[Ida | speed:2] This is fast."
    plain = by_command(jobs, tmp_path, text)
    rendered = by_command(
        jobs, tmp_path, text, "--character", "ida | speed:1.3 | pitch:2 | level:-4 | pan:-0.4"
    )
    settings = {"params": {"speed": 1.3, "pitch": 2}, "level_db": -4, "pan": -0.4}
    op = {"op": "character", "speaker": "Ida", "fields": settings}
    assert by_page(jobs, client, studio, op, name="Scene", text=text) == rendered
    assert by_dialogs(jobs, client, text, characters={"Ida": settings}) == rendered
    assert len(rendered[2]) > 1.5 * len(plain[2])  # of two channels; the first voice is faster
    params = [one[4] for one in rendered[0]]
    assert params == [{"speed": 1.3, "pitch": 2}, {}, {"speed": 2, "pitch": 2}]


@pytest.mark.parametrize(
    "given", ["Ida", "Ida | speed", "| speed:1", "Ida | lang:de", "Ida | level:99", "Ida | pan:2"]
)
def test_a_character_that_cant_be_read_is_refused(given: str, tmp_path: Path) -> None:
    (tmp_path / "scene.txt").write_text("Ida: One.")
    order = ["render", str(tmp_path / "scene.txt"), "-o", str(tmp_path / "out.wav")]
    assert main([*order, "--character", given]) == 2
    assert not (tmp_path / "out.wav").exists()


def test_gaps_are_the_same_by_every_door(
    client: TestClient,
    studio: Studio,
    jobs: list[Job],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TTS_BACKEND", "draft")
    text = "## One\n[Ida] Yes. [pause:1s] Or no?\n[Tom] Oh.\n## Two\n[Ida | gap_s:0.7] Well.\n"
    text += "[Tom] So."
    plain = by_command(jobs, tmp_path, text)
    rendered = by_command(jobs, tmp_path, text, "--gap", "0.4")
    assert by_page(jobs, client, studio, name="Scene", text=text, gap_s=0.4) == rendered
    assert by_dialogs(jobs, client, text, gap_s=0.4) == rendered
    gaps_s = spread_gap(0.4, "Oh.") + spread_gap(0.4, "So.")
    assert len(rendered[2]) - len(plain[2]) == pytest.approx(2 * 24_000 * gaps_s, abs=4)
