"""Ren'Py's scripts and its files of translations: characters, what they say, menus, code."""

from __future__ import annotations

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.games import GameReader, game_form

_LABELS = regex.compile(
    r"(?m)^[^\S\n]*(?:label\s+[\w.]+\s*(?:\([^()]*\))?|translate\s+\w+\s+\w+):\s*$"
)
_SAYS = regex.compile(r"(?m)^[^\S\n]+(?:\w+(?:\s+\w+)?\s+)?[\"'][^\n]")
_STATEMENTS = (
    "play|stop|queue|voice|sound|image|show|scene|hide|jump|call|menu|with|window|define|default"
    "|return|pause|if|elif|else|style|transform|screen|text|textbutton|add|init|python|label|old"
    "|new|translate|nvl|while|pass|camera|at"
)
_CHARACTER = regex.compile(
    r"(?:define|default|\$)\s+(?P<key>[\w.]+)\s*=\s*Character\(\s*+(?:_\(\s*+)?+"
    r"(?:None|(?P<quote>[\"'])(?P<name>[^\"']*)(?P=quote)).*"
)
_BEGINS = regex.compile(
    rf"(?:(?P<who>(?!(?:{_STATEMENTS})\b)[A-Za-z_]\w*|(?P<mark>[\"'])(?P<name>[^\"']+)(?P=mark))"
    r"(?P<how>(?:\s++(?:@|-?[a-z]\w*))*+)\s++)?+(?:_\(\s*+)?+(?P<quote>\"\"\"|'''|\"|')"
)
_ENDS = {
    quote: regex.compile(rf"(?P<text>(?:[^\\{quote[0]}]|\\.|{inner})*+){quote}(?P<rest>[^\n]*)")
    for quote in ('"', "'", '"""', "'''")
    for inner in [f"{quote[0]}(?!{quote[0] * 2})" if len(quote) > 1 else r"(?!)"]
}
_REST = regex.compile(
    r"\s*+\)?+\s*+(?:\([^()]*\)\s*+)?+(?:(?:with\s++\S++|id\s++(?P<id>\w++)|nointeract)\s*+)*+"
    r"(?:#\s*+(?P<comment>.*))?+"
)
_LABEL = regex.compile(r"label\s+(?P<name>[\w.]+).*:")
_TRANSLATED = regex.compile(r"translate\s+\w+\s+(?P<id>\w+):")
_VOICE = regex.compile(r"voice\s+(?P<quote>[\"'])(?P<file>[^\"']+)(?P=quote)")
_CODE = regex.compile(r"(?:init\b.*python|python|screen|style|transform|image)\b.*:")
_TAG = regex.compile(r"\{rt\}[^{}]*\{/rt\}|(?<!\{)\{(?!\{)[^{}]*\}")
_INSERTED = regex.compile(r",?\s*+(?<!\[)\[(?!\[)[\w.]++[^\[\]]*\]")
_SIGNS = {"\\n": " ", '\\"': '"', "\\'": "'", "%%": "%", "[[": "[", "{{": "{", "\\\\": "\\"}
_SIGN = regex.compile("|".join(map(regex.escape, _SIGNS)))
_NOBODY = frozenset(("narrator", "centered", "vcentered", "nvl_narrator", "adv"))


class _RenpyReader(GameReader):
    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._characters: dict[str, str | None] = dict.fromkeys(_NOBODY)
        self._opened: list[str] = []  # rows of a speech whose quotation marks aren't closed
        self._opened_at = 0
        self._close = ""
        self._code_indent = -1

    def read_row(self, row: str, number: int) -> None:
        if self._opened:
            self._opened.append(row)
            if self._close in row:
                rows, self._opened = self._opened, []
                self._say("\n".join(rows), self._opened_at)
            return
        self.is_code = self.is_code and (not row or self.indent > self._code_indent)
        if not row:
            return
        if self.is_code:
            self.steer(row, number)
        elif row.startswith("#"):
            self.note(row.lstrip("# "), number)
        elif character := _CHARACTER.fullmatch(row):
            self._characters[character["key"]] = character["name"] or None
        elif label := _LABEL.fullmatch(row):
            self.head(label["name"], number)
        elif (begun := _BEGINS.match(row)) and not _ENDS[begun["quote"]].match(row, begun.end()):
            self._opened, self._opened_at, self._close = [row], number, begun["quote"]
        elif not begun:
            self._command(row, number)
        else:
            self._say(row, number)

    def _command(self, row: str, number: int) -> None:
        if _CODE.fullmatch(row):
            self.is_code, self._code_indent = True, self.indent
        if translated := _TRANSLATED.fullmatch(row):
            self.own("id", translated["id"] if translated["id"] != "strings" else "")
        if voice := _VOICE.fullmatch(row):
            self.own("voice", voice["file"])
        else:
            self.steer(row, number)

    def end(self) -> None:
        for idx, row in enumerate(self._opened):
            self.steer(row, self._opened_at + idx)

    def _say(self, written: str, number: int) -> None:
        begun = _BEGINS.match(written)
        assert begun is not None
        ended = _ENDS[begun["quote"]].match(written, begun.end())
        rest = _REST.fullmatch(ended["rest"]) if ended else None
        if not ended or not rest:  # a choice of a menu, with its colon
            for idx, row in enumerate(written.split("\n")):
                self.steer(row, number + idx)
            return
        self.own("id", rest["id"] or "")
        self.steer(f"{begun['who']}{begun['how']}" if begun["how"] else "", number)
        paragraphs = ended["text"].split("\n\n") if len(begun["quote"]) > 1 else [ended["text"]]
        at = number
        for one in paragraphs:
            number, at = at + one.startswith("\n"), at + one.count("\n") + 2
            text = _INSERTED.sub("", shown := _TAG.sub("", one))
            if text != shown:
                self.steer(" ".join(written.split()), number)
            text = " ".join(_SIGN.sub(lambda sign: _SIGNS[sign[0]], text).split())
            if text:
                self._speak(begun["name"], begun["who"] or "narrator", text, number)
        if rest["comment"]:
            self.note(rest["comment"], number)

    def _speak(self, name: str | None, who: str, text: str, number: int) -> None:
        if who == "extend":
            self.glue()
            self.speak(None, text, number)
        else:
            self.speak(name or self._characters.get(who, who), text, number)


FORMS = (game_form("a Ren'Py script", 3.69, _RenpyReader, (":",), (_LABELS, _SAYS)),)
