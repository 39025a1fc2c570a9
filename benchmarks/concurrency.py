"""Sequential against bounded concurrency: the same dialog on each backend, and the card's use."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends import registry
from studio.backends.base import Backend
from studio.backends.options import BackendOptions
from studio.dialog.model import Dialog, Speech
from studio.engine.job import Job
from studio.errors import StudioError
from studio.services.studio import RenderOptions, Studio, StudioOptions

_EVERY_MS = 200


class GpuUse:
    """Asks `nvidia-smi` five times a second inside `with`.

    Attributes:
        mean_percent: Mean use of the first card; None without `nvidia-smi` or a card.
    """

    def __init__(self) -> None:
        """Ask nothing yet."""
        self.mean_percent: float | None = None
        self._asking: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Begin to ask."""
        program = shutil.which("nvidia-smi")
        if program is not None:
            query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
            self._asking = subprocess.Popen(
                [program, *query, "--id=0", f"--loop-ms={_EVERY_MS}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop asking and take the mean."""
        if self._asking is None:
            return
        self._asking.terminate()
        told = self._asking.communicate()[0]
        answers = [float(line) for line in told.split() if line.isdigit()]
        self.mean_percent = statistics.mean(answers) if answers else None


BOUNDS = (1, 3, 8)
"""Lines in flight; of a dialog with fewer lines, as many as it has."""

_SHORT = ("Come in.", "Who is it?", "No.", "Go on, then.", "It is late.")
_SEED = 7
_SAMPLE_TEXT = (
    "I kept the light for eleven winters, and in all that time I never once saw the harbour as "
    "still as it was on that morning."
)


@dataclass(frozen=True, slots=True)
class ConcurrencyMetrics:
    """One render of the dialog.

    Attributes:
        bound: Lines in flight at most.
        job: As it ended.
        gpu_percent: None without a graphics card to ask.
    """

    bound: int
    job: Job
    gpu_percent: float | None

    @property
    def wall_s(self) -> float:
        """From the order to the last file."""
        return self.job.summarize().wall_s

    @property
    def audio_s(self) -> float:
        """All that was made, also of lines that were cut because they didn't stop."""
        return sum(record.streamed_samples for record in self.job.records) / STUDIO_RATE_HZ


def concurrency_rows(
    dialog: Dialog, options: BackendOptions, backend_name: str | None
) -> Iterator[dict[str, object]]:
    """Rows of the table, each as soon as it is measured.

    Args:
        dialog: What is rendered, once for each of `BOUNDS`; before, one line of each speaker
            warms up and computes the conditioning. Of fewer lines than the last bound each is
            taken for a short one, so that a slow machine is done with a large model in minutes.
        options: For the backends.
        backend_name: Only this one, downloading it where needed; None for all that can speak now.

    Raises:
        StudioError: A line made no sound. One that was cut counts, and is counted: models with
            random weights, which are as fast as trained ones, rarely stop by themselves.
    """
    names = [backend_name] if backend_name else list_ready(options)
    dialog = dialog if len(dialog) >= BOUNDS[-1] else _short(dialog)
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        for name in names:
            workspace = Path(folder) / name
            enlist_speakers(workspace, dialog, registry.create(name, options))
            alone_s = 0.0
            for bound in _bounds(len(dialog)):
                figures = _measure(workspace, dialog, name, options, bound)
                alone_s = alone_s or figures.wall_s
                yield _row(name, len(dialog), figures, alone_s)


def _bounds(lines: int) -> list[int]:
    """Those that differ: beyond its lines, a dialog has no more in flight."""
    return sorted({min(bound, lines) for bound in BOUNDS})


def _short(dialog: Dialog) -> Dialog:
    """The same speakers with a few words each."""
    return Dialog(
        tuple(
            Speech(name, _SHORT[place % len(_SHORT)])
            for place, name in enumerate(
                line.speaker for line in dialog if isinstance(line, Speech)
            )
        )
    )


def list_ready(options: BackendOptions) -> list[str]:
    """The backends that can speak now."""
    return [offer.name for offer in registry.offers(options) if offer.ready]


def _row(name: str, lines: int, figures: ConcurrencyMetrics, alone_s: float) -> dict[str, object]:
    summary, used = figures.job.summarize(), figures.gpu_percent
    return {
        "backend": name,
        "lines": lines,
        "cut": summary.failed,
        "in flight": f"{figures.bound} (reached {summary.max_in_flight})",
        "audio s": f"{figures.audio_s:.1f}",
        "wall s": f"{figures.wall_s:.2f}",
        "audio s a second": f"{figures.audio_s / figures.wall_s:.2f}",
        "times as fast": f"{alone_s / figures.wall_s:.2f}",
        "GPU %": "-" if used is None else f"{used:.0f}",
    }


def _measure(
    workspace: Path, dialog: Dialog, name: str, options: BackendOptions, bound: int
) -> ConcurrencyMetrics:
    with open_studio(workspace, name, options, bound) as studio:
        studio.engine.load(studio.backend_name)
        render_whole(studio, _one_line_each(dialog))
        with GpuUse() as used:
            job = render_whole(studio, dialog)
    return ConcurrencyMetrics(bound, job, used.mean_percent)


@contextmanager
def open_studio(
    workspace: Path, name: str, options: BackendOptions, bound: int
) -> Iterator[Studio]:
    """A studio with one backend and so many lines in flight at most."""
    studio = Studio.open(
        StudioOptions(workspace, name),
        lambda name: registry.create(name, options),
        max_concurrency=bound,
    )
    studio.compare_takes()  # as users have it
    with studio:
        yield studio


def render_whole(studio: Studio, dialog: Dialog) -> Job:
    """Render a dialog and wait for its end.

    Raises:
        StudioError: A line made no sound.
    """
    job = studio.render(dialog, RenderOptions(seed=_SEED))
    for _ in job.events.follow():
        pass
    for record in job.records:
        if not record.streamed_samples:
            raise StudioError(f"{job.spec.backend_name}: {record.message}")
    return job


def _one_line_each(dialog: Dialog) -> Dialog:
    return Dialog(tuple(Speech(name, "And now.") for name in dialog.speakers()))


def enlist_speakers(workspace: Path, dialog: Dialog, backend: Backend) -> None:
    """Give every speaker a voice of each kind the backend knows; samples are the draft voice's."""
    can = backend.capabilities
    samples: Sequence[Path | None] = [None] * len(dialog.speakers())
    with open_studio(workspace, "draft", BackendOptions(), 1) as studio:
        if can.cloning:
            lines = tuple(Speech(name, _SAMPLE_TEXT) for name in dialog.speakers())
            samples = [record.path for record in render_whole(studio, Dialog(lines)).records]
        for name, sample in zip(dialog.speakers(), samples, strict=True):
            studio.speakers.add(
                name,
                sample=sample,
                transcript=_SAMPLE_TEXT if sample else None,
                description="A calm, clear voice." if can.described_voices else None,
            )
