"""Qwen3-TTS engines side by side: the same lines, the same seconds of audio, random weights."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.engine_table import DeviceMissing, Failed, rows_in_turns
from studio.backends.device import choose_device, give_back, prepare
from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Speech
from studio.errors import SettingError

if TYPE_CHECKING:
    from benchmarks.metrics import EngineMetrics, TimedLine
    from benchmarks.qwen3_trials import Qwen3Trial

_ROOT = Path(__file__).resolve().parents[1]
_DIALOGS = _ROOT / "assets" / "dialogs"
_SPOKEN_DIALOGS = ("lighthouse.txt", "night-train.txt", "three-languages.txt")
"""Always the same ones, so that today's figures stand beside last month's."""
_BATCH_BASELINE = Path(__file__).with_name("batch_baseline.py")
_FRAMES_PER_CHAR = 12.5 / 15  # 15 characters a second
_LEAST_FRAMES = 6
_SLOTS = {"cuda": (64, 32, 8, 1), "mps": (1, 8), "cpu": (1, 8)}
_FULL_SIZE, _FULL_SIZE_BYTES = "0.6B", 10_000_000_000
"""Measured where so much is free. On a CPU the process took 9.4 GB at most."""

_LINES = {"cuda": 200, "mps": 16, "cpu": 16}
_TRIES = {"cuda": 20, "mps": 5, "cpu": 5}
_ALONE = {"cuda": 4, "mps": 16, "cpu": 16}
"""Lines that an engine of one line at a time is measured on; the speed doesn't change after."""

_RUNS = {"cuda": 1, "mps": 3, "cpu": 3}
_LARGE = ("0.6B", "1.7B")
_LARGE_SLOTS, _LARGE_LINES, _LARGE_ALONE, _LARGE_TRIES = (1, 4), 8, 2, 2
"""Without CUDA a frame of a full-size model takes a quarter of a second, and there is one run."""

_SLOWER_ENGINES = ("reference", "list", "ours", "waiting", "transcripts", "steps")
_ENGINES = {
    "cuda": ("reference", "list", "faster", "ours", "waiting", "transcripts", "steps"),
    "mps": _SLOWER_ENGINES,
    "cpu": _SLOWER_ENGINES,
}
"""Measured unless others are asked for."""

_SOAK_S = {"cuda": 60.0, "cpu": 2.0}

_LONGEST_REASON = 200  # characters

log = logging.getLogger(__name__)

MeasureFn = Callable[[], "Iterable[EngineMetrics]"]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """What is measured.

    Attributes:
        engines: By name, in this order; None for those that suit the device.
        slots: Numbers of lines decoded together; None for those that suit the device.
        tf32: See `prepare`.
        line_frames: The most of a line; None for as many as its text takes.
        checkpoints: Where weights of chance are kept for the next time; None to keep none.
        runs: Times that every engine is measured; None for what suits the device.
    """

    engines: tuple[str, ...] | None = None
    slots: tuple[int, ...] | None = None
    tf32: bool = False
    line_frames: int | None = None
    checkpoints: Path | None = None
    runs: int | None = None


ALL = EngineChoice()


def engine_rows(
    *,
    size: str | None,
    device: str | None,
    lines: Sequence[int] | None,
    batch_python: str | None,
    wanted: EngineChoice = ALL,
) -> Iterator[dict[str, object]]:
    """Rows of the table; see `rows_in_turns`.

    Args:
        size: One of `SIZES`; None for the 0.6B size where the memory allows it, else "mid".
        device: As in `choose_device`.
        lines: Of the dialog; engines that decode lines together are measured on each number.
        batch_python: A Python that has faster-qwen3-tts-batch, whose requirements are its own;
            None to leave it out.
        wanted: Which engines, with how many slots.

    Raises:
        SettingError: There is no such size or engine.
    """
    from benchmarks.synthetic_qwen3 import SIZES, kept_checkpoint

    device = choose_device(device)
    chosen = SIZES.get(size or choose_size(device))
    if chosen is None:
        raise SettingError(f"--size {size} can't be used; choose one of: {', '.join(SIZES)}.")
    prepare(device, tf32=wanted.tf32)
    names = choose_engines(wanted.engines or _ENGINES[device], tuple(_MEASURES))
    if batch_python is not None and "batch" not in names:
        names = (*names, "batch")
    effort = Effort.choose(device, chosen.name)
    spoken = [
        cut_lines(build_timed_lines(count), wanted.line_frames)
        for count in lines or (effort.lines,)
    ]
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as name:
        folder = kept_checkpoint(wanted.checkpoints or Path(name), chosen)
        bench = _EngineBench(folder, device, spoken, batch_python, wanted.slots, effort)
        yield from rows_in_turns(
            chosen.name,
            device,
            wanted.runs or effort.runs,
            lambda: try_measure(bench.engines(names), device),
        )


