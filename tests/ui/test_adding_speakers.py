"""The form for a new voice: values in, the library changed, a message out."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from studio.service import Studio
from studio.ui.speakers import SpeakerHandlers

RATE_HZ = 24_000


def recorded(path: Path, *, duration_s: float = 6.0, level: float = 0.3) -> str:
    time_s = np.arange(int(duration_s * RATE_HZ)) / RATE_HZ
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 3 * time_s)
    voice = sum(np.sin(2 * np.pi * 140 * n * time_s) / n for n in range(1, 8))
    soundfile.write(path, level * syllables * voice / 2, RATE_HZ)
    return str(path)


@pytest.fixture
def handlers(studio: Studio) -> SpeakerHandlers:
    return SpeakerHandlers(studio)


def test_a_recording_becomes_a_voice(handlers, studio, tmp_path):
    recording = recorded(tmp_path / "mara.wav")
    told = handlers.add_speaker(name=" Mara ", recording=recording, transcript=" I was here. ")
    assert told["kind"] == "done"
    assert told["title"] == "Mara has a voice."
    assert studio.speakers.get("mara").sample is not None
    assert studio.speakers.get("mara").transcript == "I was here."


def test_a_name_without_a_sample_gets_one(handlers, studio, tmp_path):
    known = studio.speakers.add("Mara")
    recording = recorded(tmp_path / "mara.wav")
    assert handlers.add_speaker(name="mara", recording=recording, transcript="")["kind"] == "done"
    assert studio.speakers.get("Mara").speaker_id == known.speaker_id
    assert studio.speakers.get("Mara").sample is not None


def test_a_second_voice_of_one_name_is_refused(handlers, studio, tmp_path):
    recording = recorded(tmp_path / "mara.wav")
    handlers.add_speaker(name="Mara", recording=recording, transcript="")
    told = handlers.add_speaker(name="MARA", recording=recording, transcript="")
    assert told["kind"] == "refused"
    assert "Mara" in told["text"]
    assert len(studio.speakers.list()) == 1


def test_a_silent_recording_is_refused_with_its_reason(handlers, studio, tmp_path):
    recording = recorded(tmp_path / "mara.wav", level=0.0)
    told = handlers.add_speaker(name="Mara", recording=recording, transcript="")
    assert told["kind"] == "refused"
    assert told["text"]
    assert studio.speakers.list() == ()


def test_an_empty_name_is_refused(handlers):
    told = handlers.add_speaker(name="  ", recording=None, transcript="")
    assert (told["kind"], told["title"]) == ("refused", "This name can't be used")
