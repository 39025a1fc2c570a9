"""Which tests reach a mutant, from coverage's contexts."""

from __future__ import annotations

import ast
import json
import multiprocessing.process
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import coverage
import coverage.exceptions
from mutants import Mutant
from runs import Report, run_tests

# What a mutant's tests may take together, as they were measured; the quickest ones go first.
BUDGET_S = 60.0
_LONGEST_TEST_S = 20.0
_CPU_S = 900
_WALL_S = 1800.0
_CONFIG = """
[run]
source = studio
relative_files = true
parallel = true
data_file = {data}
context = ${{TEST_MODULE-}}
patch = fork, _exit
sigterm = true
"""
_TIMES = "times.json"
_STARTED = "import coverage\ncoverage.process_startup()\n"


def record(copy: Path, module: str, folder: Path) -> tuple[str, ...]:
    """Run a test module in a copy of the repository, and note which test reaches what.

    What a server of its own reaches has the module's name as context; what a test reaches in its
    own process has the test's name behind it.

    Args:
        copy: The copy.
        module: The module, relative to it.
        folder: Where coverage's files and the tests' times stay; if they are there, nothing runs.

    Returns:
        The tests that fail.
    """
    times = folder / _TIMES
    if not times.exists():
        folder.mkdir(parents=True, exist_ok=True)
        config = copy / "coverage.ini"
        config.write_text(_CONFIG.format(data=folder / "data"), "utf-8")
        (copy / "site").mkdir(exist_ok=True)
        (copy / "site" / "sitecustomize.py").write_text(_STARTED, "utf-8")
        plugin = _Recording(config, module)
        status, noted = run_tests(copy, [module], plugin, cpu_s=_CPU_S, wall_s=_WALL_S)
        noted["failed"] += [] if status in {0, 1, 5} else [f"{module} (ended with {status})"]
        times.write_text(json.dumps(noted), "utf-8")
    return tuple(json.loads(times.read_text("utf-8"))["failed"])


class _Recording(Report):
    """The plugin of a recorded run."""

    def __init__(self, config: Path, module: str) -> None:
        super().__init__()
        self._config = config
        self._module = module

    def pytest_sessionstart(self) -> None:
        paths = [str(self._config.parent / "site"), os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        os.environ["TEST_MODULE"] = self._module
        os.environ["COVERAGE_PROCESS_START"] = str(self._config)
        multiprocessing.process.BaseProcess.kill = _end_gently
        self._coverage = coverage.Coverage(config_file=str(self._config))
        self._coverage.start()
        self.on_test = self._coverage.switch_context

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()


def _end_gently(process: multiprocessing.process.BaseProcess) -> None:
    """A server that is killed would keep to itself what it reached."""
    if process.exitcode is None and process.pid:
        os.kill(process.pid, signal.SIGTERM)
        process.join(20)
    if process.exitcode is None:
        process._popen.kill()


@dataclass(frozen=True, slots=True)
class Reach:
    """Tests by the lines that they reach.

    Attributes:
        lines: Of each file and line, the tests; a module's name stands for all of its tests.
        seconds: How long each test took that passed.
    """

    lines: dict[str, dict[int, set[str]]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Reach:
        """Put together what was recorded."""
        lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        seconds: dict[str, float] = {}
        for folder in folders:
            noted = json.loads((folder / _TIMES).read_text("utf-8"))
            failed = set(noted["failed"])
            seconds |= {test: took for test, took in noted["seconds"].items() if test not in failed}
            for file in folder.glob("data.*"):
                data = coverage.CoverageData(str(file))
                try:
                    data.read()
                except coverage.exceptions.DataError:  # of a process killed while it wrote
                    continue
                for path in data.measured_files():
                    for line, contexts in data.contexts_by_lineno(path).items():
                        names = {context.rpartition("|")[2] for context in contexts}
                        lines[path][line] |= names - {""}
        return cls(lines, seconds)

    def tests(self, mutant: Mutant, root: Path) -> list[str]:
        """The tests to run for a mutant.

        First come modules that name what it is in, or what it sets; then tests for which its
        condition held, those of its own package, and the quickest ones.
        """
        direct: set[str] = set()
        for path, lines in _lines_to_reach(mutant, root).items():
            direct |= self._names(path, lines)
        imported = self._names(mutant.path, [mutant.line])  # what is read once, such as a policy
        own = f"tests/{mutant.path.split('/')[1]}/"
        held = self._names(mutant.path, _lines_within(mutant, root))
        sets = (held, direct - held, imported - direct - held)
        groups = [group for names in sets for group in self._modules(names, own)]
        names = set(mutant.name.split("::")[1].split(".")) - {"module"} | _set_by(mutant, root)
        groups.sort(key=lambda tests: not names & _words_of(root, tests[0].partition("::")[0]))
        chosen: dict[str, None] = {}
        left_s = BUDGET_S
        for test in chain.from_iterable(groups):
            if test not in chosen and self.seconds[test] <= left_s:
                left_s -= self.seconds[test]
                chosen[test] = None
        return list(chosen)

    def _names(self, path: str, lines: Iterable[int]) -> set[str]:
        by_line = self.lines.get(path, {})
        return set().union(*(by_line.get(line, set()) for line in lines))

    def _modules(self, names: set[str], own: str) -> list[list[str]]:
        """The tests with these names, or in modules with them, module by module."""
        of_module = defaultdict(list)
        for test, seconds in self.seconds.items():
            module = test.partition("::")[0]
            if (test in names or module in names) and seconds < _LONGEST_TEST_S:
                of_module[module].append(test)
        return sorted(
            of_module.values(),
            key=lambda tests: (not tests[0].startswith(own), sum(map(self.seconds.get, tests))),
        )


@lru_cache
def _words_of(root: Path, module: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", (root / module).read_text("utf-8")))


def _lines_to_reach(mutant: Mutant, root: Path) -> dict[str, Sequence[int]]:
    """Lines that behave differently: the mutant's own, or those that use what it defines."""
    tree = ast.parse((root / mutant.path).read_text("utf-8"))
    inside = _lines_of_bodies(tree)
    if mutant.line in inside:
        return {mutant.path: _statement(tree, mutant.line)}
    for node in tree.body:
        if node.lineno <= mutant.line <= node.end_lineno and not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ):
            names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} & _defined(node)
            return _uses(names, mutant.path, root) or {mutant.path: sorted(inside)}
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and _first_line(node) <= mutant.line <= node.end_lineno
    ]
    innermost = around[-1] if around else tree
    lines = sorted(_lines_of_bodies(innermost))
    return {mutant.path: lines or sorted(inside)}


