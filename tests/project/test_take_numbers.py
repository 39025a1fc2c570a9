"""Numbers of a line's takes: none is used twice, so that a note that names one stays right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project_scenes import IDA, ops, until
from scenes import OpenStudio

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.session import ProjectSession
from studio.project.takes import TAKE_FORMAT
from studio.services.studio import Studio


@pytest.fixture
def studio(open_studio: OpenStudio) -> Studio:
    return open_studio()


def with_takes(studio: Studio, count: int) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text("Ida: All is well.").dialog)
    for _ in range(count):
        say_again(session)
    return session


def say_again(session: ProjectSession) -> None:
    session.render(list(session.document.order), again=True)
    until(lambda: not session.busy)


def numbers(session: ProjectSession) -> list[int]:
    [line_id] = session.document.order
    return [session.take_store.get_number(take) for take in session.list_takes(line_id)]


def delete(session: ProjectSession, number: int) -> None:
    [line_id] = session.document.order
    [take] = [
        take
        for take in session.list_takes(line_id)
        if session.take_store.get_number(take) == number
    ]
    session.edit(ops({"op": "delete_take", "take_id": take.take_id}), IDA, session.rev)


def test_a_deleted_takes_number_stays_its_own(studio: Studio) -> None:
    session = with_takes(studio, 4)
    assert numbers(session) == [1, 2, 3, 4]
    delete(session, 1)
    assert numbers(session) == [2, 3, 4]
    delete(session, 3)
    say_again(session)
    assert numbers(session) == [2, 4, 5]
    again = studio.projects.duplicate(session.project_id)
    assert numbers(again) == [2, 4, 5]


def test_takes_of_earlier_studios_are_numbered_in_their_order(
    studio: Studio, open_studio: OpenStudio
) -> None:
    session = with_takes(studio, 3)
    root: Path = session.folder.root
    studio.projects.close()
    for path in sorted(root.glob("takes/*/*.json")):
        record = json.loads(path.read_bytes())
        assert record.pop("number") in (1, 2, 3)
        record.pop("sum")
        path.write_bytes(TAKE_FORMAT.encode(record))
    again = open_studio().projects.open(session.project_id)
    assert numbers(again) == [1, 2, 3]
    say_again(again)
    assert numbers(again) == [1, 2, 3, 4]
