"""How many lines are read at once can be changed while the studio runs."""

from __future__ import annotations

from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish

from studio.services.studio import Studio


def most_in_flight(studio: Studio) -> int:
    job = studio.render(dialog_of(8))
    finish(job)
    assert job.summary().failed == 0
    return job.summary().max_in_flight


def test_the_number_of_lines_read_at_once_changes_from_then_on(studio: Studio) -> None:
    seen = [most_in_flight(studio)]
    for number in (1, 5):
        studio.engine.set_max_concurrency(number)
        seen.append(most_in_flight(studio))
    assert seen == [3, 1, 5]


def test_what_waits_already_may_start(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog_of(6))
    studio.engine.set_max_concurrency(4)
    backend.let_through(6)
    finish(job)
    assert job.summary().max_in_flight == 4