def _set_by(mutant: Mutant, root: Path) -> set[str]:
    """The field, or the constant, that a mutant is in."""
    tree = ast.parse((root / mutant.path).read_text("utf-8"))
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef)]
    return {
        name
        for node in chain.from_iterable(bodies)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and node.lineno <= mutant.line <= node.end_lineno
        for name in _defined(node)
    }


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    return min((node.lineno, *(one.lineno for one in node.decorator_list)))


def _defined(node: ast.stmt) -> set[str]:
    return {
        one.id
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
    }


def _lines_of_bodies(tree: ast.AST) -> set[int]:
    """Lines that run when a function is called, not when the module is imported."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines |= set(range(node.body[0].lineno, node.end_lineno + 1))
    return lines


def _statement(tree: ast.AST, line: int) -> Sequence[int]:
    """All lines of the innermost simple statement, or of the head of a compound one."""
    best: range = range(line, line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno
            best = range(node.lineno, max(end, node.lineno, line) + 1)
    return best


def _lines_within(mutant: Mutant, root: Path) -> list[int]:
    """The first line of what runs if the condition holds that a mutant is in."""
    tree = ast.parse((root / mutant.path).read_text("utf-8"))
    return [
        node.body[0].lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.If | ast.While)
        and node.test.lineno <= mutant.line <= node.test.end_lineno
    ]


def _uses(names: set[str], path: str, root: Path) -> dict[str, Sequence[int]]:
    """Where functions use a name of a module; another module may use a public one too."""
    if not names:
        return {}
    word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    public = any(not name.startswith("_") for name in names)
    files = sorted((root / "studio").rglob("*.py")) if public else [root / path]
    found = {}
    for file in files:
        text = file.read_text("utf-8")
        if not word.search(text):
            continue
        inside = _lines_of_bodies(ast.parse(text))
        numbered = enumerate(text.splitlines(), start=1)
        lines = [number for number, line in numbered if number in inside and word.search(line)]
        if lines:
            found[file.relative_to(root).as_posix()] = lines
    return found
