"""Stage directions in a line's text: what says how the words are said, and isn't said itself.

`(whispering) How long?`, `(coughs)`, `[SFX: door]` and `[direction: to Ben, at the door]` are
directions; what stands in parentheses in prose, such as `(and I mean it)`, is spoken. The rule:

- `[direction: …]`, `[SFX: …]`, `[MUSIC: …]` and the like are directions wherever they stand.
- A manner or a sound that is known, such as `(softly)` or `[excited]`, is one wherever it stands.
- So is `[She points.]`, a sentence in square brackets, and at the start of a line what
  `[looking at the water]` begins with.
- At the start of a line, or alone, `(…)` is one as well if it begins with a word such as
  “smiling”, “angrily” or “to”, and, with a doubt, if it is of a few words that nobody says to
  somebody else: no “I”, “you”, no question, and no name such as “Reuters”.
- Everything else is spoken; at the start of a line with a doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import regex

from studio.dialog.model import SpeechLimits, name_key
from studio.dialog.tags import (
    DEFAULT_PAUSE_S,
    SOUND_TAGS,
    find_sounds,
    sound_name,
    tidy_spaces,
    write_pause,
)
from studio.dialog.text_view import Span, TextView, leave_out
from studio.storage.text_cache import text_cache

MAX_DIRECTION_CHARS = 2_000

CUE_WORDS = (
    r"(?:sfx|f/?x|sound(?:\s+(?:effects?|fx|cue))?|(?:intro|outro|theme|background|closing)\s+music"
    r"|music(?:\s+cue)?|ambien(?:ce|t)|jingle|grams|atmos?|spot\s+(?:effects?|fx)|stinger"
    r"|geräusche?|musik|bruitages?|musique|efectos?(?:\s+de\s+sonido)?|sonidos?|m[uú]sica|rumori"
    r"|шум|музыка|効果音|音楽|音效|音乐)"
)
"""What a cue for sounds or music begins with, where a speaker's name would stand."""

