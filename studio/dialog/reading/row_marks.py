"""Marks inside rows that nobody says: of footnotes, of how a word is read, of sounds.

`汽車《きしゃ》` says the word once, `built in 1840.[1]` no number, `No.[^a]` neither its mark
nor what `[^a]: …` adds below, and `<<SFX door>>` is a cue as `[SFX door]` is.
"""

from __future__ import annotations

import regex

from studio.dialog.directions import CUE_WORDS
from studio.dialog.markup import Row
from studio.dialog.reading.building import ImportNotices

_KANA = r"[\p{Hiragana}\p{Katakana}ー・]"
_RUBY = regex.compile(
    rf"[|｜](?P<base>[^|｜《》\n]{{1,40}})《(?P<gloss>[^《》\n]{{1,60}})》"
    r"|(?P<base>)(?:<rp>[^<>]*</rp>)?<rt\b[^<>]*>(?P<gloss>[^<>]*)</rt>(?:<rp>[^<>]*</rp>)?"
    rf"|(?P<base>[\p{{Han}}々]+)(?:《(?P<gloss>[^《》\n]{{1,60}})》"
    rf"|(?<=.(?P=base))[（(](?P<gloss>{_KANA}{{2,40}})[)）](?=[、。]|{_KANA}|\p{{Han}}))"
)
_FOOTNOTE = regex.compile(r"(?<=[\p{L}\p{N}.,;:!?…\"”»’)])"
    r"(?:\[(?:\d{1,3}|sic|citation needed|\^[^\[\]\s]{1,20})\])+"
    r"|(?<=\p{L}{4}|[.,;:!?…\"”»’)])[¹²³⁰⁴-⁹]+(?![\p{L}\p{N}])|\s\[sic\]")  # fmt: skip
_ADDED = regex.compile(r"\s{0,3}\[\^[^\[\]\s]{1,20}\]:\s+(?P<words>\S.*)")
_PAGE = regex.compile(r"(?:\s*\[(?:[lprs]|cm|er|lr)\])+$")
"""Where the player of a game presses a key."""
_CUE = regex.compile(rf"<{{1,2}}\s?(?P<cue>{CUE_WORDS}\b[^<>]{{0,200}})>{{1,2}}", regex.IGNORECASE)
SIGNS = regex.compile(r"[《<（(\[¹²³⁰⁴-⁹]")
"""One stands in each text that has marks."""
_ONCE = "How a word is read, and marks of footnotes, aren't spoken; they stand between the lines:"


def has_marks(text: str) -> bool:
    """Whether a text has any, as the studio's own hasn't."""
    return any(one.search(text) for one in (_RUBY, _FOOTNOTE, _ADDED, _CUE))


def cut_marks(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """Rows without them; each is a note, or a cue in brackets."""
    return [
        (number, _cut(number, row, remarks) if SIGNS.search(row) else row) for number, row in rows
    ]


def _cut(number: int, row: str, remarks: ImportNotices) -> str:
    if row.startswith("\\"):  # all of it is said
        return row
    if added := _ADDED.fullmatch(row):
        remarks.set_aside(_ONCE, number, added["words"])
        return ""

    def leave(mark: regex.Match[str]) -> str:
        if mark[0].startswith("[^"):  # only tells which of the notes below it is
            return ""
        is_ruby = mark.re is _RUBY
        words = f"{mark['base']}《{mark['gloss']}》" if is_ruby else mark[0].strip()
        remarks.set_aside(_ONCE, number, words)
        return mark["base"] if is_ruby else ""

    row = _CUE.sub(r"[\g<cue>]", _PAGE.sub("", row))
    return _FOOTNOTE.sub(leave, _RUBY.sub(leave, row))
