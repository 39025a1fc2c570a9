"""Tags in text: pauses, which become exact silence, and sounds, which a voice performs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain

import regex

from studio.dialog.model import MAX_PAUSE_S, SpeechLimits, is_speakable
from studio.errors import ScriptError

DEFAULT_PAUSE_S = 0.5

_LAUGHTER = "laugh laughs laughing laughter chuckle chuckles chuckling giggle giggles giggling"
_BREATH = "breath breathes breathing exhale exhales gasp gasps gasping inhale inhales pant panting"
_THROAT = "cough coughs coughing groan groans groaning gulp hiccup moan mumble scoff snore snort"
_NOSE = "sniff sniffs sniffles sigh sighs sighing yawn yawns"
_SORROW = "cry cries crying sob sobs sobbing"
_LOUDNESS = (
    "scream screams screaming shout shouts shouting shush shushes whisper whispers whispering"
)
_MUSIC = "applause cheer clap hum hums humming music sing sings singing whistle whistles"
_PHRASES = ("clear throat", "clears throat", "throat clearing")

SOUND_TAGS = frozenset(
    " ".join((_LAUGHTER, _BREATH, _THROAT, _NOSE, _SORROW, _LOUDNESS, _MUSIC)).split()
).union(_PHRASES)
"""The known sounds; `[tag]` with one of these is never a speaker's name."""