def choose_size(device: str) -> str:
    """The size to measure where none is asked for, which is said on standard error."""
    from studio.backends.batching.memory_plan import measure_free_bytes

    free_bytes = measure_free_bytes(device)
    fits = free_bytes >= _FULL_SIZE_BYTES
    name = _FULL_SIZE if fits else "mid"
    print(
        f"The {name} size is measured: {_FULL_SIZE} needs {_FULL_SIZE_BYTES / 1e9:.0f} GB, and "
        f"{free_bytes / 1e9:.1f} GB are free. --size chooses another.",
        file=sys.stderr,
    )
    return name


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured unless something else is asked for.

    Attributes:
        lines: Of the dialog.
        alone: Lines for an engine of one line at a time.
        slots: Numbers of lines decoded together.
        tries: For the time to first audio.
        runs: Times that every engine is measured.
    """

    lines: int
    alone: int
    slots: tuple[int, ...]
    tries: int
    runs: int

    @classmethod
    def choose(cls, device: str, size: str) -> Effort:
        """What suits a device and a size of the model."""
        if device != "cuda" and size in _LARGE:
            return cls(_LARGE_LINES, _LARGE_ALONE, _LARGE_SLOTS, _LARGE_TRIES, runs=1)
        return cls(_LINES[device], _ALONE[device], _SLOTS[device], _TRIES[device], _RUNS[device])


def build_timed_lines(count: int) -> list[TimedLine]:
    """That many lines of the sample dialogs, as long as they would be spoken."""
    from benchmarks.metrics import TimedLine

    texts = [
        line.text
        for name in _SPOKEN_DIALOGS
        for line in import_dialog((_DIALOGS / name).read_bytes(), name).dialog
        if isinstance(line, Speech)
    ]
    texts.sort(key=lambda text: zlib.crc32(text.encode()))  # mixed, the same every time
    drawn = [texts[number % len(texts)] for number in range(count)]
    return [
        TimedLine(text, max(_LEAST_FRAMES, round(len(text) * _FRAMES_PER_CHAR))) for text in drawn
    ]


def cut_lines(lines: list[TimedLine], most_frames: int | None) -> list[TimedLine]:
    """The same lines, none longer than that."""
    return [replace(line, frames=min(line.frames, most_frames or line.frames)) for line in lines]


def choose_engines(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The names as they are.

    Raises:
        SettingError: One of them is unknown.
    """
    for name in names:
        if name not in known:
            raise SettingError(f"--engines {name} can't be used; choose among: {', '.join(known)}.")
    return tuple(names)


def try_measure(
    engines: Iterable[tuple[str, MeasureFn]], device: str
) -> Iterator[EngineMetrics | Failed]:
    """Measure each engine; one that fails is told, and the others follow.

    Args:
        engines: Names and what measures them.
        device: Where memory is given back after each: the next one plans with what is free.
    """
    for name, measure in engines:
        try:
            yield from measure()
        except DeviceMissing as error:
            yield Failed(name, str(error), is_expected=True)
        except Exception as error:
            log.warning("%s could not be measured", name, exc_info=error)
            reason = " ".join(f"{type(error).__name__}: {error}".replace("|", "/").split())
            del error
            yield Failed(name, reason[:_LONGEST_REASON])
        with suppress(RuntimeError):  # of a card that is lost; the next engine says so
            give_back(device)


