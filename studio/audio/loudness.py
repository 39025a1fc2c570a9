"""Loudness and true peak after EBU R128, and the levels that ACX requires of audiobooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import IO, Any

import av
import numpy as np
from av.filter import Graph

from studio.audio.clip import STUDIO_RATE_HZ, Samples, peek_channels, power_to_db, silent
from studio.audio.encode import LAYOUTS

_SILENT_LUFS = -69.9  # the filter's own word for "nothing was loud enough to count"
_FRAMES_A_SECOND = 10
_NOISE_FRAMES = 5  # half a second, as those who check audiobooks have it


@dataclass(frozen=True, slots=True)
class Loudness:
    """The measured loudness of a piece of audio.

    Attributes:
        lufs: Integrated loudness, of two channels the sum; None where no 0.4 s is louder than -70
            LUFS.
        range_lu: Loudness range, 0 for less than some seconds.
        true_peak_db: Highest level between the samples too, dBTP.
        peak_db: Highest sample, dB of full scale.
        rms_db: Mean power of the whole and of its channels, pauses too, dB of full scale.
        noise_db: The quietest half second, dB of full scale.
    """

    lufs: float | None
    range_lu: float
    true_peak_db: float
    peak_db: float
    rms_db: float
    noise_db: float

    def __str__(self) -> str:
        loudness = "too quiet for LUFS" if self.lufs is None else f"{self.lufs:.1f} LUFS"
        return f"{loudness}, true peak {self.true_peak_db:.1f} dB"


class LoudnessMeter:
    """Measures the loudness of audio that comes in blocks; memory holds one block.

    FFmpeg's `ebur128` filter measures: ITU-R BS.1770-4 with EBU R128's gate, in frames of 0.1 s,
    whose own levels give the rest.
    """

    def __init__(
        self, *, rate_hz: int = STUDIO_RATE_HZ, channels: int = 1, true_peak: bool = True
    ) -> None:
        """Begin a measurement.

        Args:
            rate_hz: Of all the blocks.
            channels: 1 or 2.
            true_peak: Whether it is asked for: it is three quarters of the work.
        """
        self._rate_hz = rate_hz
        self._frame_samples = rate_hz // _FRAMES_A_SECOND
        self._channels = channels
        self._graph = _build_graph(rate_hz, channels, "true" if true_peak else "none")
        self._pushed = self._counted = 0
        self._last: Any = None
        self._energy = 0.0
        self._peak = 0.0
        self._frames = _QuietestWindow(_NOISE_FRAMES)

    def push(self, block: Samples) -> None:
        """Measure a block: float32 [samples], or [samples, 2] of two channels."""
        if len(block):
            self._push(block)
            self._drain()

    def finish(self) -> Loudness:
        """The loudness of all blocks together; nothing may be pushed after it."""
        readings = _read_metadata(self._last)
        # The filter gives whole frames only, and its true peak lags behind by some samples.
        missing = -self._pushed % self._frame_samples + self._frame_samples
        self._push(silent(missing, self._channels), counts=False)
        self._drain()
        lufs = float(readings.get("lavfi.r128.I", "-inf"))
        true_peak = float(_read_metadata(self._last).get("lavfi.r128.true_peak", 0.0))
        return Loudness(
            lufs=lufs if lufs > _SILENT_LUFS else None,
            range_lu=float(readings.get("lavfi.r128.LRA", 0.0)),
            true_peak_db=power_to_db(max(true_peak, self._peak) ** 2),
            peak_db=power_to_db(self._peak**2),
            rms_db=power_to_db(self._energy / max(1, self._counted * self._channels)),
            noise_db=power_to_db(self._frames.mean),
        )

    def _push(self, block: Samples, *, counts: bool = True) -> None:
        layout = LAYOUTS[self._channels]
        frame = av.AudioFrame.from_ndarray(block.reshape(1, -1), format="flt", layout=layout)
        frame.sample_rate, frame.time_base = self._rate_hz, Fraction(1, self._rate_hz)
        frame.pts = self._pushed
        self._pushed += len(block) * counts
        self._graph.push(frame)

    def _drain(self) -> None:
        while True:
            try:
                frame = self._graph.pull()
            except (BlockingIOError, EOFError):
                return
            self._last = frame
            self._count(frame.to_ndarray()[0])

    def _count(self, samples: Samples) -> None:
        left = self._channels * (self._pushed - self._counted)
        samples = samples[:left].astype(np.float64)  # [samples * channels], in turns
        if not len(samples):
            return
        energy = float(np.dot(samples, samples))
        self._counted += len(samples) // self._channels
        self._energy += energy
        self._peak = max(self._peak, float(np.abs(samples).max()))
        if len(samples) == self._frame_samples * self._channels:
            self._frames.add(energy / len(samples))


def measure_loudness(blocks: Iterable[Samples], *, rate_hz: int = STUDIO_RATE_HZ) -> Loudness:
    """Measure blocks of sound, each of any length, [samples] or [samples, 2]."""
    channels, blocks = peek_channels(blocks)
    meter = LoudnessMeter(rate_hz=rate_hz, channels=channels)
    for block in blocks:
        meter.push(block)
    return meter.finish()


def measure_file_loudness(
    file: Path | IO[bytes], watch: Callable[[Iterator[Samples]], Iterable[Samples]] = iter
) -> Loudness:
    """Measure what a finished file holds, decoded block by block: 1 or 2 channels, any rate.

    Args:
        file: The file, or one that is open and seekable.
        watch: Goes along.
    """
    # Not by libsndfile, which seeks before each block; an MP3's frames need those before them.
    with av.open(str(file) if isinstance(file, Path) else file) as container:
        return measure_loudness(
            watch(_decode_blocks(container)), rate_hz=container.streams.audio[0].rate
        )


def _decode_blocks(container: Any) -> Iterator[Samples]:
    channels = min(2, container.streams.audio[0].channels)
    as_floats = av.AudioResampler(format="flt", layout=LAYOUTS[channels])
    for frame in container.decode(audio=0):
        for converted in as_floats.resample(frame):
            samples = converted.to_ndarray()[0]
            yield samples if channels == 1 else samples.reshape(-1, channels)


class _QuietestWindow:
    """The least running mean of powers over a window; of all powers while they are fewer."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._row: list[float] = []
        self._least: float | None = None

    def add(self, power: float) -> None:
        self._row = [*self._row, power][-self._width :]
        if len(self._row) == self._width:
            mean = sum(self._row) / self._width
            self._least = mean if self._least is None else min(self._least, mean)

    @property
    def mean(self) -> float:
        if self._least is not None:
            return self._least
        return sum(self._row) / len(self._row) if self._row else 0.0


