"""Qwen3-TTS engines side by side: the same lines, the same seconds of audio, random weights."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
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
_ALONE = 20
"""Lines that an engine of one line at a time is measured on; the speed doesn't change after."""


def engine_rows(
    *, size: str | None, device: str | None, lines: int | None, batch_python: str | None
) -> Iterator[dict[str, object]]:
    """Rows of the table, each as soon as it is measured.

    Args:
        size: One of `yardstick.SIZES`; None for what suits the device.
        device: As in `choose_device`.
        lines: Of the dialog.
        batch_python: A Python that has faster-qwen3-tts-batch, whose requirements are its own;
            None to leave it out.

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
        alone_s = 0.0
        for figures in _measured(folder, device, spoken, batch_python):
            alone_s = alone_s or figures.audio_s / figures.wall_s
            yield figures_row(chosen.name, figures, alone_s)


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
    from studio.backends.batched.yardstick_runs import faster, ours, reference

    few = lines if len(lines) <= _ALONE else lines[:_ALONE]
    yield reference(folder, device, few)
    if device == "cuda":
        yield faster(folder, device, few, tries=_TRIES[device])
    if batch_python is not None:
        yield _batch_rival(batch_python, folder, lines)
    for slots in _SLOTS[device]:
        yield ours(folder, device, few if slots == 1 else lines, slots=slots, tries=_TRIES[device])


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
    speed = figures.audio_s / figures.wall_s
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
