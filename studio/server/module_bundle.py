"""Bundles the page's modules into one script, so that a slow link delays the page once only.

A browser opens six connections to a host, where the page's modules queue with those of Gradio: 57
files take ten round trips. In the bundle every module is a function that returns its exports,
placed after the modules that it imports. The modules keep to a part of the language (one import a
line, exports of declarations, no circular import), which a test checks.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

_IMPORT = re.compile(
    r'^import (?:\{ (?P<names>[^}]+) \}|\* as (?P<space>\w+)) from "(?P<path>[^"]+)";$',
    re.MULTILINE,
)
_EXPORT = re.compile(
    r"^export (?=(?:async )?(?:function\*?|class|const) (?P<name>\w+))", re.MULTILINE
)
_BEGINNING = re.compile(r"^const \$\w+ = \(\(\) => \{ // (?P<path>\S+)$", re.MULTILINE)
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@dataclass(frozen=True, slots=True)
class ModuleBundle:
    """Modules joined into one script.

    Attributes:
        code: The script; each line of a module is one line of it.
        source_map: JSON that maps it to the modules, for the browser's developer tools.
    """

    code: str
    source_map: str


def bundle_modules(sources: Mapping[str, str], entry: str, *, map_name: str) -> ModuleBundle:
    """Join a module with everything that it imports.

    Args:
        sources: Code by its path below the page's folder, such as "core/dom.js".
        entry: The path of the module that imports the others.
        map_name: The source map's URL, relative to the bundle.

    Raises:
        ValueError: A module imports a missing one, or imports itself through others.
    """
    lines: list[str] = []
    origins: list[tuple[int, int] | None] = []
    order = _ordered(sources, entry)
    for number, path in enumerate(order):
        body = _as_function_body(sources[path], path).split("\n")
        exported = ", ".join(match["name"] for match in _EXPORT.finditer(sources[path]))
        lines += [f"const {_variable(path)} = (() => {{ // {path}", *body]
        lines += [f"return {{ {exported} }};", "})();"]
        origins += [None, *((number, line) for line in range(len(body))), None, None]
    code = "\n".join((*lines, f"//# sourceMappingURL={map_name}", ""))
    return ModuleBundle(code, _source_map(sources, order, origins))


def locate_modules(code: str) -> list[tuple[int, str]]:
    """Find where each module of a bundle begins, for tools that count coverage by offset.

    Returns:
        Offset and path, in order.
    """
    return [(match.start(), match["path"]) for match in _BEGINNING.finditer(code)]


def _ordered(sources: Mapping[str, str], entry: str) -> list[str]:
    """The modules, each after those that it imports."""
    done: dict[str, bool] = {}

    def visit(path: str, importer: str) -> None:
        if path not in sources:
            raise ValueError(f"{importer} imports {path}, which isn't there.")
        if not done.setdefault(path, False):
            for match in _IMPORT.finditer(sources[path]):
                imported = _resolve(match["path"], path)
                if done.get(imported) is False:
                    raise ValueError(f"{path} and {imported} import each other.")
                visit(imported, path)
            done.pop(path)
            done[path] = True

    visit(entry, "The page")
    return list(done)


def _resolve(path: str, importer: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def _variable(path: str) -> str:
    return "$" + re.sub(r"\W", "_", path.removesuffix(".js"))


def _as_function_body(source: str, path: str) -> str:
    def imported(match: re.Match[str]) -> str:
        what = match["space"] or f"{{ {match['names']} }}"
        return f"const {what} = {_variable(_resolve(match['path'], path))};"

    return _EXPORT.sub("", _IMPORT.sub(imported, source.rstrip("\n")))


def _source_map(
    sources: Mapping[str, str], order: list[str], origins: list[tuple[int, int] | None]
) -> str:
    """A source map, revision 3: the origin of each line, as differences to the line before."""
    at_source = at_line = 0
    mappings = []
    for origin in origins:
        if origin is None:
            mappings.append("")
            continue
        source, line = origin
        mappings.append("".join(map(_vlq, (0, source - at_source, line - at_line, 0))))
        at_source, at_line = source, line
    content = [sources[path] for path in order]
    record = {"version": 3, "sources": order, "sourcesContent": content, "names": []}
    return json.dumps(record | {"mappings": ";".join(mappings)})


def _vlq(number: int) -> str:
    """A number as a base-64 VLQ: five bits a digit, the sign in the lowest bit."""
    rest = (-number << 1) | 1 if number < 0 else number << 1
    digits = ""
    while True:
        rest, digit = rest >> 5, rest & 31
        digits += _BASE64[digit | 32 if rest else digit]
        if not rest:
            return digits
