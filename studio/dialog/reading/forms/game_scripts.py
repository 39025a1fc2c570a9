"""The dialogs of tools for games: Ink, Twee (Twine), Ren'Py and Yarn Spinner.

They branch, and a scene doesn't: what is said is read from the top to the bottom, and a notice
names what only steers the game.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import regex

from studio.dialog.model import UnspokenKind, check_line_length, with_place
from studio.dialog.reading.building import FIRST_SPEAKER, DialogBuilder, ImportNotices
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.lexer import Source, colon_header_of
from studio.dialog.reading_limits import PATTERN_S

STEERS = (
    "Choices, jumps, variables and commands of a game can't be followed; its parts are read one "
    "after another, and these stand between the lines:"
)
_NOTHING = "The game's script holds no lines that are said."


# One name: a row of "=" alone is the line below a title, or a screenplay's page break.
_INK_KNOT = regex.compile(
    r"(?m)^={2,}[ \t]*(?!function\b)\w+[ \t]*(?:\([^()\n]*\))?[ \t]*=*[ \t]*$"
)
# No `\s` before it: from each of many empty lines it would go to the last of them.
_INK_FLOW = regex.compile(
    r"(?m)^[^\S\n]*(?:->\s*[\w.]+\s*$|[*+]\s*\S|VAR\s+\w+\s*=|INCLUDE\s|~\s*\w|-\s*->)"
)
_TWEE = regex.compile(r"\A\s*+::\s*[^\s\[{]")
_YARN = regex.compile(
    r"\A\s*(?:(?:title|tags|colorID|position|tracking|group|when|style)[ \t]*:[^\n]*\n)+"
    r"---[ \t]*(?:\n|$)"
)
_TWEE_HEAD = regex.compile(r"::(?P<name>[^\[{]++)(?:\[(?P<tags>[^\]]*)\])?\s*+(?:\{.*\})?\s*")
_RENPY_LABEL = regex.compile(r"(?m)^[^\S\n]*label\s+\w+\s*(?:\([^()]*\))?:\s*$")
_RENPY_SAID = regex.compile(r"(?m)^[^\S\n]+(?:\w+(?:\s+\w+)?\s+)?\"[^\"\n]*\"")


class _GameReader:
    """Says rows; a row without a name is the narrator's, since games tell what happens so."""

    def __init__(self, remarks: ImportNotices) -> None:
        self.title: str | None = None
        self._remarks = remarks
        self._builder = DialogBuilder(remarks)
        self._is_code = False

    def read(self, source: Source) -> Read:
        for number, row in source.filled:
            with with_place(number):
                check_line_length(0 if self._is_code else len(row))
            self._read(row, number)
        return Read(self._builder.finish(nothing_found=_NOTHING), self.title)

    def _read(self, row: str, number: int) -> None:
        raise NotImplementedError

    def _steer(self, row: str, number: int) -> None:
        self._remarks.set_aside(STEERS, number, row)

    def _note(self, words: str, number: int) -> None:
        self._builder.unspoken(words, UnspokenKind.NOTE, number)

    def _head(self, title: str, number: int) -> None:
        self._builder.unspoken(title.replace("_", " "), UnspokenKind.HEADING, number)

    def _say(self, row: str, number: int) -> None:
        header = colon_header_of(row)
        if header is None:
            self._builder.speech(FIRST_SPEAKER, row, number)
        elif header.text:
            self._builder.speech(header.speaker, header.text, number, header.attributes)
        else:
            self._note(row, number)


