"""Word's documents, by mammoth, and RTF, by striprtf."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape

import mammoth
from striprtf.striprtf import rtf_to_text

from studio.dialog.documents.document_text import (
    DocumentText,
    note_words,
    plain_words,
    write_note,
    write_row,
    write_table,
)

_WORD_STYLES = "comment-reference => sup\np[style-name='Title'] => h1:fresh"
_NOTE_TARGET = re.compile(
    r'<(?P<tag>li|dt) id="(?P<id>[^"]+)">(?P<first>.*?)(?:</li>|</dt>\s*<dd>(?P<words>.*?)</dd>)',
    re.DOTALL,
)
_NOTE_LINK = re.compile(
    r'<sup>(?:<[^<>]*>)*?<a href="#(?P<id>[^"]+)"[^<>]*>[^<>]*</a>(?:</[^<>]*>)*?</sup>'
)
_TABLE = re.compile(r"<table>(?P<rows>.*?)</table>", re.DOTALL)
_HEADING = re.compile(r"<h(?P<level>[1-6])>")
_ROW_END = re.compile(r"</(?:p|h[1-6]|li)>|<br />")


def read_docx(data: bytes) -> DocumentText:
    """Word's: paragraphs as rows; footnotes and comments behind the paragraph that has them."""
    html = mammoth.convert_to_html(
        io.BytesIO(data),
        style_map=_WORD_STYLES,
        ignore_empty_paragraphs=False,
        convert_image=mammoth.images.img_element(lambda _: {}),
    ).value
    notes = {one["id"]: one["words"] or one["first"] for one in _NOTE_TARGET.finditer(html)}
    body = _NOTE_TARGET.sub("", html) if notes else html
    tables = [_list_cells(one["rows"]) for one in _TABLE.finditer(body)]
    if tables and not plain_words(_TABLE.sub("", body)).strip():
        return write_table([row for table in tables for row in table])
    body = _TABLE.sub(lambda one: _write_rows(_list_cells(one["rows"])), body)
    rows = []
    for row in _ROW_END.split(body):
        heading = _HEADING.search(row)
        mark = ("# " if heading["level"] == "1" else "## ") if heading else ""
        words = plain_words(_NOTE_LINK.sub("", row)).strip()
        rows.append(f"{mark}{words}" if words else "")
        for link in _NOTE_LINK.finditer(row):
            rows += write_note(note_words(notes.get(link["id"], "")))
    return DocumentText("\n".join(rows))


def _list_cells(rows: str) -> list[list[str]]:
    return [
        [
            " ".join(plain_words(_ROW_END.sub(" ", _NOTE_LINK.sub("", cell))).split())
            for cell in re.findall(r"<t[dh][^<>]*>(.*?)</t[dh]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", rows, re.DOTALL)
    ]


def _write_rows(rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"<p>{escape(one)}</p>" for row in rows for one in write_row(row))


def read_rtf(data: bytes) -> DocumentText:
    """RTF's; its library knows no headings, and leaves footnotes out."""
    source = data.decode("latin-1")
    left = ("Footnotes of a document in RTF are left out; save it as DOCX or ODT to keep them.",)
    text = rtf_to_text(source, errors="ignore")
    return DocumentText(text, notices=left if "\\footnote" in source else ())
