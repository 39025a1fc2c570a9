"""Reads and writes screenplays in Fountain 1.1 (fountain.io/syntax).

The parser is our own: of those on PyPI, fountain-py 0.3.0 takes a minute for a line of 50,000 `[[`,
fails on one of 1,000 `/*` and takes no capitals beyond A to Z for a name; screenplain 0.12.0 and
jouvence 0.4.2 have no line numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from studio.dialog.attributes import (
    Attributes,
    parse_attributes,
    quote,
    read_audio_path,
    write_attributes,
    write_audio_path,
)
from studio.dialog.directions import write_direction
from studio.dialog.model import (
    MAX_NAME_CHARS,
    Audio,
    Dialog,
    Line,
    ParsedScript,
    Silence,
    Speech,
    Unspoken,
    UnspokenKind,
    clean_name,
    name_key,
    paragraph,
    with_place,
)
from studio.dialog.planning import DUAL
from studio.dialog.reading.building import NOT_SPOKEN, DialogBuilder, ImportNotices
from studio.dialog.reading_limits import Budget, Cost
from studio.dialog.script import is_said_so
from studio.dialog.tags import DEFAULT_PAUSE_S, SOUND_TAGS, leading_pauses, sound_name, write_pause
from studio.errors import NameRejected, ScriptError

_SIGNS = r"\*_[]/()~!>@.#=^"
_ANY_SIGN = regex.compile(rf"[{regex.escape(_SIGNS)}]")
# A NUL and a letter replace an escape while emphasis is removed; no text file contains a NUL. The
# backslash comes first, so that of a run of them each second one is literal.
_HELD = {f"\\{sign}": f"\0{chr(ord(sign) + 0x100)}" for sign in _SIGNS}
_STARS = regex.compile(r"(?<star>\*{1,3})(?=\S)(?<inside>[^*]+)(?<=\S)(?P=star)")
_UNDERLINE = regex.compile(r"(?<!\w)_(?=\S)(?<inside>[^_]+)(?<=\S)_(?!\w)")
_DEEPEST = 3
_MARKS, _NAME_MARKS = r"\*_", r"\*_^("
_NOTE_MARKS = regex.compile(r"\[{2,}")


def plain(marked: str) -> str:
    """Remove emphasis, and make escaped signs literal."""
    held = marked
    # Replaced sign by sign, as a line may be nothing but signs: a pattern takes ten times as long.
    for escaped, sign in _HELD.items() if "\\" in marked else ():
        held = held.replace(escaped, sign)
    for _ in range(_DEEPEST if "*" in held else 0):
        held = _STARS.sub(r"\g<inside>", held)
    if "_" in held:
        held = _UNDERLINE.sub(r"\g<inside>", held)
    for escaped, sign in _HELD.items() if "\0" in held else ():
        held = held.replace(sign, escaped[1:])
    return held


def marked(text: str) -> str:
    """Escape text so that `plain` returns it and no sign in it is markup."""
    escaped = _NOTE_MARKS.sub(lambda match: r"\[" * len(match[0]), _escape(text, _MARKS))
    return f"\\{escaped}" if escaped.startswith(("(", "~")) else escaped


def _marked_all(text: str) -> str:
    return _escape(text, _SIGNS)


def marked_name(name: str) -> str:
    """Escape a name so that `plain` returns it and no sign in it ends it."""
    return _escape(name, _NAME_MARKS)


def _escape(text: str, signs: str) -> str:
    """Put a backslash before each of some signs, of which it is the first itself."""
    for sign in signs:
        text = text.replace(sign, f"\\{sign}")
    return text


# Fountain hides the boneyard `/* … */` and notes `[[ … ]]` from the reader.
#
# We write into notes what Fountain has no syntax for: `[[pause:1.5s]]`, `[[audio: bell.wav]]` and,
# after a speech, `[[voice | lang:de | seed:7]]`. All other notes are rows that aren't spoken, those
# inside a block after it; one that would read as ours begins with `note:`.

NOTE = regex.compile(
    r"""\[\[\s* (?:
        (?P<kind>pause) (?P<inside>\s*[:=\d][^\[\]]*|\s*)
      | (?P<kind>audio) \s*:(?P<inside>[^\[\]]*)
      | (?P<kind>voice) \s*\|(?P<inside>[^\[\]]*)
    ) \]\]""",
    regex.VERBOSE,
)

_NOTE_SIGN = "note:"

HIDDEN = "\0"
"""Replaces hidden text, so that a line of nothing else doesn't count as empty."""


