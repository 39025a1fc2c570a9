from __future__ import annotations

import os
from pathlib import Path

import pytest
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish

from studio.backends.espeak.backend import DraftBackend
from studio.backends.registry import create
from studio.dialog.model import Dialog, Silence
from studio.errors import EngineBusy, LimitReached, NoRoom, NotAllowed
from studio.services.studio import RenderOptions, Studio, StudioOptions
from studio.sharing.quota import RateLimits, SharedLimits, TokenBucket, VisitLimits
from studio.sharing.sessions import VisitorSessions


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_token_leads_to_the_same_desk_also_after_a_restart(studio: Studio) -> None:
    desks = VisitorSessions(studio)
    token, visitor = desks.create()
    assert desks.find(token) is visitor
    visitor.studio.speakers.add("Ida")
    again = VisitorSessions(studio).find(token)
    assert [one.name for one in again.studio.speakers.list()] == ["Ida"]
    assert not studio.speakers.list()


def test_folders_tell_no_token(studio: Studio) -> None:
    desks = VisitorSessions(studio)
    token, visitor = desks.create()
    folder = visitor.studio.options.workspace
    assert folder.parent == studio.options.workspace / "visitors"
    assert token not in folder.name
    assert desks.find(folder.name) is None


@pytest.mark.parametrize("token", [None, "", "../..", "é", "x" * 10_000, "\0"])
def test_a_token_that_nobody_was_given_leads_nowhere(studio: Studio, token: str | None) -> None:
    assert VisitorSessions(studio).find(token) is None


def test_the_owners_token_leads_to_the_studio_itself(studio: Studio) -> None:
    desks = VisitorSessions(studio)
    assert desks.find(desks.owner_token).studio is studio


def test_a_desk_nobody_worked_at_leaves_no_folder(studio: Studio) -> None:
    desks = VisitorSessions(studio)
    for _ in range(3):
        desks.create()
    assert not (studio.options.workspace / "visitors").exists()


def test_a_desk_is_open_from_its_first_use_until_it_is_closed(studio: Studio) -> None:
    _, visitor = VisitorSessions(studio).create()
    assert not visitor.is_open
    assert visitor.studio.speakers.list() == ()
    assert visitor.is_open
    visitor.close()
    assert not visitor.is_open


def test_too_many_visitors_are_told_and_passers_by_make_room(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, VisitLimits(visitors=2), clock=clock)
    staying, first = desks.create()
    _, second = desks.create()
    for one in (first, second):
        one.studio.speakers.add("Ida")
    with pytest.raises(EngineBusy):
        desks.create()
    clock.now_s += 61
    assert desks.find(staying) is not None
    desks.create()
    assert desks.find(staying) is first
    assert not second.workspace.exists()  # nobody had the token that leads there


def test_who_only_looked_in_takes_nobodys_place(studio: Studio) -> None:
    desks = VisitorSessions(studio, VisitLimits(visitors=2), clock=Clock())
    staying, visitor = desks.create()
    visitor.studio.speakers.add("Ida")
    assert desks.find(staying) is visitor
    for _ in range(10):
        desks.create()
    assert desks.find(staying) is visitor


def test_a_desk_that_is_found_again_counts_too(studio: Studio) -> None:
    limits = VisitLimits(visitors=2)
    earlier = VisitorSessions(studio, VisitLimits(visitors=3), clock=Clock())
    tokens = []
    for _ in range(3):
        token, visitor = earlier.create()
        assert visitor.studio.speakers.list() == ()
        tokens.append(token)
    desks = VisitorSessions(studio, limits, clock=Clock())
    assert [desks.find(token) is not None for token in tokens[:2]] == [True, True]
    with pytest.raises(EngineBusy):
        desks.find(tokens[2])


def test_visitors_speak_on_the_one_engine_and_keep_apart(studio: Studio) -> None:
    desks = VisitorSessions(studio)
    jobs = {}
    for name in ("anna", "ben"):
        _, visitor = desks.create()
        jobs[name] = (visitor.studio, visitor.studio.render(dialog_of(3)))
    for own, job in jobs.values():
        finish(job)
        assert job.spec.folder.is_relative_to(own.options.workspace)
        assert job.summarize().failed == 0


