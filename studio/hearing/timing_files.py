"""Files of what is said when: JSON, Praat's TextGrid, Rhubarb's TSV, and captions."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from io import BytesIO
from itertools import pairwise
from pathlib import PurePath

from studio.dialog.directions import find_said
from studio.dialog.formats.caption_writer import escape_vtt, format_time
from studio.dialog.planning import split_sentences
from studio.hearing.caption_cues import (
    MAX_CAPTION_CHARS,
    CaptionCue,
    break_lines,
    divide_cue,
    lengthen_cues,
    place_words,
    spread_words,
)
from studio.hearing.visemes import REST, list_visemes
from studio.hearing.word_times import Alignment, PhonemeTime, WordTime

_VERSION = 1
_LEAST_MS = 1
_MAX_NAME_CHARS = 40
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line of a scene and what is said in it when; all times are seconds of the scene.

    Attributes:
        number: The line's, from 1.
        words: Offsets are those in `text`; empty where they aren't known.
        phonemes: In order.
    """

    number: int
    speaker: str
    text: str
    start_s: float
    end_s: float
    words: tuple[WordTime, ...] = ()
    phonemes: tuple[PhonemeTime, ...] = ()
    language: str | None = None


def place_in_scene(line: TimedLine, said: Alignment, *, pace: float = 1.0) -> TimedLine:
    """A line with its words and phonemes, whose times are seconds of its take until now."""
    moved = said.moved(line.start_s, pace=pace)
    return replace(line, words=moved.words, phonemes=moved.phonemes)


def show_line(line: TimedLine) -> TimedLine:
    """A line as captions have it, with the text that is heard of it, and its words in that."""
    said = find_said(line.text)
    if said.text == line.text:
        return line
    places = ((word, *said.find_shown(word.start, word.end)) for word in line.words)
    words = (replace(word, start=start, end=end) for word, start, end in places if start < end)
    return replace(line, text=said.text, words=tuple(words))


class TimingFormat(StrEnum):
    """A file of times; the value is its suffix."""

    JSON = "words.json"
    TEXT_GRID = "TextGrid"
    RHUBARB = "rhubarb.tsv"
    RHUBARB_BY_SPEAKER = "rhubarb.zip"
    WORDS_VTT = "words.vtt"
    SENTENCES_VTT = "sentences.vtt"
    WORDS_SRT = "words.srt"
    SENTENCES_SRT = "sentences.srt"
    CAPTIONS_VTT = "captions.vtt"
    CAPTIONS_SRT = "captions.srt"


def timing_format_of(file_name: str) -> TimingFormat | None:
    """The format of a file name's suffix; None for another one."""
    name = PurePath(file_name).name.lower()
    return next((one for one in TimingFormat if name.endswith(f".{one.value.lower()}")), None)


def write_timing(lines: Sequence[TimedLine], format_: TimingFormat, duration_s: float) -> bytes:
    """Write what is said when in a scene.

    Args:
        lines: In order, without gaps that matter.
        format_: Of the file.
        duration_s: Length of the scene.
    """
    if format_ is TimingFormat.RHUBARB_BY_SPEAKER:
        return _write_rhubarb_by_speaker(lines, duration_s)
    return _WRITERS[format_](lines, duration_s).encode()


def write_scene_captions(lines: Sequence[TimedLine], duration_s: float) -> dict[str, bytes]:
    """Captions of a scene by the suffix of their file, as they lie beside its sound."""
    return {
        ".srt": write_timing(lines, TimingFormat.CAPTIONS_SRT, duration_s),
        ".vtt": write_timing(lines, TimingFormat.CAPTIONS_VTT, duration_s),
    }


def _write_json(lines: Sequence[TimedLine], duration_s: float) -> str:
    body = {
        "version": _VERSION,
        "duration_s": round(duration_s, 3),
        "lines": [describe_line(line) for line in lines],
    }
    return json.dumps(body, ensure_ascii=False, indent=1) + "\n"


def describe_line(line: TimedLine) -> dict[str, object]:
    """A line with its words, phonemes and visemes, for JSON; times are seconds of the scene."""
    length_s = line.end_s - line.start_s
    own = Alignment(phonemes=line.phonemes).moved(-line.start_s).phonemes
    return {
        "line": line.number,
        "speaker": line.speaker,
        "text": line.text,
        "start_s": round(line.start_s, 3),
        "end_s": round(line.end_s, 3),
        "words": [asdict(word) for word in line.words],
        "phonemes": [
            {"phoneme": one.ipa, "start_s": one.start_s, "end_s": one.end_s}
            for one in line.phonemes
        ],
        "visemes": [
            {
                "viseme": one.viseme,
                "start_s": round(line.start_s + one.start_s, 3),
                "end_s": round(line.start_s + one.end_s, 3),
            }
            for one in list_visemes(own, length_s)
        ],
    }