NumberedLine = tuple[int, str]


def visible_lines(text: str, remarks: ImportNotices) -> Iterator[NumberedLine]:
    """Number the lines, without hidden text other than `NOTE`.

    Args:
        text: The whole file.
        remarks: Keeps notes and what boneyards hold, and gets a notice of a boneyard without an
            end, which is read as text.
    """
    joined = "\n".join(text.splitlines())
    shown = _without_notes(_without_boneyard(joined, remarks), remarks)
    for number, line in enumerate(shown.split("\n"), start=1):
        visible = line.replace(HIDDEN, "")
        if visible.strip() or visible == line:
            yield number, visible


def _without_boneyard(text: str, remarks: ImportNotices) -> str:
    pieces = []
    end, counted, number = 0, 0, 1
    while (start := text.find("/*", end)) >= 0:
        number += text.count("\n", counted, start)
        counted = start
        close = text.find("*/", start + 2)
        if close < 0:
            message = "This comment has no end; it is read as text. Close it with */."
            remarks.add(message, number)
            break
        for further, row in enumerate(text[start + 2 : close].split("\n")):
            _keep_note(remarks, number + further, row)
        pieces += [text[end:start], _hidden(text[start:close])]
        end = close + 2
    return "".join(pieces) + text[end:]


def _without_notes(text: str, remarks: ImportNotices) -> str:
    """Hide notes, which can't contain an empty line; linear in the text, whatever is in it."""
    pieces = []
    end, close, gap, number = 0, 0, 0, 1
    start = text.find("[[")
    while start >= 0 and close >= 0:
        close = text.find("]]", start) if close <= start else close
        gap = text.find("\n\n", start) if 0 <= gap <= start else gap
        if close < 0 or 0 <= gap < close:
            start = text.find("[[", start + 2)
            continue
        note = text[start : close + 2]
        number += text.count("\n", end, start)
        is_ours = NOTE.fullmatch(note) is not None
        pieces += [text[end:start], note if is_ours else _hidden(note)]
        if not is_ours:
            _keep_note(remarks, number, note[2:-2].replace(HIDDEN, ""))
        number += note.count("\n")
        end = close + 2
        start = text.find("[[", end)
    return "".join(pieces) + text[end:]


def _keep_note(remarks: ImportNotices, number: int, marked_text: str) -> None:
    text = plain(marked_text).strip()
    remarks.keep(number, text.removeprefix(_NOTE_SIGN).strip())


def _hidden(comment: str) -> str:
    return "\n".join([HIDDEN] * (comment.count("\n") + 1))


SCENE_HEADING = regex.compile(r"\.(?=\w)|(?:INT|EXT|EST|INT\.?/EXT|I/E)[. ]", regex.IGNORECASE)

_TITLE_KEY = regex.compile(
    r"(?:title|credit|authors?|source|notes|draft date|date|contact|copyright|revision|format)\s*:",
    regex.IGNORECASE,
)
_SCENE_NUMBER = regex.compile(r"\s+#[\w.-]{1,10}#$")
_OUTLINE = regex.compile(r"[#=]")
_FORCED_ACTION = regex.compile(r"[!>]")
_DUAL = regex.compile(r"(?<!\\)\^\s*$")
_EXTENSION = regex.compile(r"(?<!\\)\(([^()]+)\)")
_NAME_ENDS = regex.compile(r"(?<!\\)[(^]")
_PLAIN_NAME = regex.compile(r"[A-Z][A-Z0-9 '.-]*")
_DIRECTION = regex.compile(r"\((?P<inside>.*)\)")
_BEATS = frozenset(("beat", "a beat", "pause", "a pause", "short pause"))

_TITLE_PAGE = "What a title page says besides the title stands between the lines:"
_MOST_TITLE_ROWS = 6
_LEAST_FILLED = 0.9
_MOST_NAME_WORDS = 4
_AUTHORED = regex.compile(
    r"(?:(?:written|adapted|an?\s.{1,40})\s)?by(?:\s\p{Lu}.{0,60})?"
    r"|an?\s.{0,30}\b(?:play|screenplay|comedy|tragedy|drama|farce)\b[^.!?]{0,40}",
    regex.IGNORECASE,
)
_CROWDED = (
    "This screenplay has no empty lines: all that stands below a name goes to that speaker, action "
    "as well. Put an empty line above action."
)
_NOTHING = (
    "The screenplay holds no dialogue. Put a name in capitals on a line of its own below an empty "
    "line, and the words on the line below it."
)


