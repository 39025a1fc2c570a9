"""A render owns its folder, which goes when nothing can write there any more."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from gated import GatedDraft
from scenes import OpenStudio, dialog_of, finish, wait_until_idle

from studio.audio.clip import Clip, write_wav
from studio.dialog.model import Dialog, Speech, SpeechLimits
from studio.dialog.planning import plan
from studio.engine.engine import QueueLimit, Render, SpeechEngine
from studio.engine.job import Job, JobSpec, JobState, SegmentRecord, SegmentState
from studio.errors import Cancelled, EngineBusy, LimitReached
from studio.services.studio import Studio
from studio.voices.cast import Cast


def render_of(
    studio: Studio, folder: Path, engine: SpeechEngine | None = None, **how: Any
) -> Render:
    folder.mkdir()
    limits = studio.engine.models.get_manager("draft").backend.capabilities.limits()
    planned = plan(dialog_of(3), limits, seed=1)
    cast = Cast(studio.speakers, {})
    spec = JobSpec(planned, "draft", cast, folder)
    return Render(engine or studio.engine, spec, **how)


class Slow:
    """An engine that takes a job on when it may."""

    def __init__(self, engine: SpeechEngine) -> None:
        self.engine = engine
        self.reached, self.may_go_on = threading.Event(), threading.Event()

    def submit(self, job: Job, *, listen: bool) -> None:
        self.reached.set()
        assert self.may_go_on.wait(60)
        self.engine.submit(job, listen=listen)

    def cancel(self, job: Job) -> None:
        self.engine.cancel(job)


class Refusing:
    """An engine that takes nothing on."""

    def submit(self, job: Job, *, listen: bool) -> None:
        raise LimitReached("That is enough.", retry_after_s=60)


async def test_a_refused_render_leaves_no_folder(studio: Studio, tmp_path: Path) -> None:
    render = render_of(studio, tmp_path / "made", Refusing())
    with pytest.raises(LimitReached):
        async with render:
            render.start()
    assert render.is_over
    assert not (tmp_path / "made").exists()


async def test_closing_what_never_began_removes_its_folder(studio: Studio, tmp_path: Path) -> None:
    async with render_of(studio, tmp_path / "made") as render:
        assert render.is_over
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("times", [1, 5])
async def test_what_is_cancelled_while_it_begins_is_stopped(
    open_studio: OpenStudio, tmp_path: Path, times: int
) -> None:
    studio = open_studio(GatedDraft())
    engine, removed = Slow(studio.engine), threading.Event()
    render = render_of(studio, tmp_path / "made", engine, remove_folder=lambda _: removed.set())

    async def run() -> None:
        async with render:
            await asyncio.to_thread(render.start, listen=True)
            await render.wait()

    task = asyncio.ensure_future(run())
    assert await asyncio.to_thread(engine.reached.wait, 60)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    assert not removed.is_set(), "what has yet to begin can't be stopped"
    engine.may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(removed.wait, 60)
    assert render.job.state is JobState.CANCELLED
    wait_until_idle(studio)


def test_what_was_stopped_before_it_began_does_not_begin(studio: Studio, tmp_path: Path) -> None:
    render = render_of(studio, tmp_path / "made")
    render.close()
    with pytest.raises(Cancelled):
        render.start()
    assert render.is_over


@pytest.mark.parametrize("from_a_loop", [False, True])
async def test_closing_waits_for_what_is_in_flight(
    open_studio: OpenStudio, tmp_path: Path, from_a_loop: bool
) -> None:
    studio = open_studio(GatedDraft(half_first=True))
    render = render_of(studio, tmp_path / "made")
    render.start()
    assert not render.is_over
    if from_a_loop:
        await render.aclose()
    else:
        await asyncio.to_thread(render.close)
    assert render.is_over
    wait_until_idle(studio)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("from_a_loop", [False, True])
async def test_closing_lets_a_job_end_whose_audio_was_all_delivered(
    open_studio: OpenStudio, tmp_path: Path, from_a_loop: bool
) -> None:
    may_save = threading.Event()

    def save(path: Path, clip: Clip) -> None:
        assert may_save.wait(60)
        write_wav(path, clip)

    render = render_of(open_studio(save=save), tmp_path / "made")
    render.start()
    for record in render.job.records:
        async for _ in record.live.subscribe():
            pass
    assert not render.is_over, "the files aren't saved yet"
    closing = render.aclose() if from_a_loop else asyncio.to_thread(render.close)
    task = asyncio.ensure_future(closing)
    await asyncio.sleep(0)
    may_save.set()
    await task
    assert render.job.state is JobState.DONE
    assert [record.state for record in render.job.records] == [SegmentState.SAVED] * 3
    assert not (tmp_path / "made").exists()


def test_a_full_queue_refuses_further_renders(open_studio: OpenStudio) -> None:
    backend = GatedDraft()
    studio = open_studio(backend, max_concurrency=1)
    job = studio.render(dialog_of(4))
    QueueLimit(4, "Full.", retry_after_s=9).check(studio.engine)
    with pytest.raises(EngineBusy, match=r"Full\.") as refused:
        QueueLimit(3, "Full.", retry_after_s=9).check(studio.engine)
    assert refused.value.retry_after_s == 9
    studio.engine.cancel(job)


def test_a_segment_has_audio_once_it_is_saved(open_studio: OpenStudio) -> None:
    segments = plan(Dialog((Speech("Ida", "Good evening."),)), SpeechLimits(max_chars=200)).segments
    assert not SegmentRecord(segments[0]).has_audio
    job = open_studio().render(Dialog((Speech("Ida", "Good evening."),)))
    finish(job)
    assert job.records[0].has_audio
