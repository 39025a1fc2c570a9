"""`/healthz` and `/metrics`: whether the studio can work, and its figures for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Health
from studio.backends.device import LOST, card_lost
from studio.dialog.planning import SpeechSegment
from studio.engine.engine import Engine
from studio.engine.job import Job, SegmentState
from studio.engine.model_manager import ModelState
from studio.engine.model_pool import ModelStatus
from studio.services.studio import Studio

_STUCK_S = 60.0
"""A step takes milliseconds, and the capture of a graph seconds."""

_SILENT_S = 1_800.0
"""A long line on a slow processor takes minutes, and one on a busy remote server a quarter hour."""


def health_routes(studio: Studio) -> APIRouter:
    """`/healthz` is for who sends work: 503 while the engine can't take any.

    `/healthz/live` is for who restarts processes. Neither says anything that isn't for everybody.
    """
    routes = APIRouter(prefix="/healthz")
    began_s = time.monotonic()

    @routes.get("")
    async def ready() -> JSONResponse:
        reason = await _trouble(studio)
        body = {
            "alive": True,
            "ready": reason is None,
            "reason": reason,
            "up_s": round(time.monotonic() - began_s, 1),
        }
        return JSONResponse(body, 200 if reason is None else 503)

    @routes.get("/live")
    async def live() -> JSONResponse:
        return JSONResponse({"alive": True})

    return routes


async def _trouble(studio: Studio) -> str | None:
    """Why no work can be done; None when it can."""
    if card_lost():
        return LOST
    if not await studio.engine.responds():
        return "The engine doesn't respond; restart the studio."
    for name, health in studio.engine.models.health().items():
        if not health.alive:
            return f"The threads of {name} have ended; unload it and load it again."
        if health.running and (health.last_step_age_s or 0) > _STUCK_S:
            return (
                f"{name} has made no step for {health.last_step_age_s:.0f} s; restart the studio."
            )
    for status in studio.engine.models.known():
        silent_s = studio.engine.renderer.silent_s(status.name)
        if silent_s > _SILENT_S:
            return (
                f"A line has been with {status.name} for {silent_s:.0f} s without a sound; restart "
                "the studio."
            )
    return None


_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)


class Metrics:
    """A registry of its own: counters of what jobs did, and the engine's state."""

    def __init__(self, engine: Engine) -> None:
        """Watch an engine's jobs from now on."""
        self._registry = CollectorRegistry()
        self._registry.register(_EngineState(engine))
        self._segments = Counter(
            "tableread_segments", "Segments by how they ended.", ["state"], registry=self._registry
        )
        self._failures = Counter(
            "tableread_failures", "Failed segments by kind.", ["kind"], registry=self._registry
        )
        self._second_tries = Counter(
            "tableread_second_tries",
            "Segments that were cut and begun again with another seed.",
            registry=self._registry,
        )
        self._doubts = Counter(
            "tableread_doubts",
            "What was doubtful about spoken segments, by kind.",
            ["kind"],
            registry=self._registry,
        )
        self._audio_s = Counter(
            "tableread_audio_seconds", "Seconds of speech made.", registry=self._registry
        )
        self._first_audio_s = Histogram(
            "tableread_first_audio_seconds",
            "From the start of a render to its first sound.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._job_s = Histogram(
            "tableread_job_seconds",
            "From the start of a render to its end.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        # Guards the open jobs and how much of each was counted.
        self._lock = threading.Lock()
        self._open: list[tuple[Job, int]] = []
        engine.watchers.append(self.watch)
        engine.counters.append(self.count_render)

    def watch(self, job: Job) -> None:
        """Count what a job does; called as it is submitted."""
        with self._lock:
            self._catch_up()
            self._open.append((job, 0))

    def count_render(self, wall_s: float, first_audio_s: float | None) -> None:
        """Count a render that ended, of one job or of many."""
        self._job_s.observe(wall_s)
        if first_audio_s is not None:
            self._first_audio_s.observe(first_audio_s)

    def text(self) -> bytes:
        """All figures in Prometheus's format."""
        with self._lock:
            self._catch_up()
        return generate_latest(self._registry)

    def _catch_up(self) -> None:
        self._open = [
            (job, seen + self._count(job, seen))
            for job, seen in self._open
            if not self._ended(job, seen)
        ]

    def _ended(self, job: Job, seen: int) -> bool:
        """Count the rest of a job that is over."""
        if not job.events.closed:
            return False
        self._count(job, seen)
        if not job.order.is_part:
            summary = job.summary()
            self.count_render(summary.wall_s, summary.first_audio_s)
        return True

    def _count(self, job: Job, seen: int) -> int:
        fresh = job.events.read(seen)
        for event in fresh:
            if event.segment_idx is None:
                continue
            record = job.records[event.segment_idx]
            if event.state in {SegmentState.SAVED, SegmentState.FAILED, SegmentState.CANCELLED}:
                self._segments.labels(event.state).inc()
            if event.state == SegmentState.STARTED and event.message is not None:
                self._second_tries.inc()
            if event.state == SegmentState.FAILED:
                self._failures.labels(record.fault or "SpeechFailed").inc()
            if event.state == SegmentState.SAVED and isinstance(record.segment, SpeechSegment):
                self._audio_s.inc((record.samples or 0) / STUDIO_RATE_HZ)
                for doubt in record.checked.doubts if record.checked else ():
                    self._doubts.labels(doubt.kind).inc()
        return len(fresh)


class _EngineState(Collector):
    """The engine as it is at the moment of a scrape."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        renderer = self._engine.renderer
        yield _gauge("queued", "Segments that wait for a slot.", renderer.queued)
        yield _gauge("in_flight", "Segments being spoken.", renderer.in_flight)
        yield _gauge("concurrency", "Segments spoken at once.", self._engine.max_concurrency)
        known = self._engine.models.known()
        yield from _model_gauges(known)
        yield self._slots(known)
        yield from _model_counters(known)
        yield from _slots_in_use(self._engine.models.health())

    def _slots(self, known: list[ModelStatus]) -> Metric:
        slots = GaugeMetricFamily("tableread_model_slots", "Lines at once.", labels=["model"])
        for status in known:
            can = self._engine.models.manager(status.name).backend.capabilities
            slots.add_metric([status.name], can.slots or self._engine.max_concurrency)
        return slots


def _model_gauges(known: list[ModelStatus]) -> Iterable[Metric]:
    loaded = GaugeMetricFamily("tableread_model_loaded", "1 while loaded.", labels=["model"])
    active = GaugeMetricFamily("tableread_model_active", "Leases held.", labels=["model"])
    for status in known:
        loaded.add_metric([status.name], status.state is ModelState.LOADED)
        active.add_metric([status.name], status.active)
    yield loaded
    yield active


def _model_counters(known: list[ModelStatus]) -> Iterable[Metric]:
    for field, what in (
        ("loads", "Loads."),
        ("unloads", "Unloads."),
        ("failed_loads", "Loads that failed."),
        ("cancelled_loads", "Loads that were stopped."),
        ("refused_unloads", "Unloads refused, since the model was in use."),
        ("resident_s", "Seconds that models were in memory."),
    ):
        name = field.replace("resident_s", "resident_seconds")
        family = CounterMetricFamily(f"tableread_model_{name}", what, labels=["model"])
        for status in known:
            family.add_metric([status.name], getattr(status.counters, field))
        yield family


def _slots_in_use(health: Mapping[str, Health]) -> Iterable[Metric]:
    running = GaugeMetricFamily("tableread_slots_running", "Lines in slots.", labels=["model"])
    waiting = GaugeMetricFamily("tableread_slots_waiting", "Lines without one.", labels=["model"])
    steps = CounterMetricFamily("tableread_slots_steps", "Frames made together.", labels=["model"])
    faults = CounterMetricFamily("tableread_slots_faults", "Steps that failed.", labels=["model"])
    for name, now in health.items():
        running.add_metric([name], now.running)
        waiting.add_metric([name], now.waiting)
        steps.add_metric([name], now.steps)
        faults.add_metric([name], now.faults)
    yield from (running, waiting, steps, faults)


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tableread_{name}", what, value=value)


def metrics_routes(metrics: Metrics) -> APIRouter:
    """`/metrics`."""
    routes = APIRouter()

    @routes.get("/metrics")
    def scrape() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return routes
