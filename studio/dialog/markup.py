"""Reads Markdown, as language models and notes write it, as the text that it shows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import regex

from studio.dialog.directions import begins_direction, is_direction, write_direction

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

Row = tuple[int, str]
"""The number of a row in its source, from 1, and its text."""

# Stars inside words mask them, as in “sh*t”; no Markdown of a script is meant.
_INSIDE_WORD = regex.compile(r"(?<=[\p{L}\p{N}])[*_]+(?=[\p{L}\p{N}])")
_MASK = "\ue000"
_NOT_IN_LINES = ("entity", "escape", "autolink", "html_inline", "image", "linkify", "newline")
_MOST_MARKED_CHARS = 20_000
_MARKED_BEGINNING = 1_000

_BLOCKS = regex.compile(
    r"""
      \#{1,6}\s+[^\#]*\#*$ | [-*_]{3,}$ | >\s | ```
    | (?:[-*+•]|\d{1,3}[.)])\s+\*\*[^*]+\*\*
    | \*\*[^*]+\*\* | \*[^*\s][^*]*\*$ | _[^_\s][^_]*_$ | \*\([^*]*\)\*
    """,
    regex.VERBOSE,
)
_BLOCK_SIGNS = tuple("#-*_>`0123456789")
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
_FOOTNOTE = regex.compile(r"(?m)^\[\^[\w-]{1,20}\]:\s*(?P<words>\S)")
_FOOTNOTE_MARK = regex.compile(r"\[\^[\w-]{1,20}\]")
_EMPHASIS = regex.compile(r"</?(?:b|i|u|em|strong|small|mark|sub|sup)>", regex.IGNORECASE)


def strip_markup(text: str) -> str:
    """A line's words without Markdown's emphasis, code marks and addresses of links."""
    may_be_marked = any(sign in text for sign in ("*", "_", "`", "](", "~~"))
    if not may_be_marked or len(text) > _MOST_MARKED_CHARS:
        return text
    masked = [match[0] for match in _INSIDE_WORD.finditer(text)]
    tokens = _line_parser().parseInline(_INSIDE_WORD.sub(_MASK, text))
    shown = "".join(_show(tokens[0].children or [])) if tokens else text
    for one in masked:
        shown = shown.replace(_MASK, one, 1)
    return shown.replace("\n", " ") if shown.strip() else text


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
    tokens = _block_parser().parse(_cut_extensions(source))
    lists = _Lists(tokens)
    for idx, token in enumerate(tokens):
        number = first + (token.map[0] if token.map else 0)
        if token.type in ("fence", "code_block"):
            start = number + (token.type == "fence")
            shown += enumerate(token.content.rstrip("\n").split("\n"), start)
        elif token.type == "html_block":
            shown += enumerate(token.content.rstrip("\n").split("\n"), number)
        elif token.type == "inline":
            prefix = _prefix(lists, idx)
            texts = list(_inline_rows(token, number))
            shown += [(number, prefix + texts[0][1]), *texts[1:]]
        if token.type.endswith("_close") or token.type in ("fence", "hr"):
            shown.append((shown[-1][0] if shown else number, ""))
    return shown


def _cut_extensions(source: str) -> str:
    """Markdown without boxes of tasks and HTML's emphasis; footnotes become notes."""
    source = _TASK.sub("", source) if "[" in source else source
    if "[^" in source and _FOOTNOTE.search(source):
        source = _FOOTNOTE_MARK.sub("", _FOOTNOTE.sub(r"// \g<words>", source))
    return _EMPHASIS.sub("", source) if "<" in source else source


class _Lists:
    """A text's tokens, and what its lists are, which each of their items asks for."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self._contents = sorted(one.content for one in tokens)

    @cached_property
    def have_speakers(self) -> bool:
        """Whether nobody speaks outside of the lists, or somebody twice inside."""
        return _is_list_of_speakers(self.tokens)

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


def _is_list_of_speakers(tokens: list[Token]) -> bool:
    """Whether nobody speaks outside of the lists, or somebody twice inside."""
    depth = 0
    inside: list[str] = []
    outside = 0
    for token in tokens:
        depth += token.nesting if token.type.startswith("list_item") else 0
        if token.type == "inline" and (named := _NAMED.match(token.content)):
            outside += depth == 0
            inside += [named["name"]] if depth else []
    return outside == 0 or len(set(inside)) < len(inside)


def _inline_rows(token: Token, number: int) -> Iterator[Row]:
    row: list[Token] = []
    parts: list[list[Token]] = [row]
    for child in token.children or []:
        if child.type in ("softbreak", "hardbreak"):
            row = []
            parts.append(row)
        else:
            row.append(child)
    for idx, part in enumerate(parts):
        text = "".join(_show(part)).strip()
        if _is_name_and_how(part):
            text = f"{text}:"
        elif _is_all(part, "em") and not _NAMED.match(text):
            text = f"*{text}*"
        elif _is_all(part, "strong") and text[-1:].isalnum():
            # A name above her words, or a heading.
            text = f"{text}:" if idx + 1 < len(parts) else f"**{text}**"
        yield number + idx, text


def _is_name_and_how(part: list[Token]) -> bool:
    """Whether a row is a name in bold and a direction: `**Tom** *(sighs)*`."""
    visible = [one for one in part if one.type != "text" or one.content]
    types = [one.type for one in visible[:3]]
    rest = "".join(_show(visible[3:])).strip()
    return types == ["strong_open", "text", "strong_close"] and _HOW.fullmatch(rest) is not None


def _is_all(part: list[Token], kind: str) -> bool:
    """Whether a row is all bold (`strong`), or all in italics (`em`)."""
    visible = [one for one in part if one.type != "text" or one.content.strip()]
    types = [one.type for one in visible]
    return types == [f"{kind}_open", "text", f"{kind}_close"]


def _show(children: list[Token]) -> Iterator[str]:
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


def _leads(children: list[Token], end: int) -> bool:
    """Whether nothing but a name stands before an inline token."""
    texts = (children[idx].content.rstrip() for idx in range(end - 1, -1, -1))
    last = next(filter(None, texts), "")
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

    parser = MarkdownIt("commonmark", {"html": False})
    parser.core.ruler.at("inline", _read_inline)
    # A row of dashes below a line is a rule here, not a heading; `<Person1>` stays text.
    return parser.enable("strikethrough").disable(
        ("lheading", "code", "reference", "html_block", "html_inline")
    )


def _read_inline(state: StateCore) -> None:
    """Find marks inside blocks; of a row as long as `strip_markup` leaves it, where it begins."""
    from markdown_it.token import Token  # noqa: PLC0415 - as above

    for token in state.tokens:
        if token.type != "inline":
            continue
        token.children = []
        rows = [token.content]
        if len(token.content) > _MOST_MARKED_CHARS:
            rows = token.content.split("\n")
        if max(map(len, rows)) <= _MOST_MARKED_CHARS:
            rows = [token.content]
        for idx, row in enumerate(rows):
            if idx:
                token.children.append(Token("softbreak", "br", 0))
            end = len(row)
            if end > _MOST_MARKED_CHARS:
                end = max(0, row.rfind(" ", 0, _MARKED_BEGINNING)) or _MARKED_BEGINNING
            state.md.inline.parse(row[:end], state.md, state.env, token.children)
            if row[end:]:
                token.children.append(Token("text", "", 0, content=row[end:]))