@dataclass(frozen=True, slots=True)
class _EngineBench:
    """What all engines of a run are measured on."""

    folder: Path
    device: str
    dialogs: Sequence[Sequence[TimedLine]]
    batch_python: str | None
    wanted_slots: Sequence[int] | None
    effort: Effort

    @property
    def slots(self) -> Sequence[int]:
        """Numbers of lines decoded together."""
        return self.wanted_slots or self.effort.slots

    def engines(self, names: Sequence[str]) -> Iterator[tuple[str, MeasureFn]]:
        """What measures each of them."""
        for name in names:
            yield from _MEASURES[name](self)

    def few(self) -> Sequence[TimedLine]:
        """Of the first dialog, what is enough for an engine of one line at a time."""
        return self.dialogs[0][: self.effort.alone]

    def reference(self) -> Iterator[tuple[str, MeasureFn]]:
        """The package that the model came with."""
        from benchmarks.baselines import measure_reference

        yield "qwen_tts", lambda: [measure_reference(self.folder, self.device, self.few())]

    def at_once(self) -> Iterator[tuple[str, MeasureFn]]:
        """The same package, which batches a list of texts by itself."""
        from benchmarks.baselines import measure_reference_list

        yield (
            "qwen_tts, list of all texts",
            lambda: [measure_reference_list(self.folder, self.device, self.dialogs[0])],
        )

    def faster(self) -> Iterator[tuple[str, MeasureFn]]:
        """faster-qwen3-tts."""
        from benchmarks.baselines import measure_faster

        tries = self.effort.tries
        yield (
            "faster-qwen3-tts",
            lambda: [measure_faster(self.folder, self.device, self.few(), tries=tries)],
        )

    def batch(self) -> Iterator[tuple[str, MeasureFn]]:
        """faster-qwen3-tts-batch, in a Python of its own."""
        for lines in self.dialogs:
            yield (
                "faster-qwen3-tts-batch",
                partial(self._rival, lines),
            )

    def _rival(self, lines: Sequence[TimedLine]) -> list[EngineMetrics]:
        return [_run_batch_baseline(self.batch_python, self.folder, lines)]

    def ours(self, *, float32: bool = False) -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine; without whole numbers on a CPU for `float32`."""
        yield from self._trials(replace(self._trial(), float32=float32))

    def waiting(self) -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine, which refills no slot before all of a batch are free.

        A line that somebody listens to would wait for the end of all the others, so none is tried.
        """
        yield from self._trials(replace(self._trial(), continuous=False, tries=0), least=2)

    def mixed(self) -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine where each line that is listened to has another sampling."""
        yield from self._trials(replace(self._trial(), mixed=True), least=2)

    def codec(self) -> Iterator[tuple[str, MeasureFn]]:
        """The codec alone, in float32 and in TF32."""
        from benchmarks.codec_trials import measure_codec

        for tf32 in (False, True):
            measure = partial(measure_codec, self.folder, self.device, self.slots[0], tf32=tf32)
            yield f"codec alone, {'TF32' if tf32 else 'float32'}", partial(_one, measure)
        if self.device == "cpu":
            from benchmarks.codec_forms import measure_codec_forms

            yield "codec alone, by form", partial(measure_codec_forms, self.folder)

    def codes(self) -> Iterator[tuple[str, MeasureFn]]:
        """How often whole numbers, which a CPU multiplies, make float32's codes."""
        from benchmarks.code_agreement import NAME, measure_agreement
        from benchmarks.synthetic_qwen3 import SIZES
        from studio.backends.batching.int8_matrix import can_multiply_int8

        if can_multiply_int8(self.device):
            size = SIZES[self.folder.name]
            yield NAME, partial(measure_agreement, size, self.device)

    def leak(self) -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine loaded and unloaded several times."""
        from benchmarks.soak_trials import measure_leak

        yield "load and unload", partial(measure_leak, self._trial(), self.few(), self.slots[0])

    def soak(self) -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine under lines of every kind, cancelled and listened to."""
        from benchmarks.soak_trials import measure_soak

        soak_s = _SOAK_S["cuda" if self.device == "cuda" else "cpu"]
        measure = partial(measure_soak, self._trial(), self.dialogs[0], self.slots[0], soak_s)
        yield f"soak of {soak_s:.0f} s", partial(_one, measure)

    def transcripts(self) -> Iterator[tuple[str, MeasureFn]]:
        """The package and this engine with voices that have a transcript."""
        from benchmarks.baselines import TRANSCRIPT, measure_reference

        yield (
            "qwen_tts, with transcripts",
            lambda: [
                measure_reference(self.folder, self.device, self.few(), transcript=TRANSCRIPT)
            ],
        )
        yield from self._trials(replace(self._trial(), transcript=TRANSCRIPT))

    def steps(self) -> Iterator[tuple[str, MeasureFn]]:
        """One frame, replayed as a graph and step by step."""
        from benchmarks.qwen3_trials import (
            EAGER,
            GRAPH_REPLAY,
            measure_step,
            name_step,
        )

        trial = self._trial()
        for slots in self.slots:
            eager = partial(measure_step, trial, slots=slots, replays=False)
            yield name_step(slots, EAGER), partial(_one, eager)
            yield (
                name_step(slots, GRAPH_REPLAY),
                partial(_one, partial(measure_step, trial, slots=slots, replays=True)),
            )

    def _trial(self) -> Qwen3Trial:
        from benchmarks.qwen3_trials import Qwen3Trial

        return Qwen3Trial(self.folder, self.device, self.effort.tries)

    def _trials(self, trial: Qwen3Trial, *, least: int = 1) -> Iterator[tuple[str, MeasureFn]]:
        from benchmarks.qwen3_trials import measure_qwen3

        for slots in self.slots:
            dialogs = [self.few()] if slots == 1 else self.dialogs
            if slots >= least:
                yield (
                    f"this engine, {slots} slots{trial.details}",
                    partial(measure_qwen3, trial, dialogs, slots=slots),
                )


