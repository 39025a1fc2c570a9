"""OpenDocument's texts."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from studio.dialog.documents.document_text import (
    DAMAGED,
    DocumentText,
    UnreadableDocument,
    read_packed,
    write_note,
    write_row,
    write_table,
)

_ODF = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_TEXT, _TABLE_NS, _OFFICE, _STYLE = (_ODF % name for name in ("text", "table", "office", "style"))


def read_odt(data: bytes) -> DocumentText:
    """OpenDocument's, as `read_docx`."""
    content = fromstring(read_packed(data, "content.xml"))
    body = content.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise UnreadableDocument(DAMAGED)
    styles = content.iter(f"{_STYLE}style")
    titled = {
        one.get(f"{_STYLE}name")
        for one in styles
        if one.get(f"{_STYLE}parent-style-name") == "Title"
    }
    blocks = [one for one in body if one.tag != f"{_TEXT}tracked-changes"]
    for one in blocks:
        if one.get(f"{_TEXT}style-name") in {"Title", *titled}:
            one.tag = f"{_TEXT}h"
    tables = [one for one in blocks if one.tag == f"{_TABLE_NS}table"]
    if tables and not any(_odf_words(one, []).strip() for one in blocks if one not in tables):
        return write_table([row for table in tables for row in _odf_cells(table)])
    return DocumentText("\n".join(row for block in blocks for row in _odf_rows(block)))


def _odf_rows(block: Element) -> Iterator[str]:
    if block.tag == f"{_TABLE_NS}table":
        yield from (one for row in _odf_cells(block) for one in write_row(row))
    elif block.tag in (f"{_TEXT}p", f"{_TEXT}h"):
        notes: list[str] = []
        words = _odf_words(block, notes)
        level = block.get(f"{_TEXT}outline-level", "1") if block.tag == f"{_TEXT}h" else ""
        mark = {"": "", "1": "# "}.get(level, "## ")
        yield from (f"{mark}{row}" if row.strip() else "" for row in words.split("\n"))
        yield from (row for note in notes for row in write_note(note))
    else:  # lists, sections, frames
        for child in block:
            yield from _odf_rows(child)


def _odf_words(part: Element, notes: list[str]) -> str:
    """A part's words, and the notes that it has."""
    name = part.tag.removeprefix(_TEXT)
    if name in ("note", f"{_OFFICE}annotation"):
        inner = part.find(f"{_TEXT}note-body") if name == "note" else part
        said = [
            _odf_words(one, [])
            for one in ([] if inner is None else inner)
            if one.tag.startswith(_TEXT)
        ]
        notes.append(" ".join(said))
        return ""
    given = {"s": " " * min(int(part.get(f"{_TEXT}c", "1")), 100), "tab": "\t", "line-break": "\n"}
    words = [given.get(name, part.text or "")]
    for child in part:
        words += [_odf_words(child, notes), child.tail or ""]
    return "".join(words)


def _odf_cells(table: Element) -> list[list[str]]:
    return [
        [" ".join(_odf_words(cell, []).split()) for cell in row.iter(f"{_TABLE_NS}table-cell")]
        for row in table.iter(f"{_TABLE_NS}table-row")
    ]
