"""What each edit does to a document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatch
from typing import Protocol

from studio.dialog.attributes import checked_seed
from studio.dialog.names import clean_name, name_key, same_name
from studio.dialog.paragraph import paragraph
from studio.dialog.pronouncing import checked_pronunciations
from studio.dialog.tags import write_pause
from studio.engine.job import MAX_TRIES
from studio.errors import BadInput, Conflict, NotFound
from studio.project import ops
from studio.project.checks import checked_fields, checked_line, checked_project_name
from studio.project.document import Document, Line, LineKind
from studio.project.draft import Draft, settings_of


class TakeInfo(Protocol):
    """What an edit has to know of a take."""

    @property
    def take_id(self) -> str:
        """Its id."""
        ...

    @property
    def line_id(self) -> str:
        """Whose it is."""
        ...

    @property
    def seed(self) -> int:
        """What it was made with."""
        ...


@dataclass(frozen=True, slots=True)
class Outside:
    """What edits look up beside the document.

    Attributes:
        find_take: A take by its id; raises `NotFound`.
        speaker_of: The id of the library's speaker of a name, None when there is none.
    """

    find_take: Callable[[str], TakeInfo]
    speaker_of: Callable[[str], str | None]


def edited(document: Document, edits: Iterable[ops.Op], outside: Outside) -> Document:
    """A document after edits, all of them or none.

    Raises:
        BadInput: A value can't be used.
        NotFound: A line or take is gone.
        Conflict: A take is locked.
    """
    draft = Draft(document)
    for edit in edits:
        _apply(edit, draft, outside)
    return draft.finish()


@singledispatch
def _apply(edit: object, draft: Draft, outside: Outside) -> None:
    raise AssertionError(f"nobody knows how to apply {edit}")


@_apply.register
def _(edit: ops.Insert, draft: Draft, _: Outside) -> None:
    draft.insert(draft.place_after(edit.after), [checked_line(line) for line in edit.lines])


@_apply.register
def _(edit: ops.Delete, draft: Draft, _: Outside) -> None:
    draft.delete(edit.line_ids)


@_apply.register
def _(edit: ops.Move, draft: Draft, _: Outside) -> None:
    moved = draft.in_order(edit.line_ids)
    if edit.after in edit.line_ids:
        raise BadInput("A line can't be moved behind itself.")
    draft.delete(edit.line_ids)
    draft.insert(draft.place_after(edit.after), moved)


@_apply.register
def _(edit: ops.SetFields, draft: Draft, _: Outside) -> None:
    fields = checked_fields({**edit.fields})
    if "chosen" in edit.fields or fields.get("speaker", "-") is None:
        raise BadInput("A line of speech needs a speaker, and its take is chosen by “choose”.")
    for line_id in edit.line_ids:
        draft.change(line_id, **fields)


@_apply.register
def _(edit: ops.Choose, draft: Draft, outside: Outside) -> None:
    line = draft.line(edit.line_id)
    if edit.take_id is None:
        draft.change(line.line_id, chosen=None)
        return
    take = outside.find_take(edit.take_id)
    if take.line_id != line.line_id or take.take_id in draft.deleted_takes:
        raise NotFound("This take isn't there any more.")
    # A line that names its seed names that of the take it chooses.
    seed = None if line.seed is None else take.seed
    draft.change(line.line_id, chosen=take.take_id, seed=seed)


@_apply.register
def _(edit: ops.Split, draft: Draft, _: Outside) -> None:
    line = _speech(draft, edit.line_id)
    units = line.text.encode("utf-16-le")
    head, tail = (
        paragraph(part.decode("utf-16-le", "replace"))
        for part in (units[: 2 * edit.at], units[2 * edit.at :])
    )
    values = {"speaker": line.speaker, "language": line.language, "params": line.params}
    new = checked_line({"line_id": edit.new_line_id, "text": tail, "seed": line.seed, **values})
    draft.change(line.line_id, text=head)
    draft.insert(draft.place_after(line.line_id), [new])


@_apply.register
def _(edit: ops.Join, draft: Draft, _: Outside) -> None:
    lines = draft.in_order(edit.line_ids)
    if not lines:
        return
    first = _speech(draft, lines[0].line_id)
    text = paragraph(" ".join(_as_text(line) for line in lines))
    draft.delete(line.line_id for line in lines[1:])
    draft.change(first.line_id, text=text)


@_apply.register
def _(edit: ops.DeleteTake, draft: Draft, outside: Outside) -> None:
    take = outside.find_take(edit.take_id)
    if take.take_id in draft.deleted_takes:
        return
    line = draft.lines.get(take.line_id)
    if take.take_id in draft.locked_takes or (line and line.locked and line.chosen == take.take_id):
        raise Conflict("This take is locked. Unlock it first.")
    draft.deleted_takes.append(take.take_id)
    if line is not None and line.chosen == take.take_id:
        draft.change(line.line_id, chosen=None)


@_apply.register
def _(edit: ops.LockTake, draft: Draft, outside: Outside) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    others = [one for one in draft.locked_takes if one != take_id]
    draft.locked_takes = [*others, take_id] if edit.locked else others


@_apply.register
def _(edit: ops.AcceptTake, draft: Draft, outside: Outside) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    others = [one for one in draft.accepted_takes if one != take_id]
    draft.accepted_takes = [*others, take_id] if edit.accepted else others


@_apply.register
def _(edit: ops.CastVoice, draft: Draft, _: Outside) -> None:
    name = clean_name(edit.speaker)
    draft.cast = {
        one: voice for one, voice in draft.cast.items() if name_key(one) != name_key(name)
    }
    if edit.voice is not None:
        draft.cast[name] = edit.voice


@_apply.register
def _(edit: ops.RenameSpeaker, draft: Draft, outside: Outside) -> None:
    former, name = clean_name(edit.from_), clean_name(edit.to)
    speaks_already = not same_name(former, name) and draft.has_speaker(name)
    for line in list(draft.lines.values()):
        if line.speaker is not None and same_name(line.speaker, former):
            draft.change(line.line_id, speaker=name)
    if speaks_already:
        draft.forget_voice(former)
    else:
        draft.hand_on_voice(former, name, outside.speaker_of)


@_apply.register
def _(edit: ops.SetSettings, draft: Draft, _: Outside) -> None:
    seed, backend = edit.fields.get("seed"), edit.fields.get("backend")
    if seed is not None:
        checked_seed(seed)
    if backend is not None and not isinstance(backend, str):
        raise BadInput("A backend is chosen by its name.")
    if edit.fields.get("tries", 1) not in range(1, MAX_TRIES + 1):
        raise BadInput(f"A doubtful line is spoken 1 to {MAX_TRIES} times.")
    draft.settings = settings_of(draft, edit.fields)


@_apply.register
def _(edit: ops.Pronounce, draft: Draft, _: Outside) -> None:
    put = checked_pronunciations(one.entry() for one in edit.put)
    for written in edit.remove:
        draft.pronunciations.pop(written, None)
    draft.pronunciations |= {one.written: one for one in put}


@_apply.register
def _(edit: ops.Rename, draft: Draft, _: Outside) -> None:
    draft.name = checked_project_name(edit.name)


@_apply.register
def _(edit: ops.Replace, draft: Draft, _: Outside) -> None:
    find = re.escape(edit.find)
    if edit.whole_word:
        find = rf"(?<!\w){find}(?!\w)"
    pattern = re.compile(find, 0 if edit.match_case else re.IGNORECASE)
    among = draft.order if edit.line_ids is None else edit.line_ids
    for line_id in among:
        line = draft.lines.get(line_id)
        if line is None or line.kind is not LineKind.SPEECH:
            continue
        text = pattern.sub(lambda _: edit.with_, line.text)
        if text != line.text:
            draft.change(line_id, text=paragraph(text))


def _speech(draft: Draft, line_id: str) -> Line:
    line = draft.line(line_id)
    if line.kind is not LineKind.SPEECH:
        raise BadInput("Only a line of speech can be split or joined.")
    return line


def _as_text(line: Line) -> str:
    match line.kind:
        case LineKind.SPEECH:
            return line.text
        case LineKind.SILENCE:
            return write_pause(line.duration_s or 0.0)
        case LineKind.AUDIO:
            raise BadInput("Audio can't be joined with speech.")
