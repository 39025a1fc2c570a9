"""Lines, dialogs, speakers' names, the text and the language of a line, with their limits."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

import regex

from studio.errors import BadInput, NameRejected, ScriptError

MAX_NAME_CHARS = 60

_MAX_RAW_NAME_CHARS = 5_000
"""Before it is normalized, which takes time for each character."""

_RESERVED = frozenset("[]|")


def clean_name(text: str) -> str:
    """Normalize a name to the form in which it is stored.

    NFC; runs of white space become one space; invisible characters (zero-width, direction marks,
    other controls) are removed.

    Raises:
        NameRejected: Nothing visible is left, it is longer than `MAX_NAME_CHARS`, or it contains
            one of `[ ] |`, which scripts use around names.
    """
    if len(text) > _MAX_RAW_NAME_CHARS:
        raise _too_long(text)
    name = " ".join(text.split())
    # Most names are normalized by this, and a script may have one in each line.
    if not (name.isascii() and name.isprintable()):
        visible = "".join(one for one in name if not _is_invisible(one))
        # Again, as two spaces, or a letter and its accent, may have had one between them.
        name = " ".join(unicodedata.normalize("NFC", visible).split())
    if not name:
        raise NameRejected("A speaker needs a name with at least one visible character.")
    if len(name) > MAX_NAME_CHARS:
        raise _too_long(name)
    if not _RESERVED.isdisjoint(name):
        reserved = min(_RESERVED.intersection(name))
        raise NameRejected(f"The name “{name}” holds {reserved}, which scripts use around names.")
    return name


def _too_long(name: str) -> NameRejected:
    return NameRejected(
        f"The name “{name[:20]}…” has {len(name)} characters; {MAX_NAME_CHARS} are the most."
    )


def same_name(one: str, other: str) -> bool:
    """Whether two names mean the same speaker; case is ignored."""
    return name_key(one) == name_key(other)


def name_key(name: str) -> str:
    """The key of a name for look-ups; equal for names that differ only in case."""
    if name.isascii():  # as fast as possible, since it is asked for each line
        return name.lower()
    return unicodedata.normalize("NFC", name.casefold())


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn"}


def with_place(line: int, *, unit: str = "Line") -> AbstractContextManager[None]:
    """Add the line number to errors that are raised inside, so that only a reader counts lines."""
    return _Place(line, unit)


@dataclass(slots=True)
class _Place:
    """A class, as a generator takes three times as long, and a script has 20,000 lines."""

    line: int
    unit: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, _trace: object) -> None:
        is_placed = isinstance(error, ScriptError) and error.line is not None
        if isinstance(error, ScriptError | NameRejected) and not is_placed:
            raise ScriptError(str(error), line=self.line, unit=self.unit) from error


ParamValue = float | int | str | bool

MAX_PAUSE_S = 300.0
MAX_LINE_CHARS = 100_000
MAX_LINES = 20_000
MAX_SCRIPT_BYTES = 5_000_000
MAX_SPEAKERS = 5_000


def count_speakers(names: Iterable[str | None]) -> int:
    """How many speakers some lines have, whatever the case of their names."""
    return len(set(map(name_key, filter(None, set(names)))))


def check_speaker_count(count: int) -> None:
    """Check that a dialog hasn't too many speakers, each of whom gets a voice.

    Raises:
        BadInput: It has.
    """
    if count > MAX_SPEAKERS:
        raise BadInput(f"A dialog has at most {MAX_SPEAKERS:,} speakers. Divide it into parts.")


def check_line_count(count: int) -> None:
    """Check that a dialog hasn't too many lines.

    Raises:
        ScriptError: It has.
    """
    if count > MAX_LINES:
        raise ScriptError(f"A dialog has at most {MAX_LINES:,} lines. Divide it into parts.")


@dataclass(frozen=True, slots=True)
class Speech:
    """Something a speaker says.

    `text` is one paragraph (no line breaks), with pause and sound tags as written. It may be empty:
    then the line fails when it is planned, and its neighbours don't. `line_number` is the 1-based
    line in the source; it doesn't count in comparisons.
    """

    speaker: str
    text: str
    language: str | None = None
    seed: int | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    line_number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Silence:
    """A pause between lines; 0 to `MAX_PAUSE_S` seconds."""

    duration_s: float
    line_number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Audio:
    """A recording to insert; `path` is as written in the script, `gap_s` the gap before it."""

    path: str
    line_number: int = field(default=0, compare=False)
    gap_s: float | None = None


class UnspokenKind(StrEnum):
    """What a text that isn't spoken is; a heading begins a section."""

    HEADING = "heading"
    NOTE = "note"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class Unspoken:
    """A text that stands between lines and isn't spoken; `text` is one paragraph."""

    text: str
    kind: UnspokenKind = UnspokenKind.NOTE
    line_number: int = field(default=0, compare=False)


