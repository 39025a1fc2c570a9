"""Tells what the rows of a pasted text are: prefaces, headings, cues, names, directions, prose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

import regex

from studio.dialog.attributes import Attributes
from studio.dialog.directions import (
    CUE_WORDS,
    begins_direction,
    is_direction,
    word_set,
    write_direction,
)
from studio.dialog.markup import Row, strip_markup
from studio.dialog.model import UnspokenKind, name_key
from studio.dialog.script import Header, parse_header
from studio.dialog.tags import SOUND_TAGS, leading_pauses, sound_name
from studio.errors import NameRejected


class PlacedRow(NamedTuple):
    """A row and its number, and the rows right above and below it, "" where there is none."""

    number: int
    text: str
    above: str
    below: str

    @property
    def begins(self) -> bool:
        """Whether it begins a paragraph."""
        return not self.above

    @property
    def ends(self) -> bool:
        """Whether it ends a paragraph."""
        return not self.below


_SHOWN = "*#([_>-"
_INVISIBLE = regex.compile(r"\A[\p{Cc}\p{Cf}\s]+")
_HEADING = regex.compile(
    r"""
      (?:act|acte|scene|scène|chapter|prologue|epilogue|episode|part|segment|section|interlude)\b
      (?:[\s.:—–-]+(?:\d+|[ivxlc]+|one|two|three|four|five|six|seven|eight|nine|ten|the\s\w+))?
      (?:[.:—–-].{0,80})?
    | (?:erste|zweite|dritte|vierte|fünfte|letzte)[rs]?\s(?:akt|aufzug|auftritt|teil|szene|bild)\.?
    | \d{1,2}\.\s(?:akt|aufzug|auftritt|szene)\.?
    | (?:akt|szene|bild)\s\d{1,2}\s?[.:–—-].{0,80}
    | (?:действие|акт|сцена|картина|явление)\s(?:\p{L}+|\d+)\.?
    | 第[一二三四五六七八九十百\d]{1,4}[幕场場章回集话話]\s?.{0,30}
    | (?:act[eo]|atto|sc[eè]n[ea]|escena|akt|szene)\s
      (?:\d+|[ivxlc]+|premi[eè]re?|deuxième|second[eoa]?|troisième|quatrième|dernier|prim[oa]
      |primer[oa]|terz[oa]|tercer[oa]?)\.?
    | (?:the\s)?(?:first|second|third|fourth|fifth|last)\s(?:act|scene|part)\.?
    | (?:int|ext|i/e|int\.?/ext)[.\s].{1,100}
    | (?:the\s)?end(?:\sof\s(?:act|scene|episode|part|play)\b.{0,40})?\.?
    | (?:page|panel)\s(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten)\b.{0,200}
    | (?:[eé]pisodio|épisode|episódio|folge)\s\d+(?:\s?[.:–—-].{0,80})?
    | fin(?:e)?(?:\s(?:de|del)\b.{0,40})?\.? | ende\.? | конец\.?
    | (?:kapitel|teil|chapitre|partie|cap[ií]tulo|capitolo|parte|глава|часть)
      \s(?:\d+|[ivxlc]+)(?:\s?[.:–—-].{0,80})?
    | (?:シーン|場面)\s?\d+.{0,40}
    | intro | outro | (?:(?:ad|commercial)\s)?break
    | cold\sopen(?:ing)? | teaser | (?:opening|closing|end)\scredits | credits | interval
    | (?:curtain|black-?out|telón|rideau|vorhang|sipario)\.? | dramatis\spersonae\.?
    """,
    regex.VERBOSE | regex.IGNORECASE,
)
_TRANSITION = regex.compile(
    r"(?:[\p{Lu}\s]+\s)?(?:CUT|FADE|DISSOLVE)\s(?:TO|IN|OUT|UP)(?:\sBLACK)?[.:]?", regex.IGNORECASE
)
_TRANSITION_ENDS = ("to", "in", "out", "up", "black")
_CUE = regex.compile(rf"{CUE_WORDS}\s*[:：–—-].*|(?:SE|BGM)：.*", regex.IGNORECASE)
_CUE_BEGINS = regex.compile(rf"{CUE_WORDS}\b|(?:SE|BGM)\s?[:：]", regex.IGNORECASE)
_BRACKETED = regex.compile(
    r"\[(?P<inside>[^\[\]|]*)\]\.?|[(（](?P<inside>[^()（）]*)[)）]\.?|【(?P<inside>[^【】]*)】"
)
_ORNAMENT = regex.compile(r"[\s*_~—–=-]+|\|[\s|:-]+\|")
_RULE = regex.compile(r"-{3,}|_{3,}")
is_numeral = regex.compile(r"[IVX]{1,5}\.").fullmatch
"""The number of a part: `II.`."""

_BEHIND_ROLE = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu} .'’-]{1,40}),\s(?P<role>\p{Lu}[\p{Lu}\d &/.,'’-]{1,60})[:：]"
    r"\s*(?P<text>.*)"
)
_KEYED = regex.compile(r"(?P<key>[\p{L} ]{2,30})[:：]\s*(?P<value>.*)")
_BOLD = regex.compile(r"\*\*(?P<name>[^*]{1,100})\*\*")
_BOLD_DASH = regex.compile(
    r"(?P<sign>(?:[-*+]\s|>\s|\d{1,3}[.)]\s)?)\*\*(?P<name>[^*:：]{1,40})\*\*\s+[–—-]\s+(?=\S)"
)
_FEWEST_NAMED = 2
_MOST_NAME_WORDS = 5
_ACTED = regex.compile(r"\*(?P<inside>[^*]{1,2000})\*")
_CALLED = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu}\d .'’-]{0,40}?)\s*\((?P<how>[^()]{1,100})\)\.?\s*(?P<text>.*)"
)
_ABOUT = word_set(
    "format voices hosts guests audience duration setting characters cast title author genre tone"
    " style topic length runtime date visuals synopsis logline summary theme"
    " 人物 登場人物 时间 地点 場所"
)
_PREFACE = regex.compile(
    r"""
      (?: (?:sure|certainly|of\scourse|absolutely|great|okay|ok|yes|no\sproblem|happy\sto\shelp
          |got\sit|alright|all\sright)\b .{0,20}? [!.,—–-] \s* )?
      (?: here(?:['’]s|\sis|\sare)\b | below\s(?:is|you) | the\sfollowing\b
        | this\sis\s(?:a|the|your)\b | i(?:['’]ve|\shave)\s(?:written|created|made|prepared)
        | as\srequested\b | here\s(?:you\sgo|we\sgo|it\sis)\b
        | (?:please\s)?(?:tts|generate|create|produce|perform|read|speak|say|convert|narrate)\b
          .{0,40}\b(?:following|conversation|dialog(?:ue)?|script|text)
        | (?:please\s)?(?:read|speak|say|narrate)\s(?:this|it|aloud|in\san?|with)\b.{0,200}[:：]$
        | make\s.{1,80}\bsound\b.{0,200}[:：]$ )
      .{0,400}
    | (?:sure|certainly|of\scourse|absolutely)\b .{0,120} [!.:]
    """,
    regex.VERBOSE | regex.IGNORECASE | regex.DOTALL,
)
_FAREWELL = regex.compile(
    r"(?:(?:i(?:['’]ve)?\s.{1,120}[.!]\s)?let\sme\sknow|does\sthis\swork|enjoy!|this\s(?:dialog(?:ue)?|script|scene|conversation|version)\b|would\syou\slike\s(?:me|another|a)|feel\sfree\sto|i\shope\s(?:this|that|you)"
    r"|if\syou(?:['’]d|\swould|\swant|\sneed)\b.*\b(?:i\scan|let\sme)|want\sme\sto|hope\sthis)",
    regex.IGNORECASE | regex.VERBOSE,
)
_COPYRIGHT = regex.compile(r"(?:copyright\s)?(?:©|\(c\)\s)|copyright\s\d{4}\b", regex.IGNORECASE)
_NOTES = regex.compile(
    r"(?:production|performance|director['’]?s|sound|voice|usage)\snotes?\s*[:：]?",
    regex.IGNORECASE,
)
is_instruction = regex.compile(
    r"(?:style|voice|audio|tone)\sinstructions?\s*[:：].*", regex.IGNORECASE
).fullmatch
"""Tells a model how to speak: `Style instructions: …`."""

_COUNTED = regex.compile(
    r"(?:word\scount|(?:(?:estimated|approximate|total)\s)?(?:run(?:ning)?|reading)\s?(?:time|length))"
    r"\s*[:：].*",
    regex.IGNORECASE,
)
_SOUND_BEGINS = regex.compile(r"[\[(<]\s*(?:pause|break|audio\s*:|direction\s*:)", regex.IGNORECASE)
_OPENS = ("[", "(", "（", "【")
BROKEN = ""
"""In place of a name whose header can't be read, which the script's reader refuses."""

_AUTHOR = regex.compile(r"(?:(?:[Ww]ritten|[Aa]dapted)\s)?(?:[Bb]y|BY)\s\p{Lu}.{0,60}")
_TITLED = regex.compile(r"(?:(?:podcast|episode|script|scene|play)\s)?title\s*[:：]\s*", regex.I)
is_timed = regex.compile(r"(?:\*\*)?(?:\[|\(?\d{1,2}(?::\d{2}){1,2}\b)").match
"""Begins with a time, as in a list of chapters: `00:45 The weir`, `[0:45] …`."""

_ASIDE = regex.compile(
    r"(?:(?:director|production|editor|author)['’]?s?\s)?(?P<key>notes?|todo|fixme|setting"
    r"|location|anmerkung|schauplatz|remarque|примечание|место\sдействия|備考|場所|地点)\s*[:：]\s+\S.*",
    regex.IGNORECASE,
)
_PLACES = word_set("setting location schauplatz место 場所 地点")
_IN_QUOTES = regex.compile(r"[\"“«„'](?P<words>[^\"“”«»„]+)[\"”»“']")
_TRANSCRIPT = regex.compile(
    r"#{1,6}\s*\**(?:(?:the|full)\s)?(?:transcript|dialogue|dialog)\**\s*:?", regex.IGNORECASE
)
_CAST_LIST = regex.compile(
    r"(?:dramatis\spersonae|persons\s(?:of|in)\sthe\s(?:play|drama)|the\spersons\sof\sthe\splay"
    r"|cast(?:\sof\scharacters)?|characters|personnages|personen|persone|personajes|действующие\sлица"
    r"|登場人物|人物)\s*[.:：]?",
    regex.IGNORECASE,
)

PREFACE_NOTICE = (
    "What a language model says about the script isn't spoken; it stands between the lines:"
)
ABOUT_NOTICE = "What is said about the script above it isn't spoken; it stands above the lines:"
TITLE_NOTICE = "The title isn't spoken; a new project is named for it:"
CUE_NOTICE = "Cues for sounds and music aren't spoken; they stand between the lines:"

_MOST_TITLE_WORDS = 10
_MOST_HEADING_CHARS = 400
_FEW_NAMED = 10
"""In prose at most one paragraph in so many begins with what looks like a name, none twice."""
_MOST_JOINED_ROWS = 20
_OPENS_ROW = ("[", "(", "_[", "_(")


def place_rows(rows: list[Row]) -> Iterator[PlacedRow]:
    """Rows with their places in paragraphs."""
    texts = [row for _, row in rows]
    numbers = [number for number, _ in rows]
    return map(PlacedRow, numbers, texts, ["", *texts], [*texts[1:], ""])


def number_rows(text: str) -> list[Row]:
    """Rows without white space and invisible characters around them."""
    return [
        (
            number,
            (raw if raw[:1].isalnum() or raw[:1] in _SHOWN else _INVISIBLE.sub("", raw)).rstrip(),
        )
        for number, raw in enumerate(text.splitlines(), start=1)
    ]


def find_ruled(rows: list[Row]) -> set[int]:
    """The numbers of the rows right above and below rules of Markdown, such as `---`."""
    ruled: set[int] = set()
    for (number, row), (under, below) in pairwise([one for one in rows if one[1]]):
        ruled |= {number} if _RULE.fullmatch(below) else set()
        ruled |= {under} if _RULE.fullmatch(row) else set()
    return ruled


def join_brackets(rows: list[Row]) -> list[Row]:
    """Join a direction in brackets that begins a row and is broken into several."""
    if not any(row.startswith(_OPENS_ROW) for _, row in rows):
        return rows
    joined: list[Row] = []
    idx = 0
    while idx < len(rows):
        count = _count_bracketed(rows, idx)
        number, first = rows[idx]
        text = first if count == 1 else " ".join(row for _, row in rows[idx : idx + count])
        joined.append((number, text))
        idx += count
    return joined


def _count_bracketed(rows: list[Row], idx: int) -> int:
    """How many rows the brackets that begin a row take; 1 if they don't take all of them."""
    first = rows[idx][1]
    if not first.startswith(_OPENS_ROW):
        return 1
    close = "]" if first.removeprefix("_")[0] == "[" else ")"
    for count, (_, row) in enumerate(rows[idx : idx + _MOST_JOINED_ROWS], start=1):
        if not row:
            return 1
        if close in row:
            return count if row.rstrip("_.").endswith(close) else 1
    return 1


_EXTENDED_TWICE = regex.compile(
    r"(?P<name>[^:：()\[\]]{1,60}(?:\s?\([^():]{1,40}\)){0,3}?)"
    r"(?:\s?\((?:v\.?\s?o\.?|o\.?\s?[sc]\.?|cont['’]?d\.?|continuing|more)\)){2,}\s?(?=[:：])",
    regex.IGNORECASE,
)
_TIMED = regex.compile(
    r"(?P<name>[^:\[\]()]{1,60}?)\s*[\[(]\d{1,2}(?::\d{2}){1,2}(?:[.,]\d{1,3})?[\])]\s*(?=:)"
)


def header_of(row: str) -> Header | None:
    """A row's header, also behind pauses, with a time, or without a colon: `IVO (angrily) Out!`."""
    try:
        rest = leading_pauses(row)[1]
        if ")" in rest and (extended := _EXTENDED_TWICE.match(rest)):  # `ANN (V.O.) (CONT'D):`
            rest = extended["name"] + rest[extended.end() :]
        header = parse_header(rest) if rest else None
        if header is None and (timed := _TIMED.match(rest)):
            header = parse_header(timed["name"] + rest[timed.end() :])
        if header is None and (":" in rest or "：" in rest):
            header = _marked_header(rest)
    except NameRejected:
        return None
    if header is None and "(" in row and (called := _CALLED.fullmatch(row)):
        how = called["how"]
        if is_direction(how) or begins_direction(how):
            text = f"({how}) {called['text']}".strip()
            return Header(called["name"].strip(), Attributes(), text)
    return header


_EXTENDED = regex.compile(r"(?P<name>[^()（）]*[^()（）\s])\s*[(（](?P<how>[^()（）]{1,60})[)）]")
_IN_SQUARES = regex.compile(
    r"(?P<name>[^:：\[\]()|]{1,60}?)\s\[(?P<how>[^\[\]|:：]{1,60})\]\s*[:：]\s+(?P<text>.*)"
)
_BEHIND_COMMA = regex.compile(
    r"(?P<name>\p{Lu}[\p{Lu}\d .'’-]{1,40}),\s(?P<how>\p{Ll}[^:：]{1,60}?)\s?[:：]\s+(?P<text>.*)"
)
_ROLES = word_set(
    "older younger old young child adult boy girl man woman male female guest host co-host remote"
    " online narrator voice-over pre-recorded recorded moderator translator interpreter"
)


def find_manners(speakers: Collection[str]) -> dict[str, Header]:
    """Names with how their words are said beside them, and the header without it, by the name.

    `Mira (suspicious)` is Mira where `Mira` speaks as well, or `Mira (cold)`; `Host (Anna)` and
    `Anna (older)` are names.
    """
    if not any(one.endswith((")", "）")) for one in speakers):
        return {}
    bare: set[str] = set()
    extended: dict[str, dict[str, Header]] = {}
    for speaker in speakers:
        found = _EXTENDED.fullmatch(speaker)
        if found is None or not _may_be_manner(found["name"], found["how"]):
            bare.add(name_key(speaker))
        else:
            how = write_direction(found["how"], is_first=True)
            plain = Header(found["name"], Attributes(), how)
            extended.setdefault(name_key(found["name"]), {})[speaker] = plain
    return {
        written: plain
        for name, written_so in extended.items()
        if name in bare or len(written_so) > 1 or _is_surely_manner(written_so)
        for written, plain in written_so.items()
    }


def _is_surely_manner(written_so: Collection[str]) -> bool:
    """Whether a name in capitals has something in small letters beside it: `RENÉ (à part)`."""
    return all(one.rstrip(")） ").rpartition("(")[0].strip().isupper() for one in written_so)


def _may_be_manner(name: str, how: str) -> bool:
    is_name = how[0].isupper() and not (name.isupper() and how.isupper())
    return how[0].isalpha() and not is_name and _ROLES.isdisjoint(how.casefold().split())


def is_remark(row: str) -> bool:
    """Whether a row is of a table beside the script, or says whose it is."""
    is_table = row.startswith("|") and row.endswith("|")
    return is_table or _COPYRIGHT.match(row) is not None


def role_behind(row: str) -> str | None:
    """What a broadcast's transcript says of a speaker: `HOST` of `ORLA QUIST, HOST:`."""
    found = _BEHIND_ROLE.fullmatch(row) if "," in row else None
    return str(found["role"]) if found else None


def find_surnames(rows: list[Row]) -> dict[str, Header]:
    """Whom a broadcast's transcript means: `QUIST` is ORLA QUIST, if `ORLA QUIST, HOST:` speaks."""
    full = {
        found["name"] for _, row in rows if "," in row and (found := _BEHIND_ROLE.fullmatch(row))
    }
    last = Counter(name.split()[-1] for name in full)
    return {
        name.split()[-1]: Header(name, Attributes(), "")
        for name in full
        if last[name.split()[-1]] == 1 and name.split()[-1] not in full
    }


def _marked_header(row: str) -> Header | None:
    """A header with how its words are said: `Joss [whispering]: Oh.`, or `RENÉ, riant : Ah !`."""
    if role := _BEHIND_ROLE.fullmatch(row):  # `ORLA QUIST, HOST:` of a broadcast's transcript
        return parse_header(f"{role['name']}: {role['text']}")
    found = _IN_SQUARES.fullmatch(row) if "[" in row else _BEHIND_COMMA.fullmatch(row)
    if found is None or found["how"][0].isupper():
        return None
    header = parse_header(f"{found['name']}: {found['text']}")
    if header is None:
        return None
    how = write_direction(found["how"], is_first=True)
    return Header(header.speaker, header.attributes, f"{how} {header.text}".strip())


def inside_of(row: str) -> str | None:
    """What stands in the brackets that are a whole row."""
    found = _BRACKETED.fullmatch(row) if row.startswith(_OPENS) else None
    return str(found["inside"]) if found else None


def is_sound(row: str) -> bool:
    """Whether a row in brackets is a pause, audio, or a sound that a voice makes."""
    if not row.startswith(("[", "(", "<")):
        return False
    if row.startswith("[") and sound_name(inside_of(row) or "") in SOUND_TAGS:
        return True
    return _SOUND_BEGINS.match(row) is not None


def is_titled(row: str) -> bool:
    """Whether a row could be a title: a few words that end without a mark."""
    is_short = len(row.split()) <= _MOST_TITLE_WORDS and row[-1] not in ".!?…:,;]。！？"
    return is_short and not (is_cue(row) or is_heading(row))


def kind_of_aside(row: str) -> UnspokenKind | None:
    """What a row between lines is: a note (`NOTE: …`), action (`SETTING: …`), or neither."""
    found = _ASIDE.fullmatch(row)
    if found is None:
        return None
    is_placed = found["key"].casefold().split()[0] in _PLACES
    return UnspokenKind.ACTION if is_placed else UnspokenKind.NOTE


def is_author(row: str) -> bool:
    """Whether a row below a title says who wrote the script."""
    return _AUTHOR.fullmatch(strip_markup(row)) is not None


def plain_title(title: str) -> str:
    """A title without the word that says so and quotation marks: `Podcast Title: “Weirs”`."""
    words = _TITLED.sub("", title).strip()
    quoted = _IN_QUOTES.fullmatch(words)
    return (str(quoted["words"]) if quoted else words) or title


def may_be_title(words: str) -> bool:
    """Whether what stands behind the first `#` may be a title."""
    return not (words.endswith((".", ":")) or is_heading(words))


def begins_transcript(row: str) -> bool:
    """Whether a heading says that the dialog itself begins below it."""
    return row.startswith("#") and _TRANSCRIPT.fullmatch(row) is not None


def begins_cast_list(row: str) -> bool:
    """Whether a row heads the list of a play's persons."""
    return _CAST_LIST.fullmatch(row.strip("_*# ")) is not None


def is_preface(row: str) -> bool:
    """Whether a row may be what a language model says before a script."""
    return (is_instruction(row) or _PREFACE.fullmatch(row)) is not None


def announces(row: str) -> bool:
    """Whether a preface announces the lines below it: “Here is a short script:”."""
    return row.endswith((":", "：")) or " following " in row or is_instruction(row) is not None


def is_farewell(row: str) -> bool:
    """Whether a row may be what a language model offers after a script."""
    if is_count(row) or _NOTES.fullmatch(row):
        return True
    if _FAREWELL.match(row) is None:
        return False
    header = header_of(row)
    return header is None or not header.text


def is_count(row: str) -> bool:
    """Whether a row says how long a script is: `Word count: 80`."""
    return _COUNTED.fullmatch(acted_words(row) or row) is not None


def is_heading(row: str) -> bool:
    """Whether a row is a heading of an act, a scene or a chapter, or a transition."""
    if len(row) > _MOST_HEADING_CHARS:
        return False
    return _HEADING.fullmatch(row) is not None or _is_transition(row)


def _is_transition(row: str) -> bool:
    """Whether a row is `CUT TO:` and the like, of which few rows have the end."""
    ends = row[-6:].rstrip(".:").lower()
    return ends.endswith(_TRANSITION_ENDS) and _TRANSITION.fullmatch(row) is not None


def is_cue(row: str) -> bool:
    """Whether a row is a cue for sounds or music: `MUSIC: a waltz`, `[SFX: door]`."""
    inside = inside_of(row)
    return _CUE.fullmatch(row) is not None or (
        inside is not None and _CUE_BEGINS.match(inside.strip()) is not None
    )


def is_ornament(row: str) -> bool:
    """Whether a row is nothing but stars or dashes, as between scenes."""
    return not row[:1].isalnum() and _ORNAMENT.fullmatch(row) is not None


def mark_bold_names(rows: list[Row]) -> list[Row]:
    """Rows with a colon where a dash parts names in bold from words: `**Mira** – How long?`."""
    dashed = [idx for idx, (_, row) in enumerate(rows) if "-" in row or "–" in row or "—" in row]
    found = {idx: match for idx in dashed if (match := _BOLD_DASH.match(rows[idx][1]))}
    names = Counter(match["name"] for match in found.values())
    if max(names.values(), default=0) < _FEWEST_NAMED:
        return rows
    marked = list(rows)
    for idx, match in found.items():
        number, row = rows[idx]
        marked[idx] = (number, f"{match['sign']}**{match['name']}:** {row[match.end() :]}")
    return marked


def bold_name(row: str) -> str | None:
    """The words of a row that is all bold."""
    found = _BOLD.fullmatch(row) if row.startswith("**") else None
    return found["name"].strip() if found else None


def acted_words(row: str) -> str | None:
    """The words of a row that is all in italics, without brackets: `*The boat drifts past.*`."""
    found = _ACTED.fullmatch(row) if row.startswith("*") else None
    return found["inside"].strip(" ()[]") or None if found else None


def plain_bold(row: str) -> str:
    """A row without the stars around bold words."""
    return _BOLD.sub(r"\g<name>", row)


def key_and_value(row: str) -> tuple[str, str] | None:
    """A remark about the script, such as `Duration: 5 minutes`; None for other rows."""
    found = _KEYED.fullmatch(row)
    key = found["key"].strip().casefold() if found else ""
    return (key, found["value"]) if found and key.split(" ")[-1] in _ABOUT else None
