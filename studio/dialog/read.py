"""Dialog files of any of the formats."""

from __future__ import annotations

import codecs
from pathlib import PurePath

import regex

from studio.dialog.items import parse_items
from studio.dialog.model import MAX_SCRIPT_BYTES, ParsedScript
from studio.dialog.script import parse_script
from studio.errors import ScriptError

_ITEM_SUFFIXES = frozenset((".json", ".jsonl", ".ndjson"))
_ITEMS_BEGIN = regex.compile(r"""\s*(?:\[\s*\{\s*"\w*"\s*:|\[\s*\]\s*$|\{)""")


def read_dialog(data: bytes, *, name: str) -> ParsedScript:
    """Read a file as a script, a JSON list or JSON lines, by its suffix or else by its content.

    Args:
        data: The whole file; UTF-8, or UTF-16 with its mark.
        name: The file's name, for its suffix and for messages.

    Raises:
        ScriptError: It is too large, no text, in another encoding, or no dialog.
    """
    if len(data) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"“{name}” has {len(data) / 1e6:.1f} MB; a script has at most "
            f"{MAX_SCRIPT_BYTES // 1_000_000} MB. Divide it into parts."
        )
    text = _decode(data, name)
    if not text.strip():
        raise ScriptError(
            f"“{name}” is empty: it holds no lines. Write at least one, "
            "such as “Anna: Good evening.”"
        )
    is_items = PurePath(name).suffix.lower() in _ITEM_SUFFIXES or _ITEMS_BEGIN.match(text)
    return parse_items(text) if is_items else parse_script(text)


def read_dialog_text(text: str) -> ParsedScript:
    """Read what a person typed or pasted, as `read_dialog` reads a file.

    Raises:
        ScriptError: It is too large, or no dialog.
    """
    return read_dialog(text.encode("utf-8", "surrogatepass"), name="The script")


def _decode(data: bytes, name: str) -> str:
    encoding = _encoding(data)
    if encoding == "utf-8-sig" and b"\0" in data:
        raise _no_text(name)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ScriptError(
            f"“{name}” is not UTF-8 text (the first wrong byte is in line {line}). "
            "Open it in a text editor and save it as UTF-8."
        ) from error
    if "\0" in text:
        raise _no_text(name)
    return text


def _encoding(data: bytes) -> str:
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return "utf-16" if is_utf16 else "utf-8-sig"


def _no_text(name: str) -> ScriptError:
    return ScriptError(
        f"“{name}” is not a text file, so it can't be a dialog. "
        "Save a document as plain text (UTF-8) first."
    )
