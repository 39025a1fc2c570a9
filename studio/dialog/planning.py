"""Plans a dialog: turns its lines into segments, the units of generation.

The plan is complete before anything is spoken, so every segment has its final `segment_idx`. A
long line is split into pieces that the backend speaks in one pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate

import regex
import sentencex

from studio.dialog.attributes import ABOUT, UNSURE
from studio.dialog.directions import DirectionKind, apply_directions
from studio.dialog.gaps import GAP, START, Gaps, read_start
from studio.dialog.model import (
    Audio,
    Dialog,
    Line,
    Notice,
    ParamValue,
    Pronounce,
    Silence,
    Speech,
    SpeechLimits,
    SpokenText,
    Unspoken,
    UnspokenKind,
    is_speakable,
    matching_language,
    name_key,
    normalize_spoken_text,
    resolve_language,
)
from studio.dialog.pronunciation import find_spoken_language
from studio.dialog.spoken.languages import read_table
from studio.dialog.tags import (
    DEFAULT_PAUSE_S,
    SOUND_TAGS,
    TAG,
    attach_lone_tags,
    cut_pauses,
    has_words,
    may_have_tags,
    replace_each_tag,
    replace_tags,
)
from studio.errors import ScriptError

Span = tuple[int, int]

_CLAUSE_ENDS = regex.compile(r"[,;:—–…][\p{Pf}\p{Pe}\"']*(?=\s)|—|[，；：、،؛՝।]+")
_SPACES = regex.compile(r"\s+")
# Word boundaries of Unicode's annex 29, for scripts without spaces; marks stay with their word.
_WORDS_WITH_MARKS = regex.compile(
    # Of Thai and Lao, which write no spaces, only where a syllable begins with its vowel.
    r"(?w)\b(?<![\p{Ps}\p{Pi}])(?![\p{Pe}\p{Pf}\p{Po}\p{Pd}\p{M}])"
    r"(?!(?![\u0e40-\u0e44\u0ec0-\u0ec4])[\p{Thai}\p{Lao}])"
)
_WORDS = regex.compile(r"(?w)\b")
_LEVELS = (_CLAUSE_ENDS, _SPACES, _WORDS_WITH_MARKS, _WORDS)

# The sentence splitter compares all pairs of quotes and brackets; text with very many of them,
# which is no prose, is cut at clauses and words only.
_QUOTES = regex.compile(r"[\"'\p{Ps}\p{Pe}\p{Pi}\p{Pf}]")
_MAX_QUOTES = 5_000
# With wide full stops its time is quadratic, and nothing else runs meanwhile.
_WIDE_STOPS = regex.compile(r"[。！？．｡]")
_BLOCK_CHARS = 10_000

# Between two characters of Chinese and Japanese is a word boundary, except within Katakana.
_UNBROKEN = regex.compile(r"[^\s\p{Han}\p{Hiragana}]+")
_FLAG = regex.compile(r"\p{Regional_Indicator}{2}")
_SURROGATE = regex.compile(r"\p{Cs}")
_DEFAULT_LANGUAGE = "en"


def split_text(
    text: str,
    max_chars: int,
    language: str | None = None,
    *,
    weight: Callable[[str], float] | None = None,
) -> list[str]:
    """Split text into as few pieces as possible, at sentences, then clauses, then words.

    Args:
        text: One paragraph; white space around it is removed.
        max_chars: Longest piece, at least 1.
        language: BCP-47 code, by which abbreviations are told from sentence ends.
        weight: How many characters a character counts for; None for one each.

    Returns:
        Stripped, non-empty pieces in order; only white space between them is lost.

    Raises:
        ScriptError: A single word or tag is longer than `max_chars`.
    """
    text = text.strip()
    if not text:
        return []
    room = _Room(max_chars, _add_weights(text, weight))
    if room.fits(0, len(text)):
        return [text]
    masked = _mask(text)
    spans = _packed(_sentences(masked, language), masked, room)
    return [text[start:end] for start, end in spans]


def _add_weights(text: str, weight: Callable[[str], float] | None) -> Sequence[float]:
    """The weight of the text's first i characters, for each i."""
    if weight is None:
        return list(range(len(text) + 1))
    by_char = {char: weight(char) for char in set(text)}
    return list(accumulate(map(by_char.__getitem__, text), initial=0.0))


