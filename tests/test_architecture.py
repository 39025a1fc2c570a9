"""The structure of the code: imports without circles, one name for one thing, the field's words."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STUDIO = ROOT / "studio"
PAGE = ROOT / "assets" / "page"

ROOT_MODULES = {"__init__", "__main__", "app", "errors", "settings"}

WORDS = (
    "told",
    "heard",
    "desk",
    "desks",
    "booth",
    "crowd",
    "bulletin",
    "company",
    "moment",
    "former",
    "anew",
    "beside",
    "lifted",
    "errand",
    "kitchen",
)
"""Words that say something else to an engineer than they mean here; docs/develop/glossary.md has
the field's."""

ON_DISK_OR_ON_THE_WIRE: dict[str, str] = {
    "former_id": "speaker.json, and the routes of a speaker's samples",
    "heard": "place.json of a project, and the body by which the page sends it",
}
"""Names that keep such a word, each with where it is kept or sent."""

Graph = Mapping[str, set[str]]


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"), str(file))


def modules() -> dict[str, Path]:
    """Every module of the studio by its dotted name; a package's `__init__` has the package's."""
    found = {}
    for file in sorted(STUDIO.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imported(file: Path, known: Iterable[str]) -> Iterator[str]:
    """Modules of the studio that a file imports anywhere, also inside functions and for types."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module in known:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


@cache
def module_graph() -> Graph:
    known = modules()
    return {name: set(imported(file, known)) - {name} for name, file in known.items()}


def packages_of(modules_graph: Graph, parent: str) -> Graph:
    """What the packages directly inside `parent` import of each other."""
    depth = parent.count(".") + 2
    packages = {
        name
        for name, file in modules().items()
        if file.stem == "__init__"
        and name.startswith(f"{parent}.")
        and name.count(".") == depth - 1
    }
    graph: dict[str, set[str]] = {package: set() for package in packages}
    for name, targets in modules_graph.items():
        own = ".".join(name.split(".")[:depth])
        if own in packages:
            others = {".".join(target.split(".")[:depth]) for target in targets}
            graph[own] |= (others & packages) - {own}
    return graph


def circles(graph: Graph) -> list[list[str]]:
    """Groups of nodes that reach each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph[node]):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            at = stack.index(node)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]
    assert not circles({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not circles(module_graph())


def parents() -> list[str]:
    """Packages that hold packages."""
    names = [name for name, file in modules().items() if file.stem == "__init__"]
    return [name for name in names if any(one.startswith(f"{name}.") for one in names)]


@pytest.mark.parametrize("parent", parents())
def test_no_packages_import_each_other_in_a_circle(parent: str) -> None:
    """Arrows against the layers are found by import-linter, see pyproject.toml."""
    assert not circles(packages_of(module_graph(), parent))


def test_nothing_is_loose_at_the_root() -> None:
    assert {file.stem for file in STUDIO.glob("*.py")} == ROOT_MODULES


def test_no_module_name_is_used_twice() -> None:
    named = defaultdict(list)
    for name, file in modules().items():
        if file.stem not in {"__init__", "backend"}:
            named[file.stem].append(name)
    assert not {stem: names for stem, names in named.items() if len(names) > 1}


def test_no_class_name_is_used_twice() -> None:
    named = defaultdict(list)
    for name, file in modules().items():
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.ClassDef):
                named[node.name].append(name)
    assert not {cls: names for cls, names in named.items() if len(names) > 1}


def python_names(file: Path) -> Iterator[str]:
    """Names that a file of Python defines: no words of its comments, texts and imports."""
    yield file.stem
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


_NO_CODE = re.compile(
    r"""
    /\*.*?\*/ | //[^\n]*                                  # comments
    | '(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*"           # strings
    """,
    re.DOTALL | re.VERBOSE,
)
_TEMPLATE_TEXT = re.compile(r"`(?:\\.|[^`\\])*`", re.DOTALL)


def script_names(file: Path) -> Iterator[str]:
    """Identifiers of a file of JavaScript outside comments and strings, and in templates' `${}`."""
    yield file.stem
    code = _NO_CODE.sub(" ", file.read_text("utf-8"))
    code = _TEMPLATE_TEXT.sub(lambda found: " ".join(re.findall(r"\$\{([^{}]*)\}", found[0])), code)
    yield from re.findall(r"[A-Za-z_$][\w$]*", code)


def words_of(name: str) -> set[str]:
    """The words of a name: `desk_of`, `deskOf` and `DeskOf` have the word desk."""
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def offending(names: Iterable[str]) -> list[str]:
    return sorted(
        {name for name in names if words_of(name) & set(WORDS)} - set(ON_DISK_OR_ON_THE_WIRE)
    )


def test_words_of_names() -> None:
    assert words_of("_HTTPDesk_heardOf2") == {"http", "desk", "heard", "of"}
    assert offending(["unfold", "momentum", "heardOf"]) == ["heardOf"]


def test_names_are_made_of_the_fields_words() -> None:
    files = {file: offending(python_names(file)) for file in modules().values()}
    files |= {file: offending(script_names(file)) for file in sorted(PAGE.rglob("*.js"))}
    left = {str(file.relative_to(ROOT)): names for file, names in files.items() if names}
    for path, names in left.items():
        print(f"{len(names):4}  {path}: {', '.join(names)}")
    print(
        Counter(
            word for names in left.values() for name in names for word in words_of(name) & {*WORDS}
        )
    )
    assert not left