# Every repetition is bounded, so that matching is linear for any input.
_PAUSE = regex.compile(
    r"""
      \[ \s? (?:paus[ea]\b|停[顿頓]) (?P<inner>\s{0,3}(?:[:=+\-\d]|\.\d)[^\[\]|]{0,60}|\s?) \.? \]
    | \[ \s? (?:wait|stop|silence) \s? (?P<inner>[:=]\s?\.?\d[^\[\]|]{0,60}) \]
    | [\[(] \s? (?P<inner>\d{1,3}(?:\.\d{1,3})?[\s-]?s(?:ec(?:ond)?s?)?)[\s-]pause \s? [\])]
    | <\| (?:pause|silence) : (?P<ms>\d{1,6}) \|>
    | \( \s? pause \b (?P<inner>\s{0,3}(?:[:=+\-\d]|\.\d)[^()]{0,60}|\s?) \.? \)
    | < break \b (?P<time>[^<>]{0,80}) > (?:\s?</break\s?>)?
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_LENGTH = regex.compile(
    r"[\s:=]*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)[\s-]*(?P<unit>[^\W\d_]*)\s*",
    regex.IGNORECASE,
)
_BREAK_TIME = regex.compile(
    r"""\s*time\s*=\s*(?P<quote>["']?)(?P<length>[^"'/]*)(?P=quote)\s*/?\s*""", regex.IGNORECASE
)
_UNITS = {
    **dict.fromkeys(
        ("", "s", "sec", "secs", "second", "seconds", "sekunden", "segundos", "秒"), 1.0
    ),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}

TAG = re.compile(r"\[[^\[\]]{1,40}\]|</?[A-Za-z][^<>]{0,60}>")
"""Anything in brackets that looks like a tag; longer text in brackets is prose."""

_AROUND_TAGS = re.compile(f"({TAG.pattern})")
ODD_PAUSE = re.compile(
    r"\(\s?(?:paus[ea]|\d)|<break|<\||\[\s?(?:pause[^\]]{30}|pausa|停|wait|stop|silence|\d)",
    re.IGNORECASE,
)
"""Finds pauses that aren't written as tags, or go on behind one."""


_SIGNS = frozenset(",.;:!?…")
_STRAY_SPACE = regex.compile(r" (?=[,.;:!?…](?: |$))|^[,.;:]+ +")


def sound_name(inner: str) -> str:
    """The normalized name of a sound tag: `[ Clear  Throat ]` is "clear throat"."""
    return " ".join(inner.casefold().split())


def cut_pauses(text: str) -> list[str | float]:
    """Split text at its pause tags.

    Returns:
        Stripped, non-empty pieces of text, and the pauses between them in seconds, in order.

    Raises:
        ScriptError: A pause is malformed or isn't within 0 to `MAX_PAUSE_S`.
    """
    if not may_have_tags(text):
        return list(_words(text))
    parts: list[str | float] = []
    known: dict[str, float] = {}  # a line may have thousands, of few lengths
    end = 0
    for match in _PAUSE.finditer(text):
        start, after = match.span()
        if words := text[end:start].strip():
            parts.append(words)
        written = match[0]
        if written not in known:
            known[written] = _seconds(match)
        parts.append(known[written])
        end = after
    return parts + _words(text[end:])


def leading_pauses(text: str) -> tuple[list[float], str]:
    """Split off the pause tags at the start of text.

    Returns:
        The pauses in seconds, and the rest of the text.
    """
    pauses: list[float] = []
    while text.startswith(("[", "(", "<")) and (match := _PAUSE.match(text)):
        pauses.append(_seconds(match))
        text = text[match.end() :].lstrip()
    return pauses, text


def check_pause(duration_s: float, *, written: str) -> float:
    """Check that a pause is in range; `written` is how the source has it.

    Raises:
        ScriptError: Not within 0 to `MAX_PAUSE_S`.
    """
    if not 0 <= duration_s <= MAX_PAUSE_S:
        raise ScriptError(
            f"The pause {written} is out of range: a pause lasts 0 to {MAX_PAUSE_S:g} seconds."
        )
    return duration_s


def write_pause(duration_s: float) -> str:
    """Write a pause tag that reads back to exactly this duration."""
    return f"[pause:{duration_s!r}s]"


def may_have_tags(text: str) -> bool:
    """Whether text has a character with which tags and pauses begin."""
    return "[" in text or "(" in text or "<" in text


def replace_tags(text: str, replace: Callable[[str, str], str]) -> str:
    """Replace every tag, and remove superfluous spaces.

    Args:
        text: Without pause tags.
        replace: Gets the tag as written and its `sound_name`, which is "" for `<tag>`; asked once
            for each tag, however often it occurs.
    """
    if not may_have_tags(text):
        return text
    replaced = replace_each_tag(text, lambda tag: replace(tag, _sound_of(tag)))
    return text if replaced == text else tidy_spaces(replaced)


def replace_each_tag(text: str, replace: Callable[[str], str]) -> str:
    """Replace every tag, and nothing else; `replace` is asked once for each, as it is written."""
    # Each second piece is a tag. A line may have 25,000, of which nothing is done one by one.
    pieces = _AROUND_TAGS.split(text)
    known = {tag: replace(tag) for tag in dict.fromkeys(pieces[1::2])}
    pieces[1::2] = map(known.__getitem__, pieces[1::2])
    return "".join(pieces)


def _sound_of(tag: str) -> str:
    return sound_name(tag[1:-1]) if tag.startswith("[") else ""


def has_words(text: str) -> bool:
    """Whether there is anything to speak in a text besides its tags."""
    return is_speakable(TAG.sub("", text) if may_have_tags(text) else text)


def tidy_spaces(text: str) -> str:
    """Remove the spaces that an omission leaves behind."""
    words = text.split()
    tidy = " ".join(words)
    may_stray = not _SIGNS.isdisjoint(words) or tidy.startswith((",", ".", ";", ":"))
    return _STRAY_SPACE.sub("", tidy) if may_stray else tidy


def list_symbols(text: str) -> Sequence[str]:
    """A text's characters, and its tags and pauses as a whole."""
    if not may_have_tags(text):
        return text
    symbols: list[str] = []
    if ODD_PAUSE.search(text):
        end = 0
        for start, stop in chain(strip_tags(text), [(len(text), len(text))]):
            symbols += filter(None, [text[end:start]])
            symbols += text[start:stop]
            end = stop
        return symbols
    pieces: list[str | list[str]] = list(_AROUND_TAGS.split(text))
    pieces[1::2] = ([tag] for tag in _AROUND_TAGS.findall(text))
    return list(chain.from_iterable(pieces))


def strip_tags(text: str) -> Iterator[tuple[int, int]]:
    """The non-empty stretches of text outside of tags and pauses, by start and end."""
    start = 0
    for tag in find_tags(text):
        if start < tag[0]:
            yield start, tag[0]
        start = max(start, tag[1])
    if start < len(text):
        yield start, len(text)


def hide_tags(text: str, sign: str = " ") -> str:
    """A text with a character instead of each of its tags' and pauses'."""
    if not may_have_tags(text):
        return text
    hidden, at = [], 0
    for start, end in find_tags(text):
        hidden += [text[at:start], sign * (end - max(start, at))]
        at = max(end, at)
    return "".join((*hidden, text[at:]))


def find_tags(text: str) -> Iterator[tuple[int, int]]:
    """The tags and pauses of a text by start and end, in order; searched as they are asked for."""
    # Most text has none, which is known sooner than searched.
    kinds = (_PAUSE, TAG) if may_have_tags(text) else ()
    return merge(*((match.span() for match in kind.finditer(text)) for kind in kinds))


def find_sounds(text: str) -> Iterator[tuple[int, int]]:
    """The pauses and known sounds of a text, by start and end."""
    if not may_have_tags(text):
        return
    yield from (match.span() for match in _PAUSE.finditer(text))
    for match in TAG.finditer(text):
        if _sound_of(match[0]) in SOUND_TAGS:
            yield match.span()


def _words(text: str) -> list[str | float]:
    stripped = text.strip()
    return [stripped] if stripped else []


def _seconds(match: regex.Match[str]) -> float:
    if match["ms"]:
        return check_pause(int(match["ms"]) / 1000, written=match[0])
    return _read_pause(*match.group(0, "inner", "time"))


@lru_cache(maxsize=1_000)  # a dialog may have one in each line, of few lengths
def _read_pause(written: str, inner: str | None, time: str | None) -> float:
    length = _break_length(time or "", written=written) if inner is None else inner
    if not length.strip():
        return DEFAULT_PAUSE_S
    number = _LENGTH.fullmatch(length)
    unit = number["unit"].lower() if number else None
    if number is None or (unit != "ms" and unit not in _UNITS):
        raise _unreadable(written)
    value = float(number["number"])
    # Division rounds once only, so that 3 ms is the same float as 0.003 s.
    duration_s = value / 1000 if unit == "ms" else value * _UNITS[unit or ""]
    return check_pause(duration_s, written=written)


def _break_length(attributes: str, *, written: str) -> str:
    if not attributes.strip(" /"):
        return ""
    time = _BREAK_TIME.fullmatch(attributes)
    if time is None or not time["length"].strip():
        raise _unreadable(written)
    return str(time["length"])


def _unreadable(written: str) -> ScriptError:
    return ScriptError(
        f"The pause {written} can't be read. Write its length in seconds or milliseconds, such as "
        f"[pause:1.5s] or [pause:500ms]; it may last 0 to {MAX_PAUSE_S:g} seconds."
    )


Part = str | float


def attach_lone_tags(parts: Sequence[Part], limits: SpeechLimits) -> tuple[list[Part], list[str]]:
    """Join texts that are only tags to the next text with words, else to the one before.

    Args:
        parts: Texts to speak and pauses in seconds, in order.
        limits: The backend's.

    Returns:
        The parts, where each text has a word, and the tags that didn't fit anywhere.
    """
    joined: list[Part] = []
    left_out: list[str] = []
    waiting: list[str] = []
    for part in parts:
        if isinstance(part, float):
            joined.append(part)
        elif not has_words(part):
            waiting.append(part)
        else:
            tags, waiting = " ".join(waiting), []
            fits = not tags or _fit(tags, part, limits)
            joined.append(f"{tags} {part}".strip() if fits else part)
            left_out += [] if fits else [tags]
    tags = " ".join(waiting)
    if tags and not _put_last(tags, joined, limits):
        left_out.append(tags)
    return joined, left_out


def _put_last(tags: str, parts: list[Part], limits: SpeechLimits) -> bool:
    """Append tags to the last words; returns whether there are any, with room for the tags."""
    for idx in reversed(range(len(parts))):
        text = parts[idx]
        if isinstance(text, str):
            if _fit(text, tags, limits):
                parts[idx] = f"{text} {tags}"
                return True
            return False
    return False


def _fit(first: str, second: str, limits: SpeechLimits) -> bool:
    return sum(map(limits.weight, f"{first} {second}")) <= limits.max_chars