def split_sentences(text: str, max_chars: int, language: str | None = None) -> Iterator[Span]:
    """The sentences of a text by their offsets, without white space around them.

    One that is longer than `max_chars` is split further, at clauses, then words; a longer word
    stays whole.
    """
    masked = _mask(text)
    room = _Room(max_chars, _add_weights(text, None))
    for start, end in _sentences(masked, language):
        try:
            spans = list(_packed(iter([(0, end - start)]), masked[start:end], room))
        except ScriptError:
            spans = [(0, end - start)]
        yield from ((start + first, start + last) for first, last in spans)


@dataclass(frozen=True, slots=True)
class _Room:
    """How much fits into a piece; `weights[i]` is the weight of the text's first i characters."""

    max_chars: int
    weights: Sequence[float]

    def fits(self, start: int, end: int) -> bool:
        return self.weights[end] - self.weights[start] <= self.max_chars


def _mask(text: str) -> str:
    """Replace what must stay whole by something as long that is never split."""
    # Word boundaries in a long run of flag emoji take quadratic time.
    shown = _FLAG.sub("☺\N{COMBINING ACUTE ACCENT}", text)
    shown = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", shown)  # the sentence splitter's limit
    return replace_each_tag(shown, lambda tag: "x" * len(tag)) if may_have_tags(text) else shown


def _sentences(masked: str, language: str | None) -> Iterator[Span]:
    code = (language or _DEFAULT_LANGUAGE).partition("-")[0].lower()
    if len(_QUOTES.findall(masked)) > _MAX_QUOTES:
        yield 0, len(masked)
        return
    block_chars = _BLOCK_CHARS if _WIDE_STOPS.search(masked) else len(masked)
    end, size = 0, block_chars
    while end < len(masked):
        found = cut_sentences(masked[end : end + size], code)
        if end + size < len(masked):
            if len(found) < 2:
                size *= 2
                continue
            found.pop()  # it may go on
            size = block_chars
        for sentence in found:
            start, end = end, end + len(sentence)
            yield from _visible(start, end, masked)


def cut_sentences(text: str, language: str) -> list[str]:
    """The sentences of a text with the white space behind them; `language` without its region."""
    found: list[str] = []
    no_end: str = read_table("rules")["no_end"]
    for one in sentencex.segment(language, text):
        if found and regex.search(no_end, f"{found[-1][-12:]}\0{one[:80]}"):
            found[-1] += one
        else:
            found.append(one)
    return found


def _packed(sentences: Iterator[Span], masked: str, room: _Room) -> Iterator[Span]:
    """Join neighbouring spans as long as they fit."""
    weights, most = room.weights, room.max_chars
    start = end = 0
    for sentence in sentences:
        atoms: list[Span] = []
        _add_atoms(sentence, masked, room, atoms)
        for atom_start, atom_end in atoms:
            if weights[atom_end] - weights[start] > most:
                yield start, end
                start = atom_start
            end = atom_end
    yield start, end


def _add_atoms(span: Span, masked: str, room: _Room, atoms: list[Span], *, level: int = 0) -> None:
    """Split a span into ones that fit, at the first level where that is possible.

    In one loop without a call for each, as a line may have 100,000.
    """
    if room.fits(*span):
        atoms.append(span)
        return
    if level == len(_LEVELS):
        raise _too_long(span, room.max_chars)
    weights, most = room.weights, room.max_chars
    start, last = span
    for stop in (*[match.end() for match in _LEVELS[level].finditer(masked, *span)], last):
        end = stop
        while start < end and masked[start].isspace():
            start += 1
        while start < end and masked[end - 1].isspace():
            end -= 1
        if start < end:
            if weights[end] - weights[start] <= most:
                atoms.append((start, end))
            else:
                _add_atoms((start, end), masked, room, atoms, level=level + 1)
        start = stop


def _visible(start: int, end: int, masked: str) -> Iterator[Span]:
    """The span without white space at its ends; none if nothing is left."""
    text = masked[start:end]
    width = len(text.strip())
    if width:
        start = end - len(text.lstrip())
        yield start, start + width


