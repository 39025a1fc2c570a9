"""`bench gpu-day`: all that has waited for a graphics card, in 18 minutes, in one report.

Each part is a command of its own in a process of its own, in the order of what it decides. A part
that fails or takes too long is ended with its processes; what it measured so far stays, and the
next one follows. The report is written anew after each.
"""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu_rules import RULES, Figures, Verdict, decide

_ROOT = Path(__file__).resolve().parents[1]
_PACKAGES = (
    *("torch", "triton", "transformers", "qwen-tts-hf", "faster-qwen3-tts", "chatterbox-tts"),
)
_LOG_LINES = 30  # of a part that failed, in the report
_SAID_NOTHING = "It said nothing."
_REHEARSED = {"--size": "tiny", "--lines": "3", "--line-frames": "6", "--runs": "1"}
_MOST_SLOTS, _REHEARSED_SLOTS = 64, 2

_ENGINE_TESTS = (
    "tests/backends/batching/test_model_runner_gpu.py",
    "tests/backends/qwen3/test_batched_codec_gpu.py",
    "tests/backends/qwen3/test_qwen3_batched_gpu.py",
)
_OTHER_TESTS = (
    "tests/backends/qwen3/test_qwen3_gpu.py",
    "tests/backends/chatterbox/test_chatterbox_gpu.py",
    "tests/backends/chatterbox/test_t3_runner_gpu.py",
)


@dataclass(frozen=True, slots=True)
class Part:
    """One command of the day.

    Attributes:
        budget_s: The most it takes, besides what the parts before it left.
        argv: Of `launch.py`; "test" is pytest.
        rehearses: Whether a rehearsal runs it, too.
    """

    name: str
    budget_s: float
    argv: tuple[str, ...]
    rehearses: bool = True


def _engines(size: str, engines: str, **given: str) -> tuple[str, ...]:
    options = {"size": size, "engines": engines} | given
    return (
        "bench",
        "engines",
        *(word for name in options for word in (f"--{name}", options[name])),
    )


PARTS = (
    Part("GPU tests of the engine", 120, ("test", "-m", "gpu", *_ENGINE_TESTS)),
    Part("0.6B", 150, _engines("0.6B", "ours,waiting,steps", slots="64,32,8,1", lines="200")),
    Part("1.7B", 90, _engines("1.7B", "ours,steps", slots="64,1", lines="200")),
    Part("packages", 120, _engines("0.6B", "reference,list,faster", lines="8")),
    Part("codec", 60, _engines("0.6B", "codec", slots="64")),
    Part("mixed sampling", 60, _engines("0.6B", "ours,mixed", slots="64", lines="64")),
    Part("leak and soak", 130, _engines("0.6B", "leak,soak", slots="64", lines="64")),
    Part(
        "Chatterbox Turbo",
        90,
        ("bench", "engines", "--model", "turbo", "--slots", "64", "--lines", "64"),
        rehearses=False,  # its smallest model is of full width
    ),
    Part("other GPU tests", 200, ("test", "-m", "gpu", *_OTHER_TESTS)),
)
"""In order of value; their budgets are 18 minutes less what starting and writing takes."""


@dataclass(slots=True)
class Outcome:
    """What came of a part.

    Attributes:
        status: "done", "failed" (a row is enough), "out of time" or "left out".
        rows: Of its tables, by column.
        tests: Numbers of tests by outcome, such as passed and failed.
        tail: The end of what it said, where it failed.
    """

    name: str
    command: str
    budget_s: float
    took_s: float = 0.0
    status: str = "left out"
    rows: list[dict[str, str]] = field(default_factory=list)
    tests: dict[str, int] = field(default_factory=dict)
    tail: list[str] = field(default_factory=list)


def run_gpu_day(folder: Path, *, rehearse: bool = False, parts: Sequence[Part] = PARTS) -> int:
    """Run all parts and write the report.

    Args:
        folder: Where `report.md`, `report.json`, each part's log and the random weights are
            written; is made.
        rehearse: Run all of it on the CPU with a tiny model, which takes a minute.
        parts: In this order.

    Returns:
        0 where every part was done, else 1.
    """
    folder = folder.resolve()  # the parts work in the repository
    folder.mkdir(parents=True, exist_ok=True)
    day = _Day(folder, rehearse=rehearse)
    outcomes: list[Outcome] = []
    for part in parts:
        outcomes.append(day.run(part))
        print(
            f"{outcomes[-1].name}: {outcomes[-1].status}, {outcomes[-1].took_s:.0f} s", flush=True
        )
        day.write(outcomes)
    print((folder / "report.md").resolve())
    return int(any(one.status not in {"done", "left out"} for one in outcomes))


