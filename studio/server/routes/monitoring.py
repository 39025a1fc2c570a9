"""`/healthz` and `/metrics`: whether the studio can work, and its metrics for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from prometheus_client import CollectorRegistry, Counter, Histogram, Info, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from studio import __version__
from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Health
from studio.backends.device import LOST, card_lost
from studio.dialog.planning import SpeechSegment
from studio.engine.engine import Engine
from studio.engine.job import Job, SegmentState
from studio.engine.model_manager import ModelState
from studio.server.policies import Access, RequestClass, RoutePolicy
from studio.services.studio import Studio
from studio.storage.disk import is_full

_STUCK_S = 60.0
"""After that long without a step a model is stuck: a step takes milliseconds, and the capture of a
CUDA graph seconds."""

_SILENT_S = 1_800.0
"""After that long a line is stuck: a long one on a slow processor takes minutes, and one on a busy
remote server a quarter of an hour."""


def health_routes(studio: Studio) -> APIRouter:
    """`/healthz` is for a load balancer: 503 while the engine can't take work.

    `/healthz/live` is for whatever restarts the process. Both are public.
    """
    routes = APIRouter(prefix="/healthz")
    engine = _engine_of(studio)
    began_s = time.monotonic()

    @routes.get("")
    @RoutePolicy(Access.ANYBODY, request_class=RequestClass.UNCOUNTED)
    async def ready() -> JSONResponse:
        reason = await _trouble(engine)
        health = engine.models.check_health().get(studio.backend_name, Health())
        body = {
            "alive": True,
            "ready": reason is None,
            "reason": reason,
            "up_s": round(time.monotonic() - began_s, 1),
            "slots": health.slots or None,
            "max_slots": health.max_slots or None,
            "storage": _storage_trouble(studio),
        }
        return JSONResponse(body, 200 if reason is None else 503)

    @routes.get("/live")
    @RoutePolicy(Access.ANYBODY, request_class=RequestClass.UNCOUNTED)
    async def live() -> JSONResponse:
        return JSONResponse({"alive": True})

    return routes


def _engine_of(studio: Studio) -> Engine:
    """The engine of the owner's studio; a visitor's studio has a metered one instead."""
    assert isinstance(studio.engine, Engine)
    return studio.engine


async def _trouble(engine: Engine) -> str | None:
    """Why the studio can't work; None if it can."""
    if card_lost():
        return LOST
    if not await engine.responds():
        return "The engine doesn't respond; restart the studio."
    for name, health in engine.models.check_health().items():
        if not health.alive:
            return f"The threads of {name} have ended; unload it and load it again."
        if health.running and (health.last_step_age_s or 0) > _STUCK_S:
            return (
                f"{name} has made no step for {health.last_step_age_s:.0f} s; restart the studio."
            )
    for status in engine.models.list_statuses():
        silent_s = engine.renderer.measure_silence_s(status.name)
        if silent_s > _SILENT_S:
            return (
                f"A line has been with {status.name} for {silent_s:.0f} s without a sound; restart "
                "the studio."
            )
    return None


def _storage_trouble(studio: Studio) -> str | None:
    """Why nothing can be saved; that is no reason to send no work, as speech needs no disk."""
    if studio.projects.waits_for_room or is_full(studio.options.workspace):
        return "The disk is full: renders wait until there is room. Free some space."
    return None


_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 300)


