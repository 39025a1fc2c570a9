"""How much of a sample of mutants the tests kill.

`python tests/mutation/campaign.py` records which test reaches which line, then changes the studio in
one place at a time and runs the tests that reach it, in two processes. Needs Linux or macOS, and what
tests/requirements.txt names. It answers 1 when too few are killed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mutants import Mutant, sample
from reach import Reach, record
from runs import (
    KILLED,
    SURVIVED,
    TIMED_OUT,
    Report,
    changed,
    copy_repository,
    forget_own_folder,
    preload,
    run_tests,
)

ROOT = Path(__file__).parents[2]
READ = Path(__file__).with_name("survivors.md")
LEAST_KILLED = 0.85
PROCESSES = 2
# How many mutants of each package.
SAMPLE = {
    "studio/dialog": 85,
    "studio/project": 110,
    "studio/engine": 55,
    "studio/audio": 65,
    "studio/quality": 15,
    "studio/voices": 45,
    "studio/server": 65,
    "studio/sharing": 10,
}
_CPU_FACTOR = 5
_LEAST_CPU_S = 30
_WALL_FACTOR = 20


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
    parser.add_argument("--only", default="", help="mutants whose name contains this")
    parser.add_argument("--folder", type=Path, help="where copies and coverage stay for the next run")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tableread-mutation-") as temporary:
        folder = parsed.folder or Path(temporary)
        return _run(folder.resolve(), parsed.per_cent, parsed.only)


def _run(folder: Path, per_cent: int, only: str) -> int:
    began_s = time.monotonic()
    forget_own_folder()
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
        mutants = [
            mutant
            for package, size in SAMPLE.items()
            for mutant in sample(ROOT, package, max(1, size * per_cent // 100))
            if only in mutant.name
        ]
        print(f"{len(mutants)} mutants after {time.monotonic() - began_s:.0f} s", flush=True)
        outcomes = []
        for outcome in pool.map(_try, mutants, [reach.tests(one, ROOT) for one in mutants]):
            outcomes.append(outcome)
            _print(outcome)
    score = _summary(outcomes)
    print(f"{time.monotonic() - began_s:.0f} s")
    return 0 if score >= LEAST_KILLED else 1


_copy: list[Path] = []


def _take_copy(copies: multiprocessing.SimpleQueue) -> None:
    _copy.append(copies.get())


def _reach(folder: Path, pool: ProcessPoolExecutor) -> Reach:
    kept = folder / "reach.json"
    if kept.exists():
        return Reach.load(kept)
    data = folder / "coverage"
    data.mkdir(parents=True, exist_ok=True)
    modules = [path.relative_to(ROOT).as_posix() for path in sorted(ROOT.glob("tests/*/**/test_*.py"))]
    modules = [one for one in modules if one.split("/")[1] not in ("ui", "setup", "pins", "benchmarks")]
    seconds: dict[str, float] = {}
    for module, (status, noted) in zip(
        modules, pool.map(_record, modules, [data] * len(modules)), strict=True
    ):
        failed = set(noted["failed"])
        if status not in {0, 1, 5}:
            print(f"{module} ended with {status}", flush=True)
        seconds |= {test: took for test, took in noted["seconds"].items() if test not in failed}
        if failed:
            print("left out, fails without a mutant:", *sorted(failed), sep="\n  ", flush=True)
    reach = Reach.read(data.glob("data.*"), seconds)
    reach.save(kept)
    return reach


def _record(module: str, data: Path) -> tuple[int | None, dict]:
    return record(_copy[0], module, data / "data")


def _try(mutant: Mutant, tests: list[str]) -> Outcome:
    began_s = time.monotonic()
    if not tests:
        return Outcome(mutant, SURVIVED, "no test reaches it", 0, 0.0)
    copy = _copy[0]
    path = copy / mutant.path
    modules = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    with changed(path, mutant.mutated(path.read_text("utf-8"))):
        status, noted = run_tests(
            copy, modules, Report(tests), cpu_s=90, wall_s=600
        )
    result = {None: TIMED_OUT, 0: SURVIVED}.get(status, KILLED)
    by = (noted["failed"] or [f"status {status}"])[0] if result == KILLED else ""
    return Outcome(mutant, result, by, len(tests), time.monotonic() - began_s)


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
