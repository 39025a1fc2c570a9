"""Who says what inside a cue: `<v Anna>Hello</v>`, `Anna: Hello`, `- Hello`."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.formats.cues import Cue
from studio.dialog.header import Header, parse_header
from studio.dialog.names import name_key
from studio.dialog.tags import SOUND_TAGS, leading_pauses, sound_name
from studio.errors import NameRejected, ScriptError

_TAG = regex.compile(r"<(?P<inside>/?(?:[biuscv]|ruby|rt|font|lang)\b[^<>\n]*|\d[\d:.]{4,20})>")
_VOICE = regex.compile(r"v(?:\.[^\s]*)?[ \t]+(?P<name>.*)")
_LANGUAGE = regex.compile(r"lang(?:\.[^\s]*)?[ \t]+(?P<code>[^\s]+)")
_OVERRIDE = regex.compile(r"\{\\[^{}]{0,100}\}")
_TURN = regex.compile(r"(?:[-‐–](?:\s+|(?=[\p{Lu}\p{Lo}\"“¿¡]))|>{2,3}\s*)(?=\S)")
_SOUND = regex.compile(r"[\[(](?P<inside>[^\[\]()|]{1,100})[\])]|[♪♫\s]+")


@dataclass(slots=True)
class Utterance:
    """One speaker's words in a cue; `speaker` is None where no name is given.

    `parts` joined are the words, with the line breaks of the file.
    """

    line_number: int
    speaker: str | None = None
    attributes: Attributes = field(default_factory=Attributes)
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The words."""
        return "".join(self.parts).strip()

    @property
    def is_only_a_sound(self) -> bool:
        """Whether it describes what is heard, such as `[door creaks]`, and nobody says it."""
        match = _SOUND.fullmatch(self.text)
        if match is None or self.speaker is not None:
            return False
        return match["inside"] is None or not _is_spoken_tag(self.text, match["inside"])


class CueReader:
    """Reads the text of one file's cues; knows which names before a colon are speakers."""

    def __init__(self, cues: Iterable[Cue], *, is_vtt: bool) -> None:
        """Look through all the cues for names.

        Where at least half of the cues begin with a name, every name counts. Elsewhere `Listen:`
        may begin a sentence, and only names in capitals or given twice do.
        """
        self._is_vtt = is_vtt
        found = [_first_name(cue) for cue in cues if cue.lines]
        names = Counter(name_key(name) for name in found if name)
        self._trusts_all = 2 * names.total() >= len(found)
        shouted = {name_key(name) for name in found if name and name.isupper()}
        self._names = shouted.union(name for name, count in names.items() if count > 1)

    def read(self, cue: Cue) -> list[Utterance]:
        """Divide a cue among those who speak in it; without text there is none."""
        utterances: list[Utterance] = []
        for utterance in self._voices(cue):
            if utterance.speaker is not None:
                utterances.append(utterance)
            else:
                utterances += self._turns(utterance)
        return utterances

    def _voices(self, cue: Cue) -> list[Utterance]:
        """Cut at voice tags; the parts of each are lines still, with their numbers."""
        current = Utterance(cue.line_number)
        utterances = [current]
        for number, line in cue.lines:
            end = 0
            for tag in _TAG.finditer(line := _OVERRIDE.sub("", line)):
                self._add(current, line[end : tag.start()], number)
                end = tag.end()
                if changed := self._changed(current, tag["inside"], number):
                    current = changed
                    utterances.append(current)
            self._add(current, line[end:], number)
            self._add(current, "\n", number)
        return utterances

    def _changed(self, current: Utterance, tag: str, number: int) -> Utterance | None:
        """A new utterance where a tag begins or ends a voice."""
        if voice := _VOICE.fullmatch(tag):
            return Utterance(number, html.unescape(voice["name"]))
        if tag.startswith("/v"):
            return Utterance(number)
        language = _LANGUAGE.fullmatch(tag)
        if language and current.attributes.language is None:
            current.attributes = Attributes(language=language["code"])
        return None

    def _add(self, current: Utterance, text: str, number: int) -> None:
        if not current.parts and text.strip():
            current.line_number = number
        if current.parts or text.strip():
            current.parts.append(html.unescape(text) if self._is_vtt else text)

    def _turns(self, unnamed: Utterance) -> list[Utterance]:
        """Cut text outside of voice tags where a name or a dash begins a line."""
        utterances: list[Utterance] = []
        lines = "".join(unnamed.parts).splitlines()
        first = unnamed.line_number
        for number, line in enumerate(lines, start=first):
            turn = _TURN.match(line)
            line = line[turn.end() :] if turn else line
            header = self._header(line)
            if header:
                new = Utterance(number, header.speaker, header.attributes, [header.text])
                utterances.append(new)
            elif line.strip() and (turn or not utterances):
                utterances.append(Utterance(number, None, unnamed.attributes, [line.strip()]))
            elif line.strip():
                utterances[-1].parts.append(f"\n{line.strip()}")
        return utterances

    def _header(self, line: str) -> Header | None:
        header = _header(line)
        if header is None:
            return None
        is_known = self._trusts_all or name_key(header.speaker) in self._names
        return header if is_known else None


def _first_name(cue: Cue) -> str | None:
    """The name that a cue's text begins with, whether it is one or not."""
    _, line = cue.lines[0]
    voice = _TAG.match(line)
    if voice and (named := _VOICE.fullmatch(voice["inside"])):
        return str(named["name"])
    line = _TAG.sub("", _OVERRIDE.sub("", line))
    turn = _TURN.match(line)
    header = _header(line[turn.end() :] if turn else line)
    return header.speaker if header else None


def _header(line: str) -> Header | None:
    """A header as in scripts; brackets with nothing behind them describe a sound."""
    line = line.strip()
    try:
        header = parse_header(line)
    except (ScriptError, NameRejected):
        return None
    is_sound = header and not header.text and line.startswith("[") and "|" not in line
    return None if is_sound else header


def _is_spoken_tag(text: str, inside: str) -> bool:
    if sound_name(inside) in SOUND_TAGS:
        return text.startswith("[")
    try:
        return bool(leading_pauses(text)[0])
    except ScriptError:
        return True
