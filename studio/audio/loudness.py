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

from studio.audio.clip import STUDIO_RATE_HZ, Samples, power_to_db

_SILENT_LUFS = -69.9  # the filter's own word for "nothing was loud enough to count"
_FRAMES_A_SECOND = 10
_NOISE_FRAMES = 5  # half a second, as those who check audiobooks have it


@dataclass(frozen=True, slots=True)
class Loudness:
    """The measured loudness of a piece of audio.

    Attributes:
        lufs: Integrated loudness of one channel; None where no 0.4 s is louder than -70 LUFS.
        range_lu: Loudness range, 0 for less than some seconds.
        true_peak_db: Highest level between the samples too, dBTP.
        peak_db: Highest sample, dB of full scale.
        rms_db: Mean power of the whole, pauses too, dB of full scale.
        noise_db: The quietest half second, dB of full scale.
    """

    lufs: float | None
    range_lu: float
    true_peak_db: float
    peak_db: float
    rms_db: float
    noise_db: float

    def __str__(self) -> str:
        """Loudness and true peak, for messages."""
        loudness = "too quiet for LUFS" if self.lufs is None else f"{self.lufs:.1f} LUFS"
        return f"{loudness}, true peak {self.true_peak_db:.1f} dB"


class LoudnessMeter:
    """Measures the loudness of mono audio that comes in blocks; memory holds one block.

    FFmpeg's `ebur128` filter measures: ITU-R BS.1770-4 with EBU R128's gate, in frames of 0.1 s,
    whose own levels give the rest.
    """

    def __init__(self, *, rate_hz: int = STUDIO_RATE_HZ, true_peak: bool = True) -> None:
        """Begin a measurement.

        Args:
            rate_hz: Of all the blocks.
            true_peak: Whether it is asked for: it is three quarters of the work.
        """
        self._rate_hz = rate_hz
        self._frame_samples = rate_hz // _FRAMES_A_SECOND
        self._graph = _build_graph(rate_hz, "true" if true_peak else "none")
        self._pushed = self._counted = 0
        self._last: Any = None
        self._energy = 0.0
        self._peak = 0.0
        self._frames = _QuietestWindow(_NOISE_FRAMES)

    def push(self, block: Samples) -> None:
        """Measure a block: float32 [samples]."""
        if len(block):
            self._push(block)
            self._drain()

    def finish(self) -> Loudness:
        """The loudness of all blocks together; nothing may be pushed after it."""
        readings = _read_metadata(self._last)
        # The filter gives whole frames only, and its true peak lags behind by some samples.
        missing = -self._pushed % self._frame_samples + self._frame_samples
        self._push(np.zeros(missing, dtype=np.float32), counts=False)
        self._drain()
        lufs = float(readings.get("lavfi.r128.I", "-inf"))
        true_peak = float(_read_metadata(self._last).get("lavfi.r128.true_peak", 0.0))
        return Loudness(
            lufs=lufs if lufs > _SILENT_LUFS else None,
            range_lu=float(readings.get("lavfi.r128.LRA", 0.0)),
            true_peak_db=power_to_db(max(true_peak, self._peak) ** 2),
            peak_db=power_to_db(self._peak**2),
            rms_db=power_to_db(self._energy / max(1, self._counted)),
            noise_db=power_to_db(self._frames.mean),
        )

    def _push(self, block: Samples, *, counts: bool = True) -> None:
        frame = av.AudioFrame.from_ndarray(block[None], format="flt", layout="mono")
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
        samples = samples[: self._pushed - self._counted].astype(np.float64)
        if not len(samples):
            return
        energy = float(np.dot(samples, samples))
        self._counted += len(samples)
        self._energy += energy
        self._peak = max(self._peak, float(np.abs(samples).max()))
        if len(samples) == self._frame_samples:
            self._frames.add(energy / len(samples))


def measure_loudness(blocks: Iterable[Samples], *, rate_hz: int = STUDIO_RATE_HZ) -> Loudness:
    """Measure blocks of mono sound, each of any length."""
    meter = LoudnessMeter(rate_hz=rate_hz)
    for block in blocks:
        meter.push(block)
    return meter.finish()


def measure_file_loudness(
    file: Path | IO[bytes], watch: Callable[[Iterator[Samples]], Iterable[Samples]] = iter
) -> Loudness:
    """Measure what a finished file holds, decoded block by block: one channel, any rate.

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
    as_floats = av.AudioResampler(format="flt", layout="mono")
    for frame in container.decode(audio=0):
        for converted in as_floats.resample(frame):
            yield converted.to_ndarray()[0]


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


def _build_graph(rate_hz: int, peak: str) -> Graph:
    graph = Graph()
    source = graph.add_abuffer(
        sample_rate=rate_hz, format="flt", layout="mono", time_base=Fraction(1, rate_hz)
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
            f"{_ACX_RMS_DB[1]:.0f} are asked for: shorten long pauses, or even out the voices."
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