class _InkReader(_GameReader):
    _STEERING = regex.compile(
        r"(?:VAR|CONST|LIST|INCLUDE|EXTERNAL|TODO:?)\b.*|~.*|->.*|<-.*|={2,}\s*function\b.*"
    )
    _COMMENT = regex.compile(r"(?:^|(?<!\s)\s++)//\s*(?P<words>.*)$")
    _KNOT = regex.compile(r"={1,3}\s*(?P<name>\w+)\s*(?:\([^()]*\))?\s*=*")
    _CHOICE = regex.compile(r"(?:[*+]\s*)+(?:\(\w+\)\s*)?(?:\{[^{}]*\}\s*)*(?P<text>.*)")
    _GATHER = regex.compile(r"(?:-\s*)+(?!>)(?:\(\w+\)\s*)?(?P<text>.*)")
    _TAG = regex.compile(r"(?<!\s)\s*+#\s*\w[^#]*$")
    _DIVERT = regex.compile(r"(?<!\s)\s*+(?:->|<>).*$")
    _LOGIC = regex.compile(r"\{[^{}]*\}")

    def _read(self, row: str, number: int) -> None:
        if comment := self._COMMENT.search(row):
            self._note(comment["words"], number)
        row = self._COMMENT.sub("", row)
        if not row:
            return
        if row.startswith("#") or self._STEERING.fullmatch(row):
            self._steer(row, number)
        elif knot := self._KNOT.fullmatch(row):
            self._head(knot["name"], number)
        elif choice := self._CHOICE.fullmatch(row):
            self._steer(row, number)
            # What stands before the brackets and behind them is said once it is chosen.
            self._say_plain(regex.sub(r"\[[^\[\]]*\]", "", choice["text"]), number)
        else:
            gather = self._GATHER.fullmatch(row)
            self._say_plain(gather["text"] if gather else row, number)

    def _say_plain(self, row: str, number: int) -> None:
        said = self._DIVERT.sub("", self._TAG.sub("", row))
        if said != row:
            self._steer(row, number)
        plain = self._LOGIC.sub("", said).strip()
        if plain:
            self._say(plain, number)


class _TweeReader(_GameReader):
    # Not over a further opening: of many without an end, each would be followed to the row's end.
    _MACRO = regex.compile(
        r"<<(?:[^<>]++|<(?!<)|>(?!>))*+>>|\(\w++(?:-\w++)*+-?+:[^()]*\)|</?\w[^<>]*>|\$\w+"
    )
    _LINK = regex.compile(r"\[\[(?:[^\[\]]++|\[(?!\[)|\](?!\]))*+\]\]")
    _HOOK = regex.compile(r"^\[(?P<inside>[^\[\]]*)\]$")
    _DATA = frozenset({"storydata", "storystylesheet", "storyscript", "userscript"})

    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._passage = ""

    def _read(self, row: str, number: int) -> None:
        if row.startswith("::") and (head := _TWEE_HEAD.fullmatch(row)):
            self._passage = head["name"].strip()
            tags = set((head["tags"] or "").casefold().split())
            key = self._passage.casefold().replace(" ", "")
            self._is_code = key in self._DATA or bool(tags & {"script", "stylesheet"})
            if not self._is_code and key != "storytitle":
                self._head(self._passage, number)
        elif self._is_code:
            self._steer(row, number)
        elif self._passage.casefold() == "storytitle":
            self.title = self.title or row
        else:
            plain = self._LINK.sub("", self._MACRO.sub("", row)).strip()
            plain = self._HOOK.sub(r"\g<inside>", plain)
            if plain != row:
                self._steer(row, number)
            if plain:
                self._say(plain, number)


_STATEMENTS = (
    "play|stop|queue|voice|sound|image|show|scene|hide|jump|call|menu|with|window|define|default"
    "|return|pause|if|elif|else|style|transform|screen|text|add|init|python|label"
)


class _RenpyReader(_GameReader):
    _CHARACTER = regex.compile(
        r"define\s+(?P<key>\w+)\s*=\s*Character\(\s*_?\(?\s*[\"'](?P<name>[^\"']+)[\"'].*"
    )
    _SAID = regex.compile(
        rf"(?:(?P<key>(?!(?:{_STATEMENTS})\b)[A-Za-z]\w*)(?:\s+[a-z]\w*)*\s+)?"
        r"\"(?P<text>(?:[^\"\\]|\\.)*)\"(?:\s+with\s.*)?"
    )
    _QUOTED = regex.compile(r"\"(?P<name>[^\"]+)\"\s+\"(?P<text>[^\"]*)\"")
    _LABEL = regex.compile(r"label\s+(?P<name>\w+).*:")
    _TAG = regex.compile(r"\{[^{}]*\}")
    _INSERTED = regex.compile(r",?\s*\[\w[\w.!]*\]")

    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._characters: dict[str, str] = {}

    def _read(self, row: str, number: int) -> None:
        if row.startswith("#"):
            self._note(row.lstrip("# "), number)
        elif character := self._CHARACTER.fullmatch(row):
            self._characters[character["key"]] = character["name"]
        elif label := self._LABEL.fullmatch(row):
            self._head(label["name"], number)
        elif said := self._QUOTED.fullmatch(row):
            self._builder.speech(said["name"], said["text"], number)
        elif said := self._SAID.fullmatch(row):
            name = self._characters.get(said["key"] or "", said["key"]) or FIRST_SPEAKER
            text = self._TAG.sub("", said["text"].replace('\\"', '"').replace("\\n", " ")).strip()
            if (plain := self._INSERTED.sub("", text)) != text:
                self._steer(row, number)
                text = plain
            if text:
                self._builder.speech(name, text, number)
        else:
            self._steer(row, number)


