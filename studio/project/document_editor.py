"""Edits, undo and redo of a project by several pages at once, with detection of conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from studio.dialog.model import Dialog, normalize_spoken_text
from studio.dialog.pronunciation import Pronunciation, PronunciationRules
from studio.errors import EditConflict
from studio.project import ops
from studio.project.comments import select_for_lines
from studio.project.document import Document, LineKind, clean_project_name
from studio.project.draft import check_bounds
from studio.project.edits import EditLookups, apply_edits
from studio.project.history import Author, Entry, EntryKind, HistoryStep, parse_person
from studio.project.line_states import STUDIO_AUTHOR, EditEvent, LineStates, ProjectState
from studio.project.ops import Op
from studio.project.render_context import RenderContext
from studio.project.script_merge import merge_script

WHOLE_LINE = "line"
"""All fields of a line: it was added or deleted, or an edit concerns all of it."""

_NOT_IN_SCRIPT = frozenset({"chosen", "locked"})

ForeignChanges = Mapping[str, frozenset[str]]
"""Fields that others changed, by line; "" stands for the project itself."""

_MAX_DELETED_LINES = 5_000
"""Whose deletion is remembered; an edit of an earlier one is refused as of a line that is gone."""

_Claim = tuple[str, str, Any]
"""A line, the field that an edit relies on ("" for the line only), and its new value."""


class EditFootprint:
    """The last author of each field of each line; grows with the lines, not with the edits."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, tuple[int, str]]] = {}
        # Of lines that aren't there any more, the last deleted one last.
        self._deleted: dict[str, None] = {}

    def add_entry(self, entry: Entry) -> None:
        """Record the changes of an entry of the journal."""
        if entry["kind"] == EntryKind.MADE:
            return
        mark = (entry["rev"], entry["client"])
        delta = entry["delta"]
        for line_id, (before, after) in delta.get("lines", {}).items():
            marks = self._latest.setdefault(line_id, {})
            marks |= dict.fromkeys(
                (WHOLE_LINE,) if before is None or after is None else after, mark
            )
            self._deleted.pop(line_id, None)
            if after is None:
                self._deleted[line_id] = None
        self._latest.setdefault("", {}).update(dict.fromkeys(delta.get("fields", {}), mark))
        # At once: to find a dictionary's first key takes longer with each that was deleted there.
        for oldest in list(self._deleted)[: max(0, len(self._deleted) - _MAX_DELETED_LINES)]:
            del self._deleted[oldest], self._latest[oldest]

    def find_changes_by_others(self, base_rev: int, client: str) -> ForeignChanges:
        """The changes of other clients after a revision."""
        found = {
            line_id: frozenset(
                name for name, (rev, by) in marks.items() if rev > base_rev and by != client
            )
            for line_id, marks in self._latest.items()
        }
        return {line_id: names for line_id, names in found.items() if names}


def select_script_changes(foreign: ForeignChanges) -> ForeignChanges:
    """Those changes that show in a script, unlike the choice of takes or voices."""
    found = {line_id: names - _NOT_IN_SCRIPT for line_id, names in foreign.items() if line_id}
    return {line_id: names for line_id, names in found.items() if names}


def check_mergeable(
    document: Document, edits: Iterable[ops.Op], foreign: ForeignChanges, *, rev: int
) -> None:
    """Check that edits based on an older revision don't overwrite changes of others.

    Raises:
        EditConflict: They do; says where.
    """
    new: set[str] = set()
    conflicts: list[dict[str, object]] = []
    for number, edit in enumerate(edits):
        for claim in _list_claims(edit):
            is_gone_anyway = isinstance(edit, ops.Delete) and claim[0] not in document.lines
            if claim[0] not in new and not is_gone_anyway:
                found = _find_conflicts(document, claim, foreign)
                conflicts += [{"op": number, **conflict} for conflict in found]
        new.update(_list_new_lines(edit))
    if conflicts:
        message = "Somebody else changed the same line meanwhile. Compare both and choose."
        raise EditConflict(message, rev=rev, conflicts=conflicts)


def _find_conflicts(
    document: Document, claim: _Claim, foreign: ForeignChanges
) -> Iterator[dict[str, object]]:
    line_id, field, mine = claim
    line = document.lines.get(line_id)
    if line_id and line is None:
        yield {"line_id": line_id, "field": WHOLE_LINE, "mine": mine, "theirs": None}
        return
    holder = document if line is None else line
    touched = foreign.get(line_id, frozenset())
    for name in sorted(touched if field == WHOLE_LINE else touched & {field}):
        theirs = getattr(holder, name, None)
        if field == WHOLE_LINE or theirs != mine:
            yield {"line_id": line_id, "field": name, "mine": mine, "theirs": theirs}


