"""The draft backend from outside: what is heard, what fails, and what becomes of its processes."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import dialog_of

from studio.audio.analysis import estimate_fundamental_hz, measure_levels
from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak import worker_pool
from studio.backends.espeak.backend import DraftBackend
from studio.backends.espeak.espeak_voices import VARIANTS
from studio.backends.espeak.worker_pool import EspeakWorker
from studio.dialog.model import Dialog, Speech
from studio.dialog.planning import plan
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.voices.speaker import Sample, Voice

start_process = worker_pool._start_process
LINE = "The old harbour wakes slowly in the morning, and nobody knows why."
LINES = (
    ("Who left the lantern burning?", "en"),
    ("Das Boot liegt noch am Ufer.", "de"),
    ("Ничего не видно в тумане.", "ru"),
    ("今天天气很好。", "zh"),
    ("O mar está calmo hoje.", "pt-BR"),
)


@pytest.fixture(scope="module")
def draft():
    backend = DraftBackend(workers=3)
    backend.load(lambda _progress: None)
    yield backend
    backend.unload()


def say(backend, text=LINE, *, voice=None, language=None, **params):
    conditioning = backend.condition(voice or Voice("Anna"))
    request = SpeechRequest(text, conditioning, language=language, params=params)
    return Clip(np.concatenate(list(backend.speak(request))))


def cmdline(process):
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended meanwhile
        return []


def processes():
    return [
        child
        for child in psutil.Process().children()
        if any(Path(part).parts[-2:] == ("espeak", "espeak_worker.py") for part in cmdline(child))
    ]


def sample_at(pitch_hz):
    """Two seconds of a voice-like tone."""
    seconds = np.arange(48_000) / 24_000
    tone = sum(np.sin(2 * np.pi * pitch_hz * n * seconds) / n for n in range(1, 12))
    return Sample(Clip((0.1 * tone).astype(np.float32)), sha256=f"tone at {pitch_hz}")


class TestDeterminism:
    @pytest.mark.slow
    def test_200_shuffled_requests_equal_each_in_a_fresh_process(self, draft):
        kinds = [
            (Voice(name), text, language, speed)
            for name in ("Anna", "Boris", "Chloe", "Deniz")
            for text, language in LINES
            for speed in (0.8, 1.3)
        ]

        def spoken(backend, kind):
            voice, text, language, speed = kind
            return say(backend, text, voice=voice, language=language, speed=speed).samples.tobytes()

        def alone(kind):
            backend = DraftBackend(workers=1)
            backend.load(lambda _progress: None)
            try:
                return spoken(backend, kind)
            finally:
                backend.unload()

        expected = {kind: alone(kind) for kind in kinds}
        requests = kinds * 5
        random.Random(3).shuffle(requests)
        with ThreadPoolExecutor(6) as threads:
            got = list(threads.map(lambda kind: spoken(draft, kind), requests))
        assert len(requests) == 200
        assert got == [expected[kind] for kind in requests]

    @pytest.mark.parametrize("fill", ["85", "170"])
    def test_no_voice_depends_on_what_memory_held_before(self, draft, monkeypatch, fill):
        voices = [Voice("Anna", preset=variant.name) for variant in VARIANTS]
        expected = [say(draft, "Come in.", voice=voice).samples for voice in voices]
        monkeypatch.setenv("MALLOC_PERTURB_", fill)  # glibc fills fresh memory with it
        other = DraftBackend(workers=1)
        other.load(lambda _progress: None)
        try:
            got = [say(other, "Come in.", voice=voice).samples for voice in voices]
        finally:
            other.unload()
        assert all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))


class TestVoices:
    @pytest.mark.parametrize("pitch_hz", [90, 110, 135, 160, 190, 220, 260])
    def test_pitch_follows_the_sample(self, draft, pitch_hz):
        clip = say(draft, voice=Voice("Anna", sample=sample_at(pitch_hz)))
        assert estimate_fundamental_hz(clip) == pytest.approx(pitch_hz, rel=0.1)

    @pytest.mark.parametrize("semitones", [-12, -5, 5, 12])
    def test_pitch_moves_by_semitones(self, draft, semitones):
        voice = Voice("Anna", sample=sample_at(150))
        moved = estimate_fundamental_hz(say(draft, voice=voice, pitch=semitones))
        assert moved == pytest.approx(150 * 2 ** (semitones / 12), rel=0.1)

    def test_double_speed_takes_about_half_the_time(self, draft):
        slow, fast = (say(draft, speed=speed).duration_s for speed in (1.0, 2.0))
        assert 0.4 < fast / slow < 0.65

    def test_expressiveness_changes_the_melody(self, draft):
        flat, lively = (say(draft, expressiveness=value).samples for value in (0.0, 2.0))
        assert not np.array_equal(flat[:20_000], lively[:20_000])

    def test_every_voice_is_equally_loud_and_unclipped(self, draft):
        for variant in VARIANTS:
            levels = measure_levels(say(draft, voice=Voice("Anna", preset=variant.name)))
            assert levels.speech_db == pytest.approx(-22, abs=2), variant.name
            assert levels.peak_db <= -0.99, variant.name


class TestSeams:
    @pytest.mark.parametrize(("text", "language"), LINES)
    def test_edges_are_silent_and_of_constant_length(self, draft, text, language):
        clip = say(draft, text, language=language)
        loud = np.flatnonzero(np.abs(clip.samples) > np.abs(clip.samples).max() * 10 ** (-45 / 20))
        assert np.abs(clip.samples[[0, -1]]).max() < 1e-4
        assert 0.02 < loud[0] / clip.rate_hz < 0.08
        assert 0.1 < (len(clip) - loud[-1]) / clip.rate_hz < 0.2

    def test_no_offset_is_left(self, draft):
        assert abs(say(draft).samples.mean()) < 1e-4

    def test_chunks_are_short(self, draft):
        chunks = list(draft.speak(SpeechRequest(LINE, draft.condition(Voice("Anna")))))
        assert len(chunks) > 2
        assert max(map(len, chunks)) <= 12_000


class TestText:
    def test_markup_and_phonemes_are_read_not_obeyed(self, draft):
        plain = say(draft, "Wait. Now.").duration_s
        marked = say(draft, 'Wait. <break time="20s"/> Now.').duration_s
        assert plain < marked < 15
        assert len(say(draft, "[[h@l'oU]]")) != len(say(draft, "h@l'oU"))

    def test_control_characters_change_nothing(self, draft):
        clean, noisy = (
            say(draft, "Good morning."),
            say(draft, "\x00Good\x01 mor\u200bning\x7f.\ud800"),
        )
        assert np.array_equal(clean.samples, noisy.samples)

    @pytest.mark.parametrize("text", ["", "...", "\x00", " \u200f ", "—"])
    def test_a_line_without_words_says_so(self, draft, text):
        with pytest.raises(SpeechFailed, match="nothing to speak"):
            say(draft, text)

    @pytest.mark.parametrize("text", ["שלום לכולם", "مرحبا بالجميع", "Fine 👍🏽", "नमस्ते", "สวัสดี"])
    def test_other_scripts_are_spoken_without_a_language(self, draft, text):
        assert say(draft, text).duration_s > 0.3

    def test_a_very_long_text_is_spoken_whole(self, draft):
        assert say(draft, "Once more along the shore. " * 120).duration_s > 120

    @settings(max_examples=40)
    @given(text=st.text(max_size=60))
    def test_any_text_is_spoken_or_refused(self, draft, text):
        try:
            clip = say(draft, text)
        except SpeechFailed:
            return
        assert np.abs(clip.samples).max() <= 1

    def test_an_unknown_language_names_the_remedy(self, draft):
        with pytest.raises(SpeechFailed, match=r"“tlh-x”.*such as en"):
            say(draft, language="tlh-x")

    @pytest.mark.slow
    def test_over_100_languages_are_offered_and_each_speaks(self, draft):
        languages = draft.capabilities.languages
        assert len(languages) > 100
        assert {"en", "en-GB", "de", "pt-BR", "zh", "cmn"} <= set(languages)
        for code in languages:
            # Cherokee's voice reads nothing but its own letters.
            assert say(draft, "Anna, 12 ᎣᏏᏲ", language=code).duration_s > 0.3, code


def killed_after_their_start(monkeypatch, *, times, backend):
    """Kill what runs, and so many workers once they are ready; returns those."""
    lost = []

    def started(package):
        worker = EspeakWorker(package)
        if len(lost) < times:
            lost.append(worker)
            worker._process.kill()
        return worker

    for worker in backend._pool._idle:
        worker.close()
    monkeypatch.setattr("studio.backends.espeak.backend.EspeakWorker", started)
    return lost


def killed_at_once(package):
    process = start_process(package)
    process.kill()
    return process


class TestProcesses:
    def start(self, workers=1):
        backend = DraftBackend(workers=workers)
        known = set(processes())
        backend.load(lambda _progress: None)
        return backend, [process for process in processes() if process not in known]

    def test_unload_leaves_no_process(self):
        backend, started = self.start()
        assert len(started) == 1
        backend.unload()
        assert not started[0].is_running()
        with pytest.raises(ModelUnavailable, match="not loaded"):
            say(backend)

    def test_a_crash_between_lines_is_not_noticed(self):
        backend, (worker,) = self.start()
        worker.kill()
        psutil.wait_procs([worker], timeout=60)
        assert len(say(backend))
        backend.unload()

    def test_a_crash_and_a_hang_fail_only_their_own_line(self, monkeypatch):
        backend, (worker,) = self.start()
        expected = say(backend).samples
        monkeypatch.setattr("studio.backends.espeak.backend._PATIENCE_S", 0.2)
        worker.suspend()
        with pytest.raises(SpeechFailed, match="stopped while it spoke"):
            say(backend)
        assert not worker.is_running()
        monkeypatch.undo()
        assert np.array_equal(say(backend).samples, expected)
        backend.unload()

    def test_a_worker_that_is_killed_while_it_speaks_is_replaced_and_the_line_is_whole(
        self, monkeypatch
    ):
        backend, _ = self.start()
        expected = say(backend).samples
        lost = killed_after_their_start(monkeypatch, times=4, backend=backend)
        assert np.array_equal(say(backend).samples, expected)
        assert len(lost) == 4
        backend.unload()

    def test_a_worker_that_is_killed_again_and_again_is_no_broken_installation(self, monkeypatch):
        backend, _ = self.start()
        expected = say(backend).samples
        lost = killed_after_their_start(monkeypatch, times=5, backend=backend)
        with pytest.raises(SpeechFailed) as failed:
            say(backend)
        assert len(lost) == 5
        assert "ended from outside 5 times (SIGKILL)" in str(failed.value)
        assert "memory is short" in str(failed.value)
        assert "nstall" not in str(failed.value)
        assert np.array_equal(say(backend).samples, expected)
        backend.unload()

    def test_a_start_that_is_killed_again_and_again_says_so(self, monkeypatch):
        backend = DraftBackend(workers=1)
        monkeypatch.setattr(worker_pool, "_start_process", killed_at_once)
        with pytest.raises(ModelUnavailable, match="ended from outside 5 times") as failed:
            backend.load(lambda _progress: None)
        assert "nstall" not in str(failed.value)
        monkeypatch.undo()
        backend.load(lambda _progress: None)
        assert len(say(backend))
        backend.unload()

    def test_no_line_of_a_render_fails_while_workers_are_killed_again_and_again(self, studio):
        known = set(processes())
        studio.engine.load(studio.backend_name)
        job = studio.render(dialog_of(60))
        saved = 0
        for event in job.events.follow():
            saved += event.state == "saved"
            if event.state == "saved" and saved % 5 == 0:
                for worker in set(processes()) - known:
                    with suppress(psutil.NoSuchProcess):
                        worker.kill()
        assert job.list_failures() == ()
        assert (job.state, saved) == ("done", 60)

    def test_no_more_processes_than_asked_for(self):
        backend, _ = self.start(workers=2)
        before = len(processes())
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(lambda _: say(backend), range(24)))
        assert len(processes()) <= before + 1
        backend.unload()

    def test_cancel_between_chunks(self, draft):
        answers = iter([False, False, False, True])
        request = SpeechRequest(
            LINE, draft.condition(Voice("Anna")), cancelled=lambda: next(answers)
        )
        chunks = draft.speak(request)
        assert len(next(chunks))
        with pytest.raises(Cancelled):
            next(chunks)


def seeded(backend, seed):
    conditioning = backend.condition(Voice("Anna"))
    request = SpeechRequest(LINE, conditioning, seed=seed)
    return Clip(np.concatenate(list(backend.speak(request))))


def test_a_new_takes_seed_changes_pace_and_melody_a_little_and_others_nothing(draft):
    usual = seeded(draft, None)
    for seed in (0, 7, 2**31 - 1, 2**32, 2**63 - 1):
        assert np.array_equal(seeded(draft, seed).samples, usual.samples)
    first, end = draft.capabilities.take_seeds
    takes = {seed: seeded(draft, seed) for seed in (first, first + 1, first + 12_345, end - 1)}
    assert len({take.samples.tobytes() for take in takes.values()}) == len(takes)
    for seed, take in takes.items():
        assert np.array_equal(seeded(draft, seed).samples, take.samples)
        assert len(take) / len(usual) == pytest.approx(1, abs=0.1)
        hz = estimate_fundamental_hz(take) / estimate_fundamental_hz(usual)
        assert abs(12 * np.log2(hz)) < 1.5


def test_a_segment_of_characters_that_are_named_lasts_two_minutes_at_most(draft):
    text = "鬱蒼とした森の奥で、誰かが静かに笛を吹いていた。" * 40
    limits = draft.capabilities.limits()
    segments = plan(Dialog((Speech("Ida", text),)), limits).segments
    assert "".join(one.text for one in segments) == text
    assert max(say(draft, one.text).duration_s for one in segments) < 120
