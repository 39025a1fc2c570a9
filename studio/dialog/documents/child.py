"""Reads one document in a process of its own, which `reading` starts and bounds."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import defusedxml
from defusedxml.common import DefusedXmlException

from studio.dialog.documents.document_text import DAMAGED, UnreadableDocument
from studio.errors import ScriptError
from studio.storage.guarded_child import ProcessLimits, apply_limits
from studio.storage.zip_members import open_zip

_READERS: Mapping[str, tuple[str, str]] = {
    "docx": ("word", "read_docx"),
    "rtf": ("word", "read_rtf"),
    "odt": ("open_document", "read_odt"),
    "epub": ("epub", "read_epub"),
    "pdf": ("pdf", "read_pdf"),
    "fdx": ("final_draft", "read_final_draft"),
    "xlsx": ("workbook", "read_workbook"),
    "ttml": ("ttml", "read_ttml"),
    "tei": ("tei", "read_tei"),
}
"""Module and function; each module imports the library that it needs."""

_MOST_MEMBERS = 20_000
_MOST_UNPACKED_BYTES = 200_000_000
_TOO_LARGE = "“{}” is too large once it is unpacked. Divide it into parts."
_ENTITIES = (
    "“{}” defines XML entities, which could fill the memory. Save it again where it was made."
)


def _run_child() -> None:
    """Read a document from standard input, and write what it shows where the order says."""
    order = json.loads(sys.stdin.buffer.readline())
    apply_limits(ProcessLimits(**order["bounds"]))
    defusedxml.defuse_stdlib()  # for libraries that parse XML themselves
    answer = _read(sys.stdin.buffer.read(), order["kind"])
    Path(order["result"]).write_text(json.dumps(answer), encoding="utf-8")


def _read(data: bytes, kind: str) -> dict[str, Any]:
    module, reader = _READERS[kind]
    try:
        if data.startswith(b"PK"):
            _check_members(data)
        read = getattr(import_module(f"studio.dialog.documents.{module}"), reader)
        return asdict(read(data))
    except UnreadableDocument as error:
        return {"rejected": str(error)}
    except ScriptError as error:  # of a chapter
        return {"rejected": str(error)}
    except DefusedXmlException:
        return {"rejected": _ENTITIES}
    except MemoryError:
        return {"rejected": _TOO_LARGE}
    except ImportError:
        raise
    except Exception:  # noqa: BLE001 - whatever a library raises at a damaged file
        return {"rejected": DAMAGED}


def _check_members(data: bytes) -> None:
    with open_zip(io.BytesIO(data)) as archive:
        members = archive.infolist()
    if len(members) > _MOST_MEMBERS or sum(one.file_size for one in members) > _MOST_UNPACKED_BYTES:
        raise UnreadableDocument(_TOO_LARGE)
    if any(one.flag_bits & 1 for one in members):
        raise UnreadableDocument("“{}” is locked by a password. Save it without one.")


if __name__ == "__main__":
    _run_child()