def _build_graph(rate_hz: int, channels: int, peak: str) -> Graph:
    graph = Graph()
    source = graph.add_abuffer(
        sample_rate=rate_hz,
        format="flt",
        layout=LAYOUTS[channels],
        time_base=Fraction(1, rate_hz),
    )
    meter = graph.add("ebur128", f"metadata=1:peak={peak}:framelog=quiet")
    graph.link_nodes(source, meter, graph.add("abuffersink")).configure()
    return graph


def _read_metadata(frame: Any) -> dict[str, str]:
    return {} if frame is None else dict(frame.metadata)


_ACX_RMS_DB = (-23.0, -18.0)
_ACX_PEAK_DB = -3.0
_ACX_NOISE_DB = -60.0


def find_acx_faults(loudness: Loudness) -> tuple[str, ...]:
    """Which of ACX's three limits sound breaks, each with the remedy; none where it passes.

    Source: ACX audio submission requirements: RMS from -23 to -18 dB, peaks at most -3 dB, noise
    floor at most -60 dB.
    """
    faults = []
    if not _ACX_RMS_DB[0] <= loudness.rms_db <= _ACX_RMS_DB[1]:
        faults.append(
            f"Its level is {loudness.rms_db:.1f} dB RMS, and {_ACX_RMS_DB[0]:.0f} to "
            f"{_ACX_RMS_DB[1]:.0f} are asked for: shorten long pauses, or match speaker loudness."
        )
    if loudness.peak_db > _ACX_PEAK_DB:
        faults.append(
            f"Its peak is {loudness.peak_db:.1f} dB, and {_ACX_PEAK_DB:.0f} is the most: save it "
            "as WAV or FLAC."
        )
    if loudness.noise_db > _ACX_NOISE_DB:
        faults.append(
            f"Its quietest half second is {loudness.noise_db:.1f} dB, and {_ACX_NOISE_DB:.0f} is "
            "the most: put a pause between the lines, or change the voices' noisy samples."
        )
    return tuple(faults)
