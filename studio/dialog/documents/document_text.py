"""What a reader of documents gives, and what they share."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import unescape

from studio.storage.zip_members import open_zip

_TAG = re.compile(r"<[^<>]*>")
_BACK_LINK = re.compile(r"<a\b[^<>]*>(?:<[^<>]*>)*[\W\d]*(?:<[^<>]*>)*</a>")

DAMAGED = "“{}” is damaged. Open it where it was made, and save it again."


class UnreadableDocument(Exception):
    """Why a document can't be read; `{}` stands for its name."""


@dataclass(frozen=True, slots=True)
class DocumentText:
    """What a document shows.

    Attributes:
        text: As the reader of the suffix knows it.
        suffix: Of the text file that would hold it; empty for plain text.
        notices: What is left out.
    """

    text: str
    suffix: str = ""
    notices: tuple[str, ...] = ()


def write_table(rows: Sequence[Sequence[str]], notices: tuple[str, ...] = ()) -> DocumentText:
    """Rows of cells as a table of tabs."""
    written = io.StringIO()
    csv.writer(written, delimiter="\t", lineterminator="\n").writerows(rows)
    return DocumentText(written.getvalue(), ".tsv", notices)


def write_row(cells: Sequence[str]) -> list[str]:
    """A row of a table among other text: who speaks, what, and what else there is as a note."""
    return [": ".join(filter(None, cells[:2])), *write_note("; ".join(filter(None, cells[2:])))]


def write_note(words: str) -> list[str]:
    """A note as a row that isn't spoken; none of no words."""
    said = " ".join(words.split())
    return [f"// {said}"] if said else []


def plain_words(html: str) -> str:
    """The words of well-formed HTML."""
    return unescape(_TAG.sub("", html))


def note_words(html: str) -> str:
    """The same of a note, without the link back to its place."""
    return plain_words(_BACK_LINK.sub("", html))


def read_packed(data: bytes, name: str) -> bytes:
    """A member of a packed document."""
    with open_zip(io.BytesIO(data)) as archive:
        return archive.read(name)
