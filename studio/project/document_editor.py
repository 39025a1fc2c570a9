"""Edits, undo and redo of a project by several pages at once, with the conflicts between them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from studio.dialog.line_text import normalize_spoken_text
from studio.dialog.model import Dialog
from studio.dialog.pronunciation import Pronunciation, PronunciationRules
from studio.errors import EditConflict
from studio.project import ops
from studio.project.document import Document, LineKind, clean_project_name
from studio.project.edits import EditLookups, apply_edits
from studio.project.event_log import EditEvent
from studio.project.history import Author, EntryKind, HistoryStep, parse_person
from studio.project.journal import Entry
from studio.project.ops import Op
from studio.project.project_state import STUDIO_AUTHOR, ProjectState
from studio.project.render_context import RenderContext
from studio.project.script_merge import merge_script

WHOLE_LINE = "line"
"""Stands for all fields of a line: it came, it went, or an edit is about all of it."""

_NOT_IN_SCRIPT = frozenset({"chosen", "locked"})

ForeignChanges = Mapping[str, frozenset[str]]
"""Fields that others changed, by line; "" is the project itself."""

_Claim = tuple[str, str, Any]
"""A line, the field an edit relies on (none: only the line), and what the edit makes of it."""


class EditFootprint:
    """Who changed what last, by line and field; grows with the lines, not with the edits."""

    def __init__(self) -> None:
        """Nothing was touched yet."""
        self._latest: dict[tuple[str, str], tuple[int, str]] = {}

    def add_entry(self, entry: Entry) -> None:
        """Remember what an entry of the journal changed."""
        if entry["kind"] == EntryKind.MADE:
            return
        mark = (entry["rev"], entry["client"])
        delta = entry["delta"]
        for line_id, (before, after) in delta.get("lines", {}).items():
            for name in (WHOLE_LINE,) if before is None or after is None else after:
                self._latest[line_id, name] = mark
        for name in delta.get("fields", {}):
            self._latest["", name] = mark

    def find_changes_by_others(self, base_rev: int, client: str) -> ForeignChanges:
        """All that others changed after a revision."""
        found: dict[str, set[str]] = defaultdict(set)
        for (line_id, name), (rev, by) in self._latest.items():
            if rev > base_rev and by != client:
                found[line_id].add(name)
        return {line_id: frozenset(names) for line_id, names in found.items()}


def select_script_changes(foreign: ForeignChanges) -> ForeignChanges:
    """What of it stands in a script; a take that was chosen or a voice that was cast doesn't."""
    found = {line_id: names - _NOT_IN_SCRIPT for line_id, names in foreign.items() if line_id}
    return {line_id: names for line_id, names in found.items() if names}


def check_mergeable(
    document: Document, edits: Iterable[ops.Op], foreign: ForeignChanges, *, rev: int
) -> None:
    """See that edits made on an older revision undo nothing that others did since.

    Raises:
        EditConflict: They would; says where.
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
    """Lines of both documents of whose text a voice hears something else than before."""
    was, now = before.pronunciations, after.pronunciations
    if was == now:
        return
    previous, present = PronunciationRules(was.values()), PronunciationRules(now.values())
    # Only where a changed entry stands can anything be heard otherwise; most lines hold none.
    concerned = _exclude_entries(was, now), _exclude_entries(now, was)
    for line_id, line in after.lines.items():
        if line.kind is not LineKind.SPEECH or line_id not in before.lines:
            continue
        text = normalize_spoken_text(line.text)
        is_concerned = any(one.used(text) for one in concerned)
        if is_concerned and previous.spoken(text) != present.spoken(text):
            yield line_id


def find_revoiced_lines(
    previous: RenderContext, present: RenderContext, document: Document
) -> Iterator[str]:
    """Lines that are spoken by another voice or engine, or in another language, than before."""
    if previous is present:
        return
    previous = replace(
        previous, pronouncing=present.pronouncing
    )  # `find_respelled_lines` is quicker at those
    for line in document:
        if not previous.is_same_for(present, line):
            yield line.line_id


def _exclude_entries(
    entries: Mapping[str, Pronunciation], others: Mapping[str, Pronunciation]
) -> PronunciationRules:
    """The entries that aren't among others as they are."""
    return PronunciationRules(one for written, one in entries.items() if others.get(written) != one)


_MAX_EDIT_IDS = 200


