"""Reads Markdown, as language models and notes write it, as the text that it shows."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import category

import regex

from studio.dialog.directions import begins_direction, is_direction, write_direction
from studio.dialog.model import MAX_LINES
from studio.dialog.reading_limits import Budget, Cost

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

Row = tuple[int, str]
"""The number of a row in its source, from 1, and its text."""

# Stars inside words mask them, as in “sh*t”; no Markdown of a script is meant.
_INSIDE_WORD = regex.compile(r"(?<=[\p{L}\p{N}])[*_]+(?=[\p{L}\p{N}])")
_MASK = "\ue000"
_NOT_IN_LINES = ("entity", "escape", "autolink", "html_inline", "image", "linkify", "newline")
_MOST_MARKED_CHARS = 20_000
_MARKED_BEGINNING = 1_000
_FEW_MARKS = 60_000
_MARKS_OF_LINK = 5

_BLOCKS = regex.compile(
    r"""
      \#{1,6}\s+[^\#]*\#*$ | [-*_]{3,}$ | >\s | ```
    | (?:[-*+•]|\d{1,3}[.)])\s+\*\*[^*]+\*\*
    | \*\*[^*]+\*\* | \*[^*\s][^*]*\*$ | _[^_\s][^_]*_$ | \*\([^*]*\)\*
    """,
    regex.VERBOSE,
)
_BLOCK_SIGNS = tuple("#-*_>`0123456789")
_BLOCK_SIGN = regex.compile(r"(?:(?:\#{1,6}|[-*+]|\d{1,9}[.)])(?=\s)|>)\s*+")
_PLAIN = regex.compile(r"\*{0,2}[^\#*+_>`~\-\d\s]")
"""Begins no other block, as a star of a list or a rule has a space or a star behind it."""
_BOLD_ABOVE = regex.compile(r"\*\*[^*\n]{1,60}\*\*\s*\n")
_LISTED_NAME = regex.compile(r"[-*+•]\s+\p{Lu}[^:：]{0,40}[:：]\s")
_FEWEST_LISTED = 2
_NAMED = regex.compile(r"(?P<name>[^:：]{1,60})[:：](?:\s|\*)")
_BOLD_NAME = regex.compile(r"\*\*[^*:：]{1,60}(?:[:：]\*\*|\*\*\s*[:：])")
_HOW = regex.compile(r"\([^()]{1,80}\)")
_HEADING = regex.compile(r"\#{1,6}\s")
# One of dashes may as well part what stands above it from what follows.
_UNDERLINE = regex.compile(r"={3,}\s*")
_MOST_HEADING_CHARS = 100
_TASK = regex.compile(r"(?m)(?<=^[ \t]*[-*+]\s)\[[ xX]\]\s+")
_EMPHASIS = regex.compile(r"</?(?:b|i|u|em|strong|small|mark|sub|sup)>", regex.IGNORECASE)


def strip_markup(text: str) -> str:
    """A line's words without Markdown's emphasis, code marks and addresses of links."""
    if not _may_be_marked(text):
        return text
    masked = _INSIDE_WORD.findall(text)
    plain = _INSIDE_WORD.sub(_MASK, text) if masked else text
    marks = _find_simple(plain) or _line_parser().parseInline(plain)[0].children or []
    shown = "".join(_show(marks))
    if masked:
        stars = iter(masked)
        shown = re.sub(_MASK, lambda mask: next(stars, mask[0]), shown)
    return shown.replace("\n", " ") if shown.strip() else text


def spend_marks(rows: Iterable[str], budget: Budget) -> None:
    """Spend what the marks of Markdown in rows cost.

    Raises:
        ScriptError: There are too many.
    """
    rows = list(rows)
    if _count_marks("\n".join(rows)) <= _FEW_MARKS:  # as in most texts
        return
    marked = [row for row in rows if _may_be_marked(row) and not row.startswith("\\")]
    marks = _count_marks("\n".join(marked))
    nested = sum(_count_marks(row) for row in marked if _divide_simple(row) is None)
    budget.spend(Cost.MARKS, marks)
    budget.spend(Cost.NESTED_MARKS, nested)


def spend_blocks(rows: list[Row], budget: Budget) -> None:
    """Spend what the blocks of Markdown cost.

    Raises:
        ScriptError: There are too many.
    """
    blocks = sum(row != "" and above == "" for (_, above), (_, row) in pairwise(rows))
    signs = sum(map("\n".join([row for _, row in rows]).count, _OTHER_BLOCK_SIGNS))
    signs_of = (_find_block_signs(row) for _, row in rows if row)
    begun = islice(chain.from_iterable(signs_of), MAX_LINES + 1)
    budget.spend(Cost.PARAGRAPHS, blocks)
    budget.spend(Cost.BLOCK_SIGNS, signs)
    budget.spend(Cost.BLOCKS, sum(1 for _ in begun))


def _find_block_signs(row: str) -> Iterator[regex.Match[str]]:
    """The signs of headings, quotes and lists that begin a row, which may be nested."""
    found = _BLOCK_SIGN.match(row) if row.startswith(_BLOCK_SIGNS) or row[:1] == "+" else None
    while found is not None:
        yield found
        found = _BLOCK_SIGN.match(row, found.end())


def _may_be_marked(text: str) -> bool:
    # Without a loop or a pattern, as it is asked for each row of each text.
    is_marked = "*" in text or "_" in text or "`" in text or "](" in text or "~~" in text
    return is_marked and len(text) <= _MOST_MARKED_CHARS


def _count_marks(row: str) -> int:
    return sum(map(row.count, "*_`~")) + _MARKS_OF_LINK * row.count("](")


def find_link_addresses(text: str) -> list[str]:
    """The addresses of a line's links, which `strip_markup` leaves out."""
    if "](" not in text or len(text) > _MOST_MARKED_CHARS:
        return []
    tokens = _line_parser().parseInline(text)[0].children or []
    found = [one.attrGet("href") for one in tokens if one.type == "link_open"]
    return [str(address) for address in found if address]