def _too_long(span: Span, max_chars: int) -> ScriptError:
    return ScriptError(
        f"A word of {span[1] - span[0]:,} characters can't be spoken: this voice takes at most "
        f"{max_chars:,} at a time. Put spaces into it, or shorten it."
    )


MOOD = "mood"
"""Parameter that chooses among the speaker's samples by mood, on any backend."""

INSTRUCT = "instruct"
"""Parameter with instructions on how to speak the line, for backends that follow them."""

VOICE = "voice"
"""Parameter with the name of the voice that its speaker has in all lines."""

LINE_ID = "id"
"""Parameter with a line's id in another program, such as a game's table."""

DUAL = "dual"
"""Parameter of a line that a screenplay prints beside the one above it."""

FILE_NAME = "file"
"""Parameter with the name of a line's file in another program, perhaps with folders."""

MAX_DURATION = "max_duration"
"""Parameter with the most seconds that a line may last."""

AS_WRITTEN = "as_written"
"""Parameter of a line of which nothing is said in words: numbers and signs go to the voice."""

NO_SETTINGS = frozenset(
    (ABOUT, AS_WRITTEN, MOOD, VOICE, LINE_ID, FILE_NAME, MAX_DURATION, GAP, START, DUAL, UNSURE)
)
"""Parameters that no voice reads itself."""

LanguagesOf = Callable[[str], Iterable[str]]
"""The languages to try for a speaker's lines, in order, by the speaker's name."""

MoodsOf = Callable[[str], Collection[str]]
"""The moods of which a speaker has samples, by the speaker's name."""

_DIRECTED = "direction"
_UNFOLLOWED = tuple((_DIRECTED, kind) for kind in (DirectionKind.DIRECTION, DirectionKind.CUE))
_SHOWN_CHARS = 40
_SHOWN_LANGUAGES = 12


@dataclass(frozen=True, slots=True)
class SpeechSegment:
    """Text for one pass of a backend, at most `SpeechLimits.max_chars` long, without pause tags.

    `mood` chooses among the speaker's samples; None is the main one. `instruct` is an instruction
    on how to speak it. `seed_is_own` says that the line names its seed, so that it is never retried
    with another one. `said_in` is the language in whose words its line is said, if it is.
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
    said_in: str | None = None


@dataclass(frozen=True, slots=True)
class SilenceSegment:
    """Exact silence, from a line of its own or from a pause tag inside a line."""

    segment_idx: int
    line_idx: int
    line_number: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class AudioSegment:
    """A recording, inserted unchanged; `path` is as written in the script."""

    segment_idx: int
    line_idx: int
    line_number: int
    path: str


@dataclass(frozen=True, slots=True)
class FailedSegment:
    """A line that planning finds can't be spoken, such as one that is empty."""

    segment_idx: int
    line_idx: int
    line_number: int
    speaker: str
    text: str
    message: str


Segment = SpeechSegment | SilenceSegment | AudioSegment | FailedSegment


