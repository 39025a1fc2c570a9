from __future__ import annotations

from pathlib import Path

import pytest
from scenes import dialog_of, finish

from studio.allowance import Allowance, Bucket, VisitLimits
from studio.desks import Desks
from studio.errors import EngineBusy, LimitReached
from studio.service import Studio


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_token_leads_to_the_same_desk_also_after_a_restart(studio: Studio) -> None:
    desks = Desks(studio)
    token, visitor = desks.welcome()
    assert desks.find(token) is visitor
    visitor.studio.speakers.add("Ida")
    again = Desks(studio).find(token)
    assert [one.name for one in again.studio.speakers.list()] == ["Ida"]
    assert not studio.speakers.list()


def test_folders_tell_no_token(studio: Studio) -> None:
    desks = Desks(studio)
    token, visitor = desks.welcome()
    folder = visitor.studio.options.workspace
    assert folder.parent == studio.options.workspace / "visitors"
    assert token not in folder.name
    assert desks.find(folder.name) is None


@pytest.mark.parametrize("token", [None, "", "../..", "é", "x" * 10_000, "\0"])
def test_a_token_that_nobody_was_given_leads_nowhere(studio: Studio, token: str | None) -> None:
    assert Desks(studio).find(token) is None


def test_the_owners_token_leads_to_the_studio_itself(studio: Studio) -> None:
    desks = Desks(studio)
    assert desks.find(desks.owner_token).studio is studio


def test_a_desk_nobody_worked_at_leaves_no_folder(studio: Studio) -> None:
    desks = Desks(studio)
    for _ in range(3):
        desks.welcome()
    assert not (studio.options.workspace / "visitors").exists()


def test_a_desk_is_open_from_its_first_use_until_it_is_closed(studio: Studio) -> None:
    _, visitor = Desks(studio).welcome()
    assert not visitor.is_open
    assert visitor.studio.speakers.list() == ()
    assert visitor.is_open
    visitor.close()
    assert not visitor.is_open


def test_too_many_visitors_are_told_and_passers_by_make_room(studio: Studio) -> None:
    clock = Clock()
    desks = Desks(studio, VisitLimits(visitors=2), clock=clock)
    staying, _ = desks.welcome()
    desks.welcome()
    with pytest.raises(EngineBusy):
        desks.welcome()
    clock.now_s += 61
    assert desks.find(staying) is not None
    desks.welcome()
    assert desks.find(staying) is not None


def test_visitors_speak_on_the_one_engine_and_keep_apart(studio: Studio) -> None:
    desks = Desks(studio)
    jobs = {}
    for name in ("anna", "ben"):
        _, visitor = desks.welcome()
        jobs[name] = (visitor.studio, visitor.studio.render(dialog_of(3)))
    for own, job in jobs.values():
        finish(job)
        assert own.job(job.job_id) is job
        assert job.summary().failed == 0


def test_a_visitor_has_so_many_lines(studio: Studio) -> None:
    clock = Clock()
    desks = Desks(studio, VisitLimits(lines_an_hour=10), clock=clock)
    _, visitor = desks.welcome()
    finish(visitor.studio.render(dialog_of(8)))
    with pytest.raises(LimitReached, match="more lines") as refused:
        visitor.studio.render(dialog_of(8))
    clock.now_s += refused.value.retry_after_s
    finish(visitor.studio.render(dialog_of(8)))
    with pytest.raises(LimitReached, match="10 lines at most"):
        visitor.studio.render(dialog_of(11))
    finish(studio.render(dialog_of(20)))  # the owner has no limit


def test_a_visitor_has_so_many_seconds_uploads_and_requests(studio: Studio) -> None:
    limits = VisitLimits(audio_s_an_hour=5, uploads_an_hour=1, requests_a_minute=2)
    _, visitor = Desks(studio, limits, clock=Clock()).welcome()
    finish(visitor.studio.render(dialog_of(4)))
    with pytest.raises(LimitReached, match="seconds of speech"):
        visitor.studio.render(dialog_of(4))
    visitor.allowance.spend_upload()
    with pytest.raises(LimitReached, match="uploads"):
        visitor.allowance.spend_upload()
    visitor.allowance.spend_request()
    visitor.allowance.spend_request()
    with pytest.raises(LimitReached, match="requests"):
        visitor.allowance.spend_request()


def test_a_visitor_leaves_other_models_loaded(studio: Studio) -> None:
    studio.load_model()
    _, visitor = Desks(studio).welcome()
    visitor.studio.engine.retire("draft")
    assert studio.engine.models.status("draft").state == "loaded"


def test_what_a_month_did_not_touch_is_removed(studio: Studio, tmp_path: Path) -> None:
    import os

    old = studio.options.workspace / "visitors" / ("0" * 32)
    old.mkdir(parents=True)
    os.utime(old, (0, 0))
    _, kept = Desks(studio).welcome()
    assert kept.studio.options.workspace.exists()
    assert not old.exists()


def test_a_bucket_fills_evenly() -> None:
    clock = Clock()
    bucket = Bucket(10, 2.0, clock=clock)
    assert bucket.take(10) == 0
    assert bucket.take(4) == 2.0
    clock.now_s += 2
    assert bucket.take(4) == 0
    clock.now_s += 1_000
    assert bucket.take(99) == 0  # more than it holds is all it holds
    assert bucket.take(1) > 0


def test_an_allowance_is_each_ones_own() -> None:
    limits = VisitLimits(uploads_an_hour=1)
    Allowance(limits).spend_upload()
    Allowance(limits).spend_upload()
