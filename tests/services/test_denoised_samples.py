"""A recording is denoised on wish: the original is kept beside it, and either one is the sample."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import soundfile
from voice_like import voice_like

from studio.audio.analysis import measure_levels
from studio.audio.clip import Clip, write_wav
from studio.audio.decode import decode
from studio.errors import BadInput, NotFound
from studio.hearing.listeners import Denoiser
from studio.services.voice_library import NewSample, TrimSpec, VoiceLibrary
from studio.voices.library import SpeakerLibrary
from studio.voices.samples import SampleUploads

pytest.importorskip("sherpa_onnx")

from gtcrn_model import write_gtcrn


class Bench:
    """A voice library with a denoiser; its clock is the test's."""

    def __init__(self, root: Path) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)
        self.library = SpeakerLibrary(root / "speakers", now=lambda: self.now)
        self.uploads = SampleUploads(root / "uploads")
        denoiser = Denoiser(write_gtcrn(root / "model"))
        denoiser.load(lambda _: None)
        self.voices = VoiceLibrary(self.library, self.uploads, denoise=denoiser.denoise)
        self._path = root / "noisy.wav"
        voice = voice_like(4.0).samples
        hiss = np.random.default_rng(4).normal(size=len(voice)) * 0.01
        write_wav(self._path, Clip((voice + hiss).astype(np.float32)))

    def upload(self) -> str:
        return self.uploads.add(self._path, "noisy.wav").upload_id


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def noise_db(path: Path) -> float:
    return measure_levels(decode(path)).noise_db


def test_a_part_is_checked_before_and_after(bench: Bench) -> None:
    upload_id = bench.upload()
    plain = bench.voices.examine(TrimSpec(upload_id))
    clean = bench.voices.examine(TrimSpec(upload_id, denoised=True))
    assert plain.repair is None
    assert clean.repair.steps == ("noise taken out, and with it what lay above 8 kHz",)
    assert clean.repair.before.noise_db == plain.report.levels.noise_db
    assert clean.repair.after.noise_db < clean.repair.before.noise_db - 15
    assert len(clean.clip) == len(plain.clip)
    both = bench.voices.examine(TrimSpec(upload_id, denoised=True, repaired=True))
    assert both.repair.steps[0] == clean.repair.steps[0]
    assert both.repair.after.speech_db == pytest.approx(-20, abs=1)
    assert np.array_equal(
        bench.voices.cut_clip(TrimSpec(upload_id, denoised=True)).samples, clean.clip.samples
    )


def test_the_original_is_kept_and_either_one_is_the_sample(bench: Bench) -> None:
    upload_id = bench.upload()
    original = bench.voices.cut_clip(TrimSpec(upload_id, 0.5, 3.5))
    cut = TrimSpec(upload_id, 0.5, 3.5, denoised=True)
    ida = bench.voices.add("Ida", NewSample(cut, consent=True, transcript="Well."))
    [kept] = ida.formers
    assert kept.original
    assert not kept.removed
    clean_db = noise_db(ida.sample)
    assert clean_db < noise_db(kept.path) - 15
    assert np.abs(decode(kept.path).samples - original.samples).max() < 1e-4
    assert bench.library.find_version_path(ida.speaker_id, kept.former_id) == kept.path
    noisy = bench.library.restore_version("Ida", kept.former_id)
    assert noise_db(noisy.sample) > clean_db + 15
    assert noisy.transcript == "Well."
    [other] = noisy.formers
    assert other.original
    assert noise_db(other.path) == clean_db
    again = bench.library.restore_version("Ida", other.former_id)
    assert noise_db(again.sample) == clean_db
    with pytest.raises(NotFound):
        bench.voices.uploads.get(upload_id)


def test_an_original_outlives_other_versions(bench: Bench) -> None:
    cut = TrimSpec(bench.upload(), denoised=True)
    ida = bench.voices.add("Ida", NewSample(cut, consent=True))
    [original] = ida.formers
    bench.now += timedelta(days=365)
    for _ in range(12):
        ida = bench.voices.replace_sample(ida.speaker_id, None, TrimSpec(bench.upload(), 0, 3))
    assert original.former_id in {one.former_id for one in ida.formers}
    assert len(ida.formers) == 11
    assert SpeakerLibrary(bench.library.folder("").parent / "speakers").get("Ida").formers == (
        ida.formers
    )


def test_it_goes_the_way_of_its_sample(bench: Bench) -> None:
    cut = TrimSpec(bench.upload(), denoised=True)
    bench.voices.add("Ida", NewSample(cut, consent=True))
    gone = bench.library.set_sample("Ida", None)
    assert [(one.removed, one.original) for one in gone.formers] == [(True, False), (True, False)]


def test_a_mood_has_an_original_of_its_own(bench: Bench) -> None:
    ida = bench.voices.add("Ida", NewSample(TrimSpec(bench.upload()), consent=True))
    cut = TrimSpec(bench.upload(), denoised=True)
    ida = bench.voices.add_sample(ida.speaker_id, NewSample(cut, consent=True, mood="angry"))
    [kept] = ida.formers
    assert (kept.sample_id, kept.mood) == (ida.moods[0].sample_id, "angry")


def test_a_kept_sample_is_denoised_later(bench: Bench) -> None:
    ida = bench.voices.add("Ida", NewSample(TrimSpec(bench.upload()), consent=True))
    upload_id = bench.voices.open_sample(ida.speaker_id, None).upload.upload_id
    cut = TrimSpec(upload_id, denoised=True)
    mended = bench.voices.replace_sample(ida.speaker_id, None, cut, "Well.")
    assert [one.original for one in mended.formers] == [False, True]
    assert mended.transcript == "Well."
    assert soundfile.info(mended.sample).frames == soundfile.info(mended.formers[1].path).frames


def test_where_nothing_denoises_it_is_refused(bench: Bench) -> None:
    voices = VoiceLibrary(bench.library, bench.uploads)
    with pytest.raises(BadInput, match="can't be taken out here"):
        voices.examine(TrimSpec(bench.upload(), denoised=True))