Line = Speech | Silence | Audio | Unspoken


@dataclass(frozen=True, slots=True)
class Dialog:
    """Lines in the order of playback."""

    lines: tuple[Line, ...]

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def speakers(self) -> tuple[str, ...]:
        """Names in order of first appearance, as first written; case is ignored."""
        written = dict.fromkeys(line.speaker for line in self.lines if isinstance(line, Speech))
        seen: dict[str, str] = {}
        for name in written:  # mostly few, in many lines
            seen.setdefault(name_key(name), name)
        return tuple(seen.values())


@dataclass(frozen=True, slots=True)
class Notice:
    """A remark for the user that is no error; `line_number` 0 concerns the whole dialog.

    `further` are more lines that it concerns, the first of them; they don't count in comparisons.
    """

    message: str
    line_number: int = 0
    further: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ParsedScript:
    """A dialog, and the notices about how it was read."""

    dialog: Dialog
    notices: tuple[Notice, ...] = ()


def spelling_notices(lines: Iterable[Line]) -> tuple[Notice, ...]:
    """A notice for each further spelling of a name, at the line where it first occurs."""
    first: dict[str, Speech] = {}
    seen: set[str] = set()
    notices = []
    for line in lines:
        if not isinstance(line, Speech) or line.speaker in seen:
            continue
        seen.add(line.speaker)
        known = first.setdefault(name_key(line.speaker), line)
        if known is not line:
            message = (
                f"“{line.speaker}” (line {line.line_number}) is taken to be “{known.speaker}” "
                f"(line {known.line_number}): names that differ only in case share one voice."
            )
            notices.append(Notice(message, line.line_number))
    return tuple(notices)


_WIDE = "WF"


@dataclass(frozen=True, slots=True)
class SpeechLimits:
    """What a backend can speak in one pass; derived from its capabilities.

    Attributes:
        max_chars: Longest text of one pass, as counted by `weight`.
        params: (minimum, maximum) by the parameter's name.
        languages: None means any.
        wide_weight: How many characters a wide one (Chinese, Japanese, Korean) counts for: it is
            a syllable or two, and takes as long to say.
        instructions: Whether a line may have instructions on how to speak it.
        guess: Guesses the language of text without one; None if the model detects it itself.
    """

    max_chars: int
    tags: frozenset[str] = frozenset()
    params: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    languages: frozenset[str] | None = None
    wide_weight: float = 1.0
    instructions: bool = False
    guess: Callable[[str], str] | None = None

    def weight(self, char: str) -> float:
        """How many characters of `max_chars` a character counts for."""
        if self.wide_weight == 1:
            return 1.0
        return self.wide_weight if unicodedata.east_asian_width(char) in _WIDE else 1.0

    @property
    def chooses_language(self) -> bool:
        """Whether there are several languages, so that one has to be known for a text."""
        return self.languages is not None and len(self.languages) > 1

    def fits(self, text: str) -> bool:
        """Whether text is so short that it fits into one pass, whatever its characters weigh."""
        return len(text) * (1.0 if text.isascii() else max(1.0, self.wide_weight)) <= self.max_chars


_SURROGATES = regex.compile(r"\p{Cs}")
_SPEAKABLE = regex.compile(r"[\p{L}\p{N}]")

# Zero-width joiners between caseless letters are part of Persian and Indic spelling; elsewhere, as
# in Latin words and in emoji, they don't change the sound.
_UNHEARD = regex.compile(
    r"(?!(?<=[\p{Lo}\p{M}])[\u200c\u200d]\p{Lo})[\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cs}]"
)


def paragraph(text: str) -> str:
    """Normalize a line's text: one paragraph, white space collapsed, no surrogates.

    Zero-width and direction characters stay, as they matter on the page.
    """
    if _is_plain(text):
        one = text
    else:
        one = " ".join((text if text.isascii() else _SURROGATES.sub("\ufffd", text)).split())
    check_line_length(len(one))
    return one


def _is_plain(text: str) -> bool:
    """Whether text is normalized already, as most is, which is known sooner than it is made so."""
    return text.isascii() and text.isprintable() and "  " not in text and text == text.strip()


def check_line_length(chars: int) -> None:
    """Check the length of a line's text.

    Raises:
        ScriptError: It is longer than `MAX_LINE_CHARS`.
    """
    if chars > MAX_LINE_CHARS:
        raise ScriptError(
            f"This line has {chars:,} characters; {MAX_LINE_CHARS:,} are the most. "
            "Divide it into several lines."
        )


def normalize_spoken_text(text: str) -> str:
    """Remove what a voice can't speak: control, zero-width and direction characters."""
    if _is_plain(text):
        return text
    one = " ".join(text.split())
    if one.isascii() and one.isprintable():
        return one
    return " ".join(_UNHEARD.sub("", one).split())


