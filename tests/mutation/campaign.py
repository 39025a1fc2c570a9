"""How many of a sample of mutants the tests kill.

`python tests/mutation/campaign.py` records which test reaches which line, then changes the studio
in one place at a time and runs the tests that reach it, in two processes. It needs Linux or macOS.
It answers 1 when too few are killed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant, sample
from reach import Reach, record
from runs import (
    ANY,
    KILLED,
    NO_TESTS,
    QUICK,
    SURVIVED,
    TIMED_OUT,
    Report,
    changed,
    copy_repository,
    preload,
    run_tests,
)

ROOT = Path(__file__).parents[2]
READ = Path(__file__).with_name("survivors.md")
LEAST_KILLED = 0.85
PROCESSES = 2


# How many mutants of each package are tried.
PACKAGES = {
    **{"dialog": 85, "project": 110, "engine": 55, "audio": 65, "quality": 15, "voices": 45},
    **{"server": 65, "sharing": 10},
}
TESTS = (*PACKAGES, "services", "storage")
CPU_S, WALL_S = 90, 300.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a mutant; `by` is the test that failed."""

    mutant: Mutant
    result: str
    by: str
    tests: int
    took_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per-cent", type=int, default=100, help="of the sample")
    parser.add_argument("--only", nargs="*", choices=PACKAGES, help="packages")
    parser.add_argument("--folder", type=Path, help="keeps copies and coverage for the next run")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tableread-mutation-") as temporary:
        folder = parsed.folder or Path(temporary)
        return _run(folder.resolve(), parsed.only or list(PACKAGES), parsed.per_cent)


def _run(folder: Path, packages: Sequence[str], per_cent: int) -> int:
    began_s = time.monotonic()
    preload()
    copies = multiprocessing.get_context("fork").SimpleQueue()
    for number in range(PROCESSES):
        copy = folder / f"copy{number}"
        copy_repository(ROOT, copy)
        copies.put(copy)
    with ProcessPoolExecutor(
        PROCESSES, multiprocessing.get_context("fork"), _take_copy, (copies,)
    ) as pool:
        reach = _reach(folder, pool)
        sampled = [
            mutant
            for name in packages
            for mutant in sample(ROOT, f"studio/{name}", PACKAGES[name] * per_cent // 100)
        ]
        mutants = [
            (one, reach.tests(one, ROOT)) for one in sorted(sampled, key=lambda one: one.rank)
        ]
        print(f"{len(mutants)} mutants after {time.monotonic() - began_s:.0f} s", flush=True)
        outcomes = []
        for trial in as_completed([pool.submit(_try, *one) for one in mutants]):
            outcomes.append(trial.result())
            _print(outcomes[-1])
    score = _summary(outcomes)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent_s = spent.ru_utime + spent.ru_stime
    print(f"{time.monotonic() - began_s:.0f} s, {spent_s:.0f} s of processor time")
    return 0 if score >= LEAST_KILLED else 1


_copy: list[Path] = []


def _take_copy(copies: multiprocessing.SimpleQueue) -> None:
    _copy.append(copies.get())


def _reach(folder: Path, pool: ProcessPoolExecutor) -> Reach:
    modules = [
        path.relative_to(ROOT).as_posix()
        for name in TESTS
        for path in sorted((ROOT / "tests" / name).glob("test_*.py"))
    ]
    recordings = [folder / "recorded" / module.replace("/", "-") for module in modules]
    for failed in pool.map(_record, modules, recordings):
        for test in failed:
            print(f"left out, fails without a mutant: {test}", flush=True)
    return Reach.read(recordings)


def _record(module: str, folder: Path) -> tuple[str, ...]:
    """Record a module unless an earlier run did; returns the tests that fail."""
    return record(_copy[0], module, folder)


def _try(mutant: Mutant, tests: list[str]) -> Outcome:
    """Run the module that `READ` names, if it does, then the tests that reach the mutant."""
    began_s = time.monotonic()
    copy = _copy[0]
    path = copy / mutant.path
    result, by = SURVIVED, "" if tests else "no test reaches it"
    modules = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    runs = [(_named(mutant), Report(), ANY), (modules, Report(tests), QUICK)]
    with changed(path, mutant.mutated(path.read_text("utf-8"))):
        for chosen, report, marks in runs:
            if not chosen or result != SURVIVED:
                continue
            status, noted = run_tests(
                copy, ["-x", *chosen], report, cpu_s=CPU_S, wall_s=WALL_S, marks=marks
            )
            result = {None: TIMED_OUT, 0: SURVIVED, NO_TESTS: SURVIVED}.get(status, KILLED)
            by = (noted["failed"] or [f"status {status}"])[0] if result == KILLED else by
    return Outcome(mutant, result, by, len(tests), time.monotonic() - began_s)


def _named(mutant: Mutant) -> list[str]:
    """The module of tests that `READ` tells for a mutant."""
    found = re.search(rf"`{re.escape(mutant.name)}`.*`(tests/\S+\.py)`", READ.read_text("utf-8"))
    return [found[1]] if found else []


def _print(outcome: Outcome) -> None:
    mutant = outcome.mutant
    print(
        f"{outcome.result:9} {outcome.took_s:5.1f} s {outcome.tests:4} tests"
        f" {mutant.name} (line {mutant.line}) {outcome.by}",
        flush=True,
    )


def _summary(outcomes: list[Outcome]) -> float:
    """Print the survivors and a table by package; returns the share that was killed."""
    read = READ.read_text("utf-8") if READ.exists() else ""
    survivors = [one.mutant for one in outcomes if one.result == SURVIVED]
    for mutant in survivors:
        if mutant.name not in read:
            change = mutant.change((ROOT / mutant.path).read_text("utf-8"))
            print(f"\nnot yet in {READ.name}: {mutant.name}\n{change}")
    counts = Counter((one.mutant.path.split("/")[1], one.result != SURVIVED) for one in outcomes)
    for package in dict.fromkeys(package for package, _ in counts):
        killed, left = counts[package, True], counts[package, False]
        print(f"{package:10} {killed:4} of {killed + left:4} killed")
    score = 1 - len(survivors) / max(1, len(outcomes))
    print(f"{len(outcomes) - len(survivors)} of {len(outcomes)} killed: {score:.1%}")
    return score


if __name__ == "__main__":
    sys.exit(main())