class _Day:
    """A run of all parts, with its clock."""

    def __init__(self, folder: Path, *, rehearse: bool) -> None:
        self._folder = folder
        self._rehearse = rehearse
        self._began_s = time.monotonic()
        self._ends_s = self._began_s  # when the parts so far have to be done
        self._date = datetime.now(UTC)
        # A card bears no fork of a process that may have asked for it; without one it saves
        # importing torch for every part.
        self._processes: Any = multiprocessing.get_context("forkserver" if rehearse else "spawn")
        if rehearse:
            os.environ |= {"TTS_DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
            os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
            self._processes.set_forkserver_preload(
                ["studio.app", "benchmarks.command", "benchmarks.soak_trials", "qwen_tts", "pytest"]
            )

    def run(self, part: Part) -> Outcome:
        """Run one part until it is done, fails, or its time is up."""
        argv = self._argv(part)
        outcome = Outcome(part.name, f"python launch.py {' '.join(argv)}", part.budget_s)
        self._ends_s += part.budget_s
        if self._rehearse and not part.rehearses:
            return outcome
        log = self._folder / f"{re.sub('[^a-z0-9.]+', '-', part.name.lower())}.log"
        log.write_bytes(b"")  # it may be ended before it opens it, and there may be an older one
        began_s = time.monotonic()
        code = self._run_process(argv, log, until_s=self._ends_s)
        outcome.took_s = time.monotonic() - began_s
        said = log.read_text(encoding="utf-8", errors="replace").splitlines()
        outcome.rows, outcome.tests = list(read_tables(said)), count_tests(said)
        outcome.status = {None: "out of time", 0: "done"}.get(code, "failed")
        if any(": failed: " in row.get("engine", "") for row in outcome.rows):
            outcome.status = "failed"
        if outcome.status != "done":
            outcome.tail = said[-_LOG_LINES:] or [_SAID_NOTHING]
        return outcome

    def write(self, outcomes: Sequence[Outcome]) -> None:
        """Write the report of the parts so far."""
        rows = {one.name: one.rows for one in outcomes}
        failed_tests = sum(one.tests.get(word, 0) for one in outcomes for word in _BAD_TESTS)
        passed = sum(one.tests.get("passed", 0) for one in outcomes)
        figures = Figures(
            rows,
            slots=_REHEARSED_SLOTS if self._rehearse else _MOST_SLOTS,
            tests_agree=not failed_tests if passed else None,
        )
        report = {
            "date": self._date.isoformat(timespec="seconds"),
            "rehearsal": self._rehearse,
            "command": f"python launch.py bench gpu-day{' --rehearse' * self._rehearse}",
            "took_s": round(time.monotonic() - self._began_s, 1),
            "hardware": describe_hardware(),
            "verdicts": [asdict(verdict) for verdict in decide(figures)],
            "parts": [asdict(one) for one in outcomes],
        }
        (self._folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        text = "\n".join(_markdown(report, outcomes, decide(figures))) + "\n"
        (self._folder / "report.md").write_text(text, encoding="utf-8")

    def _argv(self, part: Part) -> tuple[str, ...]:
        """Of a part as it is run here."""
        if part.argv[:2] != ("bench", "engines") or "--model" in part.argv:
            return part.argv
        given = dict(zip(part.argv[2::2], part.argv[3::2], strict=True))
        given["--checkpoints"] = str(self._folder / "weights")
        if self._rehearse:
            given["--engines"] = given["--engines"].removesuffix(",faster")  # needs CUDA
            given |= _REHEARSED | (
                {"--slots": _few(given["--slots"])} if "--slots" in given else {}
            )
        return ("bench", "engines", *(word for pair in given.items() for word in pair))

    def _run_process(self, argv: Sequence[str], log: Path, *, until_s: float) -> int | None:
        """The exit status of a part; None where it was ended because its time was up."""
        process = self._processes.Process(target=_run_part, args=(tuple(argv), log))
        process.start()
        process.join(max(0.0, until_s - time.monotonic()))
        code = process.exitcode
        if process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what it started, too
        process.kill()
        process.join()
        return code


def _few(slots: str) -> str:
    """Numbers of slots for a rehearsal: one, two, or both."""
    counts = {"1" if count == "1" else str(_REHEARSED_SLOTS) for count in slots.split(",")}
    return ",".join(sorted(counts, reverse=True))


def _run_part(argv: tuple[str, ...], log: Path) -> None:
    """Run a part in this process, which says all to a file."""
    os.setsid()
    os.chdir(_ROOT)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if argv[0] == "test":
        import pytest

        code = int(pytest.main([*argv[1:], "-p", "no:cacheprovider", "-n0"]))
    else:
        from studio.app import main

        code = main(list(argv))
    sys.stdout.flush()
    sys.exit(code)


_BAD_TESTS = ("failed", "error", "errors")


def count_tests(said: Sequence[str]) -> dict[str, int]:
    """Numbers of tests by outcome, from the last line that pytest says."""
    counts: dict[str, int] = {}
    for line in said:
        if re.search(r"\d+ \w+.* in [\d.]+s", line):
            counts = {word: int(count) for count, word in re.findall(r"(\d+) ([a-z]+)", line)}
    return counts


def read_tables(said: Sequence[str]) -> Iterator[dict[str, str]]:
    """Rows of the Markdown tables among some lines, by column; a row that was cut short isn't."""
    columns: list[str] = []
    for line, following in zip(said, [*said, ""][1:], strict=True):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if following.startswith("|---"):
            columns = cells
        elif line.startswith("| ") and line.endswith(" |") and len(cells) == len(columns):
            yield dict(zip(columns, cells, strict=True))


def describe_hardware() -> dict[str, str]:
    """What this machine has and runs, asked without torch, which would take part of the card."""
    found = {
        "card": _first_line(
            *("nvidia-smi", "--query-gpu=name,driver_version,memory.total,power.limit"),
            "--format=csv,noheader",
        )
        or "none",
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "commit": _first_line("git", "-C", str(_ROOT), "rev-parse", "HEAD") or "unknown",
    }
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _processor() -> str:
    with suppress(OSError):
        names = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
        if names:
            return f"{names[0]}, {len(names)} cores"
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"


def _first_line(*command: str) -> str:
    if shutil.which(command[0]) is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return next(iter(done.stdout.splitlines()), "").strip()


def _markdown(
    report: Mapping[str, Any], outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]
) -> Iterator[str]:
    """The report for people."""
    yield "# A day with a graphics card"
    yield ""
    if report["rehearsal"]:
        yield "**A rehearsal on the CPU with a tiny model: none of its figures is of any use.**"
        yield ""
    yield f"{report['date']}, {report['took_s']} s, `{report['command']}`"
    yield ""
    yield from (f"- {name}: {value}" for name, value in report["hardware"].items())
    yield from ("", "## What the figures say", "")
    yield from _table([_verdict_row(one) for one in verdicts])
    yield from ("", "The rules, as they stood before anything was measured:", "")
    yield from (f"- {rule.what}: {rule.condition}" for rule in RULES)
    for one in outcomes:
        yield from ("", f"## {one.name}", "", f"`{one.command}`", "")
        counts = ", ".join(f"{count} {word}" for word, count in one.tests.items())
        yield f"{one.status}, {one.took_s:.0f} of {one.budget_s:.0f} s" + (counts and f"; {counts}")
        yield ""
        yield from _table(one.rows)
        if one.tail:
            yield from ("", "```", *one.tail, "```")


def _verdict_row(verdict: Verdict) -> dict[str, str]:
    return {"default": verdict.what, "verdict": verdict.answer, "because": verdict.because}


def _table(rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """A Markdown table; empty columns are left out, and rows of other columns begin a new one."""
    columns: list[str] = []
    for row in rows:
        if list(row) != columns:
            columns = list(row)
            yield from ("| " + " | ".join(columns) + " |", "|" + "---|" * len(columns))
        yield "| " + " | ".join(row.values()) + " |"
