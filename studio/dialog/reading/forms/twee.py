"""Twee, the text form of Twine's stories: passages, links, macros."""

from __future__ import annotations

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.games import GameReader, game_form

_BEGINS = regex.compile(r"\A\s*+::\s*[^\s\[{]")
_HEAD = regex.compile(r"::(?P<name>[^\[{]++)(?:\[(?P<tags>[^\]]*)\])?\s*+(?:\{.*\})?\s*")
# Not over a further opening: of many without an end, each would be followed to the row's end.
_MACRO = regex.compile(
    r"<<(?:[^<>]++|<(?!<)|>(?!>))*+>>|\(\w++(?:-\w++)*+-?+:[^()]*\)|</?\w[^<>]*>|\$\w+"
)
_LINK = regex.compile(r"\[\[(?:[^\[\]]++|\[(?!\[)|\](?!\]))*+\]\]")
_HOOK = regex.compile(r"^\[(?P<inside>[^\[\]]*)\]$")
_DATA = frozenset({"storydata", "storystylesheet", "storyscript", "userscript"})


class _TweeReader(GameReader):
    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._passage = ""

    def read_row(self, row: str, number: int) -> None:
        if row.startswith("::") and (head := _HEAD.fullmatch(row)):
            name = head["name"].strip()
            self._passage = name.casefold().replace(" ", "")
            tags = set((head["tags"] or "").casefold().split())
            self.is_code = self._passage in _DATA or bool(tags & {"script", "stylesheet"})
            if not self.is_code and self._passage != "storytitle":
                self.head(name, number)
        elif self.is_code:
            self.steer(row, number)
        elif self._passage == "storytitle":
            self.title = self.title or row or None
        else:
            plain = _LINK.sub("", _MACRO.sub("", row)).strip()
            plain = _HOOK.sub(r"\g<inside>", plain)
            if plain != row:
                self.steer(row, number)
            if plain:
                self.say(plain, number)


FORMS = (game_form("a Twee script", 3.65, _TweeReader, ("::",), (_BEGINS,)),)
