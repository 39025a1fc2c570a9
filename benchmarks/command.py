"""`bench`: what the studio itself costs, as tables. Every figure is the median of several runs."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from benchmarks.concurrency import concurrency_rows
from studio.audio.clip import Samples
from studio.backends.base import Backend, Conditioning, SpeechRequest
from studio.backends.options import BackendOptions
from studio.backends.registry import create
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.dialog.model import Dialog, Speech
from studio.engine.job import build_scene
from studio.errors import SettingError, StudioError
from studio.services.studio import RenderOptions, Studio, StudioOptions
from studio.voices.speaker import Voice

_ROOT = Path(__file__).resolve().parents[1]
_SHORT_SCRIPT = _ROOT / "assets" / "dialogs" / "lighthouse.txt"
_SENTENCES = (
    "The harbour was quiet when the last boat came in.",
    "Did you bring the key, or shall we try the window again?",
    "No.",
    "I counted eleven lamps along the pier, and every one of them was lit.",
    "Then somebody has been here since the storm, and they knew where to look.",
)


_RUNS = 5


def _engines(arguments: argparse.Namespace, options: BackendOptions) -> Iterable[dict[str, object]]:
    first_lines = arguments.lines[0] if arguments.lines else None
    if arguments.model in CATALOGUE:
        from benchmarks.small_voices import small_voice_rows

        own = options.own_voices
        return small_voice_rows(arguments.model, first_lines, arguments.runs, own=own)
    from benchmarks.qwen3_engines import EngineChoice, engine_rows

    wanted = EngineChoice(
        arguments.engines,
        arguments.slots,
        options.tf32,
        arguments.line_frames,
        arguments.checkpoints,
        arguments.runs,
    )
    if arguments.model != "qwen3":
        from benchmarks.chatterbox_engines import chatterbox_rows

        return chatterbox_rows(
            model=arguments.model,
            size=arguments.size,
            device=options.device,
            lines=first_lines,
            half=options.amp_on_cuda,
            wanted=wanted,
        )
    return engine_rows(
        size=arguments.size,
        device=options.device,
        lines=arguments.lines,
        batch_python=arguments.batch_python,
        wanted=wanted,
    )


def run_bench(arguments: argparse.Namespace, options: BackendOptions) -> int:
    """Run one benchmark and print its table, row by row as they are measured.

    Raises:
        SettingError: A package that it needs isn't installed.
    """
    try:
        return _run(arguments, options)
    except ModuleNotFoundError as error:
        raise SettingError(
            f"This benchmark needs “{error.name}”, which isn't installed here. The packages of the "
            "large models come with TABLEREAD_INSTALL_MODELS=true python launch.py, all others "
            "with python launch.py test --fast."
        ) from error


def _run(arguments: argparse.Namespace, options: BackendOptions) -> int:
    lines = arguments.lines[0] if arguments.lines else None
    runs = arguments.runs or _RUNS
    match arguments.what:
        case "overhead":
            rows: Iterable[dict[str, object]] = _overhead(lines or 200, runs)
        case "start":
            rows = _start(runs)
        case "concurrency":
            dialog = bench_dialog(lines or 16)
            rows = concurrency_rows(dialog, options, arguments.backend)
        case "cold":
            from benchmarks.cold_start import cold_rows

            rows = cold_rows(options, arguments.backend, arguments.runs or 3)
        case "engines":
            rows = _engines(arguments, options)
        case "gpu-day":
            from benchmarks.gpu_day import run_gpu_day

            return run_gpu_day(arguments.report, rehearse=arguments.rehearse)
        case "remote":
            from benchmarks.speech_servers import remote_rows

            rows = remote_rows(lines or 40, runs, arguments.backend or "draft")
        case "page":
            from benchmarks.page import page_rows

            rows = page_rows(_ROOT, lines or 500)
        case _:
            from benchmarks.first_start import setup_rows

            rows = setup_rows(_ROOT)
    print_table(rows)
    return 0


def print_table(rows: Iterable[dict[str, object]]) -> None:
    """Print rows with the same keys as a Markdown table."""
    for number, row in enumerate(rows):
        if number == 0:
            print("| " + " | ".join(row) + " |")
            print("|" + "---|" * len(row))
        print("| " + " | ".join(map(str, row.values())) + " |", flush=True)


class _Timed:
    """A backend with a stopwatch: seconds spent in `condition` and `speak`, by all threads."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.busy_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def condition(self, voice: Voice) -> Conditioning:
        with _Stopwatch(self):
            return self._backend.condition(voice)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        spoken = self._backend.speak(request)
        while True:
            with _Stopwatch(self):
                chunk = next(spoken, None)
            if chunk is None:
                return
            yield chunk


