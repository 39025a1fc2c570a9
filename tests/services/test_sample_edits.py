"""Kept samples are opened, trimmed, repaired, put back, and brought back as they were."""

from __future__ import annotations

import numpy as np
import pytest
from voice_like import voice_like

from studio.audio.clip import Clip
from studio.errors import NotFound, SampleRejected
from studio.services.voice_library import TrimSpec

RATE_HZ = 24_000


@pytest.fixture
def poor():
    """A quiet voice with two seconds of silence before, between and behind."""
    silence = np.zeros(2 * RATE_HZ, dtype=np.float32)
    voice = 0.05 * voice_like(5).samples
    return Clip(np.concatenate([silence, voice, silence, voice, silence]).astype(np.float32))


@pytest.fixture
def mara(studio, poor):
    stamp = "2026-01-02T03:04:05+00:00"
    speaker = studio.speakers.add("Mara", sample=poor, transcript="Hello.", consent_at=stamp)
    return studio.speakers.add_mood(speaker.name, "angry", poor, transcript="No!", consent_at=stamp)


@pytest.mark.parametrize("sample", ["main", "mood"])
def test_a_kept_sample_is_repaired_and_brought_back_byte_for_byte(studio, mara, sample):
    sample_id = None if sample == "main" else mara.moods[0].sample_id
    path = mara.sample if sample == "main" else mara.moods[0].path
    before = path.read_bytes()
    upload_id = studio.voices.open_sample(mara.speaker_id, sample_id).upload.upload_id
    assert path.read_bytes() == before
    mended = studio.voices.replace_sample(
        mara.speaker_id,
        sample_id,
        TrimSpec(upload_id, 1.0, 9.0, repaired=True),
        "Louder.",
    )
    kept = mended if sample == "main" else mended.moods[0]
    assert (kept.transcript, kept.consent_at) == ("Louder.", "2026-01-02T03:04:05+00:00")
    assert studio.speakers.measure_length_s(path) < 8
    studio.voices.replace_sample(mara.speaker_id, sample_id, TrimSpec(upload_id), "Hello.")
    assert path.read_bytes() == before


def test_what_can_not_serve_as_a_voice_is_refused_and_the_sample_stays(studio, mara):
    before = mara.sample.read_bytes()
    upload_id = studio.voices.open_sample(mara.speaker_id, None).upload.upload_id
    with pytest.raises(SampleRejected):
        studio.voices.replace_sample(mara.speaker_id, None, TrimSpec(upload_id, 0.0, 1.5))
    assert mara.sample.read_bytes() == before


def test_a_sample_that_is_gone_says_so(studio, mara):
    with pytest.raises(NotFound):
        studio.voices.open_sample(mara.speaker_id, "00000000")
    mara.sample.unlink()
    with pytest.raises(SampleRejected, match="can't be found"):
        studio.voices.open_sample(mara.speaker_id, None)
    with pytest.raises(NotFound):
        studio.voices.replace_sample(mara.speaker_id, None, TrimSpec("nothing"))