def _list_claims(edit: ops.Op) -> Iterable[_Claim]:
    match edit:
        case ops.SetFields(line_ids=line_ids, fields=fields):
            return [(one, name, value) for one in line_ids for name, value in fields.items()]
        case ops.Insert(after=after):
            return [] if after is None else [(after, "", None)]
        case ops.Move(line_ids=line_ids, after=after):
            return [(one, "", None) for one in [*line_ids, after] if one is not None]
        case ops.Join(line_ids=line_ids) | ops.Delete(line_ids=line_ids):
            return [(one, WHOLE_LINE, None) for one in line_ids]
        case ops.Split(line_id=line_id):
            return [(line_id, "text", None)]
        case ops.Choose(line_id=line_id, take_id=take_id):
            return [(line_id, "chosen", take_id)]
        case ops.Rename(name=name):
            return [("", "name", name)]
        case _:
            return []


def _list_new_lines(edit: ops.Op) -> list[str]:
    match edit:
        case ops.Insert(lines=lines):
            return [str(line.get("line_id")) for line in lines]
        case ops.Split(new_line_id=new_line_id):
            return [new_line_id]
        case _:
            return []


def find_respelled_lines(before: Document, after: Document) -> Iterator[str]:
    """Lines in both documents with an entry that was changed, so that they may sound different."""
    was, now = before.pronunciations, after.pronunciations
    if was == now:
        return
    changed = _exclude_entries(was, now), _exclude_entries(now, was)
    for line_id, line in after.lines.items():
        if line.kind is not LineKind.SPEECH or line_id not in before.lines:
            continue
        text = normalize_spoken_text(line.text)
        if any(one.find_first(text) is not None for one in changed):
            yield line_id


def find_revoiced_lines(
    previous: RenderContext, present: RenderContext, before: Document, after: Document
) -> Iterator[str]:
    """Lines in both documents now spoken by another voice or backend, or in another language."""
    if previous is present:
        return
    if previous.pronouncing.in_words == present.pronouncing.in_words:
        # `find_respelled_lines` finds those faster
        previous = replace(previous, pronouncing=present.pronouncing)
    if previous == present:
        return
    stayed = (line for line_id, line in after.lines.items() if line_id in before.lines)
    yield from previous.find_changed(present, stayed)


def _exclude_entries(
    entries: Mapping[str, Pronunciation], others: Mapping[str, Pronunciation]
) -> PronunciationRules:
    """The entries that differ from those in another list."""
    return PronunciationRules(one for written, one in entries.items() if others.get(written) != one)


_MAX_EDIT_IDS = 200


