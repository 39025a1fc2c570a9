"""What the first line costs after a model was unloaded: the same line cold, then warm."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.concurrency import enlist_speakers, list_ready, open_studio, render_whole
from studio.backends import registry
from studio.backends.options import BackendOptions
from studio.dialog.model import Dialog, Speech
from studio.services.studio import Studio

_LINE = Dialog((Speech("Ida", "Come in."),))


def cold_rows(
    options: BackendOptions, backend_name: str | None, runs: int
) -> Iterator[dict[str, object]]:
    """A row for each backend, as soon as it is measured; medians of several runs.

    Before the first run the model is loaded and unloaded once, so that its packages are imported
    and its files are in the system's cache, as they are when a studio unloads an idle model.
    Processor seconds are those of this process and its threads, for the whole line with its load,
    if any: other work on the machine changes them least. The draft voice speaks in others.

    Args:
        options: For the backends.
        backend_name: Only this one, downloading it where needed; None for all that can speak now.
        runs: At least 1.
    """
    names = [backend_name] if backend_name else list_ready(options)
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        for name in names:
            workspace = Path(folder) / name
            enlist_speakers(workspace, _LINE, registry.create(name, options))
            with open_studio(workspace, name, options, 1) as studio:
                _measure_first_audio_s(studio)
                pairs = [_measure_cold_and_warm(studio) for _ in range(runs)]
            cold_s, warm_s, cold_cpu_s, warm_cpu_s = (
                statistics.median(part) for part in zip(*pairs, strict=True)
            )
            yield {
                "backend": name,
                "first audio s, cold": f"{cold_s:.2f}",
                "first audio s, warm": f"{warm_s:.2f}",
                "a cold start costs s": f"{cold_s - warm_s:.2f}",
                "processor s, cold": f"{cold_cpu_s:.2f}",
                "processor s, warm": f"{warm_cpu_s:.2f}",
                "runs": runs,
            }


def _measure_cold_and_warm(studio: Studio) -> tuple[float, float, float, float]:
    """First audio cold and warm, then the processor seconds of both lines."""
    studio.engine.unload(studio.backend_name)
    began_cpu_s = time.process_time()
    cold_s, between_cpu_s = _measure_first_audio_s(studio), time.process_time()
    warm_s, ended_cpu_s = _measure_first_audio_s(studio), time.process_time()
    return cold_s, warm_s, between_cpu_s - began_cpu_s, ended_cpu_s - between_cpu_s


def _measure_first_audio_s(studio: Studio) -> float:
    """Seconds from the request to the first audio of the line, with a load where it needs one."""
    [record] = render_whole(studio, _LINE).records
    assert record.first_chunk_s is not None
    return record.first_chunk_s
