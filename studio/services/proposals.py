"""Edits that a program proposes, and that a person accepts or rejects as one step."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from studio.dialog.model import check_line_length, clean_name, paragraph
from studio.errors import BadInput, Conflict, NotFound
from studio.project.document import LineKind, ProjectLine
from studio.project.history import Author
from studio.project.line_states import EditEvent
from studio.project.ops import Delete, Insert, Op, SetFields
from studio.project.script_merge import generate_line_id
from studio.project.session import ProjectSession

MAX_CHANGES = 200
MAX_NOTE_CHARS = 500

KEPT_S = 24 * 3600.0
"""How long a proposal waits for an answer."""

_KEPT_PROJECTS = 100
_KEPT_EARLIER = 50
"""Proposals that a newer one followed, so that who made them learns what became of them."""

_CHANGED = "The lines have changed since; ask for it again."


class ProposalState(StrEnum):
    """What became of a proposal."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    REPLACED = "replaced"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class LineText:
    """Who says what, as it is shown and compared."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """One change of a line.

    Attributes:
        line_id: The line; of a new line, the one that it is to follow, None for the start.
        before: The line as the program saw it; None for a new line.
        after: The line as it is to be; None for one that is to be deleted.
    """

    line_id: str | None
    before: LineText | None
    after: LineText | None


@dataclass(frozen=True, slots=True)
class WantedChange:
    """A change as a program states it.

    Attributes:
        kind: What is to be done.
        line_id: The line; for an insertion the one before it, None for the start.
        speaker: Who is to say it; None leaves a changed line's.
        text: What is to be said; None leaves a changed line's.
    """

    kind: Literal["change", "insert", "delete"]
    line_id: str | None = None
    speaker: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Proposed changes of a project's lines, with what the program says of them."""

    proposal_id: str
    project_id: str
    note: str
    changes: tuple[ProposedChange, ...]
    at_s: float
    state: ProposalState = ProposalState.WAITING


