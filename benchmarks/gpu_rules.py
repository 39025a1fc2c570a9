"""Which default each figure of a day with a card changes: rules, written before any is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_SPEED, _P95, _FRAME, _MEMORY = "audio s a second", "p95", "ms a frame", "memory GB"

Row = Mapping[str, str]


class NotMeasured(Exception):
    """A figure that a rule needs isn't there; says which."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured.

    Attributes:
        rows: Of each part, by its name.
        slots: The most lines that were decoded together.
        tests_agree: Whether the tests that need a card passed; None where none ran.
    """

    rows: Mapping[str, Sequence[Row]]
    slots: int
    tests_agree: bool | None

    def number(self, part: str, engine: str, column: str) -> float:
        """One figure.

        Raises:
            NotMeasured: It isn't there.
        """
        text = self.row(part, engine).get(column, "-")
        try:
            return float(text)
        except ValueError:
            raise NotMeasured(f"{engine} of {part} has no {column}") from None

    def row(self, part: str, engine: str) -> Row:
        """The first row of a part whose engine is called so.

        Raises:
            NotMeasured: There is none.
        """
        for row in self.rows.get(part, ()):
            if row.get("engine") == engine:
                return row
        raise NotMeasured(f"there is no row {engine} of {part}")

    def ours(self, detail: str = "", *, slots: int | None = None) -> str:
        """The name of this engine's row."""
        count = slots or self.slots
        name = f"this engine, {count} slot{'s' if count > 1 else ''}"
        return f"{name}, {detail}" if detail else name


@dataclass(frozen=True, slots=True)
class Rule:
    """When a default changes.

    Attributes:
        what: The default, and what it is now.
        condition: In words, for the report.
        holds: Whether it does, and the figures it follows from; raises `NotMeasured`.
        changed: The answer where it holds.
        kept: The answer where it doesn't.
    """

    what: str
    condition: str
    holds: Callable[[Figures], tuple[bool, str]]
    changed: str
    kept: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the figures say of one default."""

    what: str
    answer: str
    because: str


def decide(figures: Figures) -> list[Verdict]:
    """The verdict of every rule; undecided where a figure is missing."""
    return [_decide(rule, figures) for rule in RULES]


def _decide(rule: Rule, figures: Figures) -> Verdict:
    try:
        holds, because = rule.holds(figures)
    except NotMeasured as missing:
        return Verdict(rule.what, "undecided", str(missing))
    return Verdict(rule.what, rule.changed if holds else rule.kept, because)


_LEAST_SNR_DB = 50.0
"""Well above what the package's own 16 bits leave: 35 dB, measured with random weights."""


def _tf32(figures: Figures) -> tuple[bool, str]:
    part, name = "codec", f"codec alone, {figures.slots} lines"
    speeds = [figures.number(part, f"{name}, {kind}", _SPEED) for kind in ("float32", "TF32")]
    found = re.search(r"SNR ([\d.]+) dB", figures.row(part, f"{name}, TF32").get("notes", ""))
    if found is None:
        raise NotMeasured("there is no SNR")
    because = f"{speeds[1] / speeds[0]:.2f} times as fast, SNR {found[1]} dB"
    return speeds[1] < 1.2 * speeds[0] or float(found[1]) < _LEAST_SNR_DB, because


def _mixed(figures: Figures) -> tuple[bool, str]:
    names = [figures.ours(), figures.ours("mixed sampling")]
    waits = [figures.number("mixed sampling", name, _P95) for name in names]
    return waits[1] > 1.25 * waits[0] + 5, f"p95 {waits[0]:.0f} and {waits[1]:.0f} ms"


def _continuous(figures: Figures) -> tuple[bool, str]:
    speeds = [figures.number("0.6B", figures.ours(name), _SPEED) for name in ("", "batch and wait")]
    return speeds[0] < speeds[1], f"{speeds[0] / speeds[1]:.2f} times batch-and-wait"