class _Stopwatch:
    def __init__(self, timed: _Timed) -> None:
        self._timed = timed

    def __enter__(self) -> None:
        self._began_s = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._timed.busy_s += time.perf_counter() - self._began_s


def _overhead(lines: int, runs: int) -> list[dict[str, object]]:
    """The engine's own time a line: wall time less the backend's, one segment at a time.

    Takes are checked, as users have it. The processor time is that of all processes, those of the
    draft voice included; what else the machine does changes it least.
    """
    dialog = bench_dialog(lines)
    results = [_render_timed(dialog, concurrency=1) for _ in range(runs + 1)][1:]
    parallel = [_render_timed(dialog, concurrency=3) for _ in range(runs + 1)][1:]
    own_ms = [1000 * (run["wall_s"] - run["busy_s"]) / lines for run in results]
    return [
        {
            "lines": lines,
            "audio s": f"{_median(results, 'audio_s'):.0f}",
            "wall s": f"{_median(results, 'wall_s'):.2f}",
            "draft voice s": f"{_median(results, 'busy_s'):.2f}",
            "engine ms a line": f"{statistics.median(own_ms):.2f}",
            "processor ms a line": f"{1000 * _median(results, 'cpu_s') / lines:.2f}",
            "wall s, 3 in flight": f"{_median(parallel, 'wall_s'):.2f}",
            "join and write s": f"{_median(results, 'export_s'):.2f}",
        }
    ]


def _median(runs: Sequence[dict[str, float]], key: str) -> float:
    return statistics.median(run[key] for run in runs)


def _render_timed(dialog: Dialog, *, concurrency: int) -> dict[str, float]:
    timed: list[_Timed] = []

    def create_timed(name: str) -> Any:
        timed.append(_Timed(create(name)))
        return timed[0]

    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        options = StudioOptions(Path(folder), "draft")
        with Studio.open(options, create_timed, max_concurrency=concurrency) as studio:
            studio.compare_takes()
            studio.engine.load(studio.backend_name)
            began_cpu_s = _measure_cpu_s()
            job = studio.render(dialog, RenderOptions())
            for _ in job.events.follow():
                pass
            cpu_s = _measure_cpu_s() - began_cpu_s
            if job.list_failures():
                raise StudioError(job.list_failures()[0].message)
            export_s = _seconds(lambda: build_scene(job).write(Path(folder) / "scene.wav"))
    summary = job.summarize()
    return {
        "wall_s": summary.wall_s,
        "audio_s": summary.audio_s,
        "busy_s": timed[0].busy_s,
        "cpu_s": cpu_s,
        "export_s": export_s,
    }


def _measure_cpu_s() -> float:
    """Processor seconds of this process and those that it has started."""
    children = psutil.Process().children(recursive=True)
    return time.process_time() + sum(sum(one.cpu_times()[:2]) for one in children)


def _start(runs: int) -> list[dict[str, object]]:
    """From the command to the start of its work, as a person waits for it."""
    began = [_render_command() for _ in range(runs + 1)][1:]
    return [
        {
            "command": "launch.py render, draft voice",
            "before the work s": f"{statistics.median(before for before, _ in began):.2f}",
            "whole command s": f"{statistics.median(whole for _, whole in began):.2f}",
        }
    ]


def _render_command() -> tuple[float, float]:
    """Run the command; seconds before its work began, and of the whole."""
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        command = [sys.executable, str(_ROOT / "launch.py"), "render", str(_SHORT_SCRIPT)]
        command += ["-o", f"{folder}/scene.wav", "--backend", "draft", "--json"]
        began_s = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        whole_s = time.perf_counter() - began_s
    wall_s = json.loads(done.stdout.splitlines()[-1])["wall_s"]
    return whole_s - wall_s, whole_s


def bench_dialog(lines: int) -> Dialog:
    """A dialog of that many lines, with a usual mix of lengths and four speakers."""
    speakers = ("Ida", "Bruno", "Mrs. Vale", "Tom")
    return Dialog(
        tuple(
            Speech(speakers[idx % len(speakers)], _SENTENCES[idx % len(_SENTENCES)])
            for idx in range(lines)
        )
    )


def _seconds(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s
