"""The remote backend on the studio's own speech API, in other processes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from contract import CHECKS, LINE, whole
from remote_process import free_port

from studio.app import main
from studio.audio.decode import decode
from studio.backends.base import SpeechRequest
from studio.backends.draft.backend import DraftBackend
from studio.backends.options import BackendOptions
from studio.backends.remote.backend import RemoteBackend
from studio.backends.remote.options import RemoteOptions
from studio.cli.bench_remote import own_servers
from studio.dialog.model import Dialog, Speech
from studio.errors import SpeechFailed
from studio.service import RenderOptions
from studio.speakers.speaker import Voice


@pytest.fixture(scope="module")
def urls():
    with own_servers("draft", 2) as urls:
        yield urls


@pytest.fixture
def remote(urls):
    options = RemoteOptions(urls=urls, concurrency=2)
    backend = RemoteBackend(BackendOptions(remote=options))
    backend.load(lambda _: None)
    yield backend
    backend.unload()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check, remote):
    check(remote)


def test_it_offers_what_the_other_studio_does(remote):
    presets = {preset.preset_id for preset in remote.capabilities.presets}
    assert {preset.preset_id for preset in DraftBackend().capabilities.presets} <= presets
    assert remote.revision == "speech API, draft"


def test_it_sounds_as_there(remote):
    preset = DraftBackend().capabilities.presets[3].preset_id
    voice = Voice(preset, preset=preset)  # there it is the speaker's name too
    there = DraftBackend(workers=1)
    there.load(lambda _: None)
    wanted = whole(there.speak(SpeechRequest(LINE, there.condition(voice), "en")))
    there.unload()
    sound = whole(remote.speak(SpeechRequest(LINE, remote.condition(voice), "en")))
    assert len(sound) == len(wanted)
    assert np.max(np.abs(sound - wanted)) < 1e-3


def test_its_refusals_are_passed_on(remote):
    voice = remote.condition(Voice("Anna"))
    with pytest.raises(SpeechFailed, match=r"answered 4\d\d: .*tlh"):
        whole(remote.speak(SpeechRequest(LINE, voice, "tlh")))


def test_a_scene_on_two_studios(open_studio, urls):
    options = RemoteOptions(urls=urls, concurrency=2)
    studio = open_studio(RemoteBackend(BackendOptions(remote=options)))
    lines = tuple(Speech(f"Voice {idx % 4}", f"This is line {idx}.") for idx in range(16))
    job = studio.render(Dialog(lines), RenderOptions(seed=7))
    for _ in job.events.follow():
        pass
    assert [failure.message for failure in job.failures()] == []
    assert job.max_in_flight == 4
    assert all(len(decode(record.path)) > 12_000 for record in job.records)


def test_the_command_line_finds_the_servers_by_itself(urls, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TTS_REMOTE_URLS", ",".join(urls))
    script = tmp_path / "scene.txt"
    script.write_text("Ida: Did you hear that?\n[pause:500ms]\nTom: Hear what?\n")
    out, workspace = tmp_path / "scene.wav", tmp_path / "workspace"
    assert (
        main(["render", str(script), "-o", str(out), "--workspace", str(workspace), "--json"]) == 0
    )
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["backend"], told["failed"]) == ("remote", [])
    assert decode(out).duration_s == pytest.approx(told["audio_s"], abs=0.01)


def test_a_server_that_is_gone_is_one_clear_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TTS_REMOTE_URLS", f"http://127.0.0.1:{free_port()}")
    script = tmp_path / "scene.txt"
    script.write_text("Ida: Did you hear that?\n")
    out = tmp_path / "scene.wav"
    status = main(["render", str(script), "-o", str(out), "--workspace", str(tmp_path / "w")])
    assert status != 0
    assert "can't be reached" in capsys.readouterr().err
