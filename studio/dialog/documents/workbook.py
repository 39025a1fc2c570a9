"""Workbooks of Excel and OpenDocument, by calamine."""

from __future__ import annotations

import datetime
import io
from typing import Any

from python_calamine import CalamineWorkbook

from studio.dialog.documents.document_text import DocumentText, write_table


def read_workbook(data: bytes) -> DocumentText:
    """The first sheet with text, and those with the same headings below it."""
    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    rows: list[list[str]] = []
    left_out = []
    for name in book.sheet_names:
        found = [[_cell(one) for one in row] for row in book.get_sheet_by_name(name).to_python()]
        found = [row for row in found if any(row)]
        if not found:
            continue
        if not rows:
            rows = found
        elif found[0] == rows[0]:
            rows += found[1:]
        else:
            left_out.append(f"“{name}”")
    notice = f"Other sheets of the workbook are left out: {', '.join(left_out)}."
    table = write_table(rows)
    return DocumentText(table.text, table.suffix, (notice,) if left_out else ())


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, datetime.timedelta):
        value = f"{value.total_seconds():g}"
    return str(value).strip()
