"""The remote backend on two servers: sharing, dying, coming back."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from contract import request_for, whole
from ports import reserve_port
from remote_process import START_S, SpeechServer, serving

from studio.audio.decode import decode
from studio.backends.options import BackendOptions, RemoteOptions
from studio.backends.remote.backend import RemoteBackend
from studio.dialog.model import Dialog, Speech
from studio.engine.job import SegmentState
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.services.studio import RenderOptions

pytestmark = pytest.mark.slow

BOUND = 3
SCENE = Dialog(
    tuple(
        Speech(f"Speaker {idx % 4}", f"This is line number {chr(97 + idx)}.") for idx in range(24)
    )
)


@pytest.fixture
def pair():
    """Two that a test may end."""
    with serving("custom", "custom") as servers:
        yield servers


@pytest.fixture(scope="module")
def lasting_servers():
    with serving("custom", "custom") as servers:
        yield servers


@pytest.fixture
def lasting(lasting_servers):
    """Two that stay, as new."""
    for server in lasting_servers:
        server.reset()
    return lasting_servers


def backend_on(*urls, **options):
    options = {"retry_s": 0.02, "patience_s": 60, "concurrency": BOUND, **options}
    return RemoteBackend(BackendOptions(remote=RemoteOptions(urls=urls, **options)))


def rendered(open_studio, backend):
    """A job under way."""
    return open_studio(backend).render(SCENE, RenderOptions(seed=7, backend_name="remote"))


def finished(job):
    for _ in job.events.follow():
        pass
    assert [failure.message for failure in job.list_failures()] == []
    assert {record.state for record in job.records} == {SegmentState.SAVED}
    return [decode(record.path).samples for record in job.records]


def asked(server):
    return [request["input"] for request in server.requests]


def test_two_servers_share_the_lines_and_each_is_spoken_once(open_studio, lasting):
    first, second = lasting
    for server in lasting:
        server.faults(*[{"hold_first": True}] * BOUND)
    job = rendered(open_studio, backend_on(first.url, second.url))
    for server in lasting:
        server.wait_for(in_flight=BOUND)
    for server in lasting:
        server.set("/release")
    finished(job)
    assert job.max_in_flight == 2 * BOUND
    assert sorted(asked(first) + asked(second)) == sorted(line.text for line in SCENE.lines)
    for server in lasting:
        assert server.seen()["most_in_flight"] == BOUND


def test_one_that_dies_loses_nothing(open_studio, pair, lasting):
    first, second = pair
    first.faults(*[{"cut": 0.5, "then": "hold"}] * BOUND)
    job = rendered(open_studio, backend_on(first.url, second.url))
    first.wait_for(in_flight=BOUND)
    first.kill()
    spoken = finished(job)
    assert len(asked(second)) == len(set(asked(second)))
    wanted = finished(rendered(open_studio, backend_on(lasting[0].url)))
    assert all(np.array_equal(one, other) for one, other in zip(spoken, wanted, strict=True))


def test_a_server_that_is_full_leaves_the_lines_to_the_other(open_studio, lasting):
    first, second = lasting
    first.faults(*[{"status": 429, "headers": {"Retry-After": "3600"}}] * BOUND)
    finished(rendered(open_studio, backend_on(first.url, second.url)))
    assert 1 <= len(asked(first)) <= BOUND
    assert sorted(asked(second)) == sorted(line.text for line in SCENE.lines)


def test_a_server_that_errs_is_avoided_by_the_line_it_failed(lasting):
    first, second = lasting
    first.faults(*[{"status": 500}] * 50)
    backend = backend_on(first.url, second.url)
    backend.load(lambda _: None)
    for _ in range(5):
        assert len(whole(backend.speak(request_for(backend))))
    backend.unload()
    assert len(asked(second)) == 5


@pytest.mark.parametrize("status", [500, 401, 404, 400])
def test_a_server_that_fails_every_line_at_once_costs_none(open_studio, lasting, status):
    first, second = lasting
    first.faults(*[{"status": status}] * 500)
    second.faults(*[{"takes_s": 0.2}] * len(SCENE))
    backend = backend_on(first.url, second.url)
    finished(open_studio(backend).render(SCENE, RenderOptions(seed=7, backend_name="remote")))
    assert sorted(asked(second)) == sorted(line.text for line in SCENE.lines)
    # Whoever meets it goes elsewhere; it isn't asked by each line unless the line is to blame.
    assert 1 <= len(asked(first)) <= (len(SCENE) if status == 400 else len(SCENE) // 2)


def test_what_every_server_declines_fails_at_once_with_the_reason(lasting):
    for server in lasting:
        server.faults(*[{"status": 401, "body": "Who are you?"}] * 50)
    backend = backend_on(*(server.url for server in lasting))
    backend.load(lambda _: None)
    with pytest.raises(SpeechFailed, match=r"401: Who are you\?\. Set TTS_REMOTE_KEY"):
        whole(backend.speak(request_for(backend)))
    assert sum(len(asked(server)) for server in lasting) == 2
    backend.unload()


def test_an_answer_that_cannot_be_unpacked_is_asked_for_again(lasting):
    first, _ = lasting
    broken = {"headers": {"Content-Encoding": "gzip"}, "body": "no gzip", "status": 200}
    first.faults(broken | {"content_type": "audio/wav"})
    backend = backend_on(first.url)
    backend.load(lambda _: None)
    assert len(whole(backend.speak(request_for(backend))))
    backend.unload()
    assert len(asked(first)) == 2


def test_a_server_that_comes_later_takes_part(lasting):
    port = reserve_port()
    backend = backend_on(lasting[0].url, f"http://127.0.0.1:{port}/v1")
    backend.load(lambda _: None)
    assert len(whole(backend.speak(request_for(backend))))
    late = SpeechServer("custom", port)
    try:
        deadline_s = time.monotonic() + START_S
        while len(backend._bridge.pool.names) < 2 and time.monotonic() < deadline_s:
            time.sleep(0.05)
        for _ in range(2):
            lasting[0].faults({"status": 500})
            assert len(whole(backend.speak(request_for(backend))))
        assert late.requests
    finally:
        backend.unload()
        late.close()


def test_when_all_are_gone_the_rest_and_later_lines_fail_at_once_with_the_reason(open_studio, pair):
    first, second = pair
    for server in pair:
        server.faults(*[{"cut": 0.5, "then": "hold"}] * BOUND)
    backend = backend_on(first.url, second.url, patience_s=0.3)
    job = rendered(open_studio, backend)
    for server in pair:
        server.wait_for(in_flight=BOUND)
    later = request_for(backend)
    for server in pair:
        server.kill()
    for _ in job.events.follow():
        pass
    failures = job.list_failures()
    assert len(failures) == len(SCENE)
    assert all("No speech server answers" in failure.message for failure in failures)
    with pytest.raises(ModelUnavailable, match="No speech server answers"):
        whole(backend.speak(later))


def test_a_line_that_waits_for_a_place_can_be_cancelled(lasting):
    first, _ = lasting
    first.faults({"hold_first": True})
    backend = backend_on(first.url, concurrency=1)
    backend.load(lambda _: None)
    holding = threading.Thread(target=lambda: whole(backend.speak(request_for(backend))))
    holding.start()
    first.wait_for(in_flight=1)
    asked_again = iter([False, False, True])
    waiting = backend.speak(request_for(backend, cancelled=lambda: next(asked_again)))
    with pytest.raises(Cancelled):
        next(waiting)
    first.set("/release")
    holding.join()
    assert len(first.requests) == 1
    assert len(whole(backend.speak(request_for(backend))))
    backend.unload()
