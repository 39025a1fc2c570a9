"""The text layer of PDFs, by PDFium: rows as they stand on the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from statistics import median

import pypdfium2

from studio.dialog.documents.document_text import DocumentText, UnreadableDocument

_LINE_GAP = 1.7
_MARK_HEIGHT = 0.8
_NOTE_HEIGHT = 0.9
_PAGE_NUMBER = re.compile(r"[-–— ]*\d{1,4}[-–—. ]*")
_PAGE = "\f"


def read_pdf(data: bytes) -> DocumentText:
    """A PDF's rows as they stand on its pages, with their indents and blank rows."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise UnreadableDocument(
                "“{}” is locked by a password. Save it without one."
            ) from error
        raise
    text = _PAGE.join("\n".join(_lay_out(page.get_textpage())) for page in document)
    if not text.strip():
        raise UnreadableDocument(
            "“{}” holds pictures of text only. Recognise its text first (OCR)."
        )
    return DocumentText(text)


_Part = tuple[float, float, float, float, str]  # bottom, top, left and right in points; words


def _lay_out(page: pypdfium2.PdfTextPage) -> Iterator[str]:
    """A page's rows, each part at its column, without its number and marks of notes."""
    parts: list[_Part] = []
    for number in range(page.count_rects()):
        left, bottom, right, top = page.get_rect(number)
        written = page.get_text_bounded(left, bottom, right, top).replace("\xa0", " ").rstrip()
        if words := written.lstrip():
            left += (right - left) * (len(written) - len(words)) / len(written)
            parts.append((bottom, top, left, right, " ".join(words.split())))
    if not parts:
        return
    width = median((right - left) / len(words) for *_, left, right, words in parts) or 1.0
    height = median(top - bottom for bottom, top, *_ in parts) or 1.0
    margin = min(left for _, _, left, *_ in parts)
    rows = _group_rows(parts, height)
    edges = [
        row for row in (rows[-1], rows[0]) if len(row) == 1 and _PAGE_NUMBER.fullmatch(row[0][4])
    ]
    above = rows[0][0][0]
    for row in rows:
        if row in edges:
            continue
        if above - row[0][0] > _LINE_GAP * height:
            yield ""
        is_note = row[0][4].isdigit() and all(
            one[1] - one[0] < _NOTE_HEIGHT * height for one in row
        )
        above, line = row[0][0], ""
        for bottom, top, left, _, words in row:
            is_mark = line and words.isdigit() and top - bottom < _MARK_HEIGHT * height
            column = max(round((left - margin) / width) - len(line), 1 if line else 0)
            line += "" if is_mark else " " * column + words
        yield f"// {line.lstrip('0123456789. ')}" if is_note else line


def _group_rows(parts: Sequence[_Part], height: float) -> list[list[_Part]]:
    """The parts of each row from left to right; what stands a little higher is of the row, too."""
    rows: list[list[_Part]] = []
    for part in sorted(parts, key=lambda one: (-one[0], one[2])):
        if rows and rows[-1][0][0] - part[0] < height / 2:
            rows[-1].append(part)
        else:
            rows.append([part])
    return [sorted(row, key=lambda one: one[2]) for row in rows]