def _one(measure: Callable[[], EngineMetrics]) -> list[EngineMetrics]:
    return [measure()]


_MEASURES: Mapping[str, Callable[[_EngineBench], Iterator[tuple[str, MeasureFn]]]] = {
    "reference": _EngineBench.reference,
    "list": _EngineBench.at_once,
    "faster": _EngineBench.faster,
    "batch": _EngineBench.batch,
    "ours": _EngineBench.ours,
    "waiting": _EngineBench.waiting,
    "transcripts": _EngineBench.transcripts,
    "steps": _EngineBench.steps,
    "float32": partial(_EngineBench.ours, float32=True),
    "codes": _EngineBench.codes,
    "codec": _EngineBench.codec,
    "mixed": _EngineBench.mixed,
    "leak": _EngineBench.leak,
    "soak": _EngineBench.soak,
}


def _run_batch_baseline(
    python: str | None, folder: Path, lines: Sequence[TimedLine]
) -> EngineMetrics:
    """Measure faster-qwen3-tts-batch in a process of its own Python.

    Raises:
        SettingError: That Python can't run it, or none is named.
    """
    from benchmarks.metrics import EngineMetrics

    if python is None:
        raise SettingError("--batch-python must name a Python that has faster-qwen3-tts-batch.")
    if shutil.which(python) is None:
        raise SettingError(f"--batch-python {python} can't be used: there is no such program.")
    asked = json.dumps({"folder": str(folder), "lines": [[one.text, one.frames] for one in lines]})
    done = subprocess.run(
        [python, str(_BATCH_BASELINE)], input=asked, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise SettingError(f"--batch-python {python} can't be used: {last}")
    told = json.loads(done.stdout.splitlines()[-1])
    return EngineMetrics("faster-qwen3-tts-batch, 8", **told, lines=len(lines))
