from __future__ import annotations

import io

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import STUDIO_RATE_HZ, to_pcm16
from studio.audio.encode import MAX_SPEED, MIN_SPEED, StreamEncoder, Tempo, encode_stream
from studio.audio.formats import AudioFormat

TONE = (0.4 * np.sin(2 * np.pi * 220 * np.arange(2 * STUDIO_RATE_HZ) / STUDIO_RATE_HZ)).astype(
    np.float32
)


def decoded(data: bytes) -> tuple[np.ndarray, int]:
    with av.open(io.BytesIO(data)) as container:
        frames = list(container.decode(audio=0))
    resampler = av.AudioResampler(format="flt", layout="mono")
    blocks = [out.to_ndarray().ravel() for frame in frames for out in resampler.resample(frame)]
    return np.concatenate(blocks), frames[0].sample_rate


@pytest.mark.parametrize("audio_format", sorted(set(AudioFormat) - {AudioFormat.PCM}))
def test_what_comes_out_is_what_went_in(audio_format: AudioFormat) -> None:
    samples, rate_hz = decoded(
        b"".join(encode_stream(iter(np.array_split(TONE, 13)), audio_format))
    )
    assert len(samples) / rate_hz == pytest.approx(2.0, abs=0.09)
    spectrum = np.abs(np.fft.rfft(samples))
    assert spectrum.argmax() * rate_hz / len(samples) == pytest.approx(220, abs=2)


@settings(max_examples=20)
@given(st.lists(st.integers(0, 5_000), max_size=12))
def test_lossless_streams_hold_every_sample_however_it_is_cut(cuts: list[int]) -> None:
    chunks = np.split(TONE, np.cumsum(cuts).clip(max=len(TONE)))
    for audio_format in (AudioFormat.WAV, AudioFormat.FLAC, AudioFormat.AIFF):
        samples, _ = decoded(b"".join(encode_stream(iter(chunks), audio_format)))
        assert (to_pcm16(samples) == to_pcm16(TONE)).all()
    pcm = b"".join(encode_stream(iter(chunks), AudioFormat.PCM))
    assert pcm == to_pcm16(TONE).tobytes()


@pytest.mark.parametrize(
    "audio_format", [one for one in AudioFormat if one not in ("flac", "aiff")]
)
def test_bytes_come_with_the_first_second(audio_format: AudioFormat) -> None:
    encoder = StreamEncoder(audio_format)
    assert encoder.push(TONE[:STUDIO_RATE_HZ])
    encoder.close()


def test_nothing_is_a_file_without_sound() -> None:
    for audio_format in AudioFormat:
        b"".join(encode_stream(iter(()), audio_format))


@settings(max_examples=25)
@given(st.floats(MIN_SPEED, MAX_SPEED), st.integers(1, 9))
def test_any_speed_keeps_the_pitch_and_the_share_of_time(speed: float, parts: int) -> None:
    tempo = Tempo(speed)
    pushed = [tempo.push(chunk) for chunk in np.array_split(TONE, parts)]
    samples = np.concatenate([*pushed, tempo.finish()])
    assert len(samples) * speed == pytest.approx(len(TONE), rel=0.03)
    spectrum = np.abs(np.fft.rfft(samples))
    assert spectrum.argmax() * STUDIO_RATE_HZ / len(samples) == pytest.approx(220, abs=4)


def test_the_plain_speed_changes_nothing() -> None:
    tempo = Tempo(1.0)
    assert tempo.push(TONE) is TONE
    assert len(tempo.finish()) == 0
