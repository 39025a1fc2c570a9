"""Rows of the tables in which engines stand side by side."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.metrics import EngineMetrics


class DeviceMissing(Exception):
    """What is to be measured doesn't exist on this device."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An engine that could not be measured.

    Attributes:
        name: Of the engine.
        reason: In one line.
        is_expected: Whether this machine lacks what it needs, so that nothing is wrong.
    """

    name: str
    reason: str
    is_expected: bool = False


def rows_in_turns(
    size: str, device: str, runs: int, measure: Callable[[], Iterable[EngineMetrics | Failed]]
) -> Iterator[dict[str, object]]:
    """Rows of all engines, each as soon as it is measured; of several runs the medians at the end.

    In several runs the engines take turns, so that other work on the machine hits all of them. A
    ratio of the medians is that of the runs' ratios, and their first audio is of all runs together.

    Args:
        size: Of the model.
        device: Where the engines run.
        runs: Times that every engine is measured.
        measure: Measures each engine once.
    """
    measured: list[dict[tuple[str, int], EngineMetrics]] = []
    for run in range(1, runs + 1):
        measured.append({})
        for told in measure():
            if not isinstance(told, Failed):
                measured[-1][told.name, told.lines] = told
            row = _any_row(size, device, told, _first_rate(measured[-1], device))
            yield row | {"runs": f"{run} of {runs}"}
    if runs > 1:
        yield from _middles(size, device, measured)


def _middles(
    size: str, device: str, measured: Sequence[Mapping[tuple[str, int], EngineMetrics]]
) -> Iterator[dict[str, object]]:
    """A row of medians for each engine that was measured in every run."""
    firsts = [_first_rate(run, device) for run in measured]
    for which in measured[0]:
        known = [run[which] for run in measured if which in run]
        if len(known) == len(measured):
            pairs = zip(known, firsts, strict=True)
            ratio = statistics.median(one.rate_on(device) / first for one, first in pairs)
            row = figures_row(size, device, middle_of(known), ratio)
            yield row | {"runs": f"median of {len(known)}"}


def _first_rate(run: Mapping[tuple[str, int], EngineMetrics], device: str) -> float:
    """That of the first engine that was measured; 1 where none was."""
    return next((rate for one in run.values() if (rate := one.rate_on(device))), 1.0)


def _any_row(
    size: str, device: str, told: EngineMetrics | Failed, first_rate: float
) -> dict[str, object]:
    """One row of the table, of an engine that was measured or failed; see `figures_row`."""
    if not isinstance(told, Failed):
        return figures_row(size, device, told, told.rate_on(device) / first_rate)
    reason = (
        f"{told.name}: {told.reason}" if told.is_expected else f"{told.name}: failed: {told.reason}"
    )
    row: dict[str, object] = dict.fromkeys(_columns(device), "-")
    return row | {"engine": reason, "size": size}


def figures_row(size: str, device: str, figures: EngineMetrics, ratio: float) -> dict[str, object]:
    """One row of the table; what was measured without audio has no seconds of it.

    Args:
        size: Of the model. A tiny one has no ratio: most of its time isn't the model's.
        device: Where the engine ran.
        figures: Of one engine.
        ratio: Of its `EngineMetrics.rate_on` to that of the engine it is compared with.
    """
    has_audio, frame_s, ideal_s = figures.audio_s > 0, figures.frame_s, figures.ideal_s
    values = (
        *(figures.name, size, figures.lines or "-"),
        f"{figures.audio_s:.1f}" if has_audio else "-",
        f"{figures.wall_s:.2f}",
        "-" if figures.cpu_s is None else f"{figures.cpu_s:.2f}",
        f"{figures.speed:.2f}" if has_audio else "-",
        f"{ratio:.2f}" if ratio and not size.endswith("tiny") else "-",
        "-" if frame_s is None else f"{1000 * frame_s:.1f}",
        _format_ms(figures.first_s, 0.5),
        _format_ms(figures.first_s, 0.95),
        "-" if figures.refilled is None else figures.refilled,
        f"{figures.memory_bytes / 1e9:.1f}",
        "-" if not (ideal_s and frame_s) else f"{100 * ideal_s / frame_s:.0f}",
        figures.notes or "-",
    )
    return dict(zip(_columns(device), values, strict=True))


def _columns(device: str) -> tuple[str, ...]:
    by = "processor time" if device == "cpu" else "wall time"
    return (
        *("engine", "size", "lines", "audio s", "wall s", "processor s", "audio s a second"),
        *(f"times the first row, {by}", "ms a frame", "first audio ms, p50", "p95"),
        *("slots refilled", "memory GB", "roofline %", "notes"),
    )


def _format_ms(values_s: Sequence[float], share: float) -> str:
    return f"{1000 * _quantile(values_s, share):.0f}" if values_s else "-"


def _quantile(values: Sequence[float], share: float) -> float:
    """A quantile between the measured values; the only one where there is one."""
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


def middle_of(runs: Sequence[EngineMetrics]) -> EngineMetrics:
    """Medians of what one engine did in several runs; its tries for first audio together."""
    first = runs[0]
    frames_s = [one.frame_s for one in runs if one.frame_s is not None]
    ideals_s = [one.ideal_s for one in runs if one.ideal_s is not None]
    cpus_s = [one.cpu_s for one in runs if one.cpu_s is not None]
    refilled = [one.refilled for one in runs if one.refilled is not None]
    return replace(
        first,
        wall_s=statistics.median(one.wall_s for one in runs),
        first_s=[one_s for one in runs for one_s in one.first_s],
        memory_bytes=max(one.memory_bytes for one in runs),
        frame_s=statistics.median(frames_s) if frames_s else None,
        ideal_s=statistics.median(ideals_s) if ideals_s else None,
        cpu_s=statistics.median(cpus_s) if cpus_s else None,
        refilled=round(statistics.median(refilled)) if refilled else None,
    )
