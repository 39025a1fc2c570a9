"""Qwen3-TTS engines side by side: the same lines, the same seconds of audio, random weights."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from studio.backends.device import choose_device
from studio.dialog.model import Speech
from studio.dialog.read import read_dialog
from studio.errors import SettingError

if TYPE_CHECKING:
    from studio.backends.batched.yardstick_runs import Figures, TimedLine

_ROOT = Path(__file__).resolve().parents[2]
_DIALOGS = _ROOT / "assets" / "dialogs"
_BATCH_RIVAL = _ROOT / "studio" / "backends" / "batched" / "batch_rival.py"
_FRAMES_PER_CHAR = 12.5 / 15  # 15 characters a second
_LEAST_FRAMES = 6
_SLOTS = {"cuda": (1, 8, 32, 64), "mps": (1, 8), "cpu": (1, 8)}
_SIZE = {"cuda": "0.6B", "mps": "mid", "cpu": "mid"}
_LINES = {"cuda": 200, "mps": 16, "cpu": 16}
_TRIES = {"cuda": 20, "mps": 5, "cpu": 5}
_ALONE = {"cuda": 8, "mps": 16, "cpu": 16}
"""Lines that an engine of one line at a time is measured on; the speed doesn't change after."""

_COMPILED = {"cuda": (1, 64), "mps": (), "cpu": ()}
"""Numbers of slots that are measured with compiled parts too."""

_RUNS = 3


def engine_rows(
    *,
    size: str | None,
    device: str | None,
    lines: int | None,
    batch_python: str | None,
    runs: int | None = None,
) -> Iterator[dict[str, object]]:
    """Rows of the table, when all runs are done.

    The engines take turns, so that other work on the machine hits all of them; figures are
    medians, a ratio that of the runs' ratios, and first audio is of all runs together.

    Args:
        size: One of `yardstick.SIZES`; None for what suits the device.
        device: As in `choose_device`.
        lines: Of the dialog.
        batch_python: A Python that has faster-qwen3-tts-batch, whose requirements are its own;
            None to leave it out.
        runs: Times that every engine is measured.

    Raises:
        SettingError: There is no such size.
    """
    from studio.backends.batched.yardstick import SIZES, write_checkpoint

    device = choose_device(device)
    chosen = SIZES.get(size or _SIZE[device])
    if chosen is None:
        raise SettingError(f"--size {size} can't be used; choose one of: {', '.join(SIZES)}.")
    spoken = timed_lines(lines or _LINES[device])
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as name:
        folder = write_checkpoint(Path(name) / chosen.name, chosen)
        measured = [
            list(_measured(folder, device, spoken, batch_python)) for _ in range(runs or _RUNS)
        ]
    for of_engine in zip(*measured, strict=True):
        ratios = [one.speed / run[0].speed for one, run in zip(of_engine, measured, strict=True)]
        middle = middle_of(of_engine)
        row = figures_row(chosen.name, middle, middle.speed / statistics.median(ratios))
        yield row | {"runs": len(measured)}


def middle_of(runs: Sequence[Figures]) -> Figures:
    """Medians of what one engine did in several runs; its tries for first audio together."""
    first = runs[0]
    frames_s = [one.frame_s for one in runs if one.frame_s is not None]
    ideals_s = [one.ideal_s for one in runs if one.ideal_s is not None]
    return replace(
        first,
        wall_s=statistics.median(one.wall_s for one in runs),
        first_s=[one_s for one in runs for one_s in one.first_s],
        memory_bytes=max(one.memory_bytes for one in runs),
        frame_s=statistics.median(frames_s) if frames_s else None,
        ideal_s=statistics.median(ideals_s) if ideals_s else None,
    )


def timed_lines(count: int) -> list[TimedLine]:
    """That many lines of the sample dialogs, as long as they would be spoken."""
    from studio.backends.batched.yardstick_runs import TimedLine

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


def _measured(
    folder: Path, device: str, lines: Sequence[TimedLine], batch_python: str | None
) -> Iterator[Figures]:
    from studio.backends.batched.yardstick_runs import Trial, faster, ours, reference

    trial = Trial(folder, device, _TRIES[device])
    few = lines[: _ALONE[device]]
    yield reference(folder, device, few)
    if device == "cuda":
        yield faster(folder, device, few, tries=_TRIES[device])
    if batch_python is not None:
        yield _batch_rival(batch_python, folder, lines)
    for slots in _SLOTS[device]:
        yield ours(trial, few if slots == 1 else lines, slots=slots)
    for slots in _COMPILED[device]:
        yield ours(replace(trial, compiles=True), few if slots == 1 else lines, slots=slots)


def _batch_rival(python: str, folder: Path, lines: Sequence[TimedLine]) -> Figures:
    """Measure faster-qwen3-tts-batch in a process of its own Python.

    Raises:
        SettingError: That Python can't run it.
    """
    from studio.backends.batched.yardstick_runs import Figures

    if shutil.which(python) is None:
        raise SettingError(f"--batch-python {python} can't be used: there is no such program.")
    asked = json.dumps({"folder": str(folder), "lines": [[one.text, one.frames] for one in lines]})
    done = subprocess.run(
        [python, str(_BATCH_RIVAL)], input=asked, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise SettingError(f"--batch-python {python} can't be used: {last}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Figures("faster-qwen3-tts-batch, 8", **told)


def figures_row(size: str, figures: Figures, alone_s: float) -> dict[str, object]:
    """One row of the table.

    Args:
        size: Of the model.
        figures: Of one engine.
        alone_s: Audio seconds a second of the engine that it is compared with.
    """
    speed = figures.speed
    frame_s, ideal_s = figures.frame_s, figures.ideal_s
    return {
        "engine": figures.name,
        "size": size,
        "audio s": f"{figures.audio_s:.1f}",
        "wall s": f"{figures.wall_s:.2f}",
        "audio s a second": f"{speed:.2f}",
        "times the first row": f"{speed / alone_s:.2f}",
        "ms a frame": "-" if frame_s is None else f"{1000 * frame_s:.1f}",
        "first audio ms, p50": f"{1000 * _quantile(figures.first_s, 0.5):.0f}",
        "p95": f"{1000 * _quantile(figures.first_s, 0.95):.0f}",
        "memory GB": f"{figures.memory_bytes / 1e9:.1f}",
        "roofline %": "-" if not (ideal_s and frame_s) else f"{100 * ideal_s / frame_s:.0f}",
    }


def _quantile(values: Sequence[float], share: float) -> float:
    """A quantile between the measured values; the only one where there is one."""
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]
