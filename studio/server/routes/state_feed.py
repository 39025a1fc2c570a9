"""The studio's state for the page: read in parts, and followed while a page subscribes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from dataclasses import asdict
from threading import Lock
from typing import Any

from cachetools import TTLCache, cached

from studio.engine.event_log import StateChange
from studio.engine.model_manager import ModelState, measure_resident_bytes
from studio.errors import StudioError
from studio.hearing.model_catalogue import describe_models
from studio.server.event_stream import encode_event
from studio.server.routes.bodies import capabilities_body, engine_body
from studio.server.routes.speaker_bodies import brief_body
from studio.services.studio import Studio
from studio.setup.models_install import SetupReport

log = logging.getLogger(__name__)

_EVERYTHING = frozenset(StateChange)
_KEPT_S = 2.0

_PAUSE_S = 0.25
"""Pause between reads of the state, which the draft voice changes hundreds of times a second."""

_MOST_SENT_PER_S = 50
"""Pages that are told of such changes in a second; the pause is longer where more are open."""

_SETUP_EVERY_S = 1.0
"""Interval of reads during an installation, which sends no events."""

_EVERYTHING_EVERY_S = 30.0
"""Interval of full reads, since other processes may change voices, packages and weights on disk."""


class StateReader:
    """Reads the state of a studio; caches what is slow to find out for two seconds."""

    def __init__(
        self, setup: SetupReport, list_exports: Callable[[Studio], list[dict[str, Any]]]
    ) -> None:
        self._setup = setup
        self._list_exports = list_exports
        # A walk through all processes of the machine; a difference of a few pages is no change.
        self._resident_bytes = cached(TTLCache(1, _KEPT_S), lock=Lock())(
            lambda: round(measure_resident_bytes(), -6)
        )
        # Packages and caches on disk, of a dozen backends; equal for all studios of the process.
        self._offers = cached(TTLCache(1, _KEPT_S), key=_disk_changes, lock=Lock())(_offer_bodies)
        self._recognisers = cached(TTLCache(1, _KEPT_S), key=_recogniser_changes, lock=Lock())(
            _recogniser_bodies
        )

    def read(self, studio: Studio, changes: Set[StateChange] = _EVERYTHING) -> dict[str, Any]:
        """The parts of the state that these changes concern."""
        backend = studio.engine.models.get_manager(studio.backend_name).backend
        body: dict[str, Any] = {}
        if StateChange.MODELS in changes:
            body["backend"] = {"name": backend.name, "title": backend.title}
            body["backend"] |= capabilities_body(backend.capabilities)
            body["backends"] = [
                offer | {"speed": studio.engine.speeds.get(str(offer["name"]))}
                for offer in self._offers(studio)
            ]
            body["auto_reason"] = studio.backend_reason
            body["first_voices"] = studio.list_first_voices()
            body["recognisers"] = self._recognisers(studio)
        if changes & {StateChange.MODELS, StateChange.WORK}:
            body["model"] = model_body(studio, self._resident_bytes)
            body["downloads"] = _download_bodies(studio)
            body["recogniser_models"] = _recogniser_models(studio)
            body["engine"] = {
                "in_flight": studio.engine.renderer.in_flight,
                "queued": studio.engine.renderer.queued,
                "max_concurrency": studio.engine.max_concurrency,
                "slots": backend.capabilities.slots or None,
                "usable_slots": _count_usable_slots(studio),
            }
        if StateChange.SETUP in changes:
            body["setup"] = self._setup.snapshot()
        if StateChange.SPEAKERS in changes:
            body["speakers"] = [brief_body(speaker) for speaker in studio.speakers.list()]
        if StateChange.EXPORTS in changes:
            body["exports"] = self._list_exports(studio)
        if StateChange.PROPOSALS in changes:
            body["proposals"] = studio.proposals.list_waiting()
        return body


def _count_usable_slots(studio: Studio) -> int | None:
    """Slots that the chosen backend uses now, fewer after faults; None without slots."""
    health = studio.engine.models.check_health().get(studio.backend_name)
    return (health.slots or None) if health else None


def _disk_changes(studio: Studio) -> int:
    return studio.engine.downloads.n_changes + studio.public_voices.n_changes


def _recogniser_changes(studio: Studio) -> int:
    """None are a visitor's."""
    return studio.recognisers.downloads.n_changes if studio.recognisers else -1