@dataclass(frozen=True, slots=True)
class Screenplay:
    """What was read: the dialog, the title page's title, and how much a narrator could read."""

    parsed: ParsedScript
    title: str | None
    unspoken: int


def read_fountain(text: str, remarks: ImportNotices, *, narrator: str | None) -> Screenplay:
    """Read the dialogue of a screenplay.

    Args:
        text: The whole file.
        remarks: Gets notices of what is left out.
        narrator: Speaks action and scene headings; None leaves them out.
    """
    title = _read_title(text, remarks)
    screenplay = _ScreenplayReader(DialogBuilder(remarks), narrator)
    rows = list(visible_lines(text, remarks))
    Budget().spend(Cost.FILLED_ROWS, sum(row != "" for _, row in rows))
    if _crowded_cues(rows):
        remarks.add(_CROWDED, rows[0][0])
    blocks = list(_blocks(iter(rows)))
    if title is None and _is_title_block(blocks):
        title = plain(blocks[0][0][1])
        for number, row in blocks.pop(0)[1:]:
            remarks.set_aside(_TITLE_PAGE, number, row)
    for block in blocks:
        screenplay.add(block)
    parsed = screenplay.builder.finish(nothing_found=_NOTHING)
    parsed = replace(parsed, dialog=remarks.weave(parsed.dialog))
    return Screenplay(parsed, title, screenplay.unspoken)


def _read_title(text: str, remarks: ImportNotices) -> str | None:
    """The title on the title page, in one row; a notice names what else it says."""
    block = next(_blocks(visible_lines(text, ImportNotices()), with_title=True), [])
    rows = [line for _, line in block]
    starts = [idx for idx, row in enumerate(rows) if _TITLE_KEY.match(row)]
    if starts[:1] != [0]:
        return None
    end = 0
    if rows[0].casefold().startswith("title"):
        end = starts[1] if len(starts) > 1 else len(rows)
    for number, row in block[end:]:
        remarks.set_aside(_TITLE_PAGE, number, row)
    return (
        plain(" ".join((rows[0].partition(":")[2], *rows[1:end])).strip()) or None if end else None
    )


def _is_title_block(blocks: list[list[NumberedLine]]) -> bool:
    """Whether a text begins with its title in capitals and its author, which look like a speech."""
    rows = [line for _, line in blocks[0]] if blocks else []
    if not 1 < len(rows) <= _MOST_TITLE_ROWS or rows[0].startswith("@"):
        return False
    name = cue_name(rows[0], has_words=True) if _is_speech(blocks[0]) else None
    others = (cue_name(block[0][1], has_words=len(block) > 1) for block in blocks[1:])
    return name is not None and name not in others and any(map(_AUTHORED.fullmatch, rows[1:]))


def cue_name(line: str, *, has_words: bool) -> str | None:
    """The name in a character's cue; None if the line isn't one.

    Args:
        line: Without white space around it.
        has_words: Whether text follows on the next line; if not, only `@` makes a cue.
    """
    is_forced = line.startswith("@")
    name = line.removeprefix("@")
    if "(" in name or "^" in name:
        name = _NAME_ENDS.split(name, maxsplit=1)[0]
    name = name.strip()
    is_shouted = name == name.upper() != name.lower() and not name.endswith("TO:")
    if not is_forced and not (has_words and is_shouted and len(name) <= MAX_NAME_CHARS):
        return None
    return plain(name).strip() or None


def _blocks(
    lines: Iterator[NumberedLine], *, with_title: bool = False
) -> Iterator[list[NumberedLine]]:
    """Runs of lines between empty ones; a line of two spaces continues a speech."""
    rows = list(lines)
    cues = _crowded_cues(rows)
    block: list[NumberedLine] = []
    is_title = True
    for number, raw in rows:
        line = raw.strip()
        if line:
            if block and cues and (SCENE_HEADING.match(line) or _cue_key(line) in cues):
                yield block
                block = []
            block.append((number, line))
        elif block and not (len(raw) > 1 and _is_speech(block)):
            if with_title or not (is_title and _TITLE_KEY.match(block[0][1])):
                yield block
            block, is_title = [], False
    if block:
        yield block


