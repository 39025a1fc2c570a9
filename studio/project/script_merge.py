"""Merges a rewritten script into a project's lines, so that lines that stayed keep their takes."""

from __future__ import annotations

import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from studio.dialog.gaps import GAP
from studio.dialog.model import Audio, Silence, Speech, Unspoken, name_key
from studio.dialog.model import Line as DialogLine
from studio.project.document import Document, LineKind, ProjectLine, change_line

_MIN_SAME_ENDS = 0.5
"""Share of both texts, at their beginnings and ends, that makes them the same line by itself."""

_MIN_SIMILARITY = 0.65
"""Share of both texts that must be common, in the same order, for them to be the same line."""

_MAX_COMPARED_CHARS = 2_000
_MAX_COMPARED_IN_ALL = 400_000
"""Characters after which only beginnings and ends are compared."""

_ID_CHARS = 12
_IDS_AT_ONCE = 500

_MatchKey = tuple[object, ...]


def generate_line_id() -> str:
    """Generate a line's id."""
    return next(_generate_line_ids())


def _generate_line_ids() -> Iterator[str]:
    """Ids of many lines; the system takes as long for one as for hundreds."""
    while True:
        digits = secrets.token_hex(_IDS_AT_ONCE * _ID_CHARS // 2)
        for start in range(0, len(digits), _ID_CHARS):
            yield digits[start : start + _ID_CHARS]


def create_lines(dialog: Iterable[DialogLine]) -> list[ProjectLine]:
    """Create new lines from a dialog."""
    new_ids = _generate_line_ids()
    return [_update_line(line, next(new_ids), None) for line in dialog]


def merge_script(document: Document, dialog: Iterable[DialogLine]) -> Document:
    """Change a document's lines to those of a script.

    Lines with unchanged text keep everything, wherever they moved. A line whose text changed in
    place keeps its id, and so its takes.
    """
    previous, wanted = list(document), list(dialog)
    old_keys = [_build_old_match_key(line) for line in previous]
    new_keys = [_build_match_key(line) for line in wanted]
    matched = _match_unchanged(old_keys, new_keys)
    _match_moved(old_keys, new_keys, matched)
    _match_changed(previous, wanted, matched)
    new_ids = _generate_line_ids()
    onto = [previous[matched[idx]] if idx in matched else None for idx in range(len(wanted))]
    lines = [
        _update_line(line, was.line_id if was is not None else next(new_ids), was)
        for line, was in zip(wanted, onto, strict=True)
    ]
    kept = [document.lines.get(line.line_id) for line in lines]
    same = [was if was == line else line for was, line in zip(kept, lines, strict=True)]
    return replace(
        document,
        lines={line.line_id: line for line in same if line is not None},
        order=tuple(line.line_id for line in lines),
    )


def _match_unchanged(previous: Sequence[_MatchKey], wanted: Sequence[_MatchKey]) -> dict[int, int]:
    """Old index by new index, for lines that occur once, and for equal lines next to those.

    Source: Heckel, "A technique for isolating differences between files", 1978.
    """
    olds, news = _find_unique(previous), _find_unique(wanted)
    # The ends of both scripts match each other, too.
    matched = {-1: -1, len(wanted): len(previous)}
    matched |= {news[key]: olds[key] for key in news.keys() & olds.keys()}
    taken = set(matched.values())
    for step, places in ((1, range(len(wanted))), (-1, reversed(range(len(wanted))))):
        for place in places:
            was = matched.get(place - step, -1 - step) + step
            if place in matched or was in taken or was < 0:
                continue
            if was < len(previous) and previous[was] == wanted[place]:
                matched[place] = was
                taken.add(was)
    del matched[-1], matched[len(wanted)]
    return matched


def _find_unique(keys: Sequence[_MatchKey]) -> dict[_MatchKey, int]:
    """The indexes of keys that occur once."""
    counts = Counter(keys)
    return {key: place for place, key in enumerate(keys) if counts[key] == 1}


def _match_moved(
    previous: Sequence[_MatchKey], wanted: Sequence[_MatchKey], matched: dict[int, int]
) -> None:
    free: dict[_MatchKey, list[int]] = defaultdict(list)
    taken = set(matched.values())
    for place in reversed(range(len(previous))):
        if place not in taken:
            free[previous[place]].append(place)
    for place, key in enumerate(wanted):
        if place not in matched and free.get(key):
            matched[place] = free[key].pop()


def _match_changed(
    previous: Sequence[ProjectLine], wanted: Sequence[DialogLine], matched: dict[int, int]
) -> None:
    """Match changed lines between unchanged ones with a similar old line, in order."""
    taken = set(matched.values())
    similarity = _Similarity()
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
            if similarity.is_same_line(previous[candidate], line):
                matched[place] = candidate
                taken.add(candidate)
                at = candidate + 1
                break


class _Similarity:
    """Compares texts as long as that hasn't taken too much; what comes then has to be quick."""

    def __init__(self) -> None:
        self._left_chars = _MAX_COMPARED_IN_ALL

    def is_same_line(self, previous: ProjectLine, line: DialogLine) -> bool:
        """Whether a line is an old one that was changed."""
        if isinstance(line, Silence):
            return previous.kind is LineKind.SILENCE and previous.unspoken is None
        if isinstance(line, Unspoken):
            if previous.unspoken is not line.kind:
                return False
        elif not isinstance(line, Speech) or previous.kind is not LineKind.SPEECH:
            return False
        one, other = previous.text[:_MAX_COMPARED_CHARS], line.text[:_MAX_COMPARED_CHARS]
        if one == other:
            return True
        both = len(one) + len(other)
        if 2 * min(len(one), len(other)) < _MIN_SAME_ENDS * both:
            return False
        if _have_same_ends(one, other, _MIN_SAME_ENDS * both / 2):
            return True
        self._left_chars -= both
        if self._left_chars <= 0:
            return False
        from rapidfuzz.distance import LCSseq  # noqa: PLC0415 - 45 modules that a start can spare

        return bool(2 * LCSseq.similarity(one, other) >= _MIN_SIMILARITY * both)


def _have_same_ends(one: str, other: str, wanted: float) -> bool:
    """Whether so many characters at the beginnings and ends of two texts are the same."""
    half = math.ceil(wanted / 2)
    if one[:half] != other[:half] and one[-half:] != other[-half:]:  # as in most pairs
        return False
    from rapidfuzz.distance import Postfix, Prefix  # noqa: PLC0415 - as above

    start = Prefix.similarity(one, other)
    return start + Postfix.similarity(one[start:], other[start:]) >= wanted


def _update_line(line: DialogLine, line_id: str, onto: ProjectLine | None) -> ProjectLine:
    """A line's new text with the take and lock of an old line, if there is one."""
    match line:
        case Speech():
            said = line.speaker, line.text, line.language, line.seed, dict(line.params)
            updated = ProjectLine(line_id, LineKind.SPEECH, *said)
        case Silence():
            updated = ProjectLine(line_id, LineKind.SILENCE, duration_s=line.duration_s)
        case Audio():
            # A script has no place for a recording's gap, so that it stays.
            had = onto.params if onto is not None and onto.kind is LineKind.AUDIO else {}
            own = had if line.gap_s is None else {GAP: line.gap_s}
            updated = ProjectLine(line_id, LineKind.AUDIO, path=line.path, params=dict(own))
        case Unspoken(text, kind):
            silence = LineKind.SILENCE
            updated = ProjectLine(line_id, silence, text=text, duration_s=0.0, unspoken=kind)
    if onto is None or not (onto.locked or onto.chosen):
        return updated
    return change_line(updated, locked=onto.locked, chosen=onto.chosen)


def _build_old_match_key(line: ProjectLine) -> _MatchKey:
    """The match key of a line's `to_dialog_line`."""
    if line.kind is LineKind.SPEECH:
        return ("speech", name_key(line.speaker or ""), line.text)
    return _build_match_key(line.to_dialog_line())


def _build_match_key(line: DialogLine) -> _MatchKey:
    match line:
        case Speech():
            return ("speech", name_key(line.speaker), line.text)
        case Silence():
            return ("silence", line.duration_s)
        case Audio():
            return ("audio", line.path)
        case Unspoken():
            return (line.kind, line.text)
