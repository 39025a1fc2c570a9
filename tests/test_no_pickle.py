"""Nothing that a file holds is ever executed: no pickle, and no loader that would use one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

STUDIO = Path(__file__).parents[1] / "studio"
MODULES = frozenset({"dill", "cloudpickle", "shelve", "marshal", "joblib"})


def _imported(tree: ast.AST) -> set[str]:
    named = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named.add(node.module.partition(".")[0])
    return named


def _unsafe_calls(tree: ast.AST) -> list[str]:
    """Calls of `pickle`, of `torch.load` without `weights_only`, of `numpy.load` that unpickles."""
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if owner == "pickle":
            found.append(ast.unparse(node))
        options = {one.arg: ast.unparse(one.value) for one in node.keywords}
        if (owner, node.func.attr) == ("torch", "load") and options.get("weights_only") != "True":
            found.append(ast.unparse(node))
        if (owner, node.func.attr) == ("np", "load") and options.get("allow_pickle") == "True":
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", sorted(STUDIO.rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_unpickles(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert _imported(tree).isdisjoint(MODULES)
    assert _unsafe_calls(tree) == []
