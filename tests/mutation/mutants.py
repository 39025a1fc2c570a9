"""The mutants of a package, and a sample of them that a change elsewhere leaves as it is."""

from __future__ import annotations

import ast
import bisect
import difflib
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

SEED = 2026
# Each operator becomes its opposite or its neighbour at a boundary. Others of Cosmic Ray's, such as
# a shift for a sum, fail at once with a type error.
_REPLACED = {
    "ReplaceBinaryOperator": (
        *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul", "Pow_Mul"),
        *("BitOr_BitAnd", "BitAnd_BitOr"),
    ),
    "ReplaceComparisonOperator": (
        *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
        *("Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE", "GtE_Gt", "GtE_Lt"),
    ),
    "ReplaceUnaryOperator": ("Delete_USub", "Delete_Not"),
}
OPERATORS = (
    *(f"core/{kind}_{pair}" for kind, pairs in _REPLACED.items() for pair in pairs),
    *("core/AddNot", "core/ReplaceAndWithOr", "core/ReplaceOrWithAnd"),
    *("core/ReplaceTrueWithFalse", "core/ReplaceFalseWithTrue", "core/NumberReplacer"),
    *("core/ReplaceBreakWithContinue", "core/ReplaceContinueWithBreak"),
    *("core/ExceptionReplacer", "core/RemoveDecorator", "core/ZeroIterationForLoop"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file.

    Attributes:
        path: The file, relative to the repository, with forward slashes.
        function: Names of the classes and functions around it, with dots; empty at the module's
            level.
        operator: Name of Cosmic Ray's operator.
        nth: Which place of this operator in this function, from 0.
        occurrence: The same in the file, as Cosmic Ray counts.
        line: Where it is, from 1.
    """

    path: str
    function: str
    operator: str
    nth: int
    occurrence: int
    line: int

    @property
    def name(self) -> str:
        """What stays when other functions of the file change."""
        operator = self.operator.removeprefix("core/")
        return f"{self.path}::{self.function or 'module'}::{operator}::{self.nth}"

    @property
    def rank(self) -> str:
        """Its place in the sample's order, by its name alone."""
        return hashlib.sha256(f"{SEED} {self.name}".encode()).hexdigest()

    def mutated(self, source: str) -> str:
        """The file with this change."""
        code = mutate_code(source, get_operator(self.operator)(), self.occurrence)
        assert code is not None, self.name
        return code

    def change(self, source: str) -> str:
        """The lines that it changes, before and after."""
        before, after = source.splitlines(), self.mutated(source).splitlines()
        return "\n".join(list(difflib.unified_diff(before, after, n=1, lineterm=""))[2:])


def sample(root: Path, package: str, size: int) -> list[Mutant]:
    """The mutants of a package that rank first, at most one at a place of its source."""
    mutants: dict[tuple[str, tuple[int, int]], Mutant] = {}
    for path in sorted((root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for place, mutant in _mutants(name, path.read_text("utf-8")):
            key = (name, place)
            mutants[key] = min(mutant, mutants.get(key, mutant), key=lambda one: one.rank)
    ranked = sorted(mutants.values(), key=lambda one: one.rank)
    return list(itertools.islice((one for one in ranked if _is_change(root, one)), size))


def _is_change(root: Path, mutant: Mutant) -> bool:
    """Whether it is another program at all: the star of `*names` only looks like a product."""
    source = (root / mutant.path).read_text("utf-8")
    try:
        changed = ast.parse(mutant.mutated(source))
    except SyntaxError:
        return False
    return "Binary" not in mutant.operator or _operators(changed) != _operators(ast.parse(source))


def _operators(tree: ast.AST) -> Counter[type[ast.AST]]:
    return Counter(type(node) for node in ast.walk(tree) if isinstance(node, ast.operator))


def _mutants(path: str, source: str) -> Iterator[tuple[tuple[int, int], Mutant]]:
    places = _Places(source)
    nodes = list(ast_nodes(parso.parse(source)))
    for operator_name in OPERATORS:
        operator = get_operator(operator_name)()
        positions = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        counted: Counter[str] = Counter()
        for occurrence, start in enumerate(positions):
            function = places.function(start[0])
            nth = counted[function]
            counted[function] += 1
            if not places.is_left_out(start):
                yield start, Mutant(path, function, operator_name, nth, occurrence, start[0])


class _Places:
    """What stands where in a module."""

    def __init__(self, source: str) -> None:
        self._functions: list[tuple[int, int, str]] = []
        self._left_out: list[tuple[tuple[int, int], tuple[int, int]]] = []
        self._walk(ast.parse(source), ())
        self._functions.sort()

    def function(self, line: int) -> str:
        """The innermost function or class around a line."""
        until = bisect.bisect(self._functions, (line + 1, 0, ""))
        around = [name for _, end, name in self._functions[:until] if line <= end]
        return around[-1] if around else ""

    def is_left_out(self, start: tuple[int, int]) -> bool:
        return any(begin <= start < end for begin, end in self._left_out)

    def _walk(self, node: ast.AST, names: Sequence[str]) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = (*names, node.name)
            first = min((node.lineno, *(one.lineno for one in node.decorator_list)))
            self._functions.append((first, node.end_lineno or first, ".".join(names)))
        for child in _unchecked(node):
            begin, end = (child.lineno, child.col_offset), (child.end_lineno, child.end_col_offset)
            self._left_out.append((begin, end))
        for child in ast.iter_child_nodes(node):
            self._walk(child, names)


def _unchecked(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of which a change shows nowhere: types, and what keeps a programmer from assigning."""
    for name in ("annotation", "returns"):
        if getattr(node, name, None):
            yield getattr(node, name)
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        yield node
    if isinstance(node, ast.keyword) and node.arg in ("frozen", "slots", "kw_only"):
        yield node