class _YarnReader(_GameReader):
    _TITLE = regex.compile(r"title\s*:\s*(?P<name>\S.*)")
    _HEADER = regex.compile(r"[\w-]+\s*:.*")
    # Each ends where the next one begins, and white space is one space, so that time stays linear.
    _COMMAND = regex.compile(r"<<(?:(?!<<|>>).)*+>>")
    _HASHTAGS = regex.compile(r"(?:\s#[\w:.-]+){1,50}$")
    _JUMP = regex.compile(r"\[\[(?:(?P<label>[^\[\]|]*)\|)?[^\[\]|]*\]\]")
    _INSERTED = regex.compile(r",?\s*\{\$?[^{}]*\}")
    _MARKUP = regex.compile(r"\[/?[a-z_]+(?:[ =][^\[\]]*)?/?\]|\[/\]")
    _COMMENT = regex.compile(r"(?:^|\s+)//\s*(?P<words>.*)$")

    # No text file has a NUL; the signs behind a backslash are words.
    _HELD: ClassVar = {f"\\{sign}": f"\0{ord(sign)}\0" for sign in "[]{}#"}

    def __init__(self, remarks: ImportNotices) -> None:
        super().__init__(remarks)
        self._in_body = False

    def _read(self, row: str, number: int) -> None:
        row = " ".join(row.split()).removeprefix("=> ")  # one of a group of lines
        if row in ("---", "==="):
            self._in_body = row == "---"
        elif self._in_body:
            self._read_body(row, number)
        elif title := self._TITLE.fullmatch(row):
            self._head(title["name"], number)
        elif not self._HEADER.fullmatch(row):
            self._steer(row, number)

    def _read_body(self, row: str, number: int) -> None:
        if comment := self._COMMENT.search(row):
            self._note(comment["words"], number)
        written = row
        for escaped, held in self._HELD.items():
            row = row.replace(escaped, held)
        plain = self._HASHTAGS.sub("", self._COMMENT.sub("", row))
        plain = self._MARKUP.sub("", plain).strip()
        spoken = self._INSERTED.sub("", self._JUMP.sub("", self._COMMAND.sub("", plain))).strip()
        is_choice = spoken.startswith("->")
        if is_choice or spoken != plain:
            self._steer(written, number)
        if spoken and not is_choice:
            for escaped, held in self._HELD.items():
                spoken = spoken.replace(held, escaped[1:])
            self._say(spoken, number)


_Reader = Callable[[ImportNotices], _GameReader]


def _explain(
    reader: _Reader, signs: tuple[regex.Pattern[str], ...], source: Source
) -> Explanation | None:
    if not all(sign.search(source.text, timeout=PATTERN_S) for sign in signs):
        return None
    return Explanation(lambda remarks: reader(remarks).read(source))


FORMS = (
    Form("a Yarn script", 3.75, partial(_explain, _YarnReader, (_YARN,)), ("---",)),
    Form(
        "a Ren'Py script",
        3.69,
        partial(_explain, _RenpyReader, (_RENPY_LABEL, _RENPY_SAID)),
        ("label",),
    ),
    Form("a Twee script", 3.65, partial(_explain, _TweeReader, (_TWEE,)), ("::",)),
    Form("an Ink script", 3.61, partial(_explain, _InkReader, (_INK_KNOT, _INK_FLOW)), ("==",)),
)
