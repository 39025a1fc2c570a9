"""Writes subtitles, SRT and WebVTT: a cue for the words between two pauses, without markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.gaps import read_start
from studio.dialog.model import Dialog, Line, Silence, Speech, Unspoken, clean_name, paragraph
from studio.dialog.script import write_header
from studio.dialog.tags import SOUND_TAGS, cut_pauses, replace_tags
from studio.errors import ScriptError

PauseSpan = tuple[float, float]
"""Where a pause inside a line begins and ends, in seconds from the line's beginning."""

PausesByLine = Mapping[int, Sequence[PauseSpan]]
"""The pauses inside lines, by the line's index, one for each pause tag of its text."""

_CHARS_PER_S = 14.0
"""Assumed pace of speech without audio."""

_SHORTEST_S = 0.6
_WIDE = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+")
_CHARS_IN_A_WIDE_ONE = 2.5

# A project may have 400,000 cues, and formatting numbers would be most of their work.
_TWO_DIGITS = [f"{number:02}" for number in range(60)]
_THREE_DIGITS = [f"{number:03}" for number in range(1000)]


def write_srt(
    dialog: Dialog, durations_s: Sequence[float] | None, pauses: PausesByLine | None = None
) -> str:
    """Write SRT; silences, and pauses inside a line, become time without a cue.

    Args:
        dialog: Its languages, seeds, parameters, sound tags and audio lines are left out.
        durations_s: One for each line, from its audio; None estimates them from the text.
        pauses: The pauses inside lines, from their audio; those of other lines are estimated.
    """
    cues = _iter_timed(dialog, durations_s, pauses or {}, ",")
    return "\n".join(
        f"{number}\n{timing}\n{_format_srt(line, words)}\n"
        for number, (timing, line, words) in enumerate(
            ((timing, line, words) for timing, line, words in cues if isinstance(line, Speech)),
            start=1,
        )
    )


def write_vtt(
    dialog: Dialog, durations_s: Sequence[float] | None, pauses: PausesByLine | None = None
) -> str:
    """Write WebVTT as `write_srt` writes SRT, with voice and language tags."""
    cues = _iter_timed(dialog, durations_s, pauses or {}, ".")
    return "WEBVTT\n" + "".join(
        f"\n{timing}\n{_format_vtt(line, words)}\n"
        if isinstance(line, Speech)
        else _format_note(line)
        for timing, line, words in cues
    )


def _format_note(line: Unspoken) -> str:
    return f"\nNOTE {line.text.replace('-->', '→')}\n"


def estimate_pauses(text: str, duration_s: float) -> list[PauseSpan]:
    """Where the pauses of a line are if its words are spoken evenly; [] if there is no room."""
    cut = _cut(text)
    spoken_s = duration_s - cut.pauses_s
    if spoken_s < 0:
        return []
    per_char_s = spoken_s / cut.chars if cut.chars else 0.0
    at_s, spans = 0.0, []
    for part in cut.parts:
        if isinstance(part, float):
            spans.append((at_s, at_s + part))
            at_s += part
        else:
            at_s += per_char_s * _weigh(part)
    return spans


@dataclass(frozen=True)
class _Cut:
    """A line's words without sound tags, and its pauses in seconds."""

    parts: Sequence[str | float]
    pauses: int
    pauses_s: float
    chars: float
    """The weight of all words, of which only the sum of their lengths matters."""


@lru_cache(maxsize=1)  # asked for a line's duration, its pauses and its words
def _cut(text: str) -> _Cut:
    try:
        parts = cut_pauses(paragraph(text))
    except ScriptError:  # the line fails when it is rendered, and says why
        parts = [paragraph(text)]
    parts = [part if isinstance(part, float) else _remove_sounds(part) for part in parts]
    pauses = [part for part in parts if isinstance(part, float)]
    words = "".join([part for part in parts if isinstance(part, str)])
    return _Cut(parts, len(pauses), sum(pauses), _weigh(words))


def _remove_sounds(text: str) -> str:
    return replace_tags(text, lambda tag, name: "" if name in SOUND_TAGS else tag)