def _crowded_cues(rows: list[NumberedLine]) -> frozenset[str]:
    """The names above words in a screenplay that has lost its empty lines; none in any other."""
    filled = [line.strip() for _, line in rows if line.strip()]
    if _LEAST_FILLED * len(rows) > len(filled) or not any(map(SCENE_HEADING.match, filled)):
        return frozenset()
    cues = Counter(
        key
        for line, below in pairwise(filled)
        if (key := _cue_key(line)) and not SCENE_HEADING.match(line) and _cue_key(below) is None
    )
    return frozenset(key for key, count in cues.items() if count > 1)


def _cue_key(line: str) -> str | None:
    """The key of a name in capitals that may stand above words."""
    name = cue_name(line, has_words=True)
    return name_key(name) if name and len(name.split()) <= _MOST_NAME_WORDS else None


def _is_speech(block: list[NumberedLine]) -> bool:
    first = block[0][1]
    is_other = _OUTLINE.match(first) or _FORCED_ACTION.match(first) or SCENE_HEADING.match(first)
    return not is_other and cue_name(first, has_words=len(block) > 1) is not None


class _ScreenplayReader:
    """Reads a screenplay block by block."""

    def __init__(self, builder: DialogBuilder, narrator: str | None) -> None:
        self.builder = builder
        self.unspoken = 0
        self._narrator = narrator

    def add(self, block: list[NumberedLine]) -> None:
        for idx, (number, line) in enumerate(block):
            if _OUTLINE.match(line):
                kind = UnspokenKind.HEADING if line.startswith("#") else UnspokenKind.NOTE
                self.builder.unspoken(plain(line.lstrip("#= ")), kind, number)
            elif SCENE_HEADING.match(line):
                self._narrate([(number, line.removeprefix("."))], UnspokenKind.HEADING)
            elif not self._add_note(line, number):
                self._add_words(block[idx:])
                return

    def _add_words(self, block: list[NumberedLine]) -> None:
        number, first = block[0]
        name = None if _FORCED_ACTION.match(first) else cue_name(first, has_words=len(block) > 1)
        if name is None:
            self._narrate(block, UnspokenKind.ACTION)
        else:
            with with_place(number):
                self._speak(name, block)

    def _add_note(self, line: str, number: int) -> bool:
        """Add a pause or audio that is on a line of its own."""
        note = NOTE.fullmatch(line)
        if note is None:
            return False
        with with_place(number):
            if note["kind"] == "audio":
                self.builder.audio(read_audio_path(note["inside"].strip()), number)
            elif note["kind"] == "pause":
                for duration_s in leading_pauses(line[1:-1])[0]:
                    self.builder.silence(duration_s, number)
        return True

    def _speak(self, name: str, block: list[NumberedLine]) -> None:
        extensions = _EXTENSION.findall(block[0][1])
        words = [
            write_direction(plain(how), is_first=True) for how in extensions if is_said_so(how)
        ]
        attributes = Attributes()
        for _, line in block[1:]:
            for note in NOTE.finditer(line):
                if note["kind"] == "voice":
                    attributes = parse_attributes(note["inside"].split("|"))
            line = NOTE.sub(_inline_note, line).strip()
            words.append(_spoken(line, is_first=not any(words)))
        if _DUAL.search(block[0][1]):
            attributes = replace(attributes, params={**attributes.params, DUAL: True})
        self.builder.speech(name, " ".join(filter(None, words)), block[0][0], attributes)

    def _narrate(self, block: list[NumberedLine], kind: UnspokenKind) -> None:
        number = block[0][0]
        text = " ".join(plain(" ".join(_strip_action(line) for _, line in block)).split())
        if self._narrator is not None:
            self.builder.speech(self._narrator, _SCENE_NUMBER.sub("", text), number)
            return
        self.unspoken += 1
        self.builder.remarks.add(NOT_SPOKEN, number, text)
        self.builder.unspoken(text, kind, number)


def _strip_action(line: str) -> str:
    if line.startswith(">"):
        return line[1:].removesuffix("<")
    return line[1:] if line.startswith(("!", "~")) else line


def _spoken(line: str, *, is_first: bool) -> str:
    """The text of a line of dialogue; parentheses around all of it are a direction."""
    direction = _DIRECTION.fullmatch(line)
    if direction is None or leading_pauses(line)[0]:
        return plain(line.removeprefix("~"))
    inside = sound_name(direction["inside"])
    if inside in SOUND_TAGS:
        return f"[{inside}]"
    if inside in _BEATS:
        return write_pause(DEFAULT_PAUSE_S)
    return write_direction(plain(direction["inside"]), is_first=is_first)


