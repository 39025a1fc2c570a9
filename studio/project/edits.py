"""Applies edit operations to a document, all of them or none."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import singledispatch
from typing import Any, Protocol

from studio.dialog.attributes import UNSURE, check_language, check_seed
from studio.dialog.gaps import GAP, START, check_gap
from studio.dialog.model import check_line_length, clean_name, paragraph
from studio.dialog.pronunciation import check_pronunciations
from studio.dialog.tags import write_pause
from studio.engine.job import MAX_TRIES
from studio.errors import BadInput, Conflict, NotFound
from studio.project import ops
from studio.project.comments import Comment, clean_author, clean_comment_text
from studio.project.document import (
    Document,
    LineKind,
    ProjectLine,
    ProjectSettings,
    check_unspoken,
    clean_project_name,
    parse_fields,
    parse_line,
)
from studio.project.draft import DocumentDraft

_MAX_BACKEND_CHARS = 100


def change_settings(before: ProjectSettings, fields: Mapping[str, Any]) -> ProjectSettings:
    """Change settings, checking the values.

    Raises:
        BadInput: There is no such setting, or its value is invalid.
    """
    unknown = set(fields).difference(ProjectSettings.__dataclass_fields__)
    if unknown:
        raise BadInput(f"A project has no setting “{min(unknown)[:40]}”.")
    language, seed, backend = (fields.get(name) for name in ("language", "seed", "backend"))
    if language is not None:
        fields = {**fields, "language": check_language(str(language))}
    if seed is not None:
        check_seed(seed)
    if backend is not None and not (
        isinstance(backend, str) and len(backend) <= _MAX_BACKEND_CHARS
    ):
        raise BadInput("A backend is chosen by its name.")
    if fields.get("tries", 1) not in range(1, MAX_TRIES + 1):
        raise BadInput(f"A doubtful line is spoken 1 to {MAX_TRIES} times.")
    if not isinstance(fields.get("says_words", False), bool):
        raise BadInput("Numbers are said in words, or they aren't: true or false.")
    if "gap_s" in fields:
        check_gap(fields["gap_s"])
    return replace(before, **fields)


def check_settings(settings: ProjectSettings) -> None:
    """Check that settings from a file have only values that an edit could have set.

    Raises:
        BadInput: They have others.
    """
    if change_settings(ProjectSettings(), asdict(settings)) != settings:
        raise BadInput("The project's settings aren't as they are kept.")


class TakeInfo(Protocol):
    """A take as edits need it."""

    @property
    def take_id(self) -> str: ...

    @property
    def line_id(self) -> str: ...

    @property
    def seed(self) -> int: ...

    @property
    def source(self) -> str | None:
        """Where it comes from if no engine spoke it."""
        ...


@dataclass(frozen=True, slots=True)
class EditLookups:
    """Look-ups that edits need besides the document.

    Attributes:
        find_take: Finds a take by its id; raises `NotFound`.
        find_speaker_id: Finds the id of the library's speaker of a name; None if there is none.
        now_s: The time, in seconds since 1970.
    """

    find_take: Callable[[str], TakeInfo]
    find_speaker_id: Callable[[str], str | None]
    now_s: Callable[[], float] = time.time


def apply_edits(document: Document, edits: Iterable[ops.Op], outside: EditLookups) -> Document:
    """Apply edits to a document, all or none."""
    draft = DocumentDraft(document)
    for edit in edits:
        draft.spend(1)
        _apply_edit(edit, draft, outside)
    return draft.finish()


@singledispatch
def _apply_edit(edit: object, draft: DocumentDraft, outside: EditLookups) -> None:
    raise AssertionError(f"nobody knows how to apply {edit}")


@_apply_edit.register
def _(edit: ops.Insert, draft: DocumentDraft, _: EditLookups) -> None:
    draft.spend(2 * len(edit.lines))  # they are checked, too
    draft.insert(edit.after, [parse_line(line) for line in edit.lines])


@_apply_edit.register
def _(edit: ops.Delete, draft: DocumentDraft, _: EditLookups) -> None:
    draft.spend(len(edit.line_ids))
    draft.delete(edit.line_ids)


@_apply_edit.register
def _(edit: ops.Move, draft: DocumentDraft, _: EditLookups) -> None:
    draft.spend(2 * len(edit.line_ids))
    if edit.after in edit.line_ids:
        raise BadInput("A line can't be moved behind itself.")
    draft.move(edit.line_ids, edit.after)


@_apply_edit.register
def _(edit: ops.SetFields, draft: DocumentDraft, _: EditLookups) -> None:
    fields = parse_fields({**edit.fields})
    if "chosen" in edit.fields or fields.get("speaker", "-") is None:
        raise BadInput("A line of speech needs a speaker, and its take is chosen by “choose”.")
    draft.spend(2 * len(edit.line_ids))
    for line_id in edit.line_ids:
        params = draft.get_line(line_id).params
        if "speaker" in fields and UNSURE in params:
            known = {name: value for name, value in params.items() if name != UNSURE}
            draft.update_line(line_id, params=known)
        draft.update_line(line_id, **fields)
        check_unspoken(draft.get_line(line_id))


@_apply_edit.register
def _(edit: ops.Choose, draft: DocumentDraft, outside: EditLookups) -> None:
    line = draft.get_line(edit.line_id)
    if edit.take_id is None:
        draft.update_line(line.line_id, chosen=None)
        return
    take = outside.find_take(edit.take_id)
    if take.line_id != line.line_id or take.take_id in draft.deleted_takes:
        raise NotFound("This take isn't there any more.")
    # A line's own seed becomes that of the chosen take; a recording has none.
    seed = line.seed if line.seed is None or take.source is not None else take.seed
    draft.update_line(line.line_id, chosen=take.take_id, seed=seed)


@_apply_edit.register
def _(edit: ops.Split, draft: DocumentDraft, _: EditLookups) -> None:
    line = _require_speech(draft, edit.line_id)
    draft.spend(1, 10 * len(line.text))
    units = line.text.encode("utf-16-le")
    head, tail = (
        paragraph(part.decode("utf-16-le", "replace"))
        for part in (units[: 2 * edit.at], units[2 * edit.at :])
    )
    params = {name: value for name, value in line.params.items() if name not in (GAP, START)}
    values = {"speaker": line.speaker, "language": line.language, "params": params}
    new = parse_line({"line_id": edit.new_line_id, "text": tail, "seed": line.seed, **values})
    draft.update_line(line.line_id, text=head)
    draft.insert(line.line_id, [new])


@_apply_edit.register
def _(edit: ops.Join, draft: DocumentDraft, _: EditLookups) -> None:
    lines = draft.select_in_order(edit.line_ids)
    if not lines:
        return
    first = _require_speech(draft, lines[0].line_id)
    draft.spend(len(lines), 10 * sum(len(line.text) for line in lines))
    text = paragraph(" ".join(_to_text(line) for line in lines))
    draft.delete(line.line_id for line in lines[1:])
    draft.update_line(first.line_id, text=text)
    joined = {line.line_id for line in lines[1:]}
    for key, comment in draft.comments.items():
        if comment.line_id in joined:
            draft.comments[key] = replace(comment, line_id=first.line_id)


@_apply_edit.register
def _(edit: ops.DeleteTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take = outside.find_take(edit.take_id)
    if take.take_id in draft.deleted_takes:
        return
    line = draft.lines.get(take.line_id)
    if take.take_id in draft.locked_takes or (line and line.locked and line.chosen == take.take_id):
        raise Conflict("This take is locked. Unlock it first.")
    draft.deleted_takes[take.take_id] = None
    if line is not None and line.chosen == take.take_id:
        draft.update_line(line.line_id, chosen=None)


@_apply_edit.register
def _(edit: ops.LockTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    draft.locked_takes.pop(take_id, None)
    if edit.locked:
        draft.locked_takes[take_id] = None


@_apply_edit.register
def _(edit: ops.AcceptTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    draft.accepted_takes.pop(take_id, None)
    if edit.accepted:
        draft.accepted_takes[take_id] = None


@_apply_edit.register
def _(edit: ops.StarTake, draft: DocumentDraft, outside: EditLookups) -> None:
    take_id = outside.find_take(edit.take_id).take_id
    draft.starred_takes.pop(take_id, None)
    if edit.starred:
        draft.starred_takes[take_id] = None


@_apply_edit.register
def _(edit: ops.CastVoice, draft: DocumentDraft, _: EditLookups) -> None:
    draft.cast_voice(clean_name(edit.speaker), edit.voice)


@_apply_edit.register
def _(edit: ops.SetCharacter, draft: DocumentDraft, _: EditLookups) -> None:
    draft.change_character(clean_name(edit.speaker), edit.fields)


@_apply_edit.register
def _(edit: ops.RenameSpeaker, draft: DocumentDraft, outside: EditLookups) -> None:
    draft.rename_speaker(clean_name(edit.from_), clean_name(edit.to), outside.find_speaker_id)


@_apply_edit.register
def _(edit: ops.SetSettings, draft: DocumentDraft, _: EditLookups) -> None:
    draft.settings = change_settings(draft.settings, edit.fields)


@_apply_edit.register
def _(edit: ops.SetPronunciations, draft: DocumentDraft, _: EditLookups) -> None:
    draft.spend(3 * len(edit.put) + len(edit.remove))
    put = check_pronunciations(one.entry() for one in edit.put)
    for written in edit.remove:
        draft.pronunciations.pop(written, None)
    draft.pronunciations |= {one.written: one for one in put}


@_apply_edit.register
def _(edit: ops.AddComment, draft: DocumentDraft, outside: EditLookups) -> None:
    draft.spend(1, len(edit.text))
    line_id = draft.get_line(edit.line_id).line_id
    author, text = clean_author(edit.author), clean_comment_text(edit.text)
    comment = Comment(edit.comment_id, line_id, author, outside.now_s(), text)
    draft.comments.setdefault(edit.comment_id, comment)


@_apply_edit.register
def _(edit: ops.ChangeComment, draft: DocumentDraft, _: EditLookups) -> None:
    comment = draft.comments.get(edit.comment_id)
    if comment is None:
        raise NotFound("This comment isn't there any more; somebody deleted it.")
    if edit.resolved is not None:
        comment = replace(comment, resolved=edit.resolved)
    if edit.text is not None:
        comment = replace(comment, text=clean_comment_text(edit.text))
    draft.comments[edit.comment_id] = comment


@_apply_edit.register
def _(edit: ops.DeleteComment, draft: DocumentDraft, _: EditLookups) -> None:
    draft.comments.pop(edit.comment_id, None)


@_apply_edit.register
def _(edit: ops.Rename, draft: DocumentDraft, _: EditLookups) -> None:
    draft.name = clean_project_name(edit.name)


@_apply_edit.register
def _(edit: ops.Replace, draft: DocumentDraft, _: EditLookups) -> None:
    find = re.escape(edit.find)
    if edit.whole_word:
        find = rf"(?<!\w){find}(?!\w)"
    pattern = re.compile(find, 0 if edit.match_case else re.IGNORECASE)
    for line in draft.iter_lines(edit.line_ids):
        draft.spend(2, 3 * len(line.text))
        if line.kind is not LineKind.SPEECH and line.unspoken is None:
            continue
        # Counted before the text is built, which could take gigabytes.
        found = len(pattern.findall(line.text))
        if not found:
            continue
        more_chars = found * (len(edit.with_) - len(edit.find))
        check_line_length(len(line.text) + more_chars)
        draft.grow(more_chars)
        draft.spend(0, 3 * len(line.text))
        text = pattern.sub(edit.with_.replace("\\", r"\\"), line.text)
        draft.update_line(line.line_id, text=paragraph(text))


def _require_speech(draft: DocumentDraft, line_id: str) -> ProjectLine:
    line = draft.get_line(line_id)
    if line.kind is not LineKind.SPEECH:
        raise BadInput("Only a line of speech can be split or joined.")
    return line


def _to_text(line: ProjectLine) -> str:
    match line.kind:
        case LineKind.SPEECH:
            return line.text
        case LineKind.SILENCE if line.unspoken is not None:
            raise BadInput(f"A {line.unspoken} can't be joined with speech.")
        case LineKind.SILENCE:
            return write_pause(line.duration_s or 0.0)
        case LineKind.AUDIO:
            raise BadInput("Audio can't be joined with speech.")