def _weigh(words: str) -> float:
    if words.isascii():
        return len(words)
    return len(words) + sum(map(len, _WIDE.findall(words))) * (_CHARS_IN_A_WIDE_ONE - 1)


def _estimate_duration_s(line: Line) -> float:
    """Estimated duration of a line by its text; 0 for audio, whose file isn't read."""
    if isinstance(line, Silence):
        return line.duration_s
    if not isinstance(line, Speech):
        return 0.0
    cut = _cut(line.text)
    is_pause = 0 < cut.pauses == len(cut.parts)
    return (0.0 if is_pause else max(_SHORTEST_S, cut.chars / _CHARS_PER_S)) + cut.pauses_s


def _iter_timed(
    dialog: Dialog, durations_s: Sequence[float] | None, pauses: PausesByLine, point: str
) -> Iterator[tuple[str, Speech | Unspoken, str]]:
    """The words that are spoken, each with its timing and its line, of which they are a part.

    What isn't spoken comes between them, without a timing. `point` stands before milliseconds.
    """
    known_s = map(_estimate_duration_s, dialog) if durations_s is None else durations_s
    start_s = 0.0
    for idx, (line, duration_s) in enumerate(zip(dialog, known_s, strict=True)):
        if durations_s is None and (begins_s := read_start(line)) is not None:
            start_s = max(start_s, begins_s)
        if isinstance(line, Speech):
            for words, from_s, to_s in _iter_cues(line.text, duration_s, pauses.get(idx)):
                begin, end = (
                    format_time(start_s + from_s, point),
                    format_time(start_s + to_s, point),
                )
                yield f"{begin} --> {end}", line, words
        elif isinstance(line, Unspoken):
            yield "", line, ""
        start_s += duration_s


def _iter_cues(
    text: str, duration_s: float, spans: Sequence[PauseSpan] | None
) -> Iterator[tuple[str, float, float]]:
    """The words between the pauses of a line, and when they begin and end."""
    cut = _cut(text)
    if spans is None:
        spans = estimate_pauses(text, duration_s)
    if not cut.parts or len(spans) != cut.pauses:
        # An empty line has a cue with its name; a take of another text has no such pauses.
        words = " ".join(part for part in cut.parts if isinstance(part, str) and part)
        yield from [(words, 0.0, duration_s)] if words or not text else []
        return
    begin_s = 0.0
    ahead = chain(spans, [(duration_s, duration_s)])
    from_s, to_s = next(ahead)  # of the pause that a part is, or that follows it, or of the end
    for part in cut.parts:
        if isinstance(part, float):
            begin_s = to_s
            from_s, to_s = next(ahead)
        elif part:
            yield part, begin_s, from_s


@lru_cache(maxsize=1_000)  # a line may have thousands of cues
def _write_name(speaker: str) -> str:
    return write_header(speaker, Attributes())


def _format_srt(line: Speech, words: str) -> str:
    header = _write_name(line.speaker)
    if not words and header.startswith("["):
        header = f"{header.rstrip(' |]')} |]"  # without words, [name] alone describes a sound
    # Players take an arrow anywhere for a timing.
    return f"{header} {words}".rstrip().replace("-->", "→")


def _format_vtt(line: Speech, words: str) -> str:
    text = escape_vtt(words)
    if line.language is not None:
        text = f"<lang {line.language}>{text}</lang>"
    return f"<v {_escape_name(line.speaker)}>{text}</v>"


@lru_cache(maxsize=1_000)
def _escape_name(speaker: str) -> str:
    return escape_vtt(clean_name(speaker))


def escape_vtt(text: str) -> str:
    """Text as it stands in a cue of WebVTT."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def format_time(at_s: float, point: str) -> str:
    """A time of a cue; `point` stands before the milliseconds."""
    seconds, ms = divmod(round(1000 * at_s), 1000)
    minutes, s = divmod(seconds, 60)
    return f"{_format_minutes(minutes)}:{_TWO_DIGITS[s]}{point}{_THREE_DIGITS[ms]}"


@lru_cache(maxsize=10)  # a cue often begins in the minute in which the one before it ends
def _format_minutes(minutes: int) -> str:
    hours, m = divmod(minutes, 60)
    return f"{hours:02}:{m:02}"
