"""Edits that programs propose: checked, shown as they were meant, and made as one step."""

from __future__ import annotations

import pytest

from studio.dialog.script import parse_script
from studio.errors import BadInput, Conflict, NotFound
from studio.project.history import Author
from studio.project.ops import SetFields
from studio.project.session import ProjectSession
from studio.services.proposals import Proposals, ProposalState, WantedChange
from studio.services.studio import Studio

SCRIPT = "Ida: One.\nTom: Two.\n\n[pause:1s]\n\nIda: Three."
PERSON = Author("person-page")


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def session(studio: Studio) -> ProjectSession:
    return studio.projects.create("Scene", parse_script(SCRIPT).dialog)


@pytest.fixture
def proposals() -> Proposals:
    return Proposals(lambda: None)


def said(session: ProjectSession) -> list[tuple[str | None, str]]:
    return [(line.speaker, line.text) for line in session.document if line.speaker]


def ids(session: ProjectSession) -> list[str]:
    return list(session.document.order)


def test_changes_are_made_as_one_step(session, proposals) -> None:
    first, second, pause, third = ids(session)
    wanted = [
        WantedChange("change", first, text="One, then."),
        WantedChange("change", second, speaker="Ada"),
        WantedChange("insert", second, "Tom", "Two and a half."),
        WantedChange("insert", second, "Ida", "Two and two thirds."),
        WantedChange("insert", None, "Tom", "Zero."),
        WantedChange("delete", pause),
    ]
    made = proposals.propose(session, wanted, "Smoother.")
    before = session.document
    assert proposals.list_waiting() == {session.project_id: made.proposal_id}
    proposals.accept(session, made.proposal_id, PERSON)
    assert said(session) == [
        ("Tom", "Zero."),
        ("Ida", "One, then."),
        ("Ada", "Two."),
        ("Tom", "Two and a half."),
        ("Ida", "Two and two thirds."),
        ("Ida", "Three."),
    ]
    assert pause not in session.document.lines
    assert third in session.document.lines
    assert proposals.find(session, made.proposal_id).state is ProposalState.ACCEPTED
    assert proposals.list_waiting() == {}
    session.undo(PERSON, session.rev, own=True)
    assert session.document.lines == before.lines
    assert session.document.order == before.order
    assert not session.can_undo


def test_nothing_changes_before_it_is_accepted_nor_when_it_is_rejected(session, proposals) -> None:
    before = session.document
    made = proposals.propose(session, [WantedChange("delete", ids(session)[0])], "")
    assert session.document == before
    proposals.reject(session, made.proposal_id)
    assert session.document == before
    assert proposals.find(session).state is ProposalState.REJECTED
    with pytest.raises(Conflict, match="rejected already"):
        proposals.accept(session, made.proposal_id, PERSON)


def test_a_line_that_has_changed_since_ends_it(session, proposals) -> None:
    first, second, *_ = ids(session)
    made = proposals.propose(session, [WantedChange("change", first, text="Uno.")], "")
    other = SetFields(op="set", line_ids=[second], fields={"text": "Zwei."})
    session.edit([other], PERSON, session.rev)
    assert proposals.find(session).state is ProposalState.WAITING
    mine = SetFields(op="set", line_ids=[first], fields={"text": "Eins."})
    session.edit([mine], PERSON, session.rev)
    assert proposals.find(session).state is ProposalState.EXPIRED
    with pytest.raises(Conflict, match="ask for it again"):
        proposals.accept(session, made.proposal_id, PERSON)
    assert said(session)[0] == ("Ida", "Eins.")


def test_a_newer_one_takes_its_place(session, proposals) -> None:
    first = ids(session)[0]
    older = proposals.propose(session, [WantedChange("delete", first)], "")
    newer = proposals.propose(session, [WantedChange("change", first, text="Uno.")], "")
    assert proposals.find(session, older.proposal_id).state is ProposalState.REPLACED
    with pytest.raises(Conflict, match="replaced already"):
        proposals.accept(session, older.proposal_id, PERSON)
    proposals.accept(session, newer.proposal_id, PERSON)
    assert said(session)[0] == ("Ida", "Uno.")


def test_each_learns_what_became_of_its_own(session, proposals) -> None:
    first, second, *_ = ids(session)
    both = [WantedChange("delete", first), WantedChange("change", second, text="Zwei.")]
    older = proposals.propose(session, both, "")
    proposals.accept(session, older.proposal_id, PERSON)
    refused = proposals.propose(session, [WantedChange("change", second, text="Due.")], "")
    proposals.reject(session, refused.proposal_id)
    proposals.propose(session, [WantedChange("change", second, text="Dos.")], "")
    found = proposals.find(session, older.proposal_id)
    assert (found.state, len(found.changes)) == (ProposalState.ACCEPTED, 2)
    assert proposals.find(session, refused.proposal_id).state is ProposalState.REJECTED
    with pytest.raises(NotFound, match="no such proposal"):
        proposals.find(session, "bogus")


def test_it_waits_for_a_day(session) -> None:
    clock = Clock()
    proposals = Proposals(lambda: None, clock=clock)
    proposals.propose(session, [WantedChange("delete", ids(session)[0])], "")
    clock.now_s = 86_400
    assert proposals.find(session).state is ProposalState.WAITING
    clock.now_s = 86_401
    assert proposals.find(session).state is ProposalState.EXPIRED


def test_what_cannot_be_made_is_refused_at_once(session, proposals) -> None:
    first, _, pause, _ = ids(session)
    lock = SetFields(op="set", line_ids=[first], fields={"locked": True})
    refused = [
        ([], "1 to 200 changes"),
        ([WantedChange("change", "0" * 12, text="No.")], "There is no line"),
        ([WantedChange("delete", None)], "There is no line"),
        ([WantedChange("insert", first, "Ida")], "needs a speaker and a text"),
        ([WantedChange("change", pause, text="No.")], "Only what is spoken"),
        ([WantedChange("change", first, text="One.")], "are so already"),
        ([WantedChange("change", first, text="x" * 1_000_001)], "characters"),
        ([WantedChange("delete", first), WantedChange("change", first, text="No.")], "2 changes"),
    ]
    for wanted, message in refused:
        with pytest.raises(BadInput, match=message):
            proposals.propose(session, wanted, "")
    session.edit([lock], PERSON, session.rev)
    with pytest.raises(BadInput, match="is locked"):
        proposals.propose(session, [WantedChange("delete", first)], "")
    with pytest.raises(NotFound):
        proposals.find(session)