def has_blocks(rows: list[Row]) -> bool:
    """Whether text is Markdown: it has rules, quotes or names in bold, not only comments."""
    found = [row for _, row in rows if row.startswith(_BLOCK_SIGNS) and _BLOCKS.match(row)]
    # `# Scene one` alone is a comment of a script, or a title.
    listed = sum(row[:1] in "-*+•" and bool(_LISTED_NAME.match(row)) for _, row in rows if row)
    return listed >= _FEWEST_LISTED or any(not _HEADING.match(row) for row in found)


def has_bold_names(rows: list[Row]) -> bool:
    """Whether a row begins with a name in bold and a colon, as models write who speaks."""
    return any(row.startswith("**") and _BOLD_NAME.match(row) for _, row in rows)


def mark_headings(rows: list[Row]) -> list[Row]:
    """Rows with `=====` below them, and nothing right above, as headings; the first as a title."""
    if not any(row.startswith("===") for _, row in rows):  # as in most texts
        return rows
    marked = list(rows)
    above, sign = "", "#"
    for idx, ((number, row), (below, line)) in enumerate(pairwise(rows)):
        is_lined = below == number + 1 and _UNDERLINE.fullmatch(line) is not None
        is_heading = 0 < len(row) <= _MOST_HEADING_CHARS and not _NAMED.match(row)
        if is_lined and is_heading and not above and not row.startswith("#"):
            marked[idx : idx + 2] = [(number, f"{sign} {row}"), (below, "")]
        above = row
        sign = "##" if row else sign
    return marked


def read_markdown(rows: list[Row]) -> list[Row]:
    """The rows that Markdown shows, with the numbers of their source.

    A heading stays `# heading`, and a row of bold text alone becomes one, unless it is a name:
    then it ends with a colon.
    """
    if not rows:
        return []
    first, last = rows[0][0], rows[-1][0]
    by_number = dict(rows)
    source = "\n".join(by_number.get(number, "") for number in range(first, last + 1))
    shown: list[Row] = []
    # What the blocks hold is parsed one by one: a token for each mark of a text fills the memory.
    tokens: list[Token] = []
    _block_parser().block.parse(_cut_extensions(source), _block_parser(), {}, tokens)
    lists = _Lists(tokens)
    for idx, token in enumerate(tokens):
        number = first + (token.map[0] if token.map else 0)
        if token.type == "fence":
            shown += enumerate(token.content.rstrip("\n").split("\n"), number + 1)
        elif token.type == "inline":
            prefix = _prefix(lists, idx)
            texts = list(_inline_rows(_find_marks(token.content), number))
            shown += [(number, prefix + texts[0][1]), *texts[1:]]
        elif token.type == "list_item_close" and tokens[idx - 1].info and number:
            shown.append((number, f"{tokens[idx - 1].info}."))  # nothing stands behind a number
        if token.type.endswith("_close") or token.type in ("fence", "hr"):
            shown.append((shown[-1][0] if shown else number, ""))
    return shown


