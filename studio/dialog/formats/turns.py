"""Turns that other signs than a name and a colon begin.

Tags around them, `[S1] … [S2] …`, `[alice] … [/alice]`, `<Person1>`, a court's `Q.` and `A.`, and
the numbers before the cues of a radio script.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, pairwise

import regex

from studio.dialog.directions import word_set
from studio.dialog.formats.building import ImportNotices
from studio.dialog.formats.row_kinds import header_of, is_cue
from studio.dialog.markup import Row, strip_markup
from studio.dialog.model import MAX_SPEAKERS, check_line_count, name_key
from studio.errors import ScriptError

_NUMBERED = regex.compile(r"\[S\d{1,2}\]", regex.IGNORECASE)
_NAME = r"(?P<name>[\p{L}\p{N}][\p{L}\p{N} ._-]{0,40})"
_CLOSED = regex.compile(rf"\[/{_NAME}\]|</{_NAME}>")
_NO_SPEAKERS = word_set(
    "b i u v c s p em strong speak prosody break voice emphasis ruby rt font lang span div"
)

_ROW_NUMBER = r"(?:\d{1,2}\s+)?"
_TESTIFIED = regex.compile(
    rf"{_ROW_NUMBER}(?P<who>[QA])(?:\.(?:\s\.(?!\.))*\s*|\s{{2,}}|(?<=\d\s+[QA])\s)(?P<said>\S.*)"
)
_EXAMINER = regex.compile(rf"{_ROW_NUMBER}(?P<by>BY (?:MR|MRS|MS|DR)\. \p{{Lu}}[^:]*):?")
_TESTIFIED_BEGINS = frozenset("QA0123456789")
_FEWEST_TESTIFIED = 2
_QUOTED = regex.compile(
    r"(?P<name>[^\s「」『』、。，．,.:：（）()“”\"!?！？]{1,12})(?P<how>（[^（）]{1,30}）)?\s?"
    r"(?:「(?P<text>[^「」]+)」|『(?P<text>[^『』]+)』)"
)
_CORNERS = (("「", "」"), ("『", "』"))
_MOST_JOINED_CHARS = 2_000
_NO_SQUARES = str.maketrans("[]", "（）")
_PARENTHESES = regex.compile(r"\((?P<name>\p{Lu}[^()]{0,30})\)\s+(?P<text>\S.*)")
_NUMBERED_CUE = regex.compile(r"\(?(?P<number>\d{1,4})[.):]?\s+(?P<row>\S.*)")
_CUE_BEGINS = frozenset("(0123456789")
_FEWEST_COUNTED = 3
_OPENING_QUOTES = frozenset('"“„«')
_SAID_BY = regex.compile(
    r"[\"“„«](?P<text>[^\"“”„«»]+)[\"”“»]\s*[-–—]{1,2}\s*(?P<name>\p{Lu}[\p{L}\p{N} .'’-]{0,40})"
)
_ASKED = regex.compile(r"\*\*(?P<question>[^*]+[?？])\s*\*\*(?P<answer>.*)")
_INTERVIEWER, _GUEST = "Interviewer", "Guest"
INTERVIEW_NOTICE = (
    "Questions in bold go to “Interviewer”, and what follows them to “Guest”. Change it where that "
    "is wrong."
)


def has_closed_turns(text: str) -> bool:
    """Whether turns end with tags, such as `</Person1>`."""
    return not _NO_SPEAKERS.issuperset(_CLOSED.findall(text))


def split_turns(rows: list[Row]) -> list[Row]:
    """Begin a row with each tag that begins a turn; unchanged if there are none."""
    if any(row.startswith("[") and _NUMBERED.match(row) for _, row in rows):
        rows = _split_all(rows, _split_numbered)
    closing = (_CLOSED.findall(row) for _, row in rows if "/" in row)
    names = set(chain.from_iterable(closing)) - _NO_SPEAKERS
    tags = _tags_of(names)
    if tags is None or not any(tags.match(row) for _, row in rows):
        return rows
    return _split_all(rows, lambda row: _split_closed(row, tags))


def _split_all(rows: list[Row], split: Callable[[Row], Iterator[Row]]) -> list[Row]:
    """Split each row."""
    divided: list[Row] = []
    added = 0
    for row in rows:
        for count, one in enumerate(split(row)):
            divided.append(one)
            added += count > 0
            check_line_count(added)
    return divided


def read_testimony(rows: list[Row]) -> list[Row]:
    """Questions and answers of a court's transcript as `Q:` and `A:`, without rows' numbers.

    Rows are unchanged unless both occur, each twice.
    """
    said = [
        found
        for _, row in rows
        if row[:1] in _TESTIFIED_BEGINS and (found := _TESTIFIED.match(row))
    ]
    whose = [found["who"] for found in said]
    if min(whose.count("Q"), whose.count("A")) < _FEWEST_TESTIFIED:
        return rows
    is_numbered = all(row[0].isdigit() for _, row in rows if row)
    return [(number, _write_testimony(row, is_numbered=is_numbered)) for number, row in rows]


def read_quoted_names(rows: list[Row]) -> list[Row]:
    """Rows such as `美咲「船は？」` as `美咲：船は？`, those between them as action or headings.

    Unchanged unless names occur so again and again, as they don't in a novel.
    """
    if not any("「" in row or "『" in row for _, row in rows):
        return rows
    joined = _join_quoted(rows)
    found = {idx: match for idx, (_, row) in enumerate(joined) if (match := _QUOTED.fullmatch(row))}
    names = Counter(match["name"] for match in found.values())
    filled = sum(bool(row) for _, row in joined)
    if len(names) < _FEWEST_TESTIFIED or max(names.values()) < 2 or 3 * len(found) < filled:
        return rows
    return [
        (number, _write_quoted(row, found.get(idx))) for idx, (number, row) in enumerate(joined)
    ]


def _join_quoted(rows: list[Row]) -> list[Row]:
    """Join rows of words in 「…」 that are broken."""
    joined: list[Row] = []
    for number, row in rows:
        last = joined[-1][1] if joined else ""
        is_open = row and any(last.rfind(left) > last.rfind(right) for left, right in _CORNERS)
        if is_open and len(last) < _MOST_JOINED_CHARS:
            joined[-1] = (joined[-1][0], last + row)
        else:
            joined.append((number, row))
    return joined


def _write_quoted(row: str, said: regex.Match[str] | None) -> str:
    if said is not None:
        return f"{said['name']}：{said['how'] or ''}{said['text']}"
    if not row or row.startswith(("#", "[", "//")) or "：" in row or ":" in row:
        return row
    if row.startswith(("○", "◯", "●", "■", "□", "◆", "◇")):
        return f"## {row[1:].strip()}"
    return f"[{row.translate(_NO_SQUARES)}]"


def read_names_behind(rows: list[Row]) -> list[Row]:
    """Rows such as `“How long?” – Mira` as `[Mira] How long?`, if all rows are so.

    The name may stand on the row below. A collection of quotations has each name once.
    """
    filled = [idx for idx, (_, row) in enumerate(rows) if row]
    if not filled or rows[filled[0]][1][0] not in _OPENING_QUOTES:
        return rows
    joined, idx = list(rows), 0
    names = Counter[str]()
    while idx < len(filled):
        said = _SAID_BY.fullmatch(rows[filled[idx]][1])
        below = filled[idx] + 1
        if said is None and below < len(rows):
            said = _SAID_BY.fullmatch(f"{rows[filled[idx]][1]} {rows[below][1]}")
            idx += 1
            joined[below] = (rows[below][0], "")
        if said is None:
            return rows
        start = below - 1
        joined[start] = (rows[start][0], f"[{said['name']}] {said['text']}")
        names[name_key(said["name"])] += 1
        idx += 1
    is_dialog = len(names) >= _FEWEST_TESTIFIED and (max(names.values()) > 1 or len(filled) == 2)
    return joined if is_dialog else rows


def read_interview(rows: list[Row], remarks: ImportNotices) -> list[Row]:
    """Rows of questions in bold, and of what follows each, as those of two speakers.

    Unchanged unless there are two, nothing else is in bold, and nobody has a name.
    """
    bold = {idx: row for idx, (_, row) in enumerate(rows) if row.startswith("**")}
    ask = {idx: row for idx, row in bold.items() if "?" in row or "？" in row}
    asked = {idx: found for idx, row in ask.items() if (found := _ASKED.fullmatch(row))}
    if len(asked) < _FEWEST_TESTIFIED or len(asked) < len(bold):
        return rows
    others = [row for idx, (_, row) in enumerate(rows) if row and idx not in asked]
    names = Counter(name for row in others if (name := _said_by(row)))
    if max(names.values(), default=0) > 1:
        return rows
    read: list[Row] = []
    is_answer = False
    for idx, (number, row) in enumerate(rows):
        if found := asked.get(idx):
            remarks.add(INTERVIEW_NOTICE, number)
            read.append((number, f"[{_INTERVIEWER}] {found['question']}"))
            is_answer, row = True, found["answer"].strip()
            if not row:
                continue
        if row and is_answer and not row.startswith("#"):
            row, is_answer = f"[{_GUEST}] {row}", False
        elif row and _said_by(row):
            row = "\\" + strip_markup(row)  # “One thing: the cat.” is said, too
        read.append((number, row))
    return read


def read_names_in_parentheses(rows: list[Row]) -> list[Row]:
    """Rows such as `(Mira) How long?` as `Mira: …`, if all rows begin so, and names come again."""
    filled = [row for _, row in rows if row]
    if not filled or not all(row.startswith("(") for row in filled):
        return rows
    found = [_PARENTHESES.fullmatch(row) for row in filled]
    names = Counter(one["name"] for one in found if one)
    if not all(found) or len(names) < _FEWEST_TESTIFIED or max(names.values()) < 2:
        return rows
    return [(number, _PARENTHESES.sub(r"\g<name>: \g<text>", row)) for number, row in rows]


def cut_cue_numbers(rows: list[Row]) -> list[Row]:
    """Rows without the numbers of a radio script's cues: `4. ARTHUR: …`, or `4 FX: …`.

    Unchanged unless they count names and cues up, as “1 Witch” and “2 Witch” don't.
    """
    numbered = {
        idx: found
        for idx, (_, row) in enumerate(rows)
        if row[:1] in _CUE_BEGINS and (found := _NUMBERED_CUE.fullmatch(row))
    }
    names = {idx: name for idx, found in numbered.items() if (name := _said_by(found["row"]))}
    counted = [int(numbered[idx]["number"]) for idx in names]
    if len(counted) < _FEWEST_COUNTED or len(set(names.values())) < _FEWEST_TESTIFIED:
        return rows
    restarts = sum(after <= before for before, after in pairwise(counted))
    if _FEWEST_COUNTED * restarts >= len(counted) or max(counted) > 2 * len(rows) + counted[0]:
        return rows
    cut = list(rows)
    for idx, found in numbered.items():
        if idx in names or int(found["number"]) in range(counted[0], max(counted) + 2):
            cut[idx] = (rows[idx][0], found["row"])
    return cut


def _said_by(row: str) -> str | None:
    """The key of who says a row, or of its cue; None for other rows."""
    try:
        header = header_of(row)
    except ScriptError:
        return None
    if header is not None:
        return name_key(header.speaker)
    return row.partition(":")[0] if is_cue(row) else None


def _write_testimony(row: str, *, is_numbered: bool) -> str:
    if found := _TESTIFIED.fullmatch(row):
        return f"{found['who']}: {found['said']}"
    if found := _EXAMINER.fullmatch(row):
        return f"#> {found['by']}"
    return row.lstrip("0123456789").lstrip() if is_numbered else row


def _split_numbered(row: Row) -> Iterator[Row]:
    """`[S1] Hi. [S2] Ho.` as two rows; only a row that begins with such a tag."""
    number, text = row
    if not _NUMBERED.match(text):
        yield row
        return
    starts = (found.start() for found in _NUMBERED.finditer(text))
    for start, end in pairwise(chain(starts, [len(text)])):
        yield number, text[start:end].strip()


def _tags_of(names: set[str]) -> regex.Pattern[str] | None:
    if not 0 < len(names) <= MAX_SPEAKERS:
        return None
    either = "|".join(map(regex.escape, sorted(names)))
    inside = rf"(?P<close>/?)(?P<name>{either})"
    return regex.compile(rf"\[{inside}\]|<{inside}>")


def _split_closed(row: Row, tags: regex.Pattern[str]) -> Iterator[Row]:
    number, text = row
    begins, end = "", 0
    for tag in tags.finditer(text):
        if words := f"{begins} {text[end : tag.start()].strip()}".strip():
            yield number, words
        begins, end = "" if tag["close"] else f"[{tag['name']}]", tag.end()
    if (words := f"{begins} {text[end:].strip()}".strip()) or not end:
        yield number, words