def is_speakable(text: str) -> bool:
    """Whether text has a letter or a digit of any script."""
    return _SPEAKABLE.search(text) is not None


Pronounce = Callable[[str, str | None], str]
"""Gives a text in a language as it is spoken, as `PronunciationRules.spoken` does."""


@dataclass(slots=True)
class SpokenText:
    """Applies pronunciations to the lines of a dialog, and bounds how much text that adds.

    Short words with long spoken forms would otherwise soon fill the memory.

    Attributes:
        pronounce: None leaves every text unchanged.
        grown_chars: How many characters were added to the lines so far.
    """

    pronounce: Pronounce | None
    grown_chars: int = 0

    def of(self, text: str, language: str | None = None) -> str:
        """The spoken text of a line in a language.

        Raises:
            ScriptError: It is too long, or too much was added to the dialog.
        """
        if self.pronounce is None:
            return text
        has_room = self.grown_chars <= MAX_SCRIPT_BYTES
        said = self.pronounce(normalize_spoken_text(text), language) if has_room else ""
        self.grown_chars += max(0, len(said) - len(text))
        if len(said) > MAX_LINE_CHARS or not has_room:
            raise ScriptError(
                "with its pronunciations this line is too long to speak. Shorten their spoken "
                "forms, or the line."
            )
        return said


_OTHER_NAMES = {"zh": "cmn", "cmn": "zh"}


@lru_cache(maxsize=1_000)  # called for each line of a dialog
def matching_language(code: str, known: frozenset[str]) -> str | None:
    """The backend's code for a language: the same, else a broader one, else a sibling."""
    by_key = {language.casefold(): language for language in sorted(known)}
    subtags = code.casefold().split("-")
    for length in range(len(subtags), 0, -1):
        if match := by_key.get("-".join(subtags[:length])):
            return match
    same = {subtags[0], _OTHER_NAMES.get(subtags[0])}
    return next((by_key[key] for key in by_key if key.split("-")[0] in same), None)


def resolve_language(text: str, known_codes: Iterable[str], limits: SpeechLimits) -> str | None:
    """The language of text that doesn't name one.

    Args:
        text: What is spoken.
        known_codes: The languages to try in order, such as the voice's and the project's.
        limits: The backend's.

    Returns:
        The first that the backend has, as its own code; None if the backend would choose that one
        by itself, or has only one language.
    """
    known = limits.languages
    if known is None or len(known) == 1:
        return None
    matches = (matching_language(code, known) for code in known_codes)
    found = next(filter(None, matches), None)
    return None if found is None or _is_guessed(found, text, limits) else found


def find_reading_language(
    text: str, known_codes: Iterable[str], limits: SpeechLimits
) -> str | None:
    """The backend's code of the language in which it reads text whose language nobody names.

    None if somebody does, by a language that the backend has, or if it hears the language itself.
    """
    known = limits.languages
    if known is None or any(matching_language(code, known) for code in known_codes):
        return None
    if len(known) == 1:
        return next(iter(known))
    return None if limits.guess is None else limits.guess(text)


def _is_guessed(language: str, text: str, limits: SpeechLimits) -> bool:
    if limits.guess is None:
        return False
    guess, code = limits.guess(text).casefold(), language.casefold()
    return code in {guess, _OTHER_NAMES.get(guess)} or guess.startswith(f"{code}-")


_CODES = {
    "ar": "arabic العربية",
    "da": "danish dansk",
    "de": "german deutsch",
    "el": "greek ελληνικά",
    "en": "english englisch anglais inglés",
    "es": "spanish español castellano spanisch",
    "fi": "finnish suomi",
    "fr": "french français französisch",
    "he": "hebrew עברית",
    "hi": "hindi हिन्दी",
    "it": "italian italiano italienisch",
    "ja": "japanese 日本語",
    "ko": "korean 한국어",
    "nl": "dutch nederlands",
    "no": "norwegian norsk",
    "pl": "polish polski",
    "pt": "portuguese português",
    "ru": "russian русский",
    "sv": "swedish svenska",
    "sw": "swahili kiswahili",
    "tr": "turkish türkçe",
    "uk": "ukrainian українська",
    "zh": "chinese mandarin 中文",
}
LANGUAGE_CODES = tuple(_CODES)
"""Codes of the languages whose names `code_of` knows."""


def name_language(code: str) -> str:
    """The English name of a language, or its code if it isn't one of `LANGUAGE_CODES`."""
    return _CODES.get(code.partition("-")[0], code).partition(" ")[0].title()


_BY_NAME = {name: code for code, names in _CODES.items() for name in names.split()}


def code_of(written: str) -> str:
    """The BCP-47 code of a language's name; anything else is returned unchanged."""
    return _BY_NAME.get(written.strip().casefold(), written)