def _download_bodies(studio: Studio) -> dict[str, dict[str, Any]]:
    """Of voice engines, voices and recognisers, whose names all differ."""
    listed = studio.engine.downloads.list() | studio.public_voices.list()
    if studio.recognisers:
        listed |= studio.recognisers.downloads.list()
    return {name: asdict(one) for name, one in listed.items()}


def _recogniser_bodies(studio: Studio) -> list[dict[str, Any]]:
    return describe_models(studio.recognisers.catalogue) if studio.recognisers else []


def _recogniser_models(studio: Studio) -> dict[str, dict[str, Any]]:
    """The state of those recognisers that have been asked for, by name."""
    statuses = studio.recognisers.models.list_statuses() if studio.recognisers else []
    return {
        one.name: {
            "state": one.state,
            "fraction": one.progress.fraction if one.progress else None,
            "active": one.active,
            "unload_in_s": one.unload_in_s,
        }
        for one in statuses
    }


def _offer_bodies(studio: Studio) -> list[dict[str, Any]]:
    device = studio.engine.speeds.device
    return [engine_body(backend, device) for backend in studio.backends().values()]


def model_body(
    studio: Studio, resident: Callable[[], int] = measure_resident_bytes
) -> dict[str, Any]:
    """The chosen backend's model; `resident` measures the memory in use."""
    status = studio.engine.models.get_status(studio.backend_name)
    policy = studio.engine.models.policy
    return {
        "state": status.state,
        "message": status.progress.message if status.progress else None,
        "fraction": status.progress.fraction if status.progress else None,
        "active": status.active,
        "idle_timeout_s": policy.idle_timeout_s,
        "eviction_enabled": policy.enabled,
        "unload_in_s": status.unload_in_s,
        "loads": status.counters.loads,
        "unloads": status.counters.unloads,
        "cancelled_loads": status.counters.cancelled_loads,
        "memory_bytes": resident() if status.state is ModelState.LOADED else None,
        "memory_before": asdict(status.memory.before) if status.memory else None,
        "memory_after": asdict(status.memory.after) if status.memory else None,
    }


