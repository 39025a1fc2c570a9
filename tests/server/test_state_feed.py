"""The studio's state over the event stream: whole at first, then the parts that change."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from live import live
from shared_studio import app_of_front, front_of

from studio.backends.espeak.backend import DraftBackend
from studio.engine.event_log import StateChange
from studio.engine.model_manager import EvictionPolicy
from studio.errors import StorageFailed, StudioError
from studio.server.error_responses import answer_error
from studio.server.route_table import studio_routes
from studio.server.routes import bodies, state_feed
from studio.server.routes.state_feed import StateReader
from studio.services.studio import Studio, StudioOptions
from studio.setup.models_install import NothingToSetUp

PARTS = {"backend", "backends", "auto_reason", "model", "engine", "setup", "speakers", "exports"}
PARTS |= {"downloads", "first_voices", "proposals", "recognisers", "recogniser_models"}
WAIT_S = 60


class Install(NothingToSetUp):
    """An installation that a test moves on."""

    def __init__(self) -> None:
        self.state = "missing"

    def snapshot(self) -> dict[str, Any]:
        return super().snapshot() | {"state": self.state}

    def start(self) -> None:
        self.state = "installing"


@contextmanager
def served(studio: Studio, install: Install | None = None) -> Iterator[httpx.Client]:
    setup = install or NothingToSetUp()
    app = FastAPI(
        routes=studio_routes(lambda _: studio, setup, guard=lambda: None),
        exception_handlers={StudioError: answer_error},
    )
    with live(app) as address, httpx.Client(base_url=f"{address}/studio", timeout=WAIT_S) as client:
        yield client


class Follower:
    """Reads a project's stream in a thread; `state` is put together of the parts that came."""

    def __init__(self, client: httpx.Client, project_id: str, seq: int) -> None:
        self.state: dict[str, Any] = {}
        self._came: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._answer = client.stream("GET", f"/projects/{project_id}/events?since={seq}")
        self._has_left = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        # A server that stops cuts its streams off.
        with suppress(httpx.TransportError), self._answer as answer:
            for line in answer.iter_lines():
                if self._has_left:
                    break
                message = json.loads(line.removeprefix("data:")) if line[:5] == "data:" else {}
                if message.get("type") == "state":
                    self._came.put(message)
        self._came.put(None)

    def leave(self) -> None:
        """Close the connection at the next line that comes."""
        self._has_left = True

    def next_parts(self) -> dict[str, Any]:
        message = self._came.get(timeout=WAIT_S)
        assert message is not None, "the stream ended"
        assert message.keys() == {"type", "state"}
        self.state |= message["state"]
        return message["state"]

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> set[str]:
        """Read on until the state is so; the parts that came by then."""
        came: set[str] = set()
        while not self.state or not holds(self.state):
            came |= self.next_parts().keys()
        return came

    def is_quiet(self, for_s: float = 1.0) -> bool:
        try:
            self._came.get(timeout=for_s)
        except queue.Empty:
            return True
        return False

    def ends(self) -> bool:
        return self._came.get(timeout=WAIT_S) is None


def following(client: httpx.Client) -> Follower:
    project = client.post("/projects", json={"text": "Ida: Oh."}).json()
    return Follower(client, project["project_id"], project["seq"])


def test_the_whole_state_comes_first_and_is_what_the_route_says(studio: Studio) -> None:
    studio.speakers.add("Ida")
    with served(studio) as client:
        parts = following(client).next_parts()
        assert parts.keys() == PARTS
        assert parts == client.get("/state").json()
        assert parts["speakers"][0]["name"] == "Ida"


def test_only_the_parts_that_changed_follow(studio: Studio) -> None:
    with served(studio) as client:
        follower = following(client)
        follower.next_parts()
        client.post("/speakers", json={"name": "Tom"}).raise_for_status()
        assert follower.next_parts().keys() == {"speakers"}
        client.post("/model/concurrency", json={"segments": 2}).raise_for_status()
        assert follower.next_parts() == {"engine": follower.state["engine"]}
        assert follower.state["engine"]["max_concurrency"] == 2
        client.post("/model/load").raise_for_status()
        came = follower.until(
            lambda state: state["model"]["state"] == "loaded" and not at_work(state)
        )
        assert not came & {"speakers", "setup"}
        assert follower.state["model"]["memory_bytes"] % 1_000_000 == 0
        assert follower.state["model"]["unload_in_s"] == pytest.approx(900, abs=60)


def test_a_render_is_seen_and_leaves_nothing_in_flight(studio: Studio) -> None:
    with served(studio) as client:
        follower = following(client)
        project = client.get("/projects").json()[0]["project_id"]
        client.post(f"/projects/{project}/render", json={}).raise_for_status()
        follower.until(lambda state: state["model"]["loads"] == 1 and not at_work(state))
        assert follower.state["engine"] == client.get("/state").json()["engine"]


def at_work(state: dict[str, Any]) -> int:
    return state["engine"]["in_flight"] + state["engine"]["queued"] + state["model"]["active"]


