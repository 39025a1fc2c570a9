"""Merges a rewritten script into a project's lines, so that lines that stayed keep their takes."""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from studio.dialog.model import Audio, Silence, Speech, name_key
from studio.dialog.model import Line as DialogLine
from studio.project.document import Document, LineKind, ProjectLine

_MIN_SIMILARITY = 0.5
"""Share of a line's text that must be unchanged for it to count as the same line."""
_MAX_COMPARED_CHARS = 2_000

_MatchKey = tuple[object, ...]


def generate_line_id() -> str:
    """Generate a line's id."""
    return secrets.token_hex(6)


def create_lines(dialog: Iterable[DialogLine]) -> list[ProjectLine]:
    """Create new lines from a dialog."""
    return [_update_line(line, ProjectLine(generate_line_id())) for line in dialog]


def merge_script(document: Document, dialog: Iterable[DialogLine]) -> Document:
    """Change a document's lines to those of a script.

    Lines with unchanged text keep everything, wherever they moved. A line whose text changed in
    place keeps its id, and so its takes.
    """
    previous, wanted = list(document), list(dialog)
    matched = _match_unchanged(
        [_build_match_key(line.to_dialog_line()) for line in previous],
        [_build_match_key(one) for one in wanted],
    )
    _match_moved(previous, wanted, matched)
    _match_changed(previous, wanted, matched)
    lines = [
        _update_line(
            line, previous[matched[idx]] if idx in matched else ProjectLine(generate_line_id())
        )
        for idx, line in enumerate(wanted)
    ]
    kept = [document.lines.get(line.line_id) for line in lines]
    same = [was if was == line else line for was, line in zip(kept, lines, strict=True)]
    return replace(
        document,
        lines={line.line_id: line for line in same if line is not None},
        order=tuple(line.line_id for line in lines),
    )


def _match_unchanged(previous: Sequence[_MatchKey], wanted: Sequence[_MatchKey]) -> dict[int, int]:
    """Old index by new index, for unchanged lines."""
    matcher = SequenceMatcher(None, previous, wanted, autojunk=False)
    return {
        block.b + idx: block.a + idx
        for block in matcher.get_matching_blocks()
        for idx in range(block.size)
    }


def _match_moved(
    previous: Sequence[ProjectLine], wanted: Sequence[DialogLine], matched: dict[int, int]
) -> None:
    free: dict[_MatchKey, list[int]] = defaultdict(list)
    taken = set(matched.values())
    for place in reversed(range(len(previous))):
        if place not in taken:
            free[_build_match_key(previous[place].to_dialog_line())].append(place)
    for place, line in enumerate(wanted):
        if place not in matched and free[_build_match_key(line)]:
            matched[place] = free[_build_match_key(line)].pop()


def _match_changed(
    previous: Sequence[ProjectLine], wanted: Sequence[DialogLine], matched: dict[int, int]
) -> None:
    """Match changed lines between unchanged ones with the most similar old line, in order."""
    taken = set(matched.values())
    at = 0
    for place, line in enumerate(wanted):
        if place in matched:
            at = matched[place] + 1
            continue
        while at < len(previous) and at in taken:
            at += 1
        for candidate in range(at, min(at + 4, len(previous))):
            if candidate in taken:
                break
            if _is_similar(previous[candidate].to_dialog_line(), line):
                matched[place] = candidate
                taken.add(candidate)
                at = candidate + 1
                break


def _is_similar(previous: DialogLine, line: DialogLine) -> bool:
    if isinstance(previous, Silence) and isinstance(line, Silence):
        return True
    if not isinstance(previous, Speech) or not isinstance(line, Speech):
        return False
    one, other = previous.text[:_MAX_COMPARED_CHARS], line.text[:_MAX_COMPARED_CHARS]
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    # The first two are cheap upper bounds of the third.
    return (
        matcher.real_quick_ratio() >= _MIN_SIMILARITY
        and matcher.quick_ratio() >= _MIN_SIMILARITY
        and matcher.ratio() >= _MIN_SIMILARITY
    )


def _update_line(line: DialogLine, onto: ProjectLine) -> ProjectLine:
    """A line's new text with the id, take and lock of an old line."""
    fresh = ProjectLine(onto.line_id, locked=onto.locked, chosen=onto.chosen)
    match line:
        case Silence():
            return replace(fresh, kind=LineKind.SILENCE, duration_s=line.duration_s)
        case Audio():
            return replace(fresh, kind=LineKind.AUDIO, path=line.path)
        case Speech():
            return replace(
                fresh,
                speaker=line.speaker,
                text=line.text,
                language=line.language,
                seed=line.seed,
                params=dict(line.params),
            )


def _build_match_key(line: DialogLine) -> _MatchKey:
    match line:
        case Silence():
            return ("silence", line.duration_s)
        case Audio():
            return ("audio", line.path)
        case Speech():
            return ("speech", name_key(line.speaker), line.text)
