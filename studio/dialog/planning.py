"""From a dialog to segments, the units of generation.

A plan is made whole before anything is spoken, so every segment has its final `segment_idx`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from studio.dialog.language import matching_language, resolve_language
from studio.dialog.limits import SpeechLimits
from studio.dialog.line_text import Pronounce, SpokenText, is_speakable, normalize_spoken_text
from studio.dialog.model import Audio, Dialog, Line, Notice, ParamValue, Silence, Speech
from studio.dialog.names import name_key
from studio.dialog.splitting import split_text
from studio.dialog.tags import SOUND_TAGS, attach_lone_tags, cut_pauses, replace_tags
from studio.errors import ScriptError

MOOD = "mood"
"""Parameter of a line that names one of its speaker's samples, whatever the backend."""

INSTRUCT = "instruct"
"""Parameter of a line that says in words how it is spoken, for backends that take such words."""

LanguagesOf = Callable[[str], Iterable[str]]
"""What is known of a speaker's language by its name, the nearest first."""

_SHOWN_CHARS = 40
_SHOWN_LANGUAGES = 12


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """Text for one pass of a backend, at most `SpeechLimits.max_chars` long, without pause tags.

    `mood` chooses among a speaker's samples; None is the main one. `instruct` says in words how
    it is spoken. `seed_is_own` says that the line names its seed: it is spoken with that one or
    not at all.
    """

    segment_idx: int
    line_idx: int
    line_number: int
    speaker: str
    text: str
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    mood: str | None = None
    instruct: str | None = None
    seed_is_own: bool = False


@dataclass(frozen=True, slots=True)
class SilenceSegment:
    """Exact silence; from a line of its own or from a pause tag inside a line."""

    segment_idx: int
    line_idx: int
    line_number: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class AudioSegment:
    """Existing audio, laid in as it is; `path` as written in the script."""

    segment_idx: int
    line_idx: int
    line_number: int
    path: str


@dataclass(frozen=True, slots=True)
class FailedSegment:
    """A line that can't be spoken, known before anything is (empty text, a word too long)."""

    segment_idx: int
    line_idx: int
    line_number: int
    speaker: str
    text: str
    message: str


Segment = SpeechSegment | SilenceSegment | AudioSegment | FailedSegment


@dataclass(frozen=True, slots=True)
class Plan:
    """Segments with `segments[i].segment_idx == i`, in the order they are heard."""

    segments: tuple[Segment, ...]
    notices: tuple[Notice, ...] = ()


def plan(
    dialog: Dialog,
    limits: SpeechLimits,
    *,
    seed: int | None = None,
    languages_of: LanguagesOf = lambda _name: (),
    pronounce: Pronounce | None = None,
) -> Plan:
    """Cut a dialog into segments for a backend.

    Speakers whose names differ only in case get the first spelling. Pause tags inside a line cut
    it; what remains is split to `limits.max_chars`. A line that can't be spoken becomes one
    FailedSegment, and its neighbours don't suffer.

    Args:
        dialog: Lines as parsed or as made on the page.
        limits: What the backend can take.
        seed: For lines without one of their own.
        languages_of: For lines without a language of their own; asked once a speaker.
        pronounce: What a voice hears of a line's text; None for the text itself.
    """
    names = {name_key(name): name for name in dialog.speakers()}
    planner = _Planner(limits, seed, cache(languages_of), names, SpokenText(pronounce))
    for line_idx, line in enumerate(dialog):
        planner.add(line, line_idx)
    return Plan(tuple(planner.segments), tuple(planner.notices.values()))


def mood_of(line: Speech) -> str | None:
    """The mood a line names, None when it names none."""
    return _words_of(line, MOOD)


def _words_of(line: Speech, name: str) -> str | None:
    value = line.params.get(name)
    return None if value is None else " ".join(str(value).split()) or None