_DIRECTION = regex.compile(
    rf"""
      \[ \s*+ (?: direction \s*+ : (?P<named>[^\[\]]{{1,{MAX_DIRECTION_CHARS}}})
               | (?P<cue>{CUE_WORDS} \b [^\[\]]{{0,{MAX_DIRECTION_CHARS}}})
               | (?P<square>(?:[^\[\]|:]|(?<=\d):(?=\d)){{1,60}}) ) \]
    | [(（] (?!https?:|www\.|mailto:|[/\#]) (?P<round>[^()（）]{{1,{MAX_DIRECTION_CHARS}}}) [)）]
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_PAUSE_TAG = regex.compile(r"\s*pause\b\s*(?:(?:[:=+\-\d]|\.\d).*|\.?\s*)", regex.IGNORECASE)
_PAUSED = regex.compile(
    r"(?:(?:a|long|short|brief|slight|dramatic|awkward|another)\s)*pauses?(?:\s.{1,40})?"
    r"|(?:(?:a|long|short|brief|slight|another)\s)+(?:beat|silence)",
    regex.IGNORECASE,
)
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}'’.-]*[\p{L}\p{M}][\p{L}\p{M}\p{N}'’-]*")


def word_set(words: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(words.split())


# Words that say a manner or a sound wherever they stand; a phrase of nothing but these and the
# words below them is a direction even between words that are spoken.
_MANNERS = word_set(
    """
    aside whisper whispers whispered whispering shout shouts shouted shouting yell yells yelling
    scream screams screaming mutter mutters muttering mumble mumbles mumbling murmur murmurs
    murmuring growl growls growling hiss hisses hissing snap snaps snapping sing sings singing
    hum hums humming laugh laughs laughing laughter chuckle chuckles chuckling giggle giggles
    giggling snicker snickers smirk smirks smirking smile smiles smiling grin grins grinning
    frown frowns frowning sob sobs sobbing cry cries crying weep weeps weeping sigh sighs sighing
    groan groans groaning moan moans moaning gasp gasps gasping cough coughs coughing sniff sniffs
    sniffle sniffles sniffling snort snorts yawn yawns yawning gulp gulps hiccup hiccups shrug
    shrugs shrugging nod nods nodding stammer stammers stammering stutter stutters stuttering
    exhale exhales inhale inhales breathless breathlessly panting
    softly quietly gently loudly slowly quickly angrily sadly happily cheerfully nervously calmly
    coldly coolly warmly dryly drily sarcastically ironically excitedly eagerly wearily tiredly
    sleepily bitterly sternly firmly flatly playfully teasingly mockingly thoughtfully hesitantly
    reluctantly sharply abruptly urgently anxiously fearfully gravely solemnly seriously tenderly
    lovingly curtly timidly shyly proudly smugly sweetly hoarsely dreamily indignantly impatiently
    patiently desperately frantically breezily enthusiastically sympathetically incredulously
    soft quiet loud softer quieter louder faster slower angry sad happy excited nervous calm
    cheerful sarcastic tired bored scared afraid frightened worried annoyed amused surprised
    shocked confused serious curious disgusted delighted relieved embarrassed hopeful thoughtful
    beat pauses pausing deadpan off off-mic off-camera offstage offscreen overlapping interrupting
    reading
    crosstalk inaudible unintelligible indistinct
    leise laut flüsternd flüstert lachend lacht lachen seufzt seufzend hustet ruft rufend schreit
    schreiend wütend traurig fröhlich zögernd weint weinend
    riendo ríe ríen risas risita risitas susurra susurrando suspira suspirando grita gritando
    llora llorando tose tosiendo aparte
    riant rires rit chuchote chuchotant soupire soupirant crie criant pleure pleurant tousse
    ridendo ride risate sussurra sussurrando sospira sospirando grida gridando piange
    """
).union(word for name in SOUND_TAGS for word in name.split())
_SOUNDS_OF_OTHERS = frozenset(("applause", "cheer", "clap", "music", "silence"))
_BETWEEN = word_set(
    "very slightly almost more still then again and a an the little bit half to himself herself"
    " themselves oneself o.s v.o under his her their breath voice in low high deep throat clears"
    " clear clearing sound of with tone"
)
_BEGINS = word_set(
    "to as in with without still under from off over into after before looking almost"
)
# Adverbs that speakers use in parentheses themselves, and participles that begin a clause.
_NO_MANNERS = word_set(
    """
    only really actually probably finally especially usually obviously apparently supposedly
    possibly mostly hopefully allegedly literally basically honestly certainly surely early
    likely family reply apply daily weekly monthly yearly technically theoretically hardly nearly
    including excluding according assuming meaning speaking considering regarding concerning
    depending nothing something anything everything thing king morning evening during bring
    """
)
_SAID_TO_SOMEBODY = word_set(
    """
    i i'm i've i'd i'll you you're you've you'll we we're we've we'll me my mine your yours our us
    it's that's what's isn't don't doesn't didn't won't can't is are was were am be do does did have
    has had will would could should please yes no not okay and but or if because which who what
    ich du wir mir mich dir dich uns ist sind und aber je tu nous vous est yo tú es
    """
)
_TO_SOMEBODY = word_set(
    "i i'm i've i'd i'll you you're you've you'll we we're we've we'll me my mine your yours our"
    " us ich du wir mir mich dir dich uns mein meine dein deine unser unsere euch"
    " je j'ai tu nous vous mon ma ton ta yo tú mi nosotros io noi voi eu você"
    " я меня мне мной мой моя моё мои мы нас нам наш наша ты тебя тебе твой твоя вы вас вам"
)
_MOST_FIRST = 20
"""How many brackets in a row may be at the start of a line."""
_FEW_WORDS = 4
_MOST_WORDS = 14
_NO_SPACES = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_MOST_WIDE_CHARS = 12


class DirectionKind(StrEnum):
    """What is done with brackets in a line."""

    DIRECTION = "direction"
    DOUBTED = "doubted"
    """A direction, by its place and length only."""
    CUE = "cue"
    """A sound or music, which no voice performs."""
    SPOKEN = "spoken"
    """Words at the start of a line that aren't taken for a direction, which may be doubted."""


class Direction(NamedTuple):
    """Brackets in a line's text from `start` to `end`; `words` are what stands inside.

    A tuple, as the longest line has 30,000.
    """

    start: int
    end: int
    words: str
    kind: DirectionKind

    @property
    def is_spoken(self) -> bool:
        """Whether the voice says the words."""
        return self.kind is DirectionKind.SPOKEN

    @property
    def is_followed(self) -> bool:
        """Whether a voice that can follows it, in how it says the line."""
        return self.kind in (DirectionKind.DIRECTION, DirectionKind.DOUBTED)


def find_directions(text: str) -> tuple[Direction, ...]:
    """Find the stage directions of a line, and the words at its start that may be one.

    Args:
        text: As written, one paragraph.
    """
    may_have_some = "[" in text or "(" in text or "（" in text
    return tuple(_iter_directions(text)) if may_have_some else ()


@text_cache  # the same few words stand in brackets, and are looked at repeatedly
def is_direction(inside: str) -> bool:
    """Whether words in brackets are known to be a direction, wherever they stand."""
    name = sound_name(inside).rstrip(".")
    return _is_manner(inside) or name in SOUND_TAGS or _PAUSED.fullmatch(name) is not None


def begins_direction(inside: str) -> bool:
    """Whether words in parentheses, at the start of a line or alone, are surely a direction."""
    return _classify_first(inside) is DirectionKind.DIRECTION


def tells_action(inside: str) -> bool:
    """Whether words in parentheses are a sentence about what happens: `(He turns away.)`.

    Who speaks of himself or to somebody, as in “(And I mean it.)”, says it.
    """
    is_sentence = inside[:1].isupper() and inside.endswith(".")
    return is_sentence and _TO_SOMEBODY.isdisjoint(_words(inside))


DIRECTION = "[direction: "
"""How a direction begins that nobody would take for one without it."""


def write_direction(words: str, *, is_first: bool) -> str:
    """Write words that are surely a direction so that `find_directions` finds them.

    Args:
        words: Without brackets.
        is_first: Whether they begin the line.
    """
    plain = " ".join(words.translate(_BRACKETS).split())[:MAX_DIRECTION_CHARS].strip(" .:;,")
    if is_direction(plain) or (is_first and begins_direction(plain)):
        return f"({plain})"
    return f"{DIRECTION}{plain}]" if plain else ""


_BRACKETS = str.maketrans("[]()（）", "      ")


def _iter_directions(text: str) -> Iterator[Direction]:
    is_first = True
    end, last = 0, len(text.rstrip(" ."))
    for number, match in enumerate(_DIRECTION.finditer(text)):
        start = match.start()
        is_first = is_first and number < _MOST_FIRST and not text[end:start].strip()
        end, form = match.end(), match.lastgroup
        assert form is not None, "each form of brackets is a group"
        inside = match[form]
        kind = _classify(form, inside)
        if kind is None and is_first:
            kind = _classify_leading(form, inside, is_alone=end >= last)
        if kind is not None:
            yield Direction(start, end, inside.strip(" .:;,"), kind)


@lru_cache(maxsize=1_000)  # as for `is_direction`; the pattern bounds it
def _classify(form: str, inside: str) -> DirectionKind | None:
    """What brackets are wherever they stand.

    Args:
        form: The name of the group of `_DIRECTION` that has what stands inside.
        inside: That.
    """
    is_known = False
    match form:
        case "named":
            is_known = bool(inside.strip())
        case "cue":
            # `[music]` alone is a tag that some voices perform.
            return None if sound_name(inside) in SOUND_TAGS else DirectionKind.CUE
        case "square" if not _is_tag(inside):
            is_known = is_direction(sound_name(inside)) or tells_action(inside.strip())
        case "round" if not _is_silent(inside):
            is_known = is_direction(inside)
    return DirectionKind.DIRECTION if is_known else None


def _classify_leading(form: str, inside: str, *, is_alone: bool) -> DirectionKind | None:
    """What brackets at the start of a line are that say nothing elsewhere."""
    if form == "square" and not _is_tag(inside):
        return DirectionKind.DIRECTION if begins_direction(inside) else None
    if form == "round" and not _is_silent(inside):
        return _classify_first(inside, is_alone=is_alone)
    return None


def _is_tag(inside: str) -> bool:
    """Whether square brackets are a sound's tag or a pause."""
    name = sound_name(inside)
    return name in SOUND_TAGS or _PAUSE_TAG.fullmatch(name) is not None


def _is_silent(inside: str) -> bool:
    """Whether parentheses are a pause, or have no word."""
    return _PAUSE_TAG.fullmatch(inside) is not None or not _WORD.search(inside)


def _is_manner(inside: str) -> bool:
    words = _words(inside)
    if not words or _is_wide(inside):
        return False
    known = [word in _MANNERS and word not in _SOUNDS_OF_OTHERS for word in words]
    others = (word for word, is_known in zip(words, known, strict=True) if not is_known)
    return any(known) and all(word in _BETWEEN for word in others)


def _classify_first(inside: str, *, is_alone: bool = False) -> DirectionKind:
    words = _words(inside)
    if _is_wide(inside):
        return DirectionKind.DOUBTED if len(inside) <= _MOST_WIDE_CHARS else DirectionKind.SPOKEN
    is_asked = "?" in inside or "!" in inside
    if not words or is_asked or len(words) > _MOST_WORDS:
        return DirectionKind.SPOKEN
    if _begins_manner(words) or is_direction(inside):
        return DirectionKind.DIRECTION
    is_said = not _SAID_TO_SOMEBODY.isdisjoint(words) or len(words) > _FEW_WORDS
    # “(Reuters) The strike …” names a source; “(He turns away.)” alone is an action.
    is_name = inside.strip()[:1].isupper() and not is_alone
    return DirectionKind.SPOKEN if is_said or is_name else DirectionKind.DOUBTED


def _begins_manner(words: list[str]) -> bool:
    first = words[0]
    if first in _NO_MANNERS:
        return False
    is_adverb = first.endswith("ly") and len(words) <= _FEW_WORDS
    if first in _MANNERS or is_adverb or first.endswith("ing"):
        return True
    # “to Ben and the others”, but not “to be honest” or “as you know”
    return len(words) > 1 and first in _BEGINS and _SAID_TO_SOMEBODY.isdisjoint({*words} - {"and"})


@text_cache  # as for `is_direction`
def _words(inside: str) -> list[str]:
    return [word.casefold().replace("’", "'") for word in _WORD.findall(inside)]


def _is_wide(inside: str) -> bool:
    return _NO_SPACES.search(inside) is not None


def find_tag(words: str, tags: Collection[str]) -> str | None:
    """The sound tag of a voice that performs a direction, such as `cough` for “coughs”."""
    if not tags:
        return None
    name = sound_name(words)
    if name in tags:
        return name
    stem = _stem(name)
    return next((tag for tag in sorted(tags) if _stem(tag) == stem), None)


def find_mood(words: str, moods: Collection[str]) -> str | None:
    """The mood of a voice that a direction asks for, such as “angry” for “very angrily”."""
    if not moods:
        return None
    by_key = {name_key(mood): mood for mood in moods}
    if exact := by_key.get(name_key(" ".join(words.split()))):
        return exact
    stems = {_stem(word) for word in _words(words)}
    return next((mood for key, mood in by_key.items() if _stem(key) in stems), None)


_ENDINGS = regex.compile(r"(?:ter|ing|ed|es|s|e)$")


def _stem(name: str) -> str:
    """What “whisper”, “whispers” and “whispering”, “angry” and “angrily” have in common."""
    stem = regex.sub(r"ily$", "y", name)
    stem = stem.removesuffix("ly") if len(stem) > len("ly") + 2 else stem
    cut = _ENDINGS.sub("", stem)
    return cut if len(cut) > 2 else stem


def directed_mood(text: str, moods: Collection[str]) -> str | None:
    """The first mood that a line's directions ask for; None without one."""
    if not moods:
        return None
    directions = (one for one in find_directions(text) if one.kind is DirectionKind.DIRECTION)
    asked = dict.fromkeys(one.words for one in directions)
    return next(filter(None, (find_mood(words, moods) for words in asked)), None)


_BEATS = frozenset(("beat", "silence"))


class Effect(StrEnum):
    """What a voice does with a stage direction."""

    SPOKEN = "spoken"
    PAUSE = "pause"
    MOOD = "mood"
    TAG = "tag"
    INSTRUCTION = "instruction"
    NONE = "none"


def find_effect(direction: Direction, limits: SpeechLimits, moods: Collection[str]) -> Effect:
    """What becomes of a direction: a pause, a sound, a mood, an instruction, or nothing.

    Args:
        direction: In a line's text.
        limits: The backend's.
        moods: The moods of which the speaker has samples.
    """
    if direction.is_spoken:
        return Effect.SPOKEN
    if direction.kind is DirectionKind.CUE:
        return Effect.NONE
    name = sound_name(direction.words)
    if name in _BEATS or _PAUSED.fullmatch(name):
        return Effect.PAUSE
    if find_tag(direction.words, limits.tags):
        return Effect.TAG
    if find_mood(direction.words, moods):
        return Effect.MOOD
    return Effect.INSTRUCTION if limits.instructions else Effect.NONE


def describe_effect(direction: Direction, limits: SpeechLimits, moods: Collection[str]) -> str:
    """What a voice does with a direction that isn't spoken, as a sentence. Arguments as above."""
    words = _shorten(direction.words)
    match find_effect(direction, limits, moods):
        case Effect.PAUSE:
            return f"“{words}” becomes a pause of {DEFAULT_PAUSE_S:g} s."
        case Effect.TAG:
            return f"“{words}” becomes the sound [{find_tag(direction.words, limits.tags)}]."
        case Effect.MOOD:
            return f"“{words}” chooses the mood “{find_mood(direction.words, moods)}”."
        case Effect.INSTRUCTION:
            return f"“{words}” goes to the voice as an instruction."
        case _:
            is_cue = direction.kind is DirectionKind.CUE
            return (_BY_KIND[direction.kind] if is_cue else _NOT_FOLLOWED).replace("{}", words)


_NOT_FOLLOWED = "“{}” is a stage direction and isn't spoken; this voice can't follow it."
_BY_KIND = {
    DirectionKind.CUE: "“{}” is a cue for sounds or music; it isn't spoken.",
    DirectionKind.DOUBTED: (
        "“({})” is taken for a stage direction and isn't spoken. Take the parentheses away to have "
        "it spoken."
    ),
    DirectionKind.SPOKEN: (
        "“({})” is spoken. If it says how the line is said, write [direction: {}]."
    ),
}
_SHOWN_CHARS = 60


@dataclass(slots=True)
class Directed:
    """A line without its stage directions.

    Attributes:
        text: What remains to be spoken, with tags for the sounds that the voice performs.
        mood: The first mood asked for of which the speaker has a sample.
        instructions: What the backend is told about how the line is said.
        notices: What becomes of directions that nobody follows, the first of each kind.
    """

    text: str
    mood: str | None = None
    instructions: list[str] = field(default_factory=list)
    notices: dict[str, str] = field(default_factory=dict)


def apply_directions(text: str, limits: SpeechLimits, moods: Collection[str]) -> Directed:
    """Take the stage directions out of a line, and follow them as far as the voice can.

    Args:
        text: As written.
        limits: The backend's.
        moods: The moods of which the speaker has samples.
    """
    directed = Directed(text)
    pieces: list[str] = []
    end = 0
    # Of the same few words in many brackets, what becomes of them is found out once.
    known: dict[tuple[DirectionKind, str], tuple[Effect, str]] = {}
    for one in find_directions(text):
        key = one.kind, one.words
        if key not in known:
            effect = find_effect(one, limits, moods)
            _explain(directed, one, effect)
            if effect is Effect.MOOD:
                directed.mood = directed.mood or find_mood(one.words, moods)
            known[key] = effect, _stand_in(one.words, effect, limits)
        effect, stand_in = known[key]
        if effect is Effect.SPOKEN:
            continue
        if effect is Effect.INSTRUCTION:
            directed.instructions.append(one.words)
        pieces += (text[end : one.start], stand_in)
        end = one.end
    if pieces:
        directed.text = tidy_spaces("".join((*pieces, text[end:])))
    return directed


def _list_unspoken(text: str) -> list[Span]:
    return [(one.start, one.end) for one in find_directions(text) if not one.is_spoken]


def cut_directions(text: str) -> TextView:
    """A line's text without its stage directions, which no voice says."""
    return leave_out(text, _list_unspoken(text))


def find_said(text: str) -> TextView:
    """What a voice says of a text, as captions show it: without pauses, sounds and directions."""
    return leave_out(text, [*find_sounds(text), *_list_unspoken(text)])


def _stand_in(words: str, effect: Effect, limits: SpeechLimits) -> str:
    """What stands in a direction's place."""
    if effect is Effect.PAUSE:
        return f" {write_pause(DEFAULT_PAUSE_S)} "
    return f" [{find_tag(words, limits.tags)}] " if effect is Effect.TAG else " "


def _explain(directed: Directed, direction: Direction, effect: Effect) -> None:
    kind = direction.kind
    message = _BY_KIND.get(kind) or (_NOT_FOLLOWED if effect is Effect.NONE else None)
    if message:
        shown = _shorten(direction.words)
        directed.notices.setdefault(kind.value, message.replace("{}", shown))


def _shorten(words: str) -> str:
    return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]}…"