def _write_text_grid(lines: Sequence[TimedLine], duration_s: float) -> str:
    """Three tiers for each speaker: lines, words and phonemes; long text form, UTF-8."""
    tiers: list[tuple[str, list[_Interval]]] = []
    for speaker, own in _split_by_speaker(map(show_line, lines)).items():
        tiers += [
            (speaker, [(one.start_s, one.end_s, one.text) for one in own]),
            (
                f"{speaker} - words",
                [(w.start_s, w.end_s, w.word) for one in own for w in one.words],
            ),
            (
                f"{speaker} - phones",
                [(p.start_s, p.end_s, p.ipa) for one in own for p in one.phonemes],
            ),
        ]
    end_ms = max(_LEAST_MS, round(1000 * duration_s))
    body = "".join(
        _write_tier(number, name, list(_fill(intervals, end_ms)), end_ms)
        for number, (name, intervals) in enumerate(tiers, start=1)
    )
    return (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n\n'
        f"xmin = 0\nxmax = {end_ms / 1000}\ntiers? <exists>\nsize = {len(tiers)}\nitem []:\n{body}"
    )


_Interval = tuple[float, float, str]


def _fill(intervals: Sequence[_Interval], end_ms: int) -> Iterator[tuple[int, int, str]]:
    """Intervals in milliseconds that touch each other, none empty, from 0 to the end."""
    at = 0
    for start_s, end_s, label in intervals:
        start = max(at, round(1000 * start_s))
        end = min(end_ms, max(start + _LEAST_MS, round(1000 * end_s)))
        if end <= start:
            continue
        if start > at:
            yield at, start, ""
        yield start, end, label
        at = end
    if at < end_ms:
        yield at, end_ms, ""


def _write_tier(
    number: int, name: str, intervals: Sequence[tuple[int, int, str]], end_ms: int
) -> str:
    head = (
        f'    item [{number}]:\n        class = "IntervalTier"\n        name = {_quote(name)}\n'
        f"        xmin = 0\n        xmax = {end_ms / 1000}\n"
        f"        intervals: size = {len(intervals)}\n"
    )
    return head + "".join(
        f"        intervals [{at}]:\n            xmin = {start / 1000}\n"
        f"            xmax = {end / 1000}\n            text = {_quote(label)}\n"
        for at, (start, end, label) in enumerate(intervals, start=1)
    )


def _quote(text: str) -> str:
    inner = " ".join(text.split()).replace('"', '""')
    return f'"{inner}"'


def _write_rhubarb(lines: Sequence[TimedLine], duration_s: float) -> str:
    """When each mouth shape begins, in hundredths of a second; at the end the mouth is at rest."""
    phonemes = [phoneme for line in lines for phoneme in line.phonemes]
    begins: dict[str, str] = {"0.00": REST}
    for one in list_visemes(phonemes, duration_s):
        begins[f"{one.start_s:.2f}"] = one.viseme
    begins[f"{duration_s:.2f}"] = REST
    return "".join(f"{at}\t{shape}\n" for at, shape in begins.items())