class StateFeed:
    """Follows the state of one studio, on the server's event loop, until it is stopped.

    It reads only the parts that may have changed according to the engine's log, and everything at
    intervals. A subscriber that lags gets only the latest state.

    Attributes:
        version: Rises with each change; 0 before the first read.
        is_over: Whether it has ended, because the state can't be read.
        subscribers: Set at each change.
    """

    def __init__(
        self, studio: Studio, reader: StateReader, count_pages: Callable[[], int] = lambda: 1
    ) -> None:
        self._count_pages = count_pages
        self.version = 0
        self.is_over = False
        self.subscribers: set[asyncio.Event] = set()
        self._studio = studio
        self._reader = reader
        # Each part of the state, with the version of its last change.
        self._parts: dict[str, tuple[int, Any]] = {}
        self._unload_at_s: dict[str, float | None] = {}
        # The latest one, with the versions that it is between, and its second.
        self._message = (0, 0, 0), b""
        self._task = asyncio.create_task(self._run())

    def message(self, since: int) -> bytes:
        """The parts that changed after version `since`, as the stream sends them."""
        # For all pages at once; not for longer, as it counts down.
        wanted = since, self.version, int(time.monotonic())
        if self._message[0] != wanted:
            self._message = wanted, self._write_message(since)
        return self._message[1]

    def _write_message(self, since: int) -> bytes:
        state = {name: part for name, (version, part) in self._parts.items() if version > since}
        state = _change_models(state, _count_down)
        return encode_event({"type": "state", "state": state})

    def stop(self) -> None:
        """Stop following the state."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._follow()
        except StudioError as error:
            log.warning("the studio's state can't be read: %s", error)
        finally:
            self.is_over = True
            self._wake()

    async def _follow(self) -> None:
        changes = self._studio.engine.changes
        seq, changed = changes.seq, _EVERYTHING
        all_due_s = time.monotonic() + _EVERYTHING_EVERY_S
        while True:
            was_installing = self._is_installing
            self._take(await asyncio.to_thread(self._reader.read, self._studio, changed))
            if was_installing and not self._is_installing:
                all_due_s = 0.0  # more backends can run now
            await asyncio.sleep(max(_PAUSE_S, self._count_pages() / _MOST_SENT_PER_S))
            wait_s = all_due_s - time.monotonic()
            if self._is_installing:
                wait_s = min(wait_s, _SETUP_EVERY_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(changes.wait_for_change(seq), wait_s)
            batch = changes.read_batch(seq)
            if batch is None or time.monotonic() >= all_due_s:
                seq, changed = changes.seq, _EVERYTHING
                all_due_s = time.monotonic() + _EVERYTHING_EVERY_S
            else:
                seq, changed = seq + len(batch), frozenset(change for _, change in batch)
                changed |= {StateChange.SETUP} if self._is_installing else set()

    @property
    def _is_installing(self) -> bool:
        _, setup = self._parts.get("setup", (0, None))
        return setup is not None and bool(setup["state"] == "installing")

    def _take(self, body: dict[str, Any]) -> None:
        """Store the parts that differ, and wake the subscribers."""
        body = _change_models(body, self._date)
        changed = {
            name: part
            for name, part in body.items()
            if name not in self._parts or self._parts[name][1] != part
        }
        if changed:
            self.version += 1
            self._parts |= {name: (self.version, part) for name, part in changed.items()}
            self._wake()

    def _date(self, name: str, left_s: float | None) -> float | None:
        """The time at which a model will be unloaded; a change of less than a second is ignored.

        The page counts down by itself.
        """
        known_s = self._unload_at_s.get(name)
        at_s = None if left_s is None else time.monotonic() + left_s
        is_known = at_s is not None and known_s is not None and abs(at_s - known_s) < 1.0
        self._unload_at_s[name] = known_s if is_known else at_s
        return self._unload_at_s[name]

    def _wake(self) -> None:
        for woken in self.subscribers:
            woken.set()


def _change_models(
    state: dict[str, Any], change: Callable[[str, float | None], float | None]
) -> dict[str, Any]:
    """A copy of some parts of the state, in which each model's `unload_in_s` is changed."""

    def changed(name: str, model: dict[str, Any]) -> dict[str, Any]:
        return model | {"unload_in_s": change(name, model["unload_in_s"])}

    found = dict(state)
    if "model" in state:
        found["model"] = changed("", state["model"])
    if "recogniser_models" in state:
        models = state["recogniser_models"]
        found["recogniser_models"] = {name: changed(name, one) for name, one in models.items()}
    return found


def _count_down(_name: str, at_s: float | None) -> float | None:
    return None if at_s is None else max(0.0, at_s - time.monotonic())


class StateFeeds:
    """A feed for each studio with subscribers; on the server's event loop."""

    def __init__(self, reader: StateReader) -> None:
        self._reader = reader
        self._feeds: dict[Studio, StateFeed] = {}

    @contextmanager
    def subscribe(self, studio: Studio, woken: asyncio.Event) -> Iterator[StateFeed]:
        """Set an event at each change of a studio's state, for as long as the block lasts."""
        feed = self._feeds.get(studio)
        if feed is None or feed.is_over:
            feed = self._feeds[studio] = StateFeed(studio, self._reader, self._count_pages)
        feed.subscribers.add(woken)
        try:
            yield feed
        finally:
            feed.subscribers.discard(woken)
            if not feed.subscribers:
                feed.stop()
                if self._feeds.get(studio) is feed:
                    del self._feeds[studio]

    def _count_pages(self) -> int:
        return sum(len(feed.subscribers) for feed in self._feeds.values())