def test_a_visitor_has_so_many_lines(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, VisitLimits(lines_an_hour=10), clock=clock)
    _, visitor = desks.create()
    finish(visitor.studio.render(dialog_of(8)))
    with pytest.raises(LimitReached, match="more lines") as refused:
        visitor.studio.render(dialog_of(8))
    clock.now_s += refused.value.retry_after_s
    finish(visitor.studio.render(dialog_of(8)))
    with pytest.raises(LimitReached, match="10 lines at most"):
        visitor.studio.render(dialog_of(11))
    finish(studio.render(dialog_of(20)))  # the owner has no limit


def test_a_visitor_has_so_many_seconds_uploads_and_requests(studio: Studio) -> None:
    limits = VisitLimits(audio_s_an_hour=8, uploads_an_hour=1, requests_a_minute=2)
    _, visitor = VisitorSessions(studio, limits, clock=Clock()).create()
    finish(visitor.studio.render(dialog_of(4)))
    with pytest.raises(LimitReached, match="seconds of audio"):
        visitor.studio.render(dialog_of(4))
    visitor.rate_limits.spend_upload()
    with pytest.raises(LimitReached, match="uploads"):
        visitor.rate_limits.spend_upload()
    visitor.rate_limits.spend_request()
    visitor.rate_limits.spend_request()
    with pytest.raises(LimitReached, match="requests"):
        visitor.rate_limits.spend_request()


def test_a_visitor_leaves_other_models_loaded(studio: Studio) -> None:
    studio.engine.load(studio.backend_name)
    _, visitor = VisitorSessions(studio).create()
    visitor.studio.engine.retire("draft")
    assert studio.engine.models.get_status("draft").state == "loaded"


def test_a_visitors_studio_has_no_say_over_the_engine(studio: Studio) -> None:
    studio.engine.load(studio.backend_name)
    _, visitor = VisitorSessions(studio).create()
    own = visitor.studio
    for refused in (
        lambda: own.engine.load(own.backend_name),
        lambda: own.engine.unload(own.backend_name),
        lambda: own.engine.cancel_load(own.backend_name),
        lambda: own.engine.set_idle_timeout(1),
        lambda: own.engine.set_max_concurrency(1),
    ):
        with pytest.raises(NotAllowed, match="Only the owner"):
            refused()
    own.close()
    assert studio.engine.models.get_status("draft").state == "loaded"
    finish(studio.render(dialog_of(1)))


def test_a_visitors_engine_shows_what_the_owner_chose(studio: Studio) -> None:
    _, visitor = VisitorSessions(studio).create()
    studio.engine.set_max_concurrency(7)
    assert visitor.studio.engine.max_concurrency == 7
    assert visitor.studio.engine.models is studio.engine.models


def months_ago(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (0, 0))


def test_what_a_month_did_not_touch_is_removed(studio: Studio) -> None:
    old = studio.options.workspace / "visitors" / ("0" * 32)
    old.mkdir(parents=True)
    months_ago(old)
    _, kept = VisitorSessions(studio).create()
    assert kept.studio.options.workspace.exists()
    assert not old.exists()


def test_who_works_daily_keeps_the_workspace_whenever_it_was_made(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, clock=clock)
    token, visitor = desks.create()
    visitor.studio.projects.create("Mine")
    folder = visitor.workspace

    def age() -> None:
        months_ago(*folder.rglob("*"), folder)

    age()
    # Opened again, after it was put away.
    assert desks.find(token).studio is visitor.studio
    visitor.close()
    assert [card.name for card in desks.find(token).studio.projects.list_summaries()] == ["Mine"]
    assert VisitorSessions(studio, clock=clock).find(token) is not None
    age()
    # Sat at for hours.
    clock.now_s += 7_200
    visitor.seen_s = clock.now_s
    desks.close_idle()
    assert VisitorSessions(studio, clock=clock).find(token) is not None
    # An earlier studio left no marks.
    age()
    os.utime(next(folder.glob("projects/*/project.json")))
    assert VisitorSessions(studio, clock=clock).find(token) is not None
    age()
    assert VisitorSessions(studio, clock=clock).find(token) is None


