"""Changing a project's document: edits of several pages at once, undo and redo."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from studio.dialog.model import Dialog
from studio.errors import EditConflict
from studio.project.checks import checked_project_name
from studio.project.core import STUDIO, Core
from studio.project.document import Document
from studio.project.editing import Outside, edited
from studio.project.history import Author, Kind, Step, person_of
from studio.project.laying import relaid
from studio.project.merging import Touches, check_mergeable, written
from studio.project.news import EditNews
from studio.project.ops import Op
from studio.project.respoken import respoken, revoiced

_REMEMBERED_EDITS = 200


class Revising:
    """All methods are called under the session's lock."""

    def __init__(self, core: Core) -> None:
        """Go on with the history that was read from the disk."""
        self._core = core
        self._seen: OrderedDict[str, None] = OrderedDict.fromkeys(core.seen)
        self._touches = Touches()
        self._known_since = core.rev
        # Lines that the step under way lets be heard otherwise, though it doesn't change them.
        self._otherwise: list[str] = []
        self.changed: Callable[[Sequence[str]], None] = lambda _: None

    @property
    def edit_ids(self) -> tuple[str, ...]:
        """Ids of the edits that took effect lately, the latest last."""
        return tuple(self._seen)

    def edit(self, edits: Sequence[Op], author: Author, base_rev: int) -> EditNews:
        """Apply edits, all of them or none; those that took effect already change nothing.

        Raises:
            EditConflict: Others changed the same since `base_rev`.
            BadInput, NotFound, Conflict: As `edited`.
            StorageFailed: They can't be kept; nothing changed then.
        """
        core = self._core
        if author.edit_id in self._seen:
            return EditNews(core.rev, author.client)
        if base_rev < core.rev:
            foreign = self._touches_since(base_rev).by_others(base_rev, author.client)
            check_mergeable(core.document, edits, foreign, rev=core.rev)
        outside = Outside(core.shelf.find, core.surroundings.speaker_of)
        return self._take(edited(core.document, edits, outside), author)

    def lay(self, dialog: Dialog, author: Author, base_rev: int) -> EditNews:
        """Let the lines be those of a dialog; those that stay keep their takes.

        Raises:
            EditConflict: Others changed the project since `base_rev`.
            StorageFailed: It can't be kept; nothing changed then.
        """
        core = self._core
        if author.edit_id in self._seen:
            return EditNews(core.rev, author.client)
        foreign = written(self._touches_since(base_rev).by_others(base_rev, author.client))
        if foreign:
            message = "Somebody else changed the dialog meanwhile. Look at it again first."
            conflicts: list[dict[str, object]] = [
                {"line_id": line_id, "field": name, "mine": None, "theirs": None}
                for line_id, names in foreign.items()
                for name in names
            ]
            raise EditConflict(message, rev=core.rev, conflicts=conflicts)
        return self._take(relaid(core.document, dialog), author)

    def rename(self, name: str) -> EditNews:
        """Give the project another name, which is no step of undo.

        Raises:
            BadInput: The name can't be used.
            StorageFailed: It can't be kept.
        """
        after = replace(self._core.document, name=checked_project_name(name))
        self._core.record(after, STUDIO, Kind.MADE)
        news = EditNews(self._core.rev, "", fields=("name",))
        self._core.news.post(news)
        return news

    def undo(self, author: Author, base_rev: int, *, own: bool = False) -> EditNews:
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
        history = self._core.history
        if author.edit_id in self._seen:
            return EditNews(self._core.rev, author.client)
        if own and history.marks.undo is not None:
            return self._undo_own(author)
        latest = history.author_of_next_undo()
        if latest and latest[0] > base_rev and latest[1] not in ("", author.client):
            message = "The latest step is somebody else's and new to you. Look at it first."
            raise EditConflict(message, rev=self._core.rev, conflicts=[])
        return self.tell(history.undo(author, self._core.tools.now_s(), self._settled))

    def _undo_own(self, author: Author) -> EditNews:
        person, core = person_of(author.client), self._core

        def is_own(client: str) -> bool:
            return client == STUDIO.client or person_of(client) == person

        step = core.history.undo_own(author, core.tools.now_s(), self._settled, is_own)
        if step is None:
            message = "The steps that are left are somebody else's, or others went on from yours."
            raise EditConflict(message, rev=core.rev, conflicts=[])
        return self.tell(step)

    def redo(self, author: Author) -> EditNews:
        """Take the latest undo back.

        Raises:
            Conflict: There is none.
            StorageFailed: It can't be kept; nothing changed then.
        """
        if author.edit_id in self._seen:
            return EditNews(self._core.rev, author.client)
        return self.tell(self._core.history.redo(author, self._core.tools.now_s(), self._settled))

    def tell(self, step: Step) -> EditNews:
        """After a step: the render and all pages follow it."""
        core, delta = self._core, step.delta
        self._touches.take_in(step.entry)
        self._remember(step.entry.get("edit_id"))
        otherwise, self._otherwise = self._otherwise, []
        others = (*self._lines_of_takes(step), *filter(step.after.lines.__contains__, otherwise))
        line_ids = tuple({**delta.lines, **dict.fromkeys(others)})
        self.changed(line_ids)
        news = EditNews(
            core.rev,
            step.entry["client"],
            line_ids,
            order=delta.order is not None,
            fields=tuple(delta.fields),
            speakers=delta.concerns_speakers,
        )
        core.news.post(news)
        return news

    def _lines_of_takes(self, step: Step) -> Iterator[str]:
        """The lines that have a take more, or less, than before."""
        changed = set(step.before.deleted_takes) ^ set(step.after.deleted_takes)
        takes = map(self._core.shelf.get, changed)
        return (take.line_id for take in takes if take and take.line_id in step.after.lines)

    def _take(self, after: Document, author: Author) -> EditNews:
        """Make a changed document the latest."""
        core, before = self._core, self._core.document
        if after.settings.backend != before.settings.backend:
            core.surroundings.check_backend(after.settings.backend)
        step = core.record(self._settled(after), author)
        return EditNews(core.rev, author.client) if step is None else self.tell(step)

    def _settled(self, after: Document) -> Document:
        """A document whose changed lines have a take of what they say, where there is one.

        That is part of the same step, so that the way back brings the former take back.
        """
        core, before = self._core, self._core.document
        former = ground = core.ground()
        if not core.surroundings.covers(after):
            ground = core.surroundings.look(after)[1]
        changed = [one for one, line in after.lines.items() if before.lines.get(one) is not line]
        self._otherwise = [*respoken(before, after), *revoiced(former, ground, after)]
        return core.lines.follow(after, ground, changed + self._otherwise)

    def _touches_since(self, base_rev: int) -> Touches:
        """Who changed what; the whole journal is read once when it has to go back further."""
        if base_rev < self._known_since:
            self._touches = Touches()
            for placed in self._core.journal.replay():
                self._touches.take_in(placed.entry)
            self._known_since = 0
        return self._touches

    def _remember(self, edit_id: str | None) -> None:
        if edit_id is not None:
            self._seen[edit_id] = None
            if len(self._seen) > _REMEMBERED_EDITS:
                self._seen.popitem(last=False)