class DocumentEditor:
    """All methods are called under the session's lock."""

    def __init__(self, core: ProjectState) -> None:
        """Go on with the history that was read from the disk."""
        self._state = core
        self._edit_ids: OrderedDict[str, None] = OrderedDict.fromkeys(core.edit_ids)
        self._footprint = EditFootprint()
        self._footprint_rev = core.rev
        # Lines that the step under way lets be heard otherwise, though it doesn't change them.
        self._respelled_lines: list[str] = []
        self.on_change: Callable[[Sequence[str]], None] = lambda _: None

    @property
    def edit_ids(self) -> tuple[str, ...]:
        """Ids of the edits that took effect lately, the latest last."""
        return tuple(self._edit_ids)

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditEvent:
        """Apply edits, all of them or none; those that took effect already change nothing.

        Raises:
            EditConflict: Others changed the same since `base_rev`.
            BadInput, NotFound, Conflict: As `apply_edits`.
            StorageFailed: They can't be kept; nothing changed then.
        """
        core = self._state
        if author.edit_id in self._edit_ids:
            return EditEvent(core.rev, author.client)
        if base_rev < core.rev:
            foreign = self._load_footprint(base_rev).find_changes_by_others(base_rev, author.client)
            check_mergeable(core.document, edits, foreign, rev=core.rev)
        outside = EditLookups(core.take_store.find, core.voice_resolver.find_speaker_id)
        return self._record(apply_edits(core.document, edits, outside), author)

    def merge_script(self, dialog: Dialog, author: Author, base_rev: int) -> EditEvent:
        """Let the lines be those of a dialog; those that stay keep their takes.

        Raises:
            EditConflict: Others changed the project since `base_rev`.
            StorageFailed: It can't be kept; nothing changed then.
        """
        core = self._state
        if author.edit_id in self._edit_ids:
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
        return self._record(merge_script(core.document, dialog), author)

    def rename(self, name: str) -> EditEvent:
        """Give the project another name, which is no step of undo.

        Raises:
            BadInput: The name can't be used.
            StorageFailed: It can't be kept.
        """
        after = replace(self._state.document, name=clean_project_name(name))
        self._state.record(after, STUDIO_AUTHOR, EntryKind.MADE)
        news = EditEvent(self._state.rev, "", fields=("name",))
        self._state.events.publish(news)
        return news

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditEvent:
        """Take the latest step back.

        Args:
            author: Who does.
            base_rev: The revision the author knows.
            own: The latest of the author's own; steps of others stay, and what they stand on.

        Raises:
            Conflict: There is none.
            EditConflict: It is somebody else's, and newer than `base_rev` or not asked for.
            StorageFailed: It can't be kept; nothing changed then.
        """
        history = self._state.history
        if author.edit_id in self._edit_ids:
            return EditEvent(self._state.rev, author.client)
        if own and history.marks.undo is not None:
            return self._undo_own(author)
        latest = history.author_of_next_undo()
        if latest and latest[0] > base_rev and latest[1] not in ("", author.client):
            message = "The latest step is somebody else's and new to you. Look at it first."
            raise EditConflict(message, rev=self._state.rev, conflicts=[])
        return self.publish_step(history.undo(author, self._state.deps.now_s(), self._choose_takes))

    def _undo_own(self, author: Author) -> EditEvent:
        person, core = parse_person(author.client), self._state

        def is_own(client: str) -> bool:
            return client == STUDIO_AUTHOR.client or parse_person(client) == person

        step = core.history.undo_own(author, core.deps.now_s(), self._choose_takes, is_own)
        if step is None:
            message = "The steps that are left are somebody else's, or others went on from yours."
            raise EditConflict(message, rev=core.rev, conflicts=[])
        return self.publish_step(step)

    def redo(self, author: Author) -> EditEvent:
        """Take the latest undo back.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be kept; nothing changed then.
        """
        if author.edit_id in self._edit_ids:
            return EditEvent(self._state.rev, author.client)
        return self.publish_step(
            self._state.history.redo(author, self._state.deps.now_s(), self._choose_takes)
        )

    def publish_step(self, step: HistoryStep) -> EditEvent:
        """After a step: the render and all pages follow it."""
        core, delta = self._state, step.delta
        self._footprint.add_entry(step.entry)
        self._remember(step.entry.get("edit_id"))
        otherwise, self._respelled_lines = self._respelled_lines, []
        others = (*self._lines_of_takes(step), *filter(step.after.lines.__contains__, otherwise))
        line_ids = tuple({**delta.lines, **dict.fromkeys(others)})
        self.on_change(line_ids)
        news = EditEvent(
            core.rev,
            step.entry["client"],
            line_ids,
            order=delta.order is not None,
            fields=tuple(delta.fields),
            speakers=delta.affects_speakers,
        )
        core.events.publish(news)
        return news

    def _lines_of_takes(self, step: HistoryStep) -> Iterator[str]:
        """The lines that have a take more, or less, than before."""
        changed = set(step.before.deleted_takes) ^ set(step.after.deleted_takes)
        takes = map(self._state.take_store.get, changed)
        return (take.line_id for take in takes if take and take.line_id in step.after.lines)

    def _record(self, after: Document, author: Author) -> EditEvent:
        """Make a changed document the latest."""
        core, before = self._state, self._state.document
        if after.settings.backend != before.settings.backend:
            core.voice_resolver.check_backend(after.settings.backend)
        step = core.record(self._choose_takes(after), author)
        return EditEvent(core.rev, author.client) if step is None else self.publish_step(step)

    def _choose_takes(self, after: Document) -> Document:
        """A document whose changed lines have a take of what they say, where there is one.

        That is part of the same step, so that the way back brings the former take back.
        """
        core, before = self._state, self._state.document
        previous = ground = core.get_render_context()
        if not core.voice_resolver.is_current_for(after):
            ground = core.voice_resolver.refresh(after)[1]
        changed = [one for one, line in after.lines.items() if before.lines.get(one) is not line]
        self._respelled_lines = [
            *find_respelled_lines(before, after),
            *find_revoiced_lines(previous, ground, after),
        ]
        return core.line_states.choose_current(after, ground, changed + self._respelled_lines)

    def _load_footprint(self, base_rev: int) -> EditFootprint:
        """Who changed what; the whole journal is read once when it has to go back further."""
        if base_rev < self._footprint_rev:
            self._footprint = EditFootprint()
            for placed in self._state.journal.replay():
                self._footprint.add_entry(placed.entry)
            self._footprint_rev = 0
        return self._footprint

    def _remember(self, edit_id: str | None) -> None:
        if edit_id is not None:
            self._edit_ids[edit_id] = None
            if len(self._edit_ids) > _MAX_EDIT_IDS:
                self._edit_ids.popitem(last=False)