def test_a_long_running_studio_sweeps_once_a_day(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, clock=clock)
    _, sitting = desks.create()
    assert sitting.studio.speakers.list() == ()
    old = studio.options.workspace / "visitors" / ("0" * 32)
    old.mkdir(parents=True)
    months_ago(old)
    desks.close_idle()
    assert old.exists()
    clock.now_s += 25 * 3_600
    sitting.seen_s = clock.now_s
    desks.close_idle()
    assert not old.exists()
    assert sitting.workspace.exists()


def test_a_desk_nobody_sat_at_for_an_hour_is_closed_and_found_again(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, clock=clock)
    token, visitor = desks.create()
    desks.find(token).studio.speakers.add("Ida")
    left_behind = visitor.workspace / "readings" / "x"
    left_behind.mkdir(parents=True)
    clock.now_s += 3_599
    desks.close_idle()
    assert visitor.is_open
    clock.now_s += 2
    desks.close_idle()
    assert not visitor.is_open
    assert not left_behind.exists()
    assert [one.name for one in desks.find(token).studio.speakers.list()] == ["Ida"]


def test_who_never_came_back_leaves_no_folder(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, clock=clock)
    _, visitor = desks.create()
    visitor.studio.speakers.add("Ida")
    clock.now_s += 3_601
    desks.close_idle()
    assert not visitor.workspace.exists()


def test_a_desk_at_work_is_not_closed(open_studio: OpenStudio) -> None:
    held = GatedDraft()
    studio, clock = open_studio(held), Clock()
    desks = VisitorSessions(studio, clock=clock)
    token, _ = desks.create()
    visitor = desks.find(token)
    job = visitor.studio.render(dialog_of(1))
    clock.now_s += 10_000
    desks.close_idle()
    assert visitor.is_open
    held.let_through(1)
    finish(job)
    desks.close_idle()
    assert not visitor.is_open


def test_programs_share_one_desk_and_one_allowance(studio: Studio) -> None:
    desks = VisitorSessions(studio, VisitLimits(lines_an_hour=3), clock=Clock())
    finish(desks.programs.studio.render(dialog_of(3)))
    with pytest.raises(LimitReached):
        desks.programs.studio.render(dialog_of(3))
    assert desks.find("programs") is None


def test_a_browser_is_told_once_a_day_how_long_to_keep_its_token(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, clock=clock)
    _, visitor = desks.create()
    assert desks.is_cookie_due(visitor)
    clock.now_s += 3_600
    assert not desks.is_cookie_due(visitor)
    clock.now_s += 24 * 3_600
    assert desks.is_cookie_due(visitor)


def test_a_visitor_has_so_much_of_the_disk(studio: Studio) -> None:
    clock = Clock()
    desks = VisitorSessions(studio, VisitLimits(workspace_bytes=1_000_000), clock=clock)
    _, visitor = desks.create()
    visitor.studio.speakers.add("Ida")
    room = visitor.disk_quota
    assert 990_000 < room.left_bytes <= 1_000_000
    room.reserve(900_000)
    with pytest.raises(NoRoom, match="may keep 1 MB here"):
        room.reserve(200_000)
    room.reserve(120_000, as_edit=True)  # what deletes is an edit
    (visitor.workspace / "speakers" / "a").write_bytes(bytes(960_000))
    (visitor.workspace / "readings").mkdir()
    (visitor.workspace / "readings" / "passing").write_bytes(bytes(10_000_000))
    room.invalidate()
    assert 0 < room.left_bytes <= 40_000
    (visitor.workspace / "speakers" / "a").unlink()
    clock.now_s += 60
    room.reserve(500_000)
    desks.owner.disk_quota.reserve(10**12)  # the owner has no limit
    assert desks.owner.disk_quota.left_bytes is None


