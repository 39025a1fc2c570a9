"""Rows of the tables in which engines stand side by side."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
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


def any_row(size: str, told: EngineMetrics | Failed, alone_s: float) -> dict[str, object]:
    """One row of the table, of an engine that was measured or failed; see `figures_row`."""
    if not isinstance(told, Failed):
        return figures_row(size, told, alone_s)
    reason = (
        f"{told.name}: {told.reason}" if told.is_expected else f"{told.name}: failed: {told.reason}"
    )
    row: dict[str, object] = dict.fromkeys(_COLUMNS, "-")
    return row | {"engine": reason, "size": size}


def figures_row(size: str, figures: EngineMetrics, alone_s: float) -> dict[str, object]:
    """One row of the table; what was measured without audio has no seconds of it.

    Args:
        size: Of the model.
        figures: Of one engine.
        alone_s: Audio seconds a second of the engine that it is compared with.
    """
    speed, has_audio = figures.speed, figures.audio_s > 0
    frame_s, ideal_s = figures.frame_s, figures.ideal_s
    return {
        "engine": figures.name,
        "size": size,
        "lines": figures.lines or "-",
        "audio s": f"{figures.audio_s:.1f}" if has_audio else "-",
        "wall s": f"{figures.wall_s:.2f}",
        "processor s": "-" if figures.cpu_s is None else f"{figures.cpu_s:.2f}",
        "audio s a second": f"{speed:.2f}" if has_audio else "-",
        "times the first row": f"{speed / alone_s:.2f}" if has_audio else "-",
        "ms a frame": "-" if frame_s is None else f"{1000 * frame_s:.1f}",
        "first audio ms, p50": _format_ms(figures.first_s, 0.5),
        "p95": _format_ms(figures.first_s, 0.95),
        "slots refilled": "-" if figures.refilled is None else figures.refilled,
        "memory GB": f"{figures.memory_bytes / 1e9:.1f}",
        "roofline %": "-" if not (ideal_s and frame_s) else f"{100 * ideal_s / frame_s:.0f}",
        "notes": figures.notes or "-",
    }


_COLUMNS = (
    *("engine", "size", "lines", "audio s", "wall s", "processor s", "audio s a second"),
    *("times the first row", "ms a frame", "first audio ms, p50", "p95", "slots refilled"),
    *("memory GB", "roofline %", "notes"),
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