def test_another_engine_chosen_elsewhere_is_seen(tmp_path: Path) -> None:
    class Other(DraftBackend):
        name = "other"

    options = StudioOptions(tmp_path, "draft", backend_names=("draft", "other"))
    made = {"draft": DraftBackend, "other": Other}
    with Studio.open(options, lambda name: made[name]()) as studio, served(studio) as client:
        follower = following(client)
        follower.next_parts()
        client.post("/backend", json={"name": "other"}).raise_for_status()
        follower.until(lambda state: state["backend"]["name"] == "other")
        assert [one["name"] for one in follower.state["backends"]] == ["draft", "other"]


def test_a_model_that_expires_is_seen(open_studio: Callable[..., Studio]) -> None:
    studio = open_studio(eviction=EvictionPolicy(idle_timeout_s=0.5, check_interval_s=0.2))
    with served(studio) as client:
        follower = following(client)
        follower.next_parts()
        client.post("/model/load").raise_for_status()
        follower.until(lambda state: state["model"]["unloads"] == 1)
        assert follower.state["model"]["state"] == "unloaded"
        assert follower.state["model"]["unload_in_s"] is None
        assert follower.state["model"]["memory_bytes"] is None


def test_an_installation_is_followed_from_its_start_to_its_end(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_feed, "_SETUP_EVERY_S", 0.05)
    install = Install()
    with served(studio, install) as client:
        follower = following(client)
        assert follower.next_parts()["setup"]["state"] == "missing"
        client.post("/setup/start").raise_for_status()
        assert follower.next_parts()["setup"]["state"] == "installing"
        install.state = "ready"
        follower.until(lambda state: state["setup"]["state"] == "ready")


def test_what_nobody_reports_is_seen_after_a_while(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_feed, "_EVERYTHING_EVERY_S", 0.1)
    with served(studio) as client:
        follower = following(client)
        follower.next_parts()
        elsewhere = type(studio.speakers)(studio.options.workspace / "speakers")
        elsewhere.add("Ida")
        follower.until(lambda state: [one["name"] for one in state["speakers"]] == ["Ida"])


def test_offers_are_looked_up_once_and_an_idle_studio_is_quiet(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    real = bodies.offer_of
    monkeypatch.setattr(bodies, "offer_of", lambda one: looked.append(one.name) or real(one))
    with served(studio) as client:
        follower = following(client)
        follower.next_parts()
        for segments in (1, 2):
            client.post("/model/concurrency", json={"segments": segments}).raise_for_status()
            follower.next_parts()
        assert follower.is_quiet()
    assert looked == ["draft"]


def test_nobody_looks_at_the_state_while_nobody_subscribes(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Studio] = []
    real = StateReader.read
    monkeypatch.setattr(StateReader, "read", lambda *args: looked.append(args[1]) or real(*args))

    def is_looked_at(within_s: float) -> bool:
        n_before, end_s = len(looked), time.monotonic() + within_s
        studio.engine.changes.append(StateChange.WORK)
        while len(looked) == n_before and time.monotonic() < end_s:
            time.sleep(0.02)
        return len(looked) > n_before

    with served(studio) as client:
        assert not is_looked_at(0.6)
        follower = following(client)
        follower.next_parts()
        assert is_looked_at(WAIT_S)
        follower.leave()
        client.post("/speakers", json={"name": "Ida"}).raise_for_status()
        end_s = time.monotonic() + WAIT_S
        while is_looked_at(0.6) or studio.engine.changes.subscriber_count:
            assert time.monotonic() < end_s


def test_the_stream_ends_where_the_state_cannot_be_read(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise StorageFailed("The speaker library can't be read.")

    with served(studio) as client:
        follower = following(client)
        follower.next_parts()
        monkeypatch.setattr(studio.speakers, "list", fail)
        studio.engine.changes.append(StateChange.SPEAKERS)
        assert follower.ends()


def test_a_visitor_follows_an_own_state_and_is_not_idle_meanwhile(studio: Studio) -> None:
    front = front_of(studio)
    with live(app_of_front(front)) as address:
        anna, ben = (httpx.Client(base_url=address, timeout=WAIT_S) for _ in range(2))
        for client in (anna, ben):
            welcome = client.get("/")
            client.headers["Cookie"] = welcome.headers["set-cookie"].partition(";")[0]
            client.base_url = f"{address}/studio"
        followers = [following(client) for client in (anna, ben)]
        for follower in followers:
            follower.next_parts()
        anna.post("/speakers", json={"name": "Own"}).raise_for_status()
        assert [one["name"] for one in followers[0].next_parts()["speakers"]] == ["Own"]
        assert followers[1].is_quiet()
        sessions = front.sessions
        assert sessions is not None
        token = anna.headers["Cookie"].partition("=")[2]
        visitor = sessions.find_open(token)
        assert visitor is not None
        assert visitor.open_requests == 1
        visitor.seen_s = float("-inf")
        sessions.close_idle()
        assert visitor.is_open