@dataclass(frozen=True, slots=True)
class Plan:
    """Segments in the order of playback, with `segments[i].segment_idx == i`.

    `sections` has the title of each section and the index of the first segment that may follow it.
    `gaps_s` has the gap before a segment, by its index, for the first segments of lines with a gap;
    `starts_s` has when those begin that say so, in seconds of the scene.
    `lines` are those that were planned, as they are written. `unfollowed` are those of the notices
    that raise no doubt: the voice can't follow a stage direction or a cue.
    """

    segments: tuple[Segment, ...]
    notices: tuple[Notice, ...] = ()
    sections: tuple[tuple[int, str], ...] = ()
    gaps_s: Mapping[int, float] = field(default_factory=dict)
    starts_s: Mapping[int, float] = field(default_factory=dict)
    lines: tuple[Line, ...] = ()
    unfollowed: frozenset[Notice] = frozenset()

    def with_gaps(self, gaps: Gaps, dialog: Dialog) -> Plan:
        """The plan of a dialog with the gaps between its lines, and when they begin."""
        found_s, begin_s = list(gaps.find(dialog)), list(map(read_start, dialog))
        first: dict[int, int] = {}
        for segment in self.segments:
            first.setdefault(segment.line_idx, segment.segment_idx)
        gaps_s = {idx: found_s[line_idx] for line_idx, idx in first.items() if found_s[line_idx]}
        starts_s = {
            idx: start_s for at, idx in first.items() if (start_s := begin_s[at]) is not None
        }
        return replace(self, gaps_s=gaps_s, starts_s=starts_s)

    def number_lines(self) -> dict[int, int]:
        """The numbers of lines as a page has them, of those that sound, by the line's index."""
        sounding = (idx for idx, one in enumerate(self.lines) if isinstance(one, Speech | Audio))
        return {line_idx: number for number, line_idx in enumerate(sounding, start=1)}

    def find_speech(self, line_idx: int) -> Speech | None:
        """A line as it is written; None of one without words."""
        line = self.lines[line_idx] if line_idx < len(self.lines) else None
        return line if isinstance(line, Speech) else None

    def measure_silence_s(self) -> float:
        """The duration of all pauses and gaps."""
        pauses = (one.duration_s for one in self.segments if isinstance(one, SilenceSegment))
        return sum(pauses) + sum(self.gaps_s.values())


BRACKETS = "[(<（"
"""What may open a tag, a pause or a direction."""


@dataclass(slots=True)
class PlanCheck:
    """Looks only for notices, failures and speakers: long text stays in one segment.

    Brackets take as long as a hundred other characters, so that only so many are looked into; a
    check says nothing of further lines that have some.

    Attributes:
        left_brackets: How many may still come.
    """

    left_brackets: int = 50_000

    def takes(self, text: str) -> bool:
        """Whether the text of a line is looked into; counts its brackets."""
        brackets = sum(map(text.count, BRACKETS))
        is_taken = not brackets or self.left_brackets > 0
        self.left_brackets -= brackets
        return is_taken

    def plan(
        self,
        dialog: Dialog,
        limits: SpeechLimits,
        *,
        languages_of: LanguagesOf,
        moods_of: MoodsOf,
        pronounce: Pronounce | None = None,
    ) -> Plan:
        """As the function `plan`, of which it has the notices, the failures and the speakers."""
        voices = cache(languages_of), cache(moods_of)
        return _Planner(limits, None, *voices, SpokenText(pronounce), self).plan(dialog)


def plan(
    dialog: Dialog,
    limits: SpeechLimits,
    *,
    seed: int | None = None,
    languages_of: LanguagesOf = lambda _name: (),
    moods_of: MoodsOf = lambda _name: (),
    pronounce: Pronounce | None = None,
) -> Plan:
    """Split a dialog into segments for a backend.

    Speakers whose names differ only in case get the first spelling. A line is split at its pause
    tags, and the rest to `limits.max_chars`. A line that can't be spoken becomes one FailedSegment,
    which doesn't affect the other lines.

    Args:
        dialog: Lines from a script or from the page.
        limits: The backend's.
        seed: For lines without a seed of their own.
        languages_of: For lines without a language of their own; called once for each speaker.
        moods_of: For stage directions in lines without a mood; called once for each speaker.
        pronounce: Applies pronunciations to a line's text; None leaves it unchanged.
    """
    voices = cache(languages_of), cache(moods_of)
    return _Planner(limits, seed, *voices, SpokenText(pronounce)).plan(dialog)


def split_plain_lines(dialog: Dialog, limits: SpeechLimits) -> tuple[Dialog, list[SpeechSegment]]:
    """Set lines aside about which a plan without pronunciations has no notices, as most are.

    Args:
        dialog: Lines from a script or from the page.
        limits: The backend's.

    Returns:
        The other lines, with the first spelling of each name; and of each speaker with lines that
        were set aside a segment for the first one.
    """
    names = {name_key(name): name for name in dialog.speakers()}
    others: list[Line] = []
    first: dict[str, SpeechSegment] = {}
    known: set[str] = set()
    for line_idx, line in enumerate(dialog):
        if not isinstance(line, Speech):
            continue
        is_plain = _is_plain(line, limits)
        if is_plain and (line.speaker in known or not is_speakable(line.text)):
            continue
        name, number = names[name_key(line.speaker)], line.line_number or line_idx + 1
        if is_plain:
            known.add(line.speaker)
            first.setdefault(name, SpeechSegment(0, line_idx, number, name, line.text))
        else:
            others.append(replace(line, speaker=name, line_number=number))
    return Dialog(tuple(others)), list(first.values())