def _inline_note(note: regex.Match[str]) -> str:
    """A pause inside a speech stays in place; other notes are removed."""
    return str(note[0])[1:-1] if note["kind"] == "pause" else ""


def count_cues(beginning: str, *, has_names: bool) -> int:
    """How many rows are headings of scenes, or names above words, in a text's first rows.

    0 for what is no screenplay.

    Args:
        beginning: The first rows, whole.
        has_names: Whether some rows start with a name and a colon, as a script's do; if so, it
            takes a title page or a scene heading, not only names above words.
    """
    blocks = list(_blocks(visible_lines(beginning, ImportNotices())))
    speeches = sum(len(block) > 1 and _is_speech(block) for block in blocks)
    scenes = sum(SCENE_HEADING.match(block[0][1]) is not None for block in blocks)
    is_surely = scenes or _TITLE_KEY.match(beginning)
    is_screenplay = speeches > 0 if is_surely else speeches > 1 and not has_names
    return speeches + scenes if is_screenplay else 0


def writes_as_cue(name: str) -> bool:
    """Whether a name is recognized as a cue without `@` before it."""
    is_plain = _PLAIN_NAME.fullmatch(name) is not None
    is_other = SCENE_HEADING.match(name) or name.startswith("WEBVTT")
    return is_plain and not is_other


def write_fountain(dialog: Dialog) -> str:
    """Write a screenplay; what Fountain has no syntax for goes into notes."""
    return "\n".join(f"{_block(line)}\n" for line in dialog)


def read_own_fountain(
    text: str, remarks: ImportNotices, *, narrator: str | None
) -> Screenplay | None:
    """Read what `write_fountain` wrote, as it is; None for other text.

    No row of it is a page's number or a time, as which one from elsewhere may be.
    """
    if not text.endswith("\n") or _THREE_ROWS.search(text):  # as in most from elsewhere
        return None
    notices = ImportNotices()
    try:
        read = read_fountain(text, notices, narrator=None)
        if write_fountain(read.parsed.dialog) != text:
            return None
    except (ScriptError, NameRejected):
        return None
    if narrator:
        return read_fountain(text, remarks, narrator=narrator)
    remarks.absorb(notices)
    return read


_THREE_ROWS = regex.compile(r"[^\n]\n[^\n]+\n[^\n]")


def _block(line: Line) -> str:
    match line:
        case Silence():
            return f"[{write_pause(line.duration_s)}]"
        case Audio():
            return f"[[audio: {_without_comment(write_audio_path(line.path), line.path)}]]"
        case Unspoken():
            return _unspoken(line)
        case Speech():
            return _speech(line)


def _unspoken(line: Unspoken) -> str:
    text = paragraph(line.text)
    match line.kind:
        case UnspokenKind.HEADING:
            is_plain = not _ANY_SIGN.search(text.replace(".", "")) and not text.startswith(".")
            is_scene = is_plain and SCENE_HEADING.match(text)
            return text if is_scene else f"# {_marked_all(text)}"
        case UnspokenKind.NOTE:
            space = " " if text.endswith("]") else ""
            note = f"[[{_marked_all(text)}{space}]]"
            is_ours = NOTE.fullmatch(note) or text.startswith(_NOTE_SIGN)
            return f"[[{_NOTE_SIGN} {note[2:]}" if is_ours else note
        case UnspokenKind.ACTION:
            return f"!{_marked_all(text)}"


def _speech(line: Speech) -> str:
    name, words = clean_name(line.speaker), _words(line)
    dual = " ^" if line.params.get(DUAL) is True else ""
    if words and writes_as_cue(name) and not _AUTHORED.fullmatch(words):
        return f"{name}{dual}\n{words}"
    return f"@{marked_name(name)}{dual}\n{words}".rstrip()


def _words(line: Speech) -> str:
    noted = {key: value for key, value in line.params.items() if key != DUAL or value is not True}
    parts = write_attributes(Attributes(line.language, line.seed, noted))
    note = f"[[voice | {' | '.join(parts)}]]".replace("/*", r"/\u002a") if parts else ""
    return " ".join(filter(None, (marked(paragraph(line.text)), note)))


def _without_comment(written: str, path: str) -> str:
    """Write a path so that no `/*` in it starts a comment."""
    return quote(path).replace("/*", r"/\u002a") if "/*" in path else written
