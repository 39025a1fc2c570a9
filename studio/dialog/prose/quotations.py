"""Finds what is said in prose: between quotation marks, or behind dashes that begin paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import regex

from studio.dialog.prose.words import SayingWords

_ROW = regex.compile(r"[^\n]*\S[^\n]*")
_PARAGRAPH = regex.compile(rf"{_ROW.pattern}(?:\n{_ROW.pattern})*")
_ROW_ENDS = regex.compile(r"[.!?…:;,。！？]['\"’”»“)\]—–-]*\s*$|[\"’”»“」』*—–-]\s*$")
_WHOLE_ROWS = 0.9
"""The share of rows that end as sentences do where each is a paragraph."""
_DASH = regex.compile(r"\s*(?:[—–―]|-{1,2}(?=\s))\s*")
_LEAST_DASHES = 2
_STYLES = (
    ("„", '“”"'), ('“"', '”"'), ("«", "»"), ("»", "«"), ("「『", "」』"),
    ("‘'", "’'"), ("‚", "‘’"),
)  # fmt: skip
"""What opens quotations, and what closes them; the last two may be apostrophes.

“ opens English ones, and closes German ones: of two that find as many the first is taken.
"""
_NESTS = "«»「"
_APOSTROPHE = regex.compile(
    r"['’‘](?:t(?:is|was|were|will|would)|e[mr]|cause|til|bout|(?-i:[a-z]{1,2})|\d\ds?)\b", regex.I
)
_ENDS = regex.compile(r"[,.!?;:…—–，。！？-]['’_*\s]*$")
_BREAKS = frozenset(".,:;!?—–-…。，：！？)”\"’'»」")


@dataclass(frozen=True, slots=True)
class Quotation:
    """Where a quotation stands, with its marks.

    Attributes:
        start: Of its mark.
        end: Behind its mark.
        paragraph: Where its paragraph begins and ends.
        goes_on: Whether the paragraph before leaves it open.
    """

    start: int
    end: int
    paragraph: tuple[int, int]
    goes_on: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end


def find_quotations(text: str, words: SayingWords) -> list[Quotation]:
    """The quotations of a text in order, each within a paragraph.

    They are those in its commonest marks that aren't inside of others, without titles and words
    that are set apart, as in “so-called”, and those behind dashes. A row is a paragraph where each
    ends as sentences do; else empty rows stand between them.
    """
    rows = [found.span() for found in _ROW.finditer(text)]
    ended = [one for one in rows if _ROW_ENDS.search(text, max(one[0], one[1] - 8), one[1])]
    is_whole = len(ended) >= _WHOLE_ROWS * len(rows)
    paragraphs = rows if is_whole else [found.span() for found in _PARAGRAPH.finditer(text)]
    dashed = [span for span in paragraphs if _DASH.match(text, *span)]
    behind = dashed if len(dashed) >= _LEAST_DASHES else []
    others = sorted({*paragraphs} - {*behind}) if behind else paragraphs
    styles = (one for one in _STYLES if any(sign in text for sign in one[0]))
    marked = max(
        (list(_find_marked(text, others, one, words)) for one in styles), key=len, default=[]
    )
    whole = [*marked, *(Quotation(*span, span) for span in behind)]
    # French tells who speaks inside of the marks, too.
    narrated = {*behind} if words.language != "fr" else {one.paragraph for one in whole}
    cut = [
        Quotation(start, end, one.paragraph, one.goes_on and start == one.start)
        for one in whole
        for start, end in (_cut_tags(text, one, words) if one.paragraph in narrated else [one.span])
    ]
    return sorted(cut, key=lambda one: one.start)


def _cut_tags(text: str, said: Quotation, words: SayingWords) -> Iterator[tuple[int, int]]:
    """The parts of a quotation between tags inside of it: `— Oui, dit Jean, je viens.`."""
    tags = [one.span() for one in words.inside.finditer(text, said.start + 1, said.end)]
    starts, ends = [said.start, *(end for _, end in tags)], [*(at for at, _ in tags), said.end]
    for at, end in zip(starts, ends, strict=True):
        if any(map(str.isalnum, text[at:end])):
            yield at, end


def _find_marked(
    text: str, paragraphs: list[tuple[int, int]], style: tuple[str, str], words: SayingWords
) -> Iterator[Quotation]:
    begin = None
    for span in paragraphs:
        goes_on = begin is not None and text[slice(*span)].lstrip()[:1] in style[0]
        begin, depth = None, 0
        for at, opens in _list_marks(text, span, style):
            if begin is None:
                begin, depth = (at, 1) if opens else (None, 0)
            elif opens:
                depth += style[0][0] in _NESTS
            elif (depth := depth - 1) == 0:
                if goes_on or _is_said(text, (begin, at + 1), span, words):
                    yield Quotation(begin, at + 1, span, goes_on)
                begin, goes_on = None, False
        # One that is left open goes on in the next paragraph, or its end was forgotten.
        if begin is not None and (style not in _STYLES[-2:] or not text[span[0] : begin].strip()):
            yield Quotation(begin, span[0] + len(text[slice(*span)].rstrip()), span, goes_on)


def _list_marks(text: str, span: tuple[int, int], style: tuple[str, str]) -> list[tuple[int, bool]]:
    """Marks, with whether each opens; without apostrophes, and inches behind numbers."""
    is_single = style in _STYLES[-2:]
    marks: list[tuple[int, bool, bool]] = []
    for found in regex.finditer(f"[{style[0]}{style[1]}]", text, pos=span[0], endpos=span[1]):
        at, char = found.start(), found[0]
        opens, is_sure = char in style[0], True
        if is_single or char == '"':
            before = text[at - 1] if at > span[0] else " "
            after = text[at + 1] if at + 1 < span[1] else " "
            opens &= not (after.isspace() or before.isalnum() or before in ".,!?…")
            is_inner = _APOSTROPHE.match(text, at) if opens else before.isspace() or after.isalnum()
            if is_single and is_inner:
                continue
            is_sure = opens or not (before.isdigit() or (is_single and before.isalpha()))
        marks.append((at, opens, is_sure))
    # In “the dogs' tails,'” and “6'2" tall,"” the first closes nothing.
    followed = zip(marks, [*marks[1:], (0, True, True)], strict=False)
    return [(at, opens) for (at, opens, is_sure), below in followed if is_sure or below[1]]


def _is_said(
    text: str, span: tuple[int, int], paragraph: tuple[int, int], words: SayingWords
) -> bool:
    """Whether marks hold what somebody says: not a title, or a word that is set apart."""
    inside = text[span[0] + 1 : span[1] - 1].strip(" _*\n")
    if not any(map(str.isalnum, inside)):
        return False
    before = text[max(paragraph[0], span[0] - 40) : span[0]].rstrip("_* \n\t([")
    after = text[span[1] : min(paragraph[1], span[1] + 40)]
    ends = _ENDS.search(inside) is not None
    if not before.strip():
        return ends or not after.lstrip()[:1].islower() or words.says(after)
    if (
        before[-1] in ":："
        or (text[span[0]] in "「『" and before[-1] in "。！？")
        or after[:1] == "と"
        or words.says(after)
        or words.says(" ".join(before.split()[-3:]))
    ):
        return True
    is_long = len(inside.split()) > (2 if before[-1] in _BREAKS else 4)
    return ends and (is_long or (before[-1] in _BREAKS and not inside[0].islower()))
