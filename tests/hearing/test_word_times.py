"""Word times against eSpeak NG's own, of voices and texts that the aligner wasn't made with."""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pytest
from aligned_speech import KnownSpeech, KnownVoice, iter_lines
from aligner_process import find_aligner
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import Clip, write_wav
from studio.hearing.draft_reading import DraftReader
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_times import align, align_words


@pytest.fixture(scope="module")
def reader() -> Iterator[DraftReader]:
    found = DraftReader()
    yield found
    found.close()


@pytest.fixture(scope="module")
def voice() -> Iterator[KnownVoice]:
    found = KnownVoice()
    yield found
    found.close()


def measure_errors_ms(speech: KnownSpeech, reader: DraftReader) -> list[float]:
    words = align_words(speech.clip, speech.text, speech.language, reader=reader)
    found = {word.start: word.start_s for word in words}
    errors = [
        1000 * abs(found[offset] - start_s)
        for offset, start_s in speech.starts_s.items()
        if offset in found
    ]
    assert len(errors) > 0.9 * len(speech.starts_s), "words are missing"
    return errors


def measure_all_ms(n_lines: int, voice: KnownVoice, reader: DraftReader, *, spoilt: bool) -> float:
    errors: list[float] = []
    for number, line in enumerate(iter_lines(n_lines)):
        speech = voice.speak(
            *line,
            shift=(1.18, 1 / 1.18)[number % 2] if spoilt else 1.0,
            snr_db=15 if spoilt else None,
        )
        errors += measure_errors_ms(speech, reader)
    p50, p90, p95 = np.percentile(errors, (50, 90, 95))
    print(
        f"\n{'spoilt' if spoilt else 'clean'}: {n_lines} lines, {len(errors)} word starts, "
        f"median {p50:.1f} ms, p90 {p90:.1f} ms, p95 {p95:.1f} ms"
    )
    return float(p90)


def test_word_times_of_other_voices(voice: KnownVoice, reader: DraftReader) -> None:
    assert measure_all_ms(18, voice, reader, spoilt=False) <= 40


def test_word_times_of_spoilt_takes(voice: KnownVoice, reader: DraftReader) -> None:
    """Formants and tempo moved by 18 %, noise at 15 dB."""
    assert measure_all_ms(18, voice, reader, spoilt=True) <= 80


@pytest.mark.campaign
@pytest.mark.parametrize(("spoilt", "limit_ms"), [(False, 40), (True, 80)])
def test_word_times_of_500_lines(
    voice: KnownVoice, reader: DraftReader, spoilt: bool, limit_ms: float
) -> None:
    assert measure_all_ms(500, voice, reader, spoilt=spoilt) <= limit_ms


@pytest.mark.campaign
def test_a_line_of_two_hours(voice: KnownVoice, tmp_path: Path) -> None:
    """Through the aligner's process: its memory, what it costs, and that no place is lost."""
    piece = make_long_speech(voice, 120)
    times = math.ceil(7_200 / piece.clip.duration_s)
    clip = Clip(np.tile(piece.clip.samples, times))
    text = " ".join([piece.text] * times)
    write_wav(tmp_path / "take.wav", clip)
    aligner = WordAligner()
    try:
        aligner.align(Clip(piece.clip.samples[:24_000]), "The old")  # its process is there
        child = find_aligner()
        before_s = sum(child.cpu_times()[:2])
        words = aligner.align_file(tmp_path / "take.wav", text, "en").words
        cpu_s = sum(child.cpu_times()[:2]) - before_s
        peak = child.memory_full_info()
    finally:
        aligner.close()
    length_s, chars = piece.clip.duration_s, len(piece.text) + 1
    starts = {
        place + number * chars: start_s + number * length_s
        for number in range(times)
        for place, start_s in piece.starts_s.items()
    }
    errors_ms = [
        1000 * abs(one.start_s - starts[one.start]) for one in words if one.start in starts
    ]
    print(
        f"\n{clip.duration_s:.0f} s: {100 * cpu_s / clip.duration_s:.2f} % of real time, "
        f"{peak.rss / 1e6:.0f} MB, p90 {np.percentile(errors_ms, 90):.1f} ms"
    )
    assert len(errors_ms) > 0.9 * len(starts)
    assert np.percentile(errors_ms, 90) <= 40
    assert cpu_s <= 0.02 * clip.duration_s


def measure_all_s() -> float:
    """Processor time of this process and those that eSpeak NG speaks in."""
    worked_s = time.process_time()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):  # it has ended meanwhile
            worked_s += sum(child.cpu_times()[:2])
    return worked_s


@pytest.mark.campaign
def test_what_an_alignment_costs(voice: KnownVoice, reader: DraftReader) -> None:
    """Processor time of short lines: the alignment alone, in this process, on one thread."""
    takes = [voice.speak(*line) for line in iter_lines(180)]
    readings = [reader.read(take.text, take.language) for take in takes]
    began_s = time.process_time()
    for take, reading in zip(takes, readings, strict=True):
        align(take.clip, take.text, reading)
    share = (time.process_time() - began_s) / sum(take.clip.duration_s for take in takes)
    began_s = measure_all_s()
    for take in takes:
        reader.read(take.text, take.language)
    read = (measure_all_s() - began_s) / sum(take.clip.duration_s for take in takes)
    print(f"\nalignment {100 * share:.2f} % of real time, the reading {100 * read:.2f} %")
    assert share <= 0.02


TEXT = "Well, the red kite flew over the harbour, and nobody looked up."


