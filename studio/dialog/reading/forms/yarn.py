"""Yarn Spinner's dialogs: nodes, groups of lines, options, commands, ids."""

from __future__ import annotations

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.games import GameReader, game_form, hide_escapes, show_escapes

_BEGINS = regex.compile(
    r"\A\s*(?:(?:title|tags|colorID|position|tracking|group|when|style)[ \t]*:[^\n]*\n)+"
    r"---[ \t]*(?:\n|$)"
)
_TITLE = regex.compile(r"title\s*:\s*(?P<name>\S.*)")
_HEADER = regex.compile(r"[\w-]+\s*:.*")
# Each ends where the next one begins, and white space is one space, so that time stays linear.
_COMMAND = regex.compile(r"<<(?:(?!<<|>>).)*+>>")
_HASHTAG = regex.compile(r"#([^\s#]+)")
_JUMP = regex.compile(r"\[\[(?:(?P<label>[^\[\]|]*)\|)?[^\[\]|]*\]\]")
_INSERTED = regex.compile(r",?\s*\{\$?[^{}]*\}")
_MARKUP = regex.compile(r"\[/?[a-z_]+(?:[ =][^\[\]]*)?/?\]|\[/\]")
_COMMENT = regex.compile(r"(?:^|\s)//\s?(?P<words>.*)$")


class _YarnReader(GameReader):
    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._in_body = False

    def read_row(self, row: str, number: int) -> None:
        row = " ".join(row.split())
        if row in ("---", "==="):
            self._in_body = row == "---"
        elif not row:
            return
        elif self._in_body:
            self._read_body(row, number)
        elif title := _TITLE.fullmatch(row):
            self.head(title["name"], number)
        elif not _HEADER.fullmatch(row):
            self.steer(row, number)

    def _read_body(self, row: str, number: int) -> None:
        if comment := _COMMENT.search(row):
            self.note(comment["words"], number)
        written, plain = row, _COMMENT.sub("", hide_escapes(row.removeprefix("=>").lstrip()))
        is_known, words = True, plain.split(" ")
        while len(words) > 1 and (tag := _HASHTAG.fullmatch(words[-1])):
            words.pop()
            is_known = self.own(*tag[1].partition(":")[::2]) and is_known
        plain = _MARKUP.sub("", " ".join(words)).strip()
        spoken = _INSERTED.sub("", _JUMP.sub("", _COMMAND.sub("", plain))).strip()
        is_choice = spoken.startswith("->")
        is_named_only = spoken != plain and spoken.endswith(":")
        if is_choice or spoken != plain or not is_known:
            self.steer(written, number)
        if is_choice or is_named_only or not spoken:
            self.forget()
        else:
            self.say(show_escapes(spoken), number)


FORMS = (game_form("a Yarn script", 3.75, _YarnReader, ("---",), (_BEGINS,)),)
