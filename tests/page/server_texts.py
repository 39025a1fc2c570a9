"""The sentences of the studio that the page translates, read from its source.

A sentence stands here with {0}, {1}… for the values of its f-string. Those that are texts of the
module itself (constants, a choice between two words, what a function returns) are filled in, so
that a translation is a whole sentence. {0*} is a value that may be a sentence, too, such as the
error that stopped something.
"""

from __future__ import annotations

import ast
import itertools
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

STUDIO = Path(__file__).resolve().parents[2] / "studio"

MODULES = (
    "quality/checks.py",
    "quality/voice_drift.py",
    "hearing/fault_planting.py",
    "hearing/judge.py",
    "hearing/patching.py",
    "hearing/word_check.py",
    "dialog/directions.py",
    "dialog/model.py",
    "dialog/planning.py",
    "dialog/reading_limits.py",
    "dialog/script.py",
    "dialog/tags.py",
    "dialog/documents/child.py",
    "dialog/documents/document_text.py",
    "dialog/documents/epub.py",
    "dialog/documents/pdf.py",
    "dialog/documents/reading.py",
    "dialog/documents/ttml.py",
    "dialog/documents/word.py",
    "dialog/documents/workbook.py",
    "dialog/reading/building.py",
    "dialog/reading/captions.py",
    "dialog/formats/dialog_file.py",
    "dialog/reading/encoding.py",
    "dialog/reading/fountain.py",
    "dialog/reading/tables.py",
    "dialog/reading/form.py",
    "dialog/reading/printed_pages.py",
    "dialog/reading/row_kinds.py",
    "dialog/reading/row_marks.py",
    "dialog/reading/row_times.py",
    "dialog/reading/script_rows.py",
    "dialog/reading/forms/chat.py",
    "dialog/reading/games.py",
    "dialog/reading/forms/interview.py",
    "dialog/reading/forms/json_items.py",
    "dialog/reading/json_turns.py",
    "dialog/reading/forms/page_source.py",
    "dialog/reading/forms/prose.py",
    "dialog/reading/forms/substation.py",
    "dialog/reading/forms/timed_rows.py",
    "audio/decode.py",
    "audio/loudness.py",
    "audio/scene_file.py",
    "voices/cast.py",
    "voices/samples.py",
    "backends/engine_cards.py",
    "backends/voice_names.py",
    "services/line_checks.py",
    "services/line_patches.py",
    "services/line_recordings.py",
    "services/sample_listening.py",
    "backends/sherpa/catalogue.toml",
    "hearing/model_catalogue.toml",
)
"""Of which every text is translated; of other modules what people meet in their work."""

_NO_TEXTS = frozenset({"batching", "cli", "setup", "v1"})
"""Packages whose texts no page shows."""

_LISTS = frozenset(
    {
        *("_DENOISED", "_LABELS", "_form_steps", "_list_left_out", "_list_steps"),
        *("name_automatic", "instead_of_sample"),
    }
)
"""Names of which every text is shown, also one that is no sentence."""

_CALLS = {"LoadProgress": (0,), "Param": (1, 6)}
"""What the page shows of a call: the places of the arguments."""

_NESTED = frozenset({"advice", "error", "label", "message", "problem", "reason", "what"})
"""Names of values that are texts of the studio."""

_LEFT_ENGLISH = re.compile(
    r"[A-Z]{2,}_[A-Z]|’s other lines: |From its sample|^The sample “.{3}”$|^Anna,"
)
"""For whoever runs the studio, who knows its variables; a take's exact distance; no sentences."""

_SENTENCE = re.compile(r"[A-Za-z\d“(\0\1].* .* .*[.?:”)\"\1]", re.DOTALL)
_UNSHOWN_CALLS = frozenset({"compile", "debug", "exception", "info", "warning"})
_NAMES = ("attr", "id", "name", "arg")
_VALUE, _NESTED_VALUE = "\0", "\1"
_MOST_FORMS = 12


@cache
def server_texts() -> dict[str, str]:
    """Every text of `MODULES`, with the first that says it."""
    found: dict[str, str] = {}
    for name in MODULES:
        for text in _texts_of(STUDIO / name):
            found.setdefault(text, name)
    return found


@cache
def list_all_texts() -> frozenset[str]:
    """Every text of the studio, which a catalogue may have."""
    paths = [path for path in STUDIO.rglob("*.py") if path.parts[-2] not in _NO_TEXTS]
    return frozenset({text for path in paths for text in _texts_of(path)} | server_texts().keys())


