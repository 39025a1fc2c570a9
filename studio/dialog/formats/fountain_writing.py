"""A dialog as a screenplay in Fountain, which reads back to the same dialog."""

from __future__ import annotations

from studio.dialog.attributes import Attributes, quoted, write_attributes
from studio.dialog.audio_path import write_path
from studio.dialog.formats.fountain import writes_as_cue
from studio.dialog.formats.fountain_marks import marked, marked_name
from studio.dialog.model import Audio, Dialog, Line, Silence, Speech
from studio.dialog.names import clean_name
from studio.dialog.paragraph import paragraph
from studio.dialog.tags import write_pause


def write_fountain(dialog: Dialog) -> str:
    """Write a screenplay; what Fountain has no words for goes into notes.

    Raises:
        NameRejected: A speaker's name can't stand in any file.
        ScriptError: A text is too long.
    """
    return "\n".join(f"{_block(line)}\n" for line in dialog)


def _block(line: Line) -> str:
    match line:
        case Silence():
            return f"[{write_pause(line.duration_s)}]"
        case Audio():
            return f"[[audio: {_without_comment(write_path(line.path), line.path)}]]"
        case Speech():
            return _speech(line)


def _speech(line: Speech) -> str:
    name, words = clean_name(line.speaker), _words(line)
    if words and writes_as_cue(name):
        return f"{name}\n{words}"
    return f"@{marked_name(name)}\n{words}".rstrip()


def _words(line: Speech) -> str:
    parts = write_attributes(Attributes(line.language, line.seed, line.params))
    note = f"[[voice | {' | '.join(parts)}]]".replace("/*", r"/\u002a") if parts else ""
    return " ".join(filter(None, (marked(paragraph(line.text)), note)))


def _without_comment(written: str, path: str) -> str:
    """A path in which no `/*` begins a comment."""
    return quoted(path).replace("/*", r"/\u002a") if "/*" in path else written