class Metrics:
    """A Prometheus registry of its own, with counters of all jobs and the engine's state."""

    def __init__(self, studio: Studio) -> None:
        engine = _engine_of(studio)
        self._registry = CollectorRegistry()
        self._registry.register(_EngineState(engine))
        build = Info("tableread_build", "The studio's version.", registry=self._registry)
        build.info({"version": __version__})
        self._segments = self._counter("segments", "Segments by how they ended.", "state")
        self._failures = self._counter("failures", "Failed segments by kind.", "kind")
        cut = "Segments that were cut and begun again with another seed."
        self._second_tries = self._counter("second_tries", cut)
        doubted = "What was doubtful about spoken segments, by kind."
        self._doubts = self._counter("doubts", doubted, "kind")
        self._audio_s = self._counter("audio_seconds", "Seconds of speech made.")
        first_audio = "From the start of a render to its first sound."
        self._first_audio_s = self._seconds("first_audio_seconds", first_audio)
        whole = "From the start of a render to its end."
        self._job_s = self._seconds("job_seconds", whole)
        # Guards the running jobs, and how many events of each have been counted.
        self._lock = threading.Lock()
        self._open: list[tuple[Job, int]] = []
        engine.job_listeners.append(self.watch)
        engine.render_listeners.append(self.report_render)

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(f"tableread_{name}", what, labels, registry=self._registry)

    def _seconds(self, name: str, what: str) -> Histogram:
        name = f"tableread_{name}"
        return Histogram(name, what, buckets=_SECONDS, registry=self._registry)

    def watch(self, job: Job) -> None:
        """Count a job's events; called when it is submitted."""
        with self._lock:
            self._catch_up()
            self._open.append((job, 0))

    def report_render(self, wall_s: float, first_audio_s: float | None) -> None:
        """Count a finished render, of one job or of many."""
        self._job_s.observe(wall_s)
        if first_audio_s is not None:
            self._first_audio_s.observe(first_audio_s)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        with self._lock:
            self._catch_up()
        return generate_latest(self._registry)

    def _catch_up(self) -> None:
        still_open = []
        for job, seen in self._open:
            is_over = job.events.closed  # asked first, as what comes in between counts next time
            counted = seen + self._count(job, seen)
            if not is_over:
                still_open.append((job, counted))
            elif not job.spec.is_part:
                summary = job.summarize()
                self.report_render(summary.wall_s, summary.first_audio_s)
        self._open = still_open

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
                for doubt in record.report.issues if record.report else ():
                    self._doubts.labels(doubt.kind).inc()
        return len(fresh)


_COUNTERS = (
    ("loads", "loads", "Loads."),
    ("unloads", "unloads", "Unloads."),
    ("failed_loads", "failed_loads", "Loads that failed."),
    ("cancelled_loads", "cancelled_loads", "Loads that were stopped."),
    ("refused_unloads", "refused_unloads", "Unloads refused, since the model was in use."),
)
"""Name, field of a model's counters, and help."""

_SLOTS = (
    (GaugeMetricFamily, "running", "running", "Lines in slots."),
    (GaugeMetricFamily, "waiting", "waiting", "Lines without one."),
    (GaugeMetricFamily, "usable", "slots", "Lines that may run at once now."),
    (GaugeMetricFamily, "most", "max_slots", "Lines that may run at once where no step failed."),
    (CounterMetricFamily, "steps", "steps", "Frames made together."),
    (CounterMetricFamily, "faults", "faults", "Steps that failed."),
)
"""Kind, name, field of a model's `Health`, and help."""


class _EngineState(Collector):
    """The engine's state when it is scraped."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        renderer, models = self._engine.renderer, self._engine.models
        yield _gauge("queued", "Segments that wait for a slot.", renderer.queued)
        yield _gauge("in_flight", "Segments being spoken.", renderer.in_flight)
        yield _gauge("concurrency", "Segments spoken at once.", self._engine.max_concurrency)
        known = {status.name: status for status in models.list_statuses()}
        loaded = {name: status.state is ModelState.LOADED for name, status in known.items()}
        active = {name: status.active for name, status in known.items()}
        slots = {name: self._count_slots(name) for name in known}
        yield _by_model(GaugeMetricFamily, "model_loaded", "1 while loaded.", loaded)
        yield _by_model(GaugeMetricFamily, "model_active", "Leases held.", active)
        yield _by_model(GaugeMetricFamily, "model_slots", "Lines at once.", slots)
        for name, field, what in _COUNTERS:
            counts = {model: getattr(one.counters, field) for model, one in known.items()}
            yield _by_model(CounterMetricFamily, f"model_{name}", what, counts)
        resident_s = {name: status.resident_s for name, status in known.items()}
        what = "Seconds that models have been in memory until now."
        yield _by_model(CounterMetricFamily, "model_resident_seconds", what, resident_s)
        health = models.check_health()
        for kind, name, field, what in _SLOTS:
            now = {model: getattr(one, field) for model, one in health.items()}
            yield _by_model(kind, f"slots_{name}", what, now)

    def _count_slots(self, name: str) -> int:
        backend = self._engine.models.get_manager(name).backend
        return backend.capabilities.slots or self._engine.max_concurrency


def _gauge(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tableread_{name}", what, value=value)


def _by_model(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    what: str,
    values: Mapping[str, float],
) -> Metric:
    family = kind(f"tableread_{name}", what, labels=["model"])
    for model, value in values.items():
        family.add_metric([model], value)
    return family


def metrics_routes(metrics: Metrics) -> APIRouter:
    """`/metrics`."""
    routes = APIRouter()

    @routes.get("/metrics")
    @RoutePolicy(Access.OWNER, request_class=RequestClass.POLLED)
    def scrape() -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE_LATEST)

    return routes