def test_silence_counts_as_audio_and_a_refused_job_costs_nothing(studio: Studio) -> None:
    limits = VisitLimits(lines_an_hour=10, audio_s_an_hour=100)
    _, visitor = VisitorSessions(studio, limits, clock=Clock()).create()
    lines, pause = tuple(dialog_of(6)), Silence(60.0, line_number=7)
    finish(visitor.studio.render(Dialog((pause,))))
    with pytest.raises(LimitReached, match="seconds of audio"):
        visitor.studio.render(Dialog((*lines, pause)))
    finish(visitor.studio.render(Dialog(lines)))  # none of the six was counted before
    for too_much in ((pause,) * 2, (Silence(0.01, line_number=1),) * 41):
        with pytest.raises(LimitReached, match="at most here"):
            visitor.studio.render(Dialog(too_much))
        assert len(list((visitor.workspace / "renders").iterdir())) == 2, "of what was spoken"


class Weighty(DraftBackend):
    """A backend with weights, which aren't here at first."""

    is_here = False

    def __init__(self, name: str) -> None:
        super().__init__(workers=1)
        self.name = self.title = name

    def to_fetch(self) -> str | None:
        return None if self.is_here else "It downloads 1 GB first."


def test_a_visitor_has_nothing_downloaded(tmp_path: Path) -> None:
    neural = {name: Weighty(name) for name in ("one", "two", "three")}
    options = StudioOptions(tmp_path / "workspace", "draft", ("draft", *neural))
    with Studio.open(options, lambda name: neural.get(name) or create(name)) as studio:
        _, visitor = VisitorSessions(studio).create()
        with pytest.raises(NotAllowed, match="only its owner can fetch it"):
            visitor.studio.choose_backend("one")
        with pytest.raises(NotAllowed):
            visitor.studio.render(dialog_of(1), RenderOptions("one"))
        studio.choose_backend("one")  # the owner may
        for backend in neural.values():
            backend.is_here = True
        # Choices of visitors don't pile up in memory.
        for name in neural:
            visitor.studio.choose_backend(name)
            finish(visitor.studio.render(dialog_of(1)))
        states = [studio.engine.models.get_status(name).state for name in neural]
        assert states == ["unloaded", "loaded", "loaded"]


def test_visitors_have_the_owners_concurrency(studio: Studio) -> None:
    _, visitor = VisitorSessions(studio).create()
    engine = visitor.studio.engine
    studio.engine.set_max_concurrency(7)
    assert engine.max_concurrency == 7


def test_a_bucket_fills_evenly() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 2.0, clock=clock)
    assert bucket.take(10) == 0
    assert bucket.take(4) == 2.0
    clock.now_s += 2
    assert bucket.take(4) == 0
    clock.now_s += 1_000
    assert bucket.take(99) > 0  # more than it holds will never be there
    assert bucket.take(10) == 0
    assert bucket.take(1) > 0
    bucket.give_back(1)
    assert bucket.take(1) == 0


@pytest.mark.parametrize(
    ("spend", "most", "period_s"),
    [("spend_upload", 120, 3_600), ("spend_request", 900, 60)],
)
def test_a_visitor_has_so_many_of_each(spend: str, most: int, period_s: int) -> None:
    now_s = 0.0
    limits = RateLimits(VisitLimits(), clock=lambda: now_s)
    for _ in range(most):
        getattr(limits, spend)()
    with pytest.raises(LimitReached):
        getattr(limits, spend)()
    now_s += period_s / most * 0.99  # one more comes back in that time
    with pytest.raises(LimitReached):
        getattr(limits, spend)()
    now_s += period_s / most * 0.02
    getattr(limits, spend)()


def test_an_allowance_is_each_ones_own() -> None:
    limits = VisitLimits(uploads_an_hour=1)
    RateLimits(limits).spend_upload()
    RateLimits(limits).spend_upload()


def test_what_newcomers_send_counts_for_their_address_and_for_all() -> None:
    limits = VisitLimits(uploads_an_hour=2, address_share=1, total_share=2)
    shared = SharedLimits(limits, clock=lambda: 0.0)
    shared.of_newcomers("203.0.113.7").spend_upload(2)
    (address, _) = shared.of_network("203.0.113.7")
    with pytest.raises(LimitReached, match="the visitors of one address"):
        address.spend_upload()
    shared.of_newcomers("203.0.113.8").spend_upload(2)
    with pytest.raises(LimitReached, match="all visitors together"):
        shared.of_newcomers("203.0.113.9").spend_upload()
