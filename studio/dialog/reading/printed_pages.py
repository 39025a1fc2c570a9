"""Takes what printers add to the pages of a screenplay, and Gutenberg to a book, out of its text.

Who copies a screenplay out of a PDF gets the numbers of pages and scenes, `(MORE)` and
`CONTINUED:`, and speeches that a page break cuts in two.
"""

from __future__ import annotations

import regex

from studio.dialog.markup import Row
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.fountain import HIDDEN, cue_name

_SCENE = regex.compile(
    r"[ \t]*(?:(?P<number>\d{1,3}[A-Z]?)[.)]?[ \t]+)?(?P<scene>(?:INT|EXT|EST|I/E)\b[./ ].*?)"
    r"(?:[ \t]+(?P=number)\.?)?[ \t]*"
)
_MORE = regex.compile(r"\(MORE\)", regex.IGNORECASE)
_AGAIN = regex.compile(r"(?P<name>[^()]+?)\s*\(CONT(?:['’]?D|INUED)\.?\)", regex.IGNORECASE)
_PAGE = regex.compile(
    r"(?:page\s)?\d{1,3}\.|page\s\d{1,3}|\d{1,3}|-\s?\d{1,3}\s?-", regex.IGNORECASE
)
_OMITTED = regex.compile(r"\d{1,3}[A-Z]?\s+(?P<omitted>(?:\d\S*\s+)?OMITTED)(?:\s+\d{1,3}[A-Z]?)?")
_REVISED = regex.compile(r"\s{2,}\*+[ \t]*$")
_MARKS = "The stars of revised rows in the margin aren't spoken; they are left out."
_CONTINUED = regex.compile(r"\(?CONTINUED:?\)?(?:\s*\(\d{1,2}\))?(?:\s+\d{1,3}\.?)?")
_NUMBERS = "The numbers of scenes aren't spoken; they are left out:"
_LEFT = (
    "Numbers of pages, and where a page breaks off, aren't spoken; they stand between the lines:"
)


def cut_page_breaks(text: str, remarks: ImportNotices) -> str:
    """A screenplay without what its printed pages add; other text as it is.

    Rows keep their numbers. A notice names what is left out or a note.
    """
    if "INT" not in text and "EXT" not in text and "I/E" not in text:  # as in most texts
        return text
    rows = text.splitlines()
    if not any(map(_SCENE.fullmatch, rows)):
        return text
    marked = [idx for idx, row in enumerate(rows) if _REVISED.search(row)]
    for idx in marked:
        rows[idx] = _REVISED.sub("", rows[idx])
    if marked:
        remarks.add(_MARKS, marked[0] + 1)
    return "\n".join(_Pages(rows, remarks).cut())


class _Pages:
    def __init__(self, rows: list[str], remarks: ImportNotices) -> None:
        self._rows = rows
        self._remarks = remarks

    def cut(self) -> list[str]:
        idx = 0
        while idx < len(self._rows):
            row = self._rows[idx].strip()
            scene = _SCENE.fullmatch(row)
            if scene is not None and scene["number"]:
                self._leave(idx, scene["scene"].strip())
            elif omitted := _OMITTED.fullmatch(row):
                self._leave(idx, omitted["omitted"])
            elif _MORE.fullmatch(row):
                idx = self._join(idx)
            elif (_PAGE.fullmatch(row) and not self._is_said(idx)) or _CONTINUED.fullmatch(row):
                self._leave(idx, "")
            idx += 1
        return self._rows

    def _is_said(self, idx: int) -> bool:
        """Whether a row stands right below a name, whose words it is then."""
        above = self._rows[idx - 1].strip() if idx else ""
        return bool(above) and cue_name(above, has_words=True) is not None

    def _join(self, start: int) -> int:
        """Leave out what parts a speech from its rest on the next page; returns the last row."""
        end = start
        for idx in range(start + 1, len(self._rows)):
            row = self._rows[idx].strip()
            if _AGAIN.fullmatch(row):
                end = idx
            if row and not (_PAGE.fullmatch(row) or _CONTINUED.fullmatch(row)):
                break
        for idx in range(start, end + 1):
            self._leave(idx, HIDDEN)
        return end

    def _leave(self, idx: int, instead: str) -> None:
        if row := " ".join(self._rows[idx].split()):
            remark = self._remarks.add if instead.strip(HIDDEN) else self._remarks.set_aside
            remark(_NUMBERS if instead.strip(HIDDEN) else _LEFT, idx + 1, row)
        self._rows[idx] = instead


_GUTENBERG = regex.compile(
    r"\*\*\* ?(?P<which>START|END) OF TH(?:E|IS) PROJECT GUTENBERG .*", regex.I
)
_PICTURE = "[Illustration"
_ABOUT_BOOK = (
    "What Project Gutenberg says about the book, and its marks of pictures, aren't spoken; they "
    "stand between the lines:"
)


def cut_gutenberg(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """A book without the notices and marks of pictures that Project Gutenberg adds to it."""
    signs = [(idx, row) for idx, (_, row) in enumerate(rows) if row.startswith(("***", _PICTURE))]
    marks = [(idx, mark["which"]) for idx, row in signs if (mark := _GUTENBERG.match(row))]
    if not marks and not any(row.startswith(_PICTURE) for _, row in signs):
        return rows
    start = next((idx + 1 for idx, which in marks if which.upper() == "START"), 0)
    end = next((idx for idx, which in marks if which.upper() == "END" and idx >= start), len(rows))
    book: list[Row] = []
    left: list[Row] = []
    is_picture = False
    for idx, (number, row) in enumerate([*rows, (len(rows) + 1, ".")]):
        is_book = start <= idx < end
        is_picture = is_book and (is_picture or row.startswith(_PICTURE))
        if row and (is_picture or not is_book) and idx < len(rows):
            left.append((number, row))
        elif row and left:
            remarks.set_aside(_ABOUT_BOOK, left[0][0], " ".join(row for _, row in left))
            left = []
        if is_book:
            book.append((number, "" if is_picture else row))
        is_picture = is_picture and not row.endswith("]")
    return book
