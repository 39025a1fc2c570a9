"""Chatterbox engines side by side: the same lines, as many tokens, random weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL, TURBO
from studio.backends.device import choose_device
from studio.cli.bench_engines import figures_row, timed_lines
from studio.errors import SettingError

if TYPE_CHECKING:
    from studio.backends.batched.yardstick_runs import Figures, TimedLine
    from studio.backends.batched_chatterbox.yardstick_runs import Trial

MODELS = {"turbo": TURBO, "chatterbox": ENGLISH, "multilingual": MULTILINGUAL}
_SLOTS = {"cuda": (1, 8, 32, 64), "mps": (1, 8), "cpu": (1, 8)}
_SIZE = {"cuda": "full", "mps": "mid", "cpu": "mid"}
_LINES = {"cuda": 200, "mps": 16, "cpu": 16}
_TRIES = {"cuda": 10, "mps": 2, "cpu": 2}
_ALONE = 20
_TOKENS_PER_FRAME = 2  # of what `timed_lines` counts in


def chatterbox_rows(
    *, model: str, size: str | None, device: str | None, lines: int | None, half: bool
) -> Iterator[dict[str, object]]:
    """Rows of the table, each as soon as it is measured.

    First come the tokens alone, then all with sound; each part is compared with its first row.

    Args:
        model: One of `MODELS`.
        size: "tiny", "mid" or "full"; None for what suits the device.
        device: As in `choose_device`.
        lines: Of the dialog.
        half: Whether T3 is in 16 bits on CUDA.

    Raises:
        SettingError: There is no such size.
    """
    from studio.backends.batched_chatterbox.yardstick import SIZES
    from studio.backends.batched_chatterbox.yardstick_runs import Trial

    device = choose_device(device)
    name = size or _SIZE[device]
    if name not in SIZES:
        raise SettingError(f"--size {name} can't be used; choose one of: {', '.join(SIZES)}.")
    spoken = [
        replace(line, frames=_TOKENS_PER_FRAME * line.frames)
        for line in timed_lines(lines or _LINES[device])
    ]
    for sound in (False, True):
        trial = Trial(MODELS[model], SIZES[name], device, half and device == "cuda", sound)
        alone_s = 0.0
        for figures in _measured(trial, spoken):
            alone_s = alone_s or figures.audio_s / figures.wall_s
            told = figures.name if sound else f"{figures.name}, tokens only"
            yield figures_row(f"{model} {name}", replace(figures, name=told), alone_s)


def _measured(trial: Trial, lines: Sequence[TimedLine]) -> Iterator[Figures]:
    from studio.backends.batched_chatterbox.yardstick_runs import ours, reference

    few = lines[:_ALONE]
    yield reference(trial, few)
    for slots in _SLOTS[trial.device]:
        asked = few if slots == 1 else lines
        yield ours(trial, asked, slots=slots, tries=_TRIES[trial.device])
