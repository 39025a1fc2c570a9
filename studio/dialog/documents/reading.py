"""Documents of other programs, read by libraries in a child process that is bounded.

What a document shows becomes text that the readers of scripts know: a screenplay becomes Fountain,
a sheet a table, subtitles WebVTT, and what a word processor wrote the text that it would save,
with headings and notes marked.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studio.errors import ScriptError
from studio.storage.guarded_child import ProcessLimits, run_guarded

MAX_DOCUMENT_BYTES = 20_000_000
"""Of a document, which may hold pictures beside its text."""

_BOUNDS = ProcessLimits(address_bytes=1_000_000_000, cpu_s=20, file_bytes=40_000_000)
_CHILD = "studio.dialog.documents.child"


_SIGNS = (
    ("pdf", re.compile(rb"\s*%PDF-")),
    ("rtf", re.compile(rb"\s*\{\\rtf")),
    ("fdx", re.compile(rb"\s*<[?!F](?:.*?<)??FinalDraft\b", re.DOTALL)),
    ("ttml", re.compile(rb"\s*<(?:[?!].*?<)??(?:\w+:)?tt\b[^>]*\bns/ttml", re.DOTALL)),
    ("tei", re.compile(rb"\s*<(?:[?!].*?<)??(?:\w+:)?TEI(?:\.2)?[\s>]", re.DOTALL)),
)
_HEAD_BYTES = 20_000
_MEMBERS = {"word/document.xml": "docx", "xl/workbook.xml": "xlsx"}
_MIMES = {
    b"application/vnd.oasis.opendocument.text": "odt",
    b"application/vnd.oasis.opendocument.spreadsheet": "xlsx",
    b"application/epub+zip": "epub",
}


def find_document_kind(data: bytes) -> str | None:
    """The usual suffix of a document by its content, without a dot; None for all else."""
    if data.startswith(b"PK\x03\x04"):
        return _find_packed_kind(data)
    head = data[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")
    return next((kind for kind, sign in _SIGNS if sign.match(head)), None)


def _find_packed_kind(data: bytes) -> str | None:
    """By the member that says so in the file's first bytes, or by the names in its directory."""
    for mime, kind in _MIMES.items():
        if data[30:200].startswith(b"mimetype" + mime):
            return kind
    end = data[-(1 << 18) :]
    return next((kind for member, kind in _MEMBERS.items() if member.encode() in end), None)


def read_document(data: bytes, kind: str, name: str) -> tuple[bytes, str, Sequence[str]]:
    """The text of a document, its name with the text's suffix, and notices of what is left out.

    Args:
        data: The whole file, at most `MAX_DOCUMENT_BYTES`.
        kind: As `find_document_kind` found it.
        name: Its name, for messages.

    Raises:
        ScriptError: It is broken, locked or too large, or has no text.
    """
    if len(data) > MAX_DOCUMENT_BYTES:
        raise ScriptError(
            f"“{name}” has more than {MAX_DOCUMENT_BYTES // 1_000_000} MB. Save it without its "
            "pictures, or divide it into parts."
        )
    with tempfile.TemporaryDirectory(prefix="tableread-document-") as folder:
        result = Path(folder) / "text.json"
        order = {"kind": kind, "result": str(result), "bounds": asdict(_BOUNDS)}
        run_guarded(_CHILD, (json.dumps(order).encode(), b"\n", data), 2 * _BOUNDS.cpu_s)
        try:
            answer: dict[str, Any] = json.loads(result.read_bytes())
        except (OSError, ValueError):
            raise ScriptError(
                f"“{name}” can't be read within the memory and time that a document is given. "
                "Save it as plain text (UTF-8) and import that."
            ) from None
    if why := answer.get("rejected"):
        raise ScriptError(why.replace("{}", name))
    if not answer["text"].strip():
        raise ScriptError(f"“{name}” has no text in it.")
    text = answer["text"].encode(errors="replace")
    return text, f"{name}{answer['suffix']}", answer["notices"]
