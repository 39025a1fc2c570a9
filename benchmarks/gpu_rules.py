"""Which default each figure of a day with a card changes: rules, written before any is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from studio.backends.options import Tuning

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


_LEAST_GAIN, _LATER_MS = 1.03, 5.0


def _gains(switch: str) -> Callable[[Figures], tuple[bool, str]]:
    """Whether a switch pays, of the part "switches"."""

    def holds(figures: Figures) -> tuple[bool, str]:
        if figures.tests_agree is None:
            raise NotMeasured("no test that needs a card ran")
        speeds, waits = (
            [figures.number("switches", figures.ours(name), column) for name in ("", switch)]
            for column in (_SPEED, _P95)
        )
        gain = speeds[1] / speeds[0]
        because = f"{gain:.2f} times as fast, p95 {waits[0]:.0f} and {waits[1]:.0f} ms"
        if not figures.tests_agree:
            return False, f"{because}; but a test on the card failed"
        return gain >= _LEAST_GAIN and waits[1] <= 1.1 * waits[0] + _LATER_MS, because

    return holds


def _any_sampling(figures: Figures) -> tuple[bool, str]:
    part = "mixed sampling"
    names = [figures.ours("mixed sampling"), figures.ours("any-sampling, mixed sampling")]
    waits = [figures.number(part, name, _P95) for name in names]
    speeds = [
        figures.number("switches", figures.ours(name), _SPEED) for name in ("", "any-sampling")
    ]
    because = f"p95 {waits[0]:.0f} and {waits[1]:.0f} ms, {speeds[1] / speeds[0]:.2f} times as fast"
    return waits[1] <= 0.8 * waits[0] and speeds[1] >= 0.97 * speeds[0], because


def _tf32(figures: Figures) -> tuple[bool, str]:
    speeds = [figures.number("TF32", figures.ours(name), _SPEED) for name in ("", "TF32")]
    notes = [row.get("notes", "") for row in figures.rows.get("TF32", ())]
    ratios = re.findall(r"SNR ([\d.]+|inf) dB", " ".join(notes))
    if not ratios:
        raise NotMeasured("there is no SNR")
    because = f"{speeds[1] / speeds[0]:.2f} times as fast, SNR {ratios[0]} dB"
    return speeds[1] >= 1.05 * speeds[0] and float(ratios[0]) >= 60, because


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
    for switch in Tuning:
        if switch in (Tuning.FLOAT32, Tuning.COMPILED, Tuning.ANY_SAMPLING):
            continue
        yield Rule(
            f"TTS_BATCH_TUNING {switch.value} (off)",
            f"on where it is at least {_LEAST_GAIN} times as fast with the most slots, the first "
            f"audio's p95 is at most 1.1 times + {_LATER_MS:.0f} ms as late, and the tests agree",
            _gains(switch.value),
            "turn it on",
            "leave it off",
        )
    yield Rule(
        "TTS_BATCH_TUNING any-sampling (off)",
        "on where lines of mixed sampling have their first audio's p95 at 0.8 times or less, and "
        "usual lines keep 0.97 of their speed",
        _any_sampling,
        "turn it on",
        "leave it off",
    )
    yield Rule(
        "TTS_TF32 (off)",
        "on where it is at least 1.05 times as fast and the codec keeps 60 dB; random weights say "
        "little of that ratio, so trained ones have to be listened to before",
        _tf32,
        "turn it on once trained weights were listened to",
        "leave it off",
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