def _is_plain(line: Speech, limits: SpeechLimits) -> bool:
    """Whether a line has no settings, tags or directions, and is short."""
    has_own = line.language is not None or line.params
    may_be_directed = may_have_tags(line.text) or "（" in line.text
    return not has_own and limits.fits(line.text) and not may_be_directed


def mood_of(line: Speech) -> str | None:
    """The mood that a line names, None if it names none."""
    return _words_of(line, MOOD)


def _words_of(line: Speech, name: str) -> str | None:
    value = line.params.get(name)
    return None if value is None else " ".join(str(value).split()) or None


@dataclass(slots=True)
class _Planner:
    """Plans lines in order; `notices` has the first notice of each cause."""

    limits: SpeechLimits
    seed: int | None
    languages_of: LanguagesOf
    moods_of: MoodsOf
    spoken: SpokenText
    check: PlanCheck | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    sections: list[tuple[int, str]] = field(default_factory=list)
    notices: dict[tuple[str, str], Notice] = field(default_factory=dict)

    def plan(self, dialog: Dialog) -> Plan:
        self.names = {name_key(name): name for name in dialog.speakers()}
        for line_idx, line in enumerate(dialog):
            self.add(line, line_idx)
        unfollowed = frozenset(filter(None, map(self.notices.get, _UNFOLLOWED)))
        return Plan(
            tuple(self.segments),
            tuple(self.notices.values()),
            tuple(self.sections),
            lines=dialog.lines,
            unfollowed=unfollowed,
        )

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
            case Unspoken(text, UnspokenKind.HEADING):
                self.sections.append((idx, text))
            case Unspoken():
                pass

    def _speech(self, line: Speech, line_idx: int, number: int) -> list[Segment]:
        speaker = self.names[name_key(line.speaker)]
        first_idx = len(self.segments)
        if self.check is not None and not self.check.takes(line.text):
            return [SpeechSegment(first_idx, line_idx, number, speaker, line.text)]
        try:
            language = self._language(line, speaker)
            params = self._params(line.params, number)
            directed = apply_directions(line.text, self.limits, self.moods_of(speaker))
            said_in = self._find_spoken_language(line, language, directed.text)
            text = self.spoken.of(directed.text, said_in)
            said_in = None if text == directed.text else said_in
            parts = self._parts(text, language or line.language, number)
        except ScriptError as error:
            message = _sentence(str(error))
            return [FailedSegment(first_idx, line_idx, number, speaker, line.text, message)]
        for kind, message in directed.notices.items():
            self._notice(_DIRECTED, kind, number, message)
        if not parts and not is_speakable(directed.text):
            beats = ("…" in directed.text or "..." in directed.text) + 1  # none behind directions
            beats *= bool(normalize_spoken_text(directed.text))
            parts = [DEFAULT_PAUSE_S * beats] if normalize_spoken_text(line.text) else []
        if not parts:
            message = _why_silent(line.text, text, speaker)
            return [FailedSegment(first_idx, line_idx, number, speaker, line.text, message)]
        is_own = line.seed is not None
        seed = line.seed if is_own else self.seed
        own = _words_of(line, INSTRUCT) if self.limits.instructions else None
        instruct = ", then ".join(filter(None, (own, *directed.instructions))) or None
        said = (language, seed, params, mood_of(line) or directed.mood, instruct, is_own, said_in)
        return [
            SpeechSegment(idx, line_idx, number, speaker, part, *said)
            if isinstance(part, str)
            else SilenceSegment(idx, line_idx, number, part)
            for idx, part in enumerate(parts, start=first_idx)
        ]

    def _parts(self, text: str, language: str | None, number: int) -> list[str | float]:
        """Texts to speak and pauses in seconds; empty if the line's text can't be spoken."""
        text = normalize_spoken_text(text)
        if not may_have_tags(text):  # as in most lines
            return [*self._cut_words(text, language)] if is_speakable(text) else []
        cut = cut_pauses(text)
        parts: list[str | float] = []
        for part in cut:
            if isinstance(part, float):
                parts.append(part)
            else:
                parts += self._speakable(part, language, number)
        is_pause = all(isinstance(part, float) for part in cut)
        said = "".join(part for part in parts if isinstance(part, str))
        if not may_have_tags(said):
            return parts if said or is_pause else []
        parts, left_out = attach_lone_tags(parts, self.limits)
        is_spoken = any(isinstance(part, str) for part in parts)
        if not is_spoken:
            return parts if is_pause else []
        for tags in left_out:
            message = f"there is no room for {tags} beside the words next to it; it is left out."
            self._notice("lone tag", tags, number, message)
        return parts

    def _speakable(self, text: str, language: str | None, number: int) -> list[str]:
        if not may_have_tags(text):  # as between the pauses of most lines
            return self._cut_words(text, language) if is_speakable(text) else []
        text = replace_tags(text, lambda tag, name: self._tag(tag, name, number))
        has_sound = any(f"[{tag}]" in text for tag in self.limits.tags)
        if not has_sound and not has_words(text):
            return []
        return self._cut_words(text, language)

    def _cut_words(self, text: str, language: str | None) -> list[str]:
        limits = self.limits
        if limits.fits(text) or (self.check is not None and self._has_short_words(text)):
            return [text.strip()] if is_speakable(text) else []
        weight = limits.weight if limits.wide_weight != 1 else None
        pieces = split_text(text, limits.max_chars, language, weight=weight)
        return list(filter(is_speakable, pieces))

    def _has_short_words(self, text: str) -> bool:
        """Whether a text can surely be split, and no piece would be nothing but tags."""
        if TAG.search(text):
            return False
        unbroken = text.split() if text.isascii() else _UNBROKEN.findall(text)
        return self.limits.fits(max(unbroken, key=len, default="") + "x")

    def _tag(self, tag: str, name: str, number: int) -> str:
        """The replacement of a tag: the tag itself, or nothing if the backend can't perform it."""
        if name in self.limits.tags:
            return f"[{name}]"
        if name in SOUND_TAGS:
            self._notice("tag", name, number, f"this voice can't perform {tag}; it is left out.")
            return ""
        message = f"{tag} would be read aloud by this voice. Take it out if that is not meant."
        self._notice("tag", tag.replace("/", ""), number, message)
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
                "voice engine."
            )
        return match

    def _find_spoken_language(self, line: Speech, chosen: str | None, text: str) -> str | None:
        if self.spoken.pronounce is None or line.params.get(AS_WRITTEN):
            return None
        known = (line.language, chosen, *self.languages_of(self.names[name_key(line.speaker)]))
        return find_spoken_language(text, known, self.limits)

    def _params(self, params: Mapping[str, ParamValue], number: int) -> Mapping[str, ParamValue]:
        taken = {}
        for name, value in params.items():
            if name in self.limits.params:
                taken[name] = _within(name, value, *self.limits.params[name])
            elif name not in NO_SETTINGS and not (name == INSTRUCT and self.limits.instructions):
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
    if said != text and has_words(normalize_spoken_text(text)):
        return (
            f"The pronunciations leave nothing of this line to speak: “{_shown(text)}”. Change "
            "them, or delete the line."
        )
    if not normalize_spoken_text(text):
        return f"This line is empty. Write what {speaker} says, or delete the line."
    return (
        f"Nothing to say here: “{_shown(text)}” has no letter or digit outside of tags. Add a word."
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _sentence(text: str) -> str:
    """Capitalize a message; the line's number is shown in front of it."""
    return text[:1].upper() + text[1:]


def _listed(codes: Sequence[str]) -> str:
    more = len(codes) - _SHOWN_LANGUAGES
    shown = ", ".join(codes[:_SHOWN_LANGUAGES])
    return f"{shown} and {more} more" if more > 0 else shown
