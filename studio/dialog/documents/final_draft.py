"""Final Draft's screenplays."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from studio.dialog.documents.document_text import DocumentText

_FORCED = {"Action": "!", "General": "!", "Shot": ".", "Transition": "> ", "Scene Heading": "."}


def read_final_draft(data: bytes) -> DocumentText:
    """Final Draft's paragraphs as Fountain."""
    root = fromstring(data)
    rows = []
    title = root.find("TitlePage/Content")
    if title is not None and (first := next(filter(None, map(_fdx_words, title)), "")):
        rows += [f"Title: {first}", ""]
    for paragraph in root.findall("Content//Paragraph"):
        words, kind = _fdx_words(paragraph), paragraph.get("Type", "Action")
        if not words:
            continue
        if kind in ("Dialogue", "Parenthetical", "Lyrics"):
            rows.append(words)
        elif kind == "Character":
            rows += ["", f"@{words}"]
        else:
            rows += ["", f"{_FORCED.get(kind, '!')}{words}"]
    return DocumentText("\n".join(rows), ".fountain")


def _fdx_words(paragraph: Element) -> str:
    return " ".join("".join(one.text or "" for one in paragraph.findall("Text")).split())