def _write_rhubarb_by_speaker(lines: Sequence[TimedLine], duration_s: float) -> bytes:
    """A zip with a file for each speaker, whose mouth is at rest while others speak."""
    archived = BytesIO()
    with zipfile.ZipFile(archived, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (speaker, own) in enumerate(_split_by_speaker(lines).items(), start=1):
            letters = "".join(char if char.isalnum() else "_" for char in speaker)
            name = f"{number:02}-{letters[:_MAX_NAME_CHARS]}.tsv"
            archive.writestr(zipfile.ZipInfo(name), _write_rhubarb(own, duration_s))
    return archived.getvalue()


def _split_by_speaker(lines: Iterable[TimedLine]) -> Mapping[str, list[TimedLine]]:
    found: dict[str, list[TimedLine]] = {}
    for line in lines:
        found.setdefault(line.speaker, []).append(line)
    return found


@dataclass(frozen=True, slots=True)
class _Cue:
    """A caption: words of a line, each with its time, as they stand in the text."""

    line: TimedLine
    text: str
    start_s: float
    end_s: float
    words: tuple[WordTime, ...]
    offset: int


def _find_edges(line: TimedLine) -> list[int]:
    """Where each word begins with the marks in front of it, and the end of the text."""
    edges = [0]
    for word, following in pairwise(line.words):
        space = _SPACE.search(line.text, word.end, following.start)
        edges.append(space.start() if space else following.start)
    return [*edges, len(line.text)]


def _cut_words(line: TimedLine) -> Iterator[_Cue]:
    """A cue for each word, with the punctuation around it."""
    edges = pairwise(_find_edges(line) if line.words else ())
    for word, (start, end) in zip(line.words, edges, strict=True):
        text = line.text[start:end]
        start += len(text) - len(text.lstrip())
        yield _Cue(line, text.strip(), word.start_s, word.end_s, (word,), start)


def _cut_sentences(line: TimedLine) -> Iterator[_Cue]:
    """A cue for each sentence, which lasts until its last word has been said."""
    if not line.words:
        yield _Cue(line, line.text, line.start_s, line.end_s, (), 0)
        return
    spans = split_sentences(line.text, MAX_CAPTION_CHARS, line.language)
    for cue in place_words(spans, line.words):
        text = line.text[cue.start : cue.end]
        yield _Cue(line, text, cue.start_s, cue.end_s, cue.words, cue.start)


def list_sentences(lines: Sequence[TimedLine]) -> list[TimedLine]:
    """The sentences of lines, each as a line of its own with its words."""
    return [
        TimedLine(cue.line.number, cue.line.speaker, cue.text, cue.start_s, cue.end_s, cue.words)
        for cue in _iter_cues(lines, _cut_sentences)
    ]


_Cut = Callable[[TimedLine], Iterator[_Cue]]


def _write_vtt(lines: Sequence[TimedLine], cut: _Cut) -> str:
    return "WEBVTT\n" + "".join(
        f"\n{format_time(cue.start_s, '.')} --> {format_time(cue.end_s, '.')}\n"
        f"<v {escape_vtt(cue.line.speaker)}>{_mark_words(cue)}</v>\n"
        for cue in _iter_cues(lines, cut)
    )


def _mark_words(cue: _Cue) -> str:
    """A cue's text with the time in front of each word but the first."""
    parts, done, at_ms = [], cue.offset, round(1000 * cue.start_s)
    edges = dict(zip(cue.line.words, _find_edges(cue.line), strict=False)) if cue.words else {}
    for word in cue.words[1:]:
        ms = round(1000 * word.start_s)
        if at_ms < ms < round(1000 * cue.end_s):  # a time that doesn't rise isn't valid
            before = cue.line.text[done : edges[word]]
            parts.append(f"{escape_vtt(before)}<{format_time(word.start_s, '.')}>")
            done, at_ms = edges[word], ms
    parts.append(escape_vtt(cue.line.text[done : cue.offset + len(cue.text)]))
    return " ".join("".join(parts).split())


def _write_srt(lines: Sequence[TimedLine], cut: _Cut) -> str:
    return "\n".join(
        f"{number}\n{format_time(cue.start_s, ',')} --> {format_time(cue.end_s, ',')}\n"
        f"{' '.join(cue.text.split()).replace('-->', '→')}\n"
        for number, cue in enumerate(_iter_cues(lines, cut), start=1)
    )


def _list_captions(
    lines: Sequence[TimedLine], duration_s: float
) -> list[tuple[TimedLine, CaptionCue]]:
    """Captions as people read them, each with its line."""
    found: list[tuple[TimedLine, CaptionCue]] = []
    for line in map(show_line, lines):
        words = line.words or spread_words(line.text, line.start_s, line.end_s)
        spans = split_sentences(line.text, MAX_CAPTION_CHARS, line.language)
        for cue in place_words(spans, words):
            found += [(line, part) for part in divide_cue(cue, line.text)]
    cues = lengthen_cues([cue for _, cue in found], duration_s)
    return [(line, cue) for (line, _), cue in zip(found, cues, strict=True)]


def _write_captions_vtt(lines: Sequence[TimedLine], duration_s: float) -> str:
    return "WEBVTT\n" + "".join(
        f"\n{format_time(cue.start_s, '.')} --> {format_time(cue.end_s, '.')}\n"
        f"<v {escape_vtt(line.speaker)}>"
        f"{break_lines(line.text[cue.start : cue.end], escape_vtt)}</v>\n"
        for line, cue in _list_captions(lines, duration_s)
    )


def _write_captions_srt(lines: Sequence[TimedLine], duration_s: float) -> str:
    return "\n".join(
        f"{number}\n{format_time(cue.start_s, ',')} --> {format_time(cue.end_s, ',')}\n"
        f"{break_lines(line.text[cue.start : cue.end]).replace('-->', '→')}\n"
        for number, (line, cue) in enumerate(_list_captions(lines, duration_s), start=1)
    )


def _iter_cues(lines: Sequence[TimedLine], cut: _Cut) -> Iterator[_Cue]:
    for line in map(show_line, lines):
        yield from (cue for cue in cut(line) if cue.text and cue.end_s > cue.start_s)


_WRITERS: dict[TimingFormat, Callable[[Sequence[TimedLine], float], str]] = {
    TimingFormat.JSON: _write_json,
    TimingFormat.TEXT_GRID: _write_text_grid,
    TimingFormat.RHUBARB: _write_rhubarb,
    TimingFormat.WORDS_VTT: lambda lines, _: _write_vtt(lines, _cut_words),
    TimingFormat.SENTENCES_VTT: lambda lines, _: _write_vtt(lines, _cut_sentences),
    TimingFormat.WORDS_SRT: lambda lines, _: _write_srt(lines, _cut_words),
    TimingFormat.SENTENCES_SRT: lambda lines, _: _write_srt(lines, _cut_sentences),
    TimingFormat.CAPTIONS_VTT: _write_captions_vtt,
    TimingFormat.CAPTIONS_SRT: _write_captions_srt,
}
