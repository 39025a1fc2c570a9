"""Writes the parts of the documentation that the code knows better: `python docs/generate.py`.

They stand between `<!-- generated: NAME -->` and `<!-- end -->`. Options, variables and addresses
are described in the code: in the parser, in the docstrings of `Settings`, and in the bodies and
routes of `/v1`. A test fails while a page isn't what this script would write.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bench_options import add_bench_options  # noqa: E402
from studio.audio.formats import FILE_FORMATS  # noqa: E402
from studio.cli.arguments import build_parser  # noqa: E402
from studio.server.v1.speech_api import speech_api  # noqa: E402
from studio.settings import Settings  # noqa: E402
from studio.setup.commands import COMMANDS, DEVELOPER_COMMANDS  # noqa: E402

_UNSET = "not set"


def settings_table() -> str:
    """Every variable of `Settings`, in its order."""
    return table(
        ("variable", "default", "meaning"),
        (
            (
                f"`{field.validation_alias}`",
                _default(field.default) if field.default_factory is None else _UNSET,
                _one_line(field.description),
            )
            for field in Settings.model_fields.values()
        ),
    )


def _default(value: object) -> str:
    if value in {None, (), "", frozenset()}:
        return _UNSET
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value}`"


def formats_table() -> str:
    """The formats of sound that a scene can be saved in."""
    return table(
        ("format", "suffix", "usual bit rate"),
        (
            (
                one.encoding.title,
                f"`.{one}`",
                f"{one.encoding.kbps} kbit/s" if one.encoding.kbps else "loses nothing",
            )
            for one in FILE_FORMATS
        ),
    )


def commands_table() -> str:
    """The commands of the launcher, and whether the package has them too."""
    only_launcher = DEVELOPER_COMMANDS | {"bench"}  # the package has no benchmarks
    return table(
        ("command", "what it does", "`launch.py`", "`tableread`"),
        (
            (f"`{name}`", what, "yes", "no" if name in only_launcher else "yes")
            for name, what in COMMANDS.items()
        ),
    )


def options() -> str:
    """The options of every command that the studio itself runs."""
    (commands,) = (
        action
        for action in build_parser(add_bench_options=add_bench_options)._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    helps = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    return "\n\n".join(
        _command(name, helps[name], parser) for name, parser in commands.choices.items()
    )


def _command(name: str, what: str, parser: argparse.ArgumentParser) -> str:
    head = f"### Options of `{name}`\n\n{what[:1].upper()}{what[1:]}."
    rows = [action for action in parser._actions if action.dest != "help"]
    if not rows:
        return f"{head} It has no options."
    return f"{head}\n\n" + table(
        ("option", "meaning"), ((f"`{_form(row)}`", _meaning(row)) for row in rows)
    )


def _form(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if not action.option_strings:
        return metavar
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    shown = action.metavar or "|".join(map(str, action.choices or [metavar]))
    return f"{names} {shown}"


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "") % {"default": action.default}
    if not action.option_strings and action.choices:
        text += ": " + ", ".join(f"`{choice}`" for choice in action.choices)
    return text


def _document() -> dict[str, Any]:
    """The document that is served at /v1/openapi.json; no request comes, so no studio is asked."""

    def no_studio(_: object) -> Any:
        raise AssertionError("nothing is served here")

    return speech_api(no_studio, guard=lambda: None).openapi()


def addresses_table(document: dict[str, Any]) -> str:
    """The addresses of `/v1`."""
    own = ("`GET /v1/openapi.json`", "All of this as an OpenAPI document.")
    return table(("address", "what it does"), [*_addresses(document), own])


def _addresses(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            asked = "&".join(
                f"{parameter['name']}="
                for parameter in operation.get("parameters", ())
                if parameter["in"] == "query"
            )
            address = f"{method.upper()} /v1{path}{'?' if asked else ''}{asked}"
            yield f"`{address}`", _one_line(operation["description"].partition("\n\n")[0])


def body_table(document: dict[str, Any], name: str) -> str:
    """The fields of a request's body."""
    schemas = document["components"]["schemas"]
    schema = schemas[name]
    wanted = schema.get("required", ())
    return table(
        ("field", "values", "default", "meaning"),
        (
            (
                f"`{field}`",
                _values(values, schemas),
                "required" if field in wanted else _default(values.get("default")),
                _one_line(values.get("description")),
            )
            for field, values in schema["properties"].items()
        ),
    )


def _values(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """What a JSON schema lets through, in words."""
    if "$ref" in schema:
        return _values(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        kinds = (_values(one, schemas) for one in schema["anyOf"] if one.get("type") != "null")
        return " or ".join(kinds)
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema["type"]
    if kind == "object" and "properties" in schema:
        return "object of " + ", ".join(f"`{name}`" for name in schema["properties"])
    if kind == "array":
        items = _values(schema["items"], schemas).replace("object", "objects", 1)
        return f"list of {items}{_bounds(schema)}"
    return {"string": "text", "boolean": "`true`, `false`"}.get(kind, kind) + _bounds(schema)


def _bounds(schema: dict[str, Any]) -> str:
    for least, most, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " entries"),
    ):
        high = schema.get(most)
        if high is None or high > 1e15:  # a seed's bound says nothing to a reader
            continue
        low = schema.get(least)
        between = f"{low:g} to {high:,g}" if low is not None else f"at most {high:,}"
        return f", {between}{unit}"
    return ""


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in (head, *rows)]
    rule = "|".join("---" for _ in head)
    return "\n".join([f"| {lines[0]} |", f"|{rule}|", *(f"| {line} |" for line in lines[1:])])


def pages() -> dict[Path, dict[str, Callable[[], str]]]:
    """The generated blocks of each page by their names."""
    document = _document()
    docs = ROOT / "docs"
    return {
        docs / "guide" / "files.md": {"formats": formats_table},
        docs / "operate" / "configuration.md": {"settings": settings_table},
        docs / "reference" / "cli.md": {"commands": commands_table, "options": options},
        docs / "reference" / "http-api.md": {
            "v1": lambda: addresses_table(document),
            "speech": lambda: body_table(document, "SpeechBody"),
            "dialog": lambda: body_table(document, "DialogBody"),
        },
    }


def written(text: str, blocks: dict[str, Callable[[], str]]) -> str:
    """A page with its blocks as the code has them now.

    Raises:
        ValueError: A block stands there never or twice.
    """
    for name, block in blocks.items():
        pattern = rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)"
        content = block()
        text, count = re.subn(
            pattern,
            lambda found, content=content: f"{found[1]}\n{content}\n\n{found[2]}",
            text,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"the block '{name}' stands there {count} times, not once")
    return text


def main() -> None:
    """Write all blocks."""
    for path, blocks in pages().items():
        path.write_text(written(path.read_text("utf-8"), blocks), "utf-8")


if __name__ == "__main__":
    main()
