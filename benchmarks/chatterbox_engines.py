"""Chatterbox engines side by side: the same lines, as many tokens, random weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.engine_table import Failed, rows_in_turns
from benchmarks.qwen3_engines import (
    ALL,
    EngineChoice,
    MeasureFn,
    build_timed_lines,
    choose_engines,
    try_measure,
)
from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL, TURBO
from studio.backends.device import choose_device, prepare
from studio.errors import SettingError

if TYPE_CHECKING:
    from benchmarks.chatterbox_trials import ChatterboxTrial
    from benchmarks.metrics import EngineMetrics, TimedLine

MODELS = {"turbo": TURBO, "chatterbox": ENGLISH, "multilingual": MULTILINGUAL}
_ENGINES = ("reference", "ours")
_SLOTS = {"cuda": (64, 32, 8, 1), "mps": (1, 8), "cpu": (1, 8)}
_SIZE = {"cuda": "full", "mps": "mid", "cpu": "mid"}
_LINES = {"cuda": 200, "mps": 16, "cpu": 16}
_TRIES = {"cuda": 4, "mps": 2, "cpu": 2}  # each is a whole line
_ALONE = {"cuda": 4, "mps": 20, "cpu": 20}
"""Lines that one at a time is measured on; on a card the package takes over a second for each."""

_RUNS = {"cuda": 1, "mps": 3, "cpu": 3}
_TOKENS_PER_FRAME = 2  # of what `build_timed_lines` counts in


def chatterbox_rows(
    *,
    model: str,
    size: str | None,
    device: str | None,
    lines: int | None,
    half: bool,
    wanted: EngineChoice = ALL,
) -> Iterator[dict[str, object]]:
    """Rows of the table; see `rows_in_turns`.

    First come the tokens alone, then all with sound; each part is compared with its first row.

    Args:
        model: One of `MODELS`.
        size: "tiny", "mid" or "full"; None for what suits the device.
        device: As in `choose_device`.
        lines: Of the dialog.
        half: Whether T3 is in 16 bits on CUDA.
        wanted: Which engines, with how many slots.

    Raises:
        SettingError: There is no such size or engine.
    """
    from benchmarks.chatterbox_trials import ChatterboxTrial
    from benchmarks.synthetic_chatterbox import SIZES

    device = choose_device(device)
    name = size or _SIZE[device]
    if name not in SIZES:
        raise SettingError(f"--size {name} can't be used; choose one of: {', '.join(SIZES)}.")
    prepare(device, tf32=wanted.tf32)
    names = choose_engines(wanted.engines or _ENGINES, _ENGINES)
    spoken = [
        replace(line, frames=_TOKENS_PER_FRAME * line.frames)
        for line in build_timed_lines(lines or _LINES[device])
    ]
    for sound in (False, True):
        trial = ChatterboxTrial(
            MODELS[model], SIZES[name], device, half and device == "cuda", sound
        )
        measure = partial(_measure_part, trial, spoken, names, wanted.slots)
        yield from rows_in_turns(f"{model} {name}", device, wanted.runs or _RUNS[device], measure)


def _measure_part(
    trial: ChatterboxTrial,
    lines: Sequence[TimedLine],
    names: Sequence[str],
    slots: Sequence[int] | None,
) -> Iterator[EngineMetrics | Failed]:
    for told in try_measure(_engines(trial, lines, names, slots), trial.device):
        yield told if trial.sound else replace(told, name=f"{told.name}, tokens only")


def _engines(
    trial: ChatterboxTrial,
    lines: Sequence[TimedLine],
    names: Sequence[str],
    slots: Sequence[int] | None,
) -> Iterator[tuple[str, MeasureFn]]:
    from benchmarks.chatterbox_trials import measure_chatterbox, measure_package

    few, tries = lines[: _ALONE[trial.device]], _TRIES[trial.device]
    for name in names:
        if name == "reference":
            yield "chatterbox, one by one", lambda: [measure_package(trial, few)]
            continue
        for count in slots or _SLOTS[trial.device]:
            asked = few if count == 1 else lines
            yield (
                f"this engine, {count} slots",
                partial(_one, measure_chatterbox, trial, asked, slots=count, tries=tries),
            )


def _one(
    measure: Callable[..., EngineMetrics], *given: object, **named: object
) -> list[EngineMetrics]:
    return [measure(*given, **named)]