def _cut_extensions(source: str) -> str:
    """Markdown without boxes of tasks and HTML's emphasis."""
    source = _TASK.sub("", source) if "[" in source else source
    return _EMPHASIS.sub("", source) if "<" in source else source


class _Lists:
    """A text's tokens, and what its lists are, which each of their items asks for."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens

    @cached_property
    def _contents(self) -> list[str]:
        return sorted(one.content for one in self.tokens)

    @cached_property
    def have_speakers(self) -> bool:
        """Whether nobody speaks outside of the lists, or somebody twice inside."""
        depth = outside = 0
        inside: list[str] = []
        for token in self.tokens:
            depth += token.nesting if token.type.startswith("list_item") else 0
            if token.type == "inline" and (named := _NAMED.match(token.content)):
                outside += depth == 0
                inside += [named["name"]] if depth else []
        return outside == 0 or len(set(inside)) < len(inside)

    def is_said_once(self, name: str) -> bool:
        """Whether the name with which a token begins begins no other one."""
        after = bisect_left(self._contents, name) + 1
        return not any(one.startswith(name) for one in self._contents[after : after + 1])


def _prefix(lists: _Lists, idx: int) -> str:
    """What an inline token's first row begins with, which its block has taken away."""
    tokens = lists.tokens
    if tokens[idx - 1].type == "heading_open":
        return "# "
    if idx < 2 or tokens[idx - 2].type != "list_item_open":
        return ""
    named, number = _NAMED.match(tokens[idx].content), tokens[idx - 2].info
    if named is None:
        is_name = _BOLD_ABOVE.match(tokens[idx].content) is not None
        return f"{number}. " if number and not is_name else ""
    # `- **A point:** …` in a list is no speaker, unless he says more than that.
    is_point = lists.is_said_once(named["name"]) and not lists.have_speakers
    return "\\" if is_point and named["name"].startswith("**") else ""


class _Mark(NamedTuple):
    """What `_show` reads of a token; made in a tenth of the time."""

    type: str
    content: str = ""


_Marks = Sequence["_Mark | Token"]

_SIGNS = re.compile(r"(\*\*?|__?)")
_OTHER_BLOCK_SIGNS = ("\\", "&", "<")
_ALL_EM, _ALL_STRONG = ([f"{tag}_open", "text", f"{tag}_close"] for tag in ("em", "strong"))
_EM, _STRONG = ((_Mark(f"{tag}_open"), _Mark(f"{tag}_close")) for tag in ("em", "strong"))
_MARKS_OF = {"*": _EM, "_": _EM, "**": _STRONG, "__": _STRONG}


def _find_simple(row: str) -> list[_Mark] | None:
    """The tokens of a row whose only marks are emphasis that isn't nested; None for other rows."""
    parts = _divide_simple(row)
    if parts is None:
        return None
    marks = [_Mark("text", parts[0])] if parts[0] else []
    for idx in range(1, len(parts), 4):
        opening, closing = _MARKS_OF[parts[idx]]
        marks += opening, _Mark("text", parts[idx + 1]), closing
        if after := parts[idx + 3]:
            marks.append(_Mark("text", after))
    return marks


def _divide_simple(row: str) -> list[str] | None:
    """A row's words and signs of emphasis by turns; None if what a sign does isn't plain to see.

    It is where signs that can only open, and the same that can only close, are around words without
    any: they can't mean anything else in Markdown.
    """
    if "`" in row or "~~" in row or "](" in row or "\n" in row:
        return None
    parts = _SIGNS.split(row)
    last = len(parts) - 1
    if last % 4:
        return None
    for idx in range(1, last, 4):
        before, sign, inside, closing, after = parts[idx - 1 : idx + 4]
        if sign != closing or not inside:
            return None
        is_first, is_last = idx == 1 and not before, idx + 3 == last and not after
        opens = _borders(before[-1:], inside[0], is_end=is_first)
        if not opens or not _borders(after[:1], inside[-1], is_end=is_last):
            return None
    return parts


def _borders(outside: str, inside: str, *, is_end: bool) -> bool:
    """Whether a sign between two characters opens or closes emphasis, and can't do the other."""
    if is_end or outside == " ":
        return not inside.isspace()
    return inside.isalnum() and outside != "" and category(outside).startswith("P")


