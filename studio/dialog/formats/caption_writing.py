"""A dialog as subtitles: what is said, by whom, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.line_text import paragraph
from studio.dialog.model import Dialog, Line, Silence, Speech
from studio.dialog.names import clean_name
from studio.dialog.script import write_header
from studio.dialog.tags import cut_pauses

CHARS_PER_S = 14.0
"""How fast speech is taken to be where no audio tells."""

_SHORTEST_S = 0.6
_WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
_CHARS_IN_A_WIDE_ONE = 2.5


@dataclass(frozen=True, slots=True)
class _TimedCue:
    line: Speech
    start_ms: int
    end_ms: int


def write_srt(dialog: Dialog, durations_s: Sequence[float] | None) -> str:
    """Write SRT; silences become time without a cue.

    Args:
        dialog: Its languages, seeds, parameters and audio lines have no place in SRT.
        durations_s: One a line, from its audio; None estimates them from the text.
    """
    return "\n".join(
        f"{number}\n{_time(cue.start_ms, ',')} --> {_time(cue.end_ms, ',')}\n{_srt(cue.line)}\n"
        for number, cue in enumerate(_timed(dialog, durations_s), start=1)
    )


def write_vtt(dialog: Dialog, durations_s: Sequence[float] | None) -> str:
    """Write WebVTT as `write_srt` writes SRT, with voice and language tags."""
    cues = (
        f"\n{_time(cue.start_ms, '.')} --> {_time(cue.end_ms, '.')}\n{_vtt(cue.line)}\n"
        for cue in _timed(dialog, durations_s)
    )
    return "WEBVTT\n" + "".join(cues)


def estimated_s(line: Line) -> float:
    """How long a line will be heard, judged by its text; 0 for audio, whose file isn't read."""
    if isinstance(line, Silence):
        return line.duration_s
    if not isinstance(line, Speech):
        return 0.0
    parts = cut_pauses(line.text)
    spoken = "".join(part for part in parts if isinstance(part, str))
    wide = sum(1 for _ in _WIDE.finditer(spoken))
    chars = len(spoken) + wide * (_CHARS_IN_A_WIDE_ONE - 1)
    pauses_s = sum(part for part in parts if isinstance(part, float))
    return max(_SHORTEST_S, chars / CHARS_PER_S) + pauses_s


def _timed(dialog: Dialog, durations_s: Sequence[float] | None) -> Iterator[_TimedCue]:
    if durations_s is None:
        durations_s = [estimated_s(line) for line in dialog]
    start_s = 0.0
    for line, duration_s in zip(dialog, durations_s, strict=True):
        end_s = start_s + duration_s
        if isinstance(line, Speech):
            yield _TimedCue(line, round(1000 * start_s), round(1000 * end_s))
        start_s = end_s


def _srt(line: Speech) -> str:
    text = paragraph(line.text)
    header = write_header(line.speaker, Attributes())
    if not text and header.startswith("["):
        header = f"{header.rstrip(' |]')} |]"  # without words, [name] alone describes a sound
    # Players look for the arrow of a timing anywhere.
    return f"{header} {text}".rstrip().replace("-->", "→")


def _vtt(line: Speech) -> str:
    text = _escaped(paragraph(line.text))
    if line.language is not None:
        text = f"<lang {line.language}>{text}</lang>"
    return f"<v {_escaped(clean_name(line.speaker))}>{text}</v>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _time(total_ms: int, point: str) -> str:
    seconds, ms = divmod(total_ms, 1000)
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    return f"{hours:02}:{m:02}:{s:02}{point}{ms:03}"
