"""Ink scripts: knots, choices, gathers, conditions, glue and tags."""

from __future__ import annotations

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.games import GameReader, game_form, hide_escapes, show_escapes

# One name: a row of "=" alone is the line below a title, or a screenplay's page break.
_KNOTS = regex.compile(r"(?m)^={2,}[ \t]*(?!function\b)\w+[ \t]*(?:\([^()\n]*\))?[ \t]*=*[ \t]*$")
# No `\s` before it: from each of many empty lines it would go to the last of them.
_FLOW = regex.compile(
    r"(?m)^[^\S\n]*(?:->\s*[\w.]+\s*$|[*+]\s*\S|VAR\s+\w+\s*=|INCLUDE\s|~\s*\w|-\s*->)"
)
_STEERING = regex.compile(
    r"(?:VAR|CONST|LIST|INCLUDE|EXTERNAL|TODO:?)\b.*|~.*|->.*|<-.*|={2,}\s*function\b.*|#.*"
)
_COMMENT = regex.compile(r"(?<!\S)//\s*(?P<words>.*)$")
_KNOT = regex.compile(r"={1,3}\s*(?P<name>\w+)\s*(?:\([^()]*\))?\s*=*")
_CHOICE = regex.compile(r"(?:[*+]\s*)++(?:\(\w+\)\s*|\{[^{}]*\}\s*)*+(?P<text>.*)")
_GATHER = regex.compile(r"(?:-\s*)++(?!>)(?:\(\w+\)\s*)?(?P<text>.*)")
_TAGS = regex.compile(r"(?<!\S)#.*$")
_TAG = regex.compile(r"#\s*(?P<key>\w+)\s*:\s*(?P<value>[^#]*)")
_DIVERT = regex.compile(r"(?<!\S)(?:->|<-).*$")
_SUPPRESSED = regex.compile(r"\[[^\[\]]*\]")
_LOGIC = regex.compile(r"\{(?P<inside>[^{}]*)\}")
_DEEPEST = 4
_BLOCK = regex.compile(
    r"\{\s*(?:(?P<how>(?:stopping|cycle|shuffle|once)[\s\w]*|[^:{}|]*):)?(?P<text>.*)"
)
_SEQUENCES = ("stopping", "cycle", "shuffle", "once")
_CASE = regex.compile(r"-\s*+(?!>)[^:]*:(?P<text>.*)")


class _InkReader(GameReader):
    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._blocks: list[bool] = []  # whether the alternatives of each are a sequence
        self._in_comment = False

    def read_row(self, row: str, number: int) -> None:
        row = hide_escapes(row)
        if self._in_comment or row.startswith("/*"):
            self.note(row.strip("/* "), number)
            self._in_comment = "*/" not in row
            return
        if comment := _COMMENT.search(row):
            self.note(show_escapes(comment["words"]), number)
            row = row[: comment.start()].rstrip()
        if not row:
            return
        if _STEERING.fullmatch(row):
            self.steer(show_escapes(row), number)
        elif knot := _KNOT.fullmatch(row):
            self.head(knot["name"], number)
        elif row.startswith("{") and row.count("{") > row.count("}"):
            block = _BLOCK.fullmatch(row)
            self._blocks.append(bool(block and (block["how"] or "").startswith(_SEQUENCES)))
            self._say_part(row, block["text"] if block else "", number)
        elif row.startswith("}") and self._blocks:
            self._blocks.pop()
            self._say_part(row, row[1:], number)
        elif self._blocks and not self._blocks[-1] and (case := _CASE.fullmatch(row)):
            self._say_part(row, case["text"], number)
        elif choice := _CHOICE.fullmatch(row):
            self.unglue()
            # What stands before the brackets and behind them is said once it is chosen.
            self._say_part(row, _SUPPRESSED.sub("", choice["text"]), number)
        else:
            gather = _GATHER.fullmatch(row)
            self._say_plain(gather["text"] if gather else row, number, row)

    def _say_part(self, row: str, text: str, number: int) -> None:
        self.steer(show_escapes(row), number)
        self._say_plain(text, number, "")

    def _say_plain(self, row: str, number: int, written: str) -> None:
        """Say what stands before tags and jumps; `written` is a row that isn't a note so far."""
        tags = _TAGS.search(row)
        said = row[: tags.start()] if tags else row
        for tag in _TAG.finditer(tags[0] if tags else ""):
            self.own(tag["key"], tag["value"].strip())
        said = _DIVERT.sub("", said).strip()
        if (written and said != row.strip()) or "<>" in said:
            self.steer(show_escapes(written), number)
            written = ""
        if said.startswith("<>"):
            self.glue()
        alone = _LOGIC.fullmatch(said)
        whole = _alternatives(alone["inside"]) if alone else [said]
        if "{" in said:
            self.steer(show_escapes(written), number)
        for one in whole:
            plain = _choose(one).replace("<>", " ").strip()
            if plain:
                self.say(show_escapes(plain), number, as_written=show_escapes(row))
        if said.endswith("<>"):
            self.glue()


def _choose(row: str) -> str:
    """A row with the first of all alternatives; variables are left out."""
    for _ in range(_DEEPEST if "{" in row else 0):
        row = _LOGIC.sub(lambda found: _alternatives(found["inside"])[0], row)
    return " ".join(row.split())


def _alternatives(inside: str) -> list[str]:
    """What braces may show: `seen: this|that`, `&one|two`; nothing of a variable."""
    condition, is_asked, shown = inside.partition(":")
    if "|" in condition or not is_asked:
        return inside.lstrip("&!~ ").split("|") if "|" in inside else [""]
    return shown.split("|")


FORMS = (game_form("an Ink script", 3.61, _InkReader, ("==",), (_KNOTS, _FLOW)),)