def _texts_of(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return [one["summary"] for one in _tables(tomllib.loads(source))]
    return texts_of_module(source)


def _tables(held: object) -> Iterator[dict[str, str]]:
    """The tables of a TOML file that have a summary."""
    if isinstance(held, dict) and "summary" in held:
        yield held
    for one in held.values() if isinstance(held, dict) else held if isinstance(held, list) else ():
        yield from _tables(one)


def texts_of_module(source: str) -> list[str]:
    """The texts that a module says, in its order."""
    tree = ast.parse(source)
    forms = _Forms(tree)
    found = [
        _number(text if is_listed else _capitalise(text))
        for node, is_listed in _shown_strings(tree)
        for text in forms.of(node)
        if is_listed or _SENTENCE.fullmatch(text.strip())
    ]
    return [text for text in dict.fromkeys(found) if not _LEFT_ENGLISH.search(text)]


def _number(text: str) -> str:
    """Number the values of a text; what ends with a colon is followed by one."""
    text = " ".join(text.split())
    count = itertools.count()
    text = re.sub(r"\0", lambda _: f"{{{next(count)}}}", text.replace(_NESTED_VALUE, "\0*"))
    text = re.sub(r"\}\*", "*}", text)
    return f"{text} {{{next(count)}}}" if text.endswith(":") else text


def _capitalise(text: str) -> str:
    """A message's first letter becomes a capital where it stands alone."""
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+\b", text) else text


def _shown_strings(tree: ast.AST, *, is_listed: bool = False) -> Iterator[tuple[ast.expr, bool]]:
    """Strings that stand for themselves, and whether each is one of a list that is shown."""
    for node in ast.iter_child_nodes(tree):
        if _is_text(node):
            yield node, is_listed
        elif isinstance(node, ast.Call) and _last_name(node.func) in _CALLS:
            for place in _CALLS[_last_name(node.func)]:
                yield from ((one, True) for one in node.args[place : place + 1] if _is_text(one))
        elif not _is_unshown(node):
            named = _last_name(getattr(node, "targets", [getattr(node, "target", node)])[0])
            is_in = is_listed or named in _LISTS
            yield from _shown_strings(node, is_listed=is_in and not isinstance(node, ast.Compare))


def _is_unshown(node: ast.AST) -> bool:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    is_logged = isinstance(node, ast.Call) and _last_name(node.func) in _UNSHOWN_CALLS
    return is_docstring or is_logged or isinstance(node, ast.Assert)


def _is_text(node: ast.AST) -> bool:
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return is_string or isinstance(node, ast.JoinedStr)


def _last_name(node: ast.AST) -> str:
    return next((getattr(node, one) for one in _NAMES if hasattr(node, one)), "")


class _Forms:
    """What the expressions of a module can be as texts, with a mark for each value."""

    def __init__(self, tree: ast.Module) -> None:
        self._returned: dict[str, list[ast.expr]] = {}
        self._assigned: dict[tuple[ast.AST | None, str], list[ast.expr]] = {}
        self._scopes: dict[ast.AST, ast.AST | None] = {}
        self._asked: list[ast.expr] = []
        self._read(tree, None)

    def _read(self, node: ast.AST, scope: ast.AST | None) -> None:
        for child in ast.iter_child_nodes(node):
            self._scopes[child] = scope
            if isinstance(child, ast.Return) and child.value and scope is not None:
                self._returned.setdefault(_last_name(scope), []).append(child.value)
            for name, value in _assignments(child):
                self._assigned.setdefault((scope, name), []).append(value)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            self._read(child, child if is_function else scope)

    def of(self, node: ast.expr) -> list[str]:
        """The forms of a string."""
        if isinstance(node, ast.Constant):
            return [re.sub(r"\{(:[^}]*)?\}", _VALUE, node.value)]
        parts = [self._part(part) for part in node.values]
        if len(list(itertools.product(*parts))) > _MOST_FORMS:
            parts = [one if len(one) == 1 else [_VALUE] for one in parts]
        return ["".join(form) for form in itertools.product(*parts)]

    def _part(self, part: ast.expr) -> list[str]:
        if isinstance(part, ast.Constant):
            return [part.value]
        known = None if part.format_spec else self._texts(part.value)
        return known or [_NESTED_VALUE if _last_name(part.value) in _NESTED else _VALUE]

    def _texts(self, node: ast.expr) -> list[str] | None:
        """The forms of an expression; None where it is a value."""
        if node in self._asked:  # it is made of itself
            return None
        self._asked.append(node)
        is_text = _is_text(node)
        forms = [self.of(node)] if is_text else [self._texts(one) for one in self._sources(node)]
        self._asked.pop()
        if not forms or None in forms:
            return None
        return list(dict.fromkeys(itertools.chain(*forms)))

    def _sources(self, node: ast.expr) -> list[ast.expr]:
        """Where an expression gets its value in this module."""
        match node:
            case ast.IfExp():
                return [node.body, node.orelse]
            case ast.Name():
                own = self._assigned.get((self._scopes.get(node), node.id))
                return own or self._assigned.get((None, node.id), [])
            case ast.Attribute():
                return self._returned.get(node.attr, [])
            case ast.Call():
                return self._returned.get(_last_name(node.func), [])
        return []


def _assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value; of a tuple each its own."""
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Name):
            yield target.id, node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=False)
            yield from ((one.id, value) for one, value in pairs if isinstance(one, ast.Name))
