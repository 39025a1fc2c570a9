"""Plays in TEI, as DraCor and other libraries of drama keep them."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from studio.dialog.documents.document_text import DocumentText

_ID = "{http://www.w3.org/XML/1998/namespace}id"
_NOTES = frozenset(("castList", "note", "set", "titlePage", "trailer", "epigraph", "docTitle"))
_ENDS = frozenset(("l", "p", "ab", "lb", "seg", "castItem", "role", "roleDesc", "titlePart"))


def read_tei(data: bytes) -> DocumentText:
    """A play as a script: who says what, with stage directions, headings and notes between."""
    root = fromstring(data)
    title = next((_read_words(one) for one in root.iter() if _tag(one) == "title"), "")
    names = {
        one.get(_ID): _read_words(name)
        for one in root.iter()
        if _tag(one) in ("person", "personGrp")
        and (name := next((part for part in one if _tag(part) in ("persName", "name")), one))
        is not one
    }
    text = next((one for one in root.iter() if _tag(one) == "text"), root)
    rows = [f"# {title}"] if title else []
    return DocumentText("\n".join([*rows, *_read_parts(text, names)]), ".txt")


def _read_parts(part: Element, names: dict[str | None, str]) -> Iterator[str]:
    for child in part:
        tag, words = _tag(child), " ".join(_read_words(child).split())
        if tag == "sp":
            yield from _read_speech(child, names)
        elif tag == "head" and words:
            yield f"## {words}"
        elif tag == "stage" and words:
            yield f"#> {words}"
        elif (tag in _NOTES or tag in _ENDS) and words:
            yield f"// {words}"
        elif tag != "speaker":
            yield from _read_parts(child, names)


def _read_speech(speech: Element, names: dict[str | None, str]) -> Iterator[str]:
    """A speech in one row; the words of those who speak together have the name that is printed."""
    printed = next((_read_words(one) for one in speech if _tag(one) == "speaker"), "").strip(" .:")
    who = speech.get("who", "").split()
    name = names.get(who[0].removeprefix("#"), "") if len(who) == 1 else ""
    spoken = [_say(one) for one in speech if _tag(one) != "speaker"]
    words = " ".join(" ".join(spoken).split())
    name = " ".join((name or printed).translate(_NO_NAME).split())
    if words:
        yield f"{name}: {words}" if name else f"// {words}"
    notes = (_read_words(one) for one in speech.iter() if _tag(one) == "note")
    yield from (f"// {' '.join(note.split())}" for note in notes)


_NO_NAME = str.maketrans("[]|:", "()  ")


def _say(part: Element) -> str:
    """What is said in a part of a speech, with its stage directions in brackets."""
    tag = _tag(part)
    if tag == "note":
        return ""
    if tag == "stage":
        return f" ({' '.join(_read_words(part).split()).strip('()[]')}) "
    inside = (part.text or "") + "".join(_say(child) + (child.tail or "") for child in part)
    return f"{inside} " if tag in _ENDS else inside


def _read_words(part: Element) -> str:
    inside = (part.text or "") + "".join(_read_words(one) + (one.tail or "") for one in part)
    return f"{inside} " if _tag(part) in _ENDS else inside


def _tag(part: Element) -> str:
    return part.tag.rpartition("}")[2] if isinstance(part.tag, str) else ""