def is_ordered(clip: Clip, text: str, reader: DraftReader) -> int:
    """Checks the times of whatever a clip is; returns the number of words."""
    found = align(clip, text, reader.read(text))
    for times in (found.words, found.phonemes):
        edges = [edge for one in times for edge in (one.start_s, one.end_s)]
        assert all(0 <= edge <= clip.duration_s for edge in edges)
        assert all(one.start_s <= one.end_s for one in times)
        assert all(one.start_s <= other.start_s for one, other in pairwise(times))
    for word in found.words:
        assert word.word == text[word.start : word.end]
    return len(found.words)


def test_words_lie_in_the_text_as_it_is_written(voice: KnownVoice, reader: DraftReader) -> None:
    text = "“Don’t,” of the 1,234 — [laugh] it's 😀 well-known (e.g. here) [pause:1s] to <b>me</b>…"
    words = align_words(voice.speak(text, "en", "m3").clip, text, "en", reader=reader)
    assert [word.word for word in words] == [
        "Don’t", "of", "the", "1,234", "it's", "well-known", "e.g", "here", "to", "me",
    ]  # fmt: skip
    assert [text[word.start : word.end] for word in words] == [word.word for word in words]


def test_words_without_spaces(voice: KnownVoice, reader: DraftReader) -> None:
    text = "今天天气很好，我们去公园。"
    clip = Clip(np.random.default_rng(0).normal(0, 0.1, 72_000).astype(np.float32))
    words = align_words(clip, text, None, reader=reader)
    assert "".join(word.word for word in words) == "今天天气很好我们去公园"
    assert len(words) > 8


def test_phrases_of_japanese(voice: KnownVoice, reader: DraftReader) -> None:
    """ESpeak NG has one event for a clause."""
    text = "今日はとても良い天気です。コーヒーを飲む。"
    clip = Clip(np.random.default_rng(0).normal(0, 0.1, 96_000).astype(np.float32))
    words = align_words(clip, text, "ja", reader=reader)
    assert [one.word for one in words] == ["今日はとても", "良い", "天気です", "コーヒーを", "飲む"]
    assert all(a.start_s < a.end_s <= b.start_s for a, b in pairwise(words))


def test_a_pause_in_a_take_belongs_to_no_word(voice: KnownVoice, reader: DraftReader) -> None:
    first, second = (voice.speak(text, "en", "f4") for text in ("Come closer,", "said the fox."))
    silence = Clip.silence(3.0).samples
    clip = Clip(np.concatenate([first.clip.samples, silence, second.clip.samples]))
    words = align_words(clip, "Come closer, [pause:3s] said the fox.", "en", reader=reader)
    closer, said = words[1:3]
    assert closer.end_s < first.clip.duration_s < first.clip.duration_s + 3 < said.start_s


def test_what_is_no_reading_of_the_text(reader: DraftReader) -> None:
    chance = np.random.default_rng(3)
    at = np.arange(96_000) / 24_000
    chord = sum(np.sin(2 * np.pi * hz * at) for hz in (220, 277, 330)) * (1 + np.sin(20 * at))
    noise = chance.normal(0, 0.3, 24_000)
    for samples in (np.zeros(48_000), chord / 8, noise, np.zeros(1), at[:9]):
        assert is_ordered(Clip(samples.astype(np.float32)), TEXT, reader) == 12


def test_nothing_to_align(reader: DraftReader) -> None:
    speech = Clip(np.random.default_rng(3).normal(0, 0.1, 24_000).astype(np.float32))
    for text in ("", "😀🎉", "…", "[laugh]", "[pause:1s]", "\u200b"):
        assert is_ordered(speech, text, reader) == 0
    assert is_ordered(Clip.silence(0), TEXT, reader) == 0


def test_a_language_nobody_knows(voice: KnownVoice, reader: DraftReader) -> None:
    speech = voice.speak(TEXT, "en", "m8")
    assert len(align_words(speech.clip, TEXT, "xx-Nope", reader=reader)) == 12


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text(text: str, reader: DraftReader) -> None:
    speech = Clip(np.random.default_rng(3).normal(0, 0.1, 24_000).astype(np.float32))
    is_ordered(speech, text, reader)


def make_long_speech(voice: KnownVoice, n_lines: int) -> KnownSpeech:
    lines = [voice.speak(text, "en", "robert") for text, language, _ in iter_lines(3 * n_lines)
             if language == "en"]  # fmt: skip
    starts: dict[int, float] = {}
    offset, at_s = 0, 0.0
    for line in lines:
        starts |= {offset + place: at_s + start for place, start in line.starts_s.items()}
        offset, at_s = offset + len(line.text) + 1, at_s + line.clip.duration_s
    clip = Clip(np.concatenate([line.clip.samples for line in lines]))
    return KnownSpeech(clip, " ".join(line.text for line in lines), "en", starts)


def test_a_line_of_minutes_is_aligned_in_little_memory_and_time(
    voice: KnownVoice, reader: DraftReader
) -> None:
    speech = make_long_speech(voice, 15)
    assert speech.clip.duration_s > 60
    reading = reader.read(speech.text, "en")
    started = time.process_time()
    found = align(speech.clip, speech.text, reading)
    share = (time.process_time() - started) / speech.clip.duration_s
    print(f"\nalignment of {speech.clip.duration_s:.0f} s: {100 * share:.2f} % of real time")
    errors = [
        1000 * abs(word.start_s - speech.starts_s[word.start])
        for word in found.words
        if word.start in speech.starts_s
    ]
    assert np.percentile(errors, 90) <= 40
    tracemalloc.start()
    align(speech.clip, speech.text, reading)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000, f"{peak / 1e6:.0f} MB"