class Proposals:
    """The proposals of a studio, of which each project's latest counts; in memory, any thread."""

    def __init__(
        self, changed: Callable[[], object], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._changed = changed
        self._clock = clock
        # Guards the table, which requests in several threads read and change.
        self._lock = threading.Lock()
        self._latest: dict[str, Proposal] = {}
        self._earlier: dict[str, Proposal] = {}

    def propose(
        self, session: ProjectSession, wanted: Sequence[WantedChange], note: str
    ) -> Proposal:
        """Propose changes; an earlier proposal that nobody has answered is replaced.

        Raises:
            BadInput: There is nothing to change, or a change names no line or can't be made.
        """
        if not 0 < len(wanted) <= MAX_CHANGES:
            raise BadInput(f"Propose 1 to {MAX_CHANGES} changes.")
        lines = session.document.lines
        _check_once(wanted)
        changes = tuple(_check(one, lines) for one in wanted)
        found = tuple(one for one in changes if one.before != one.after)
        if not found:
            raise BadInput("The lines are so already.")
        proposal = Proposal(
            secrets.token_hex(8), session.project_id, note[:MAX_NOTE_CHARS], found, self._clock()
        )
        with self._lock:
            earlier = self._latest.pop(session.project_id, None)
            if earlier is not None:
                self._keep_earlier(earlier)
            self._latest[session.project_id] = proposal
            for project_id in list(self._latest)[:-_KEPT_PROJECTS]:
                del self._latest[project_id]
        self._changed()
        return proposal

    def find(self, session: ProjectSession, proposal_id: str | None = None) -> Proposal:
        """The latest proposal of a project, and whether it can still be accepted.

        Args:
            session: The project.
            proposal_id: The one that is meant, if it isn't the latest.

        Raises:
            NotFound: There is none.
        """
        with self._lock:
            latest = self._latest.get(session.project_id)
            earlier = self._earlier.get(proposal_id or "")
        if latest is None:
            raise NotFound("There is no proposal for this project.")
        if proposal_id is not None and latest.proposal_id != proposal_id:
            if earlier is None or earlier.project_id != session.project_id:
                raise NotFound("There is no such proposal for this project.")
            return earlier
        if latest.state is ProposalState.WAITING and not self._is_fresh(latest, session):
            return replace(latest, state=ProposalState.EXPIRED)
        return latest

    def list_waiting(self) -> dict[str, str]:
        """The ids of the proposals that wait for an answer, by project."""
        with self._lock:
            return {
                one.project_id: one.proposal_id
                for one in self._latest.values()
                if one.state is ProposalState.WAITING
            }

    def accept(self, session: ProjectSession, proposal_id: str, author: Author) -> EditEvent:
        """Make the changes, as one step of undo."""
        with session.changing():
            proposal = self._require_waiting(session, proposal_id)
            news = session.edit(_build_ops(proposal.changes), author, session.rev)
            self._answer(proposal, ProposalState.ACCEPTED)
        return news

    def reject(self, session: ProjectSession, proposal_id: str) -> None:
        """Discard a proposal, also one that has expired."""
        found = self.find(session, proposal_id)
        if found.state in {ProposalState.WAITING, ProposalState.EXPIRED}:
            self._answer(found, ProposalState.REJECTED)

    def _keep_earlier(self, proposal: Proposal) -> None:
        if proposal.state is ProposalState.WAITING:
            proposal = replace(proposal, state=ProposalState.REPLACED)
        self._earlier[proposal.proposal_id] = proposal
        for proposal_id in list(self._earlier)[:-_KEPT_EARLIER]:
            del self._earlier[proposal_id]

    def _require_waiting(self, session: ProjectSession, proposal_id: str) -> Proposal:
        found = self.find(session, proposal_id)
        if found.state is ProposalState.EXPIRED:
            raise Conflict(f"This proposal can't be accepted any more. {_CHANGED}")
        if found.state is not ProposalState.WAITING:
            raise Conflict(f"This proposal was {found.state} already.")
        return found

    def _answer(self, proposal: Proposal, state: ProposalState) -> None:
        with self._lock:
            latest = self._latest.get(proposal.project_id)
            if latest is not None and latest.proposal_id == proposal.proposal_id:
                self._latest[proposal.project_id] = replace(latest, state=state)
        self._changed()

    def _is_fresh(self, proposal: Proposal, session: ProjectSession) -> bool:
        if self._clock() - proposal.at_s > KEPT_S:
            return False
        lines = session.document.lines
        return all(_is_as_seen(change, lines) for change in proposal.changes)


def _is_as_seen(change: ProposedChange, lines: Mapping[str, ProjectLine]) -> bool:
    if change.before is None:
        return change.line_id is None or change.line_id in lines
    line = lines.get(change.line_id or "")
    return line is not None and _text_of(line) == change.before


def _text_of(line: ProjectLine) -> LineText:
    return LineText(line.speaker or "", line.text)


def _check_once(wanted: Sequence[WantedChange]) -> None:
    """Check that no line is changed and deleted, or changed twice."""
    counted = Counter(one.line_id for one in wanted if one.kind != "insert")
    for line_id, n_changes in counted.items():
        if n_changes > 1:
            raise BadInput(f"The line “{(line_id or '')[:20]}” has {n_changes} changes; state one.")


def _check(wanted: WantedChange, lines: Mapping[str, ProjectLine]) -> ProposedChange:
    line = lines.get(wanted.line_id) if wanted.line_id is not None else None
    if line is None and not (wanted.kind == "insert" and wanted.line_id is None):
        raise BadInput(f"There is no line “{(wanted.line_id or '')[:20]}”. Read the project again.")
    check_line_length(len(wanted.text or ""))
    if wanted.kind == "insert":
        if not (wanted.speaker and wanted.text):
            raise BadInput("A new line needs a speaker and a text.")
        after = LineText(clean_name(wanted.speaker), paragraph(wanted.text))
        return ProposedChange(wanted.line_id, None, after)
    assert line is not None, "a change of a line that isn't there was refused"
    if line.locked:
        raise BadInput(f"The line “{line.text[:40]}” is locked.")
    before = _text_of(line)
    if wanted.kind == "delete":
        return ProposedChange(line.line_id, before, None)
    if line.kind is not LineKind.SPEECH:
        raise BadInput("Only what is spoken can be changed; pauses and notes can be deleted.")
    speaker = before.speaker if wanted.speaker is None else clean_name(wanted.speaker)
    text = before.text if wanted.text is None else paragraph(wanted.text)
    return ProposedChange(line.line_id, before, LineText(speaker, text))


def _build_ops(changes: Sequence[ProposedChange]) -> list[Op]:
    """The edits; lines that are to follow the same one come in the order they were stated."""
    built: list[Op] = []
    last: dict[str | None, str | None] = {}
    for change in changes:
        if change.before is None:
            assert change.after is not None
            line_id = generate_line_id()
            after = last.get(change.line_id, change.line_id)
            fields: dict[str, Any] = {"line_id": line_id, "kind": "speech"}
            fields |= {"speaker": change.after.speaker, "text": change.after.text}
            built.append(Insert(op="insert", after=after, lines=[fields]))
            last[change.line_id] = line_id
    for change in changes:
        if change.before is not None and change.after is not None:
            fields = {"speaker": change.after.speaker, "text": change.after.text}
            built.append(SetFields(op="set", line_ids=[change.line_id or ""], fields=fields))
    gone = [change.line_id or "" for change in changes if change.after is None]
    return [*built, Delete(op="delete", line_ids=gone)] if gone else built
