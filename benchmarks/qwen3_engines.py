"""Qwen3-TTS engines side by side: the same lines, the same seconds of audio, random weights."""

from __future__ import annotations

import json
import logging
import shutil
import statistics
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.engine_table import Failed, any_row, figures_row, middle_of
from studio.backends.device import choose_device, give_back, prepare
from studio.dialog.formats.dialog_file import read_dialog
from studio.dialog.model import Speech
from studio.errors import SettingError

if TYPE_CHECKING:
    from benchmarks.metrics import EngineMetrics, TimedLine

_ROOT = Path(__file__).resolve().parents[1]
_DIALOGS = _ROOT / "assets" / "dialogs"
_BATCH_BASELINE = Path(__file__).with_name("batch_baseline.py")
_FRAMES_PER_CHAR = 12.5 / 15  # 15 characters a second
_LEAST_FRAMES = 6
_SLOTS = {"cuda": (64, 32, 8, 1), "mps": (1, 8), "cpu": (1, 8)}
_SIZE = {"cuda": "0.6B", "mps": "mid", "cpu": "mid"}
_LINES = {"cuda": 200, "mps": 16, "cpu": 16}
_TRIES = {"cuda": 20, "mps": 5, "cpu": 5}
_ALONE = {"cuda": 4, "mps": 16, "cpu": 16}
"""Lines that an engine of one line at a time is measured on; the speed doesn't change after."""

_ENGINES = {
    "cuda": ("reference", "faster", "ours"),
    "mps": ("reference", "ours"),
    "cpu": ("reference", "ours"),
}
"""Measured unless others are asked for; compiling takes minutes on a card."""

_RUNS = {"cuda": 1, "mps": 3, "cpu": 3}
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
    """

    engines: tuple[str, ...] | None = None
    slots: tuple[int, ...] | None = None
    tf32: bool = False


ALL = EngineChoice()


def engine_rows(
    *,
    size: str | None,
    device: str | None,
    lines: Sequence[int] | None,
    batch_python: str | None,
    runs: int | None = None,
    wanted: EngineChoice = ALL,
) -> Iterator[dict[str, object]]:
    """Rows of the table, each as soon as it is measured; of several runs the medians at the end.

    In several runs the engines take turns, so that other work on the machine hits all of them. A
    ratio of the medians is that of the runs' ratios, and their first audio is of all runs together.

    Args:
        size: One of `yardstick.SIZES`; None for what suits the device.
        device: As in `choose_device`.
        lines: Of the dialog; engines that decode lines together are measured on each number.
        batch_python: A Python that has faster-qwen3-tts-batch, whose requirements are its own;
            None to leave it out.
        runs: Times that every engine is measured; None for what suits the device.
        wanted: Which engines, with how many slots.

    Raises:
        SettingError: There is no such size or engine.
    """
    from benchmarks.synthetic_qwen3 import SIZES, write_checkpoint

    device = choose_device(device)
    chosen = SIZES.get(size or _SIZE[device])
    if chosen is None:
        raise SettingError(f"--size {size} can't be used; choose one of: {', '.join(SIZES)}.")
    prepare(device, tf32=wanted.tf32)
    names = choose_engines(wanted.engines or _ENGINES[device], tuple(_MEASURES))
    if batch_python is not None and "batch" not in names:
        names = (*names, "batch")
    spoken = [build_timed_lines(count) for count in lines or (_LINES[device],)]
    count = runs or _RUNS[device]
    measured: list[dict[tuple[str, int], EngineMetrics]] = []
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as name:
        folder = write_checkpoint(Path(name) / chosen.name, chosen)
        bench = _EngineBench(folder, device, spoken, batch_python, wanted.slots or _SLOTS[device])
        for run in range(1, count + 1):
            measured.append({})
            for told in try_measure(bench.engines(names), device):
                if not isinstance(told, Failed):
                    measured[-1][told.name, told.lines] = told
                row = any_row(chosen.name, told, _base(measured[-1]))
                yield row | {"runs": f"{run} of {count}"}
    if count > 1:
        yield from _middles(chosen.name, measured)


def _middles(
    size: str, measured: Sequence[Mapping[tuple[str, int], EngineMetrics]]
) -> Iterator[dict[str, object]]:
    """A row of medians for each engine that was measured in every run."""
    bases = [_base(run) for run in measured]
    for which in measured[0]:
        known = [run[which] for run in measured if which in run]
        if len(known) == len(measured):
            ratios = [one.speed / base for one, base in zip(known, bases, strict=True)]
            middle = middle_of(known)
            row = figures_row(size, middle, middle.speed / statistics.median(ratios))
            yield row | {"runs": f"median of {len(known)}"}


def _base(run: Mapping[tuple[str, int], EngineMetrics]) -> float:
    """Audio seconds a second of the first engine that was measured; 1 where none was."""
    return next((one.speed for one in run.values()), 1.0)


def build_timed_lines(count: int) -> list[TimedLine]:
    """That many lines of the sample dialogs, as long as they would be spoken."""
    from benchmarks.metrics import TimedLine

    texts = [
        line.text
        for path in sorted(_DIALOGS.glob("*.txt"))
        for line in read_dialog(path.read_bytes(), name=path.name).dialog
        if isinstance(line, Speech)
    ]
    texts.sort(key=lambda text: zlib.crc32(text.encode()))  # mixed, the same every time
    drawn = [texts[number % len(texts)] for number in range(count)]
    return [
        TimedLine(text, max(_LEAST_FRAMES, round(len(text) * _FRAMES_PER_CHAR))) for text in drawn
    ]


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
        device: Where memory is given back after a failure.
    """
    for name, measure in engines:
        try:
            yield from measure()
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
    slots: Sequence[int]

    def engines(self, names: Sequence[str]) -> Iterator[tuple[str, MeasureFn]]:
        """What measures each of them."""
        for name in names:
            yield from _MEASURES[name](self)

    def few(self) -> Sequence[TimedLine]:
        """Of the first dialog, what is enough for an engine of one line at a time."""
        return self.dialogs[0][: _ALONE[self.device]]

    def reference(self) -> Iterator[tuple[str, MeasureFn]]:
        """The package that the model came with."""
        from benchmarks.baselines import measure_reference

        yield "qwen_tts", lambda: [measure_reference(self.folder, self.device, self.few())]

    def faster(self) -> Iterator[tuple[str, MeasureFn]]:
        """faster-qwen3-tts."""
        from benchmarks.baselines import measure_faster

        tries = _TRIES[self.device]
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

    def ours(self, *, parts: str = "") -> Iterator[tuple[str, MeasureFn]]:
        """This package's engine."""
        from benchmarks.qwen3_trials import Qwen3Trial, measure_qwen3

        trial = Qwen3Trial(self.folder, self.device, _TRIES[self.device], parts)
        for slots in self.slots:
            dialogs = [self.few()] if slots == 1 else self.dialogs
            yield (
                f"this engine, {slots} slots{parts and f', {parts}'}",
                partial(measure_qwen3, trial, dialogs, slots=slots),
            )


_MEASURES: Mapping[str, Callable[[_EngineBench], Iterator[tuple[str, MeasureFn]]]] = {
    "reference": _EngineBench.reference,
    "faster": _EngineBench.faster,
    "batch": _EngineBench.batch,
    "ours": _EngineBench.ours,
    "compiled": partial(_EngineBench.ours, parts="compiled"),
    "fused": partial(_EngineBench.ours, parts="fused"),
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
