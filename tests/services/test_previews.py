"""Previews: a small job among the others, which leaves nothing and can be stopped."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from pathlib import Path

import pytest
from project_scenes import until
from scenes import OpenStudio, dialog_of, finish
from voice_like import voice_like

from studio.audio.clip import write_wav
from studio.backends.espeak.backend import DraftBackend
from studio.errors import BadInput, NotFound, SampleRejected, SpeechFailed
from studio.services.previews import Sentence
from studio.services.studio import Studio


class Blocked(DraftBackend):
    """Speaks only after the job was cancelled, and then doesn't."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.speaking = threading.Event()

    def speak(self, request):
        self.speaking.set()
        while not request.cancelled():
            pass
        yield from super().speak(request)


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go during the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_a_preview_is_no_render_and_leaves_no_file(studio: Studio, temporary: Path) -> None:
    ida = studio.speakers.add("Ida", language="de-AT")
    clip = await studio.previews.preview(ida.speaker_id, Sentence("Guten Abend."), "draft")
    assert clip.duration_s > 0.3
    assert left_in(temporary) == []


async def test_moods_sound_different(studio: Studio, temporary: Path) -> None:
    ida = studio.speakers.add("Ida", sample=voice_like(4.0, pitch_hz=110))
    studio.speakers.add_mood("Ida", "high", voice_like(4.0, pitch_hz=250))
    main, high, neutral = [
        await studio.previews.preview(ida.speaker_id, Sentence("Good evening.", mood), "draft")
        for mood in (None, "HIGH", "neutral")
    ]
    assert main.samples.tolist() == neutral.samples.tolist()
    assert main.samples.tolist() != high.samples.tolist()


async def test_a_stopped_preview_frees_its_slot_and_its_folder(
    open_studio: OpenStudio, temporary: Path
) -> None:
    backend = Blocked()
    studio = open_studio(backend)
    ida = studio.speakers.add("Ida")
    sentence = Sentence("A sentence that never ends.")
    preview = asyncio.ensure_future(studio.previews.preview(ida.speaker_id, sentence, "draft"))
    assert await asyncio.to_thread(backend.speaking.wait, 60)
    preview.cancel()
    with pytest.raises(asyncio.CancelledError):
        await preview
    until(lambda: studio.engine.renderer.in_flight == 0)
    assert left_in(temporary) == []


async def test_a_preview_takes_its_turn_beside_a_render(studio: Studio) -> None:
    ida = studio.speakers.add("Ida")
    job = studio.render(dialog_of(40))
    clip = await studio.previews.preview(ida.speaker_id, Sentence("Good evening."), "draft")
    assert clip.duration_s > 0.3
    await asyncio.to_thread(finish, job)
    assert job.list_failures() == ()


async def test_what_cannot_be_spoken_says_why(studio: Studio) -> None:
    ida = studio.speakers.add("Ida", sample=voice_like(4.0))
    with pytest.raises(NotFound):
        await studio.previews.preview("nobody", Sentence("Hello."), "draft")
    with pytest.raises(BadInput, match="Write a sentence"):
        await studio.previews.preview(ida.speaker_id, Sentence(" "), "draft")
    ida.sample.unlink()
    with pytest.raises(SpeechFailed, match="sample of Ida can't be found"):
        await studio.previews.preview(ida.speaker_id, Sentence("Hello."), "draft")


async def test_acting_with_a_broken_sample_says_whose(open_studio: OpenStudio, tmp_path) -> None:
    from acting import ActingDraft

    studio = open_studio(ActingDraft())
    ida = studio.speakers.add("Ida", sample=voice_like(4.0))
    write_wav(tmp_path / "said.wav", voice_like(2.0))
    made = await studio.previews.convert(ida.speaker_id, tmp_path / "said.wav", "draft")
    assert made.duration_s == 2.0
    ida.sample.write_bytes(b"no sound")
    with pytest.raises(SampleRejected, match="sample of Ida can't be used"):
        await studio.previews.convert(ida.speaker_id, tmp_path / "said.wav", "draft")