@dataclass(slots=True)
class _Planner:
    """Takes lines in order; `notices` keeps the first of each cause."""

    limits: SpeechLimits
    seed: int | None
    languages_of: LanguagesOf
    names: Mapping[str, str]
    spoken: SpokenText
    segments: list[Segment] = field(default_factory=list)
    notices: dict[tuple[str, str], Notice] = field(default_factory=dict)

    def add(self, line: Line, line_idx: int) -> None:
        number = line.line_number or line_idx + 1
        idx = len(self.segments)
        match line:
            case Silence():
                self.segments.append(SilenceSegment(idx, line_idx, number, line.duration_s))
            case Audio():
                self.segments.append(AudioSegment(idx, line_idx, number, line.path))
            case Speech():
                self.segments += self._speech(line, line_idx, number)

    def _speech(self, line: Speech, line_idx: int, number: int) -> list[Segment]:
        speaker = self.names[name_key(line.speaker)]
        first_idx = len(self.segments)
        try:
            language = self._language(line, speaker)
            params = self._params(line.params, number)
            text = self.spoken.of(line.text)
            parts = self._parts(text, language or line.language, number)
        except ScriptError as error:
            message = _sentence(str(error))
            return [FailedSegment(first_idx, line_idx, number, speaker, line.text, message)]
        if not parts:
            message = _why_silent(line.text, text, speaker)
            return [FailedSegment(first_idx, line_idx, number, speaker, line.text, message)]
        is_own = line.seed is not None
        seed = line.seed if is_own else self.seed
        instruct = _words_of(line, INSTRUCT) if self.limits.instructions else None
        said = (language, seed, params, mood_of(line), instruct, is_own)
        return [
            SpeechSegment(idx, line_idx, number, speaker, part, *said)
            if isinstance(part, str)
            else SilenceSegment(idx, line_idx, number, part)
            for idx, part in enumerate(parts, start=first_idx)
        ]

    def _parts(self, text: str, language: str | None, number: int) -> list[str | float]:
        """Texts to speak and pauses in seconds; nothing when the line's text can't be spoken."""
        cut = cut_pauses(normalize_spoken_text(text))
        parts: list[str | float] = []
        for part in cut:
            if isinstance(part, float):
                parts.append(part)
            else:
                parts += self._speakable(part, language, number)
        is_pause = all(isinstance(part, float) for part in cut)
        parts, left_out = attach_lone_tags(parts, self.limits)
        is_spoken = any(isinstance(part, str) for part in parts)
        if not is_spoken:
            return parts if is_pause else []
        for tags in left_out:
            message = f"there is no room for {tags} beside the words next to it; it is left out."
            self._notice("lone tag", tags, number, message)
        return parts

    def _speakable(self, text: str, language: str | None, number: int) -> list[str]:
        text = replace_tags(text, lambda tag, name: self._tag(tag, name, number))
        has_sound = any(f"[{tag}]" in text for tag in self.limits.tags)
        if not has_sound and not is_speakable(replace_tags(text, lambda _tag, _name: "")):
            return []
        pieces = split_text(text, self.limits.max_chars, language, weight=self.limits.weight)
        return list(filter(is_speakable, pieces))

    def _tag(self, tag: str, name: str, number: int) -> str:
        """What stands in a tag's place."""
        if name in self.limits.tags:
            return f"[{name}]"
        if name in SOUND_TAGS:
            self._notice("tag", name, number, f"this voice can't perform {tag}; it is left out.")
            return ""
        advice = "would be read aloud by this voice. Take it out if that is not meant."
        self._notice("tag", tag.replace("/", ""), number, f"{tag} {advice}")
        return tag

    def _language(self, line: Speech, speaker: str) -> str | None:
        known = self.limits.languages
        if line.language is None:
            return resolve_language(line.text, self.languages_of(speaker), self.limits)
        match = line.language if known is None else matching_language(line.language, known)
        if match is None:
            raise ScriptError(
                f"this voice does not speak “{line.language}”. It speaks "
                f"{_listed(sorted(known or ()))}. Change the line's language, or choose another "
                "backend."
            )
        return match

    def _params(self, params: Mapping[str, ParamValue], number: int) -> Mapping[str, ParamValue]:
        taken = {}
        for name, value in params.items():
            if name in self.limits.params:
                taken[name] = _within(name, value, *self.limits.params[name])
            elif name != MOOD and not (name == INSTRUCT and self.limits.instructions):
                message = f"this voice has no setting “{name}”; it is ignored."
                self._notice("param", name, number, message)
        return taken

    def _notice(self, kind: str, name: str, number: int, message: str) -> None:
        self.notices.setdefault((kind, name), Notice(_sentence(message), number))


def _within(name: str, value: ParamValue, minimum: float, maximum: float) -> ParamValue:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not minimum <= float(value) <= maximum:
        raise ScriptError(f"“{name}” is {value}, but this voice takes {minimum:g} to {maximum:g}.")
    return value


def _why_silent(text: str, said: str, speaker: str) -> str:
    if said != text and is_speakable(
        replace_tags(normalize_spoken_text(text), lambda _tag, _name: "")
    ):
        return (
            f"The pronunciations leave nothing of this line to speak: “{_shown(text)}”. Change "
            "them, or delete the line."
        )
    if not normalize_spoken_text(text):
        return f"This line is empty. Write what {speaker} says, or delete the line."
    return (
        f"This line holds nothing to speak: “{_shown(text)}” has no letter or digit outside of "
        "tags. Write at least one word."
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _sentence(text: str) -> str:
    """Whoever shows it puts the line's number before it."""
    return text[:1].upper() + text[1:]


def _listed(codes: Sequence[str]) -> str:
    more = len(codes) - _SHOWN_LANGUAGES
    shown = ", ".join(codes[:_SHOWN_LANGUAGES])
    return f"{shown} and {more} more" if more > 0 else shown
