"""The remote backend on the studio's own speech API, in other processes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from contract import CHECKS, LINE, whole
from live import live
from ports import reserve_port
from speech_client import app_of

from benchmarks.speech_servers import own_servers
from studio.app import main
from studio.audio.clip import Clip
from studio.audio.decode import decode
from studio.audio.line_edges import trim_edges
from studio.backends.base import Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.backends.options import BackendOptions, RemoteOptions
from studio.backends.remote.backend import RemoteBackend
from studio.dialog.model import Dialog, Speech
from studio.errors import SampleRejected, SpeechFailed
from studio.server.v1.speech_bodies import MAX_INPUT_CHARS
from studio.services.studio import RenderOptions
from studio.voices.speaker import Sample, Voice

pytestmark = pytest.mark.slow


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
    can, there = remote.capabilities, DraftBackend().capabilities
    assert (can.cloning, can.builtin_voice, can.described_voices) == (False, True, False)
    assert can.languages == there.languages


def test_it_sounds_as_there(remote):
    preset = DraftBackend().capabilities.presets[3].preset_id
    voice = Voice(preset, preset=preset)  # there it is the speaker's name too
    there = DraftBackend(workers=1)
    there.load(lambda _: None)
    spoken = there.speak(SpeechRequest(LINE, there.condition(voice), "en"))
    wanted = whole(trim_edges(spoken))
    there.unload()
    sound = whole(remote.speak(SpeechRequest(LINE, remote.condition(voice), "en")))
    assert len(sound) == len(wanted)
    assert np.max(np.abs(sound - wanted)) < 1e-3


def test_a_language_it_has_not_is_told_before_it_is_sent(remote):
    voice = remote.condition(Voice("Anna"))
    with pytest.raises(SpeechFailed, match="doesn't know the language “tlh”"):
        whole(remote.speak(SpeechRequest(LINE, voice, "tlh")))


def test_its_refusals_are_passed_on(remote):
    voice = remote.condition(Voice("Anna"))
    text = "Hello. " * MAX_INPUT_CHARS
    with pytest.raises(SpeechFailed, match=r"answered 4\d\d: "):
        whole(remote.speak(SpeechRequest(text, voice, "en")))


def test_words_on_how_to_speak_go_to_a_studio_that_takes_them_only(remote):
    assert not remote.capabilities.instructions
    voice = remote.condition(Voice("Anna", description="x" * 5_001))
    assert len(whole(remote.speak(SpeechRequest(LINE, voice, "en")))) > 12_000


class Presets(DraftBackend):
    """Has its own voices and no others, as a CustomVoice checkpoint."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, builtin_voice=False, described_voices=True)


def test_a_studio_that_cannot_clone_is_known_as_one(open_studio):
    tone = np.sin(np.arange(72_000, dtype=np.float32) / 17)
    cloned = Voice("Ida", Sample(Clip(tone), "0" * 64))
    with live(app_of(open_studio(Presets(workers=1)))) as address:
        options = RemoteOptions(urls=(f"{address}/v1",))
        remote = RemoteBackend(BackendOptions(remote=options))
        remote.load(lambda _: None)
        try:
            can = remote.capabilities
            assert (can.cloning, can.builtin_voice, can.described_voices) == (False, True, True)
            with pytest.raises(SampleRejected, match="can't clone Ida's sample"):
                remote.condition(cloned)
            chosen = remote.condition(Voice("Ida", preset=can.presets[0].preset_id))
            assert len(whole(remote.speak(SpeechRequest(LINE, chosen, "en")))) > 12_000
        finally:
            remote.unload()


def test_a_scene_on_two_studios(open_studio, urls):
    options = RemoteOptions(urls=urls, concurrency=2)
    studio = open_studio(RemoteBackend(BackendOptions(remote=options)))
    lines = tuple(Speech(f"Voice {idx % 4}", f"This is line {idx}.") for idx in range(16))
    job = studio.render(Dialog(lines), RenderOptions(seed=7))
    for _ in job.events.follow():
        pass
    assert [failure.message for failure in job.list_failures()] == []
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
    monkeypatch.setenv("TTS_REMOTE_URLS", f"http://127.0.0.1:{reserve_port()}")
    script = tmp_path / "scene.txt"
    script.write_text("Ida: Did you hear that?\n")
    out = tmp_path / "scene.wav"
    status = main(["render", str(script), "-o", str(out), "--workspace", str(tmp_path / "w")])
    assert status != 0
    assert "can't be reached" in capsys.readouterr().err