class DocumentEditor:
    """All methods are called under the session's lock."""

    def __init__(self, core: ProjectState) -> None:
        self._state = core
        self._footprint = EditFootprint()
        self._footprint_rev = core.rev
        # Lines that sound different after the current step, though it doesn't change them.
        self._respelled_lines: list[str] = []

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditEvent:
        """Apply edits, all or none; a repeated edit has no effect.

        Raises:
            EditConflict: Others changed the same since `base_rev`.
            BadInput, NotFound, Conflict: As `apply_edits`.
        """
        core = self._state
        if author.edit_id in self._state.edit_ids:
            return EditEvent(core.rev, author.client)
        if base_rev < core.rev:
            foreign = self._load_footprint(base_rev).find_changes_by_others(base_rev, author.client)
            check_mergeable(core.document, edits, foreign, rev=core.rev)
        speakers = core.voice_resolver.look_up_speakers()
        outside = EditLookups(core.take_store.find, speakers, core.deps.now_s)
        return self._record(apply_edits(core.document, edits, outside), author)

    def merge_script(self, dialog: Dialog, author: Author, base_rev: int) -> EditEvent:
        """Change the lines to those of a dialog; unchanged lines keep their takes.

        Raises:
            EditConflict: Others changed the project since `base_rev`.
        """
        core = self._state
        if author.edit_id in self._state.edit_ids:
            return EditEvent(core.rev, author.client)
        foreign = select_script_changes(
            self._load_footprint(base_rev).find_changes_by_others(base_rev, author.client)
        )
        if foreign:
            message = "Somebody else changed the dialog meanwhile. Look at it again first."
            conflicts: list[dict[str, object]] = [
                {"line_id": line_id, "field": name, "mine": None, "theirs": None}
                for line_id, names in foreign.items()
                for name in names
            ]
            raise EditConflict(message, rev=core.rev, conflicts=conflicts)
        after = merge_script(core.document, dialog)
        check_bounds(core.document, after)
        return self._record(after, author)

    def rename(self, name: str) -> EditEvent:
        """Rename the project, which is no step of undo."""
        after = replace(self._state.document, name=clean_project_name(name))
        self._state.record(after, STUDIO_AUTHOR, EntryKind.MADE)
        news = EditEvent(self._state.rev, "", fields=("name",))
        self._state.events.append(news)
        return news

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditEvent:
        """Undo the latest step.

        Args:
            author: Who undoes it.
            base_rev: The latest revision that the author has seen.
            own: Undo the author's latest step instead; steps of others and what they rely on stay.

        Raises:
            Conflict: There is none.
            EditConflict: It is somebody else's, and newer than `base_rev`, or not wanted.
        """
        history = self._state.history
        if author.edit_id in self._state.edit_ids:
            return EditEvent(self._state.rev, author.client)
        if own and history.marks.undo is not None:
            return self._undo_own(author)
        latest = history.author_of_next_undo()
        if latest and latest[0] > base_rev and latest[1] not in ("", author.client):
            message = "The latest step is somebody else's and new to you. Look at it first."
            raise EditConflict(message, rev=self._state.rev, conflicts=[])
        return self.publish_step(history.undo(author, self._state.deps.now_s(), self._finish_undo))

    def _undo_own(self, author: Author) -> EditEvent:
        person, core = parse_person(author.client), self._state

        def is_own(client: str) -> bool:
            return client == STUDIO_AUTHOR.client or parse_person(client) == person

        step = core.history.undo_own(author, core.deps.now_s(), self._finish_undo, is_own)
        if step is None:
            message = "The steps that are left are somebody else's, or others went on from yours."
            raise EditConflict(message, rev=core.rev, conflicts=[])
        return self.publish_step(step)

    def redo(self, author: Author) -> EditEvent:
        """Redo the step that was undone last."""
        if author.edit_id in self._state.edit_ids:
            return EditEvent(self._state.rev, author.client)
        return self.publish_step(
            self._state.history.redo(author, self._state.deps.now_s(), self._finish_undo)
        )

    def publish_step(self, step: HistoryStep) -> EditEvent:
        """Publish a step to all pages."""
        core, delta = self._state, step.delta
        self._footprint.add_entry(step.entry)
        self._remember(step.entry.get("edit_id"))
        otherwise, self._respelled_lines = self._respelled_lines, []
        others = (*self._lines_of_takes(step), *filter(step.after.lines.__contains__, otherwise))
        line_ids = tuple({**delta.lines, **dict.fromkeys(others)})
        news = EditEvent(
            core.rev,
            step.entry["client"],
            line_ids,
            order=delta.order is not None,
            fields=tuple(delta.fields),
            speakers=delta.affects_speakers,
        )
        core.events.append(news)
        return news

    def _lines_of_takes(self, step: HistoryStep) -> Iterator[str]:
        """The lines that gained or lost a take."""
        changed = set(step.before.deleted_takes) ^ set(step.after.deleted_takes)
        takes = map(self._state.take_store.get, changed)
        return (take.line_id for take in takes if take and take.line_id in step.after.lines)

    def _record(self, after: Document, author: Author) -> EditEvent:
        core, before = self._state, self._state.document
        if after.settings.backend != before.settings.backend:
            core.voice_resolver.check_backend(after.settings.backend)
        after = core.voice_resolver.cast_new_names(after, before)
        step = core.record(self._choose_takes(after), author)
        return EditEvent(core.rev, author.client) if step is None else self.publish_step(step)

    def _finish_undo(self, after: Document) -> Document:
        """As `_choose_takes`, if what comes back fits: others may have added as much since."""
        check_bounds(self._state.document, after)
        return self._choose_takes(after)

    def _choose_takes(self, after: Document) -> Document:
        """Choose a fitting take for each changed line, if there is one.

        Comments go with their line. Both are part of the same step, so that undo restores the
        earlier choice, and a line with its comments.
        """
        core, before = self._state, self._state.document
        previous = context = core.line_states.context
        if not core.voice_resolver.is_current_for(after):
            context = core.voice_resolver.refresh(after)[1]
        changed = [one for one, line in after.lines.items() if before.lines.get(one) is not line]
        self._respelled_lines = [
            *find_respelled_lines(before, after),
            *find_revoiced_lines(previous, context, before, after),
        ]
        after = replace(after, comments=select_for_lines(after.comments, after.lines))
        lines = LineStates(core, after, context)
        return lines.choose_current(changed + self._respelled_lines)

    def _load_footprint(self, base_rev: int) -> EditFootprint:
        """Load the footprint; reads the whole journal once, if older revisions are needed."""
        if base_rev < self._footprint_rev:
            self._footprint = EditFootprint()
            for placed in self._state.journal.replay():
                self._footprint.add_entry(placed.entry)
            self._footprint_rev = 0
        return self._footprint

    def _remember(self, edit_id: str | None) -> None:
        if edit_id is not None:
            edit_ids = self._state.edit_ids
            edit_ids[edit_id] = None
            if len(edit_ids) > _MAX_EDIT_IDS:
                del edit_ids[next(iter(edit_ids))]
