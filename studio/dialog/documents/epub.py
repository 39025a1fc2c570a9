"""Books in EPUB."""

from __future__ import annotations

import posixpath
import re
from html import escape
from urllib.parse import unquote

from defusedxml.ElementTree import fromstring

from studio.dialog.documents.document_text import (
    DocumentText,
    UnreadableDocument,
    note_words,
    read_packed,
    write_note,
)

_NOTE = re.compile(
    r"<(?P<tag>aside|section|div|li|p)\b[^<>]*epub:type=[\"'][^\"']*(?:foot|end|rear)note\b[^<>]*>(?P<words>.*?)</(?P=tag)>",
    re.DOTALL,
)
_NOTE_LINK = re.compile(r"<a\b[^<>]*epub:type=[\"'][^\"']*noteref[^<>]*>.*?</a>", re.DOTALL)
_BEGINNING = re.compile(r"\A[\ufeff\s]*(?:<\?xml[^<>]*>\s*)?")  # only a file's may be there
_NOT_READ = re.compile(r"\b(?:nav|cover)\b")


def read_epub(data: bytes) -> DocumentText:
    """An EPUB's chapters in reading order as one web page; notes are kept as such."""
    if b"META-INF/encryption.xml" in data and b"rights.xml" in data:
        raise UnreadableDocument("“{}” is protected from copying. Choose one that isn't.")
    container = fromstring(read_packed(data, "META-INF/container.xml"))
    path = next(
        (one.get("full-path", "") for one in container.iter() if one.tag.endswith("}rootfile")), ""
    )
    package = fromstring(read_packed(data, path))
    items = {one.get("id"): one for one in package.iter() if one.tag.endswith("}item")}
    spine = [items.get(one.get("idref")) for one in package.iter() if one.tag.endswith("}itemref")]
    title = next((one.text or "" for one in package.iter() if one.tag.endswith("}title")), "")
    shown_title, pages = escape(" ".join(title.split())), []
    for item in spine:
        if item is None or _NOT_READ.search(item.get("properties", "")):
            continue
        member = posixpath.normpath(
            posixpath.join(posixpath.dirname(path), unquote(item.get("href", "")))
        )
        page = read_packed(data, member).decode("utf-8", "replace")
        pages.append(_BEGINNING.sub("", _NOTE_LINK.sub("", _NOTE.sub(_mark_note, page))))
    if shown_title and not any(f">{shown_title}</h" in page for page in pages):
        pages.insert(0, f"<h1>{shown_title}</h1>")
    return DocumentText("\n".join(pages))


def _mark_note(found: re.Match[str]) -> str:
    return f"<p>{escape(''.join(write_note(note_words(found['words']))))}</p>"