def _inline_rows(parts: Sequence[_Marks], number: int) -> Iterator[Row]:
    for idx, part in enumerate(parts):
        text = "".join(_show(part)).strip()
        visible = [one for one in part if one.type != "text" or one.content.strip()]
        types = [one.type for one in visible[:4]]
        if types[:3] == _ALL_STRONG:
            is_how = len(types) > 3 and text.endswith(")")
            if is_how and _HOW.fullmatch("".join(_show(visible[3:])).strip()):
                text = f"{text}:"  # a name and a direction: `**Tom** *(sighs)*`
            elif len(types) == 3 and text[-1:].isalnum():
                # A name above her words, or a heading.
                text = f"{text}:" if idx + 1 < len(parts) else f"**{text}**"
        elif types == _ALL_EM and not _NAMED.match(text):
            text = f"*{text}*"
        yield number + idx, text


def _show(children: _Marks) -> Iterator[str]:
    """The text of inline tokens; an action between single stars becomes a direction."""
    for idx, child in enumerate(children):
        if child.type == "text":
            is_single = 0 < idx < len(children) - 1 and children[idx - 1].type == "em_open"
            acts = is_single and children[idx + 1].type == "em_close" and "(" not in child.content
            if acts and is_direction(child.content):
                yield f"({child.content})"
            elif acts and _leads(children, idx - 1) and _acts_out(child.content):
                yield write_direction(child.content, is_first=True)
            else:
                yield child.content
        elif child.type in ("code_inline", "html_inline", "image"):
            yield child.content
        elif child.type in ("softbreak", "hardbreak"):
            yield "\n"


def _leads(children: _Marks, end: int) -> bool:
    """Whether nothing but a name stands before an inline token."""
    last = ""
    while end and not last:
        end -= 1
        last = children[end].content.rstrip()
    return not last or last.endswith((":", "："))


def _acts_out(words: str) -> bool:
    """Whether words between single stars at the start of a line tell what somebody does."""
    return words[0].islower() and (len(words.split()) > 1 or begins_direction(words))


@cache
def _line_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - takes 80 ms, and few texts need it

    parser = MarkdownIt("commonmark").enable("strikethrough")
    return parser.disable(_NOT_IN_LINES, ignoreInvalid=True)


@cache
def _block_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - as above
    from markdown_it.token import Token  # noqa: PLC0415 - as above

    ends = Token("paragraph_open", "p", 1), Token("paragraph_close", "p", -1)

    def read_alone(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
        """A paragraph of one row, of which a script has thousands, in a third of the time."""
        after = start + 1
        row = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].strip()
        is_alone = after >= state.lineMax or state.isEmpty(after)
        if silent or state.level or not is_alone or not _PLAIN.match(row):
            return False
        inline = Token("inline", "", 0, map=[start, after], content=row)
        state.tokens += ends[0], inline, ends[1]
        state.line = after
        return True

    parser = MarkdownIt("commonmark", {"html": False})
    parser.block.ruler.before("fence", "alone", read_alone)
    # A row of dashes below a line is a rule here, not a heading; `<Person1>` stays text.
    return parser.enable("strikethrough").disable(
        ("lheading", "code", "reference", "html_block", "html_inline")
    )


def _find_marks(content: str) -> list[_Marks]:
    """The marks of each row; of one as long as `strip_markup` leaves it, where it begins."""
    rows = content.split("\n")
    if max(map(len, rows)) > _MOST_MARKED_CHARS:
        return [_find_first_marks(row) for row in rows]
    if (found := _find_simple_rows(rows)) is not None:
        return found
    marks = _block_parser().parseInline(content)[0].children or []
    parts: list[list[Token]] = [[]]
    for one in marks:
        if one.type in ("softbreak", "hardbreak"):
            parts.append([])
        else:
            parts[-1].append(one)
    return [*parts]


def _find_first_marks(row: str) -> _Marks:
    end = len(row)
    if end > _MOST_MARKED_CHARS:
        end = max(0, row.rfind(" ", 0, _MARKED_BEGINNING)) or _MARKED_BEGINNING
    marks: list[_Mark | Token] = [*(_block_parser().parseInline(row[:end])[0].children or [])]
    return [*marks, _Mark("text", row[end:])] if row[end:] else marks


def _find_simple_rows(rows: list[str]) -> list[_Marks] | None:
    found: list[_Marks] = []
    for row in rows:
        is_plain = not ("\\" in row or "&" in row or "<" in row)
        marks = _find_simple(row.strip()) if is_plain else None
        if marks is None:
            return None
        found.append(marks)
    return found