def _fewer_slots(figures: Figures) -> tuple[bool, str]:
    half = figures.slots // 2
    names = [figures.ours(), figures.ours(slots=half)]
    speeds, waits = (
        [figures.number("0.6B", name, column) for name in names] for column in (_SPEED, _P95)
    )
    because = f"{speeds[1] / speeds[0]:.2f} of the speed, p95 {waits[1]:.0f} and {waits[0]:.0f} ms"
    return speeds[1] >= 0.95 * speeds[0] and waits[1] < waits[0], because


def _graphs(figures: Figures) -> tuple[bool, str]:
    eager, replay = (
        figures.number("0.6B", f"one step, 1 slot, {how}", _FRAME)
        for how in ("eager", "graph replay")
    )
    return replay > eager / 1.5, f"{eager:.1f} ms a frame eager, {replay:.1f} replayed"


def _one_line(figures: Figures) -> tuple[bool, str]:
    ours = figures.number("0.6B", figures.ours(slots=1), _SPEED)
    theirs = figures.number("packages", "faster-qwen3-tts, one by one", _SPEED)
    return ours < 0.9 * theirs, f"{ours / theirs:.2f} times faster-qwen3-tts"


def _leak(figures: Figures) -> tuple[bool, str]:
    rows = [row for row in figures.rows.get("leak and soak", ()) if "unload" in row["engine"]]
    if len(rows) < 3:
        raise NotMeasured("there are fewer than three unloads")
    second, last = float(rows[1][_MEMORY]), float(rows[-1][_MEMORY])
    return (
        last > second + 0.1,
        f"{second:.1f} GB after the second unload, {last:.1f} after the last",
    )


def _soak(figures: Figures) -> tuple[bool, str]:
    for row in figures.rows.get("leak and soak", ()):
        found = re.match(r"(\d+) lines failed, (\d+) faults, ([+-]\d+) MB", row.get("notes", ""))
        if found:
            failed, faults, grown = map(int, found.groups())
            return bool(failed or faults or grown > 300), row["notes"]
    raise NotMeasured("there is no soak")


def _tests(figures: Figures) -> tuple[bool, str]:
    if figures.tests_agree is None:
        raise NotMeasured("no test that needs a card ran")
    return not figures.tests_agree, "all passed" if figures.tests_agree else "some failed"


def _rules() -> Iterator[Rule]:
    yield Rule(
        "the batched engine on CUDA (on)",
        "it goes off while a test that needs a card fails",
        _tests,
        "turn it off: `should_batch` is False on CUDA",
        "keep it",
    )
    yield Rule(
        "TTS_TF32 (on)",
        f"off where the codec isn't 1.2 times as fast or keeps less than {_LEAST_SNR_DB:.0f} dB",
        _tf32,
        "turn it off",
        "keep it",
    )
    yield Rule(
        "first audio of lines of mixed sampling",
        "a fault where its p95 is above 1.25 times + 5 ms that of usual lines",
        _mixed,
        "find what is captured while somebody waits",
        "no fault",
    )
    yield Rule(
        "TTS_BATCH_CONTINUOUS (on)",
        "off where batch-and-wait is faster",
        _continuous,
        "turn it off",
        "keep it",
    )
    yield Rule(
        "the most slots on CUDA (64)",
        "32 where those reach 0.95 of the speed and their first audio comes sooner",
        _fewer_slots,
        "make `MAX_SLOTS` 32",
        "keep 64",
    )
    yield Rule(
        "CUDA graphs (on)",
        "questioned where a replay of one line's step isn't 1.5 times as fast as the eager step",
        _graphs,
        "find out why before anything else",
        "keep them",
    )
    yield Rule(
        "one line on a card (this engine)",
        "faster-qwen3-tts where this engine has less than 0.9 of its speed with one slot",
        _one_line,
        "speak a line alone with faster-qwen3-tts",
        "keep it",
    )
    yield Rule(
        "memory after unloading",
        "a leak where the last unload leaves 0.1 GB more than the second",
        _leak,
        "find the leak before a default changes",
        "no leak",
    )
    yield Rule(
        "a minute under lines of every kind",
        "a fault where a line failed, a step failed, or more than 300 MB were added",
        _soak,
        "find the fault before a default changes",
        "no fault",
    )


RULES = tuple(_rules())
