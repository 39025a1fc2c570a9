"""The small voices on this machine's cores: one line at a time, several, by HTTP, and a peer's."""

from __future__ import annotations

import io
import statistics
import tempfile
import time
import wave
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path

import httpx
import numpy as np
import psutil

from benchmarks.engine_table import figures_row, middle_of
from benchmarks.metrics import EngineMetrics
from benchmarks.peer_voices import PACKAGES, peer_loop
from benchmarks.speech_servers import studio_process, wait_until_up
from studio.audio.clip import Clip
from studio.backends.base import Conditioning, SpeechRequest, WeightSource
from studio.backends.device import memory_used_bytes
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel, find_folders
from studio.backends.sherpa.graph_model import STYLE_SHAPES
from studio.backends.sherpa.styles import StyleTable
from studio.errors import SettingError
from studio.voices.speaker import Sample, Voice

Engine = Callable[[], tuple[float, list[float], float]]
"""Speaks the lines: seconds of sound, those to the first of each, and of processor time."""

_PEERS = Path.home() / ".cache" / "tableread-bench"
_LINES, _RUNS = 8, 3
_SYMBOLS = (
    "$;:,.!?—…() AIOQSTWYabcdefhijklmnopqrstuvwxyzɑɐɒæβɔɕçɖðʤəɚɛɜɟɡɥɨɪʝɯɰŋɳɲɴøɸθœɹɾɻʁɽʂʃʈʧʊʋʌ"
    "ɣɤχʎʒʔˈˌːʰʲᵊ"
)
_SENTENCES = (
    "The harbour was quiet when the last boat came in.",
    "Did you bring the key, or shall we try the window again?",
    "I counted eleven lamps along the pier, and every one of them was lit.",
    "Then somebody has been here since the storm, and they knew where to look.",
)


def small_voice_rows(
    name: str, lines: int | None = None, runs: int | None = None, *, own: Path | None = None
) -> Iterator[dict[str, object]]:
    """Rows of the table, once all are measured: the engines take turns, and medians count.

    Kokoro that isn't here has random weights of full size; Piper may be somebody's own voice. The
    last rows are the same lines through `/v1/audio/speech` and, of Kokoro and Piper, in the loop of
    the package that most programs speak them with (see `peer_voices.py`).

    Args:
        name: Of the catalogue.
        lines: How many are spoken.
        runs: Of each engine.
        own: Folder of voices that somebody added.

    Raises:
        SettingError: The voice isn't installed, and there are no random weights of it.
    """
    with ExitStack() as stack:
        backend = SherpaBackend(CATALOGUE[name], own=own)
        is_here = backend.to_fetch() is None
        if not is_here:
            backend = SherpaBackend(_make_random(CATALOGUE[name], stack))
        texts = [text for text, _ in zip(cycle(_SENTENCES), range(lines or _LINES), strict=False)]
        backend.load(lambda _progress: None)
        stack.callback(backend.unload)
        voice = backend.condition(_voice(backend))
        engines: dict[str, Engine] = {
            "one line at a time": _timed(partial(_speak, backend, voice, texts, 1)),
            f"{len(texts)} lines at once": _timed(
                partial(_speak, backend, voice, texts, len(texts))
            ),
        }
        if is_here and backend.capabilities.builtin_voice:
            engines["through /v1/audio/speech"] = _serve(name, own, backend, texts, stack)
        if CATALOGUE[name].family in PACKAGES:
            engines[PACKAGES[CATALOGUE[name].family]] = _start_peer(
                name, own, backend, texts, stack
            )
        told = "installed" if is_here else "random weights"
        yield from _measure_in_turns(engines, f"{name}, {told}", len(texts), runs or _RUNS)


def _timed(run: Callable[[], tuple[float, list[float]]]) -> Engine:
    def measure() -> tuple[float, list[float], float]:
        began_s = _busy_s(psutil.Process())
        audio_s, first_s = run()
        return audio_s, first_s, _busy_s(psutil.Process()) - began_s

    return measure


def _busy_s(process: psutil.Process) -> float:
    """Processor seconds of a process and of those that read text for it."""
    readers = [
        one for one in process.children(recursive=True) if "espeak" in " ".join(one.cmdline())
    ]
    times = [one.cpu_times() for one in (process, *readers)]
    return sum(one.user + one.system for one in times)


def _serve(
    name: str, own: Path | None, backend: SherpaBackend, texts: Sequence[str], stack: ExitStack
) -> Engine:
    url, process = stack.enter_context(studio_process(name, own))
    wait_until_up(url, process)
    client = stack.enter_context(httpx.Client(timeout=300))
    asked = {"model": name, "voice": _preset(backend), "response_format": "wav"}

    def measure() -> tuple[float, list[float], float]:
        began_s, audio_s = _busy_s(psutil.Process(process.pid)), 0.0
        for text in texts:
            answer = client.post(f"{url}/audio/speech", json=asked | {"input": text})
            answer.raise_for_status()
            with wave.open(io.BytesIO(answer.content)) as sound:
                # The header of a stream doesn't know how long it is.
                audio_s += len(sound.readframes(sound.getnframes())) / 2 / sound.getframerate()
        return audio_s, [], _busy_s(psutil.Process(process.pid)) - began_s

    measure()  # it loads the model
    return measure


def _start_peer(
    name: str, own: Path | None, backend: SherpaBackend, texts: Sequence[str], stack: ExitStack
) -> Engine:
    model = CATALOGUE[name].at_hand()
    if model.family == "vits":
        files = {"model": _find_piper(own)}
    else:
        [folder] = find_folders(model)
        files = {"model": folder / model.sources[0].files["model"].path}
        kept = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        preset = _preset(backend)
        styles = StyleTable([folder], model.places, *STYLE_SHAPES["kokoro"])
        np.savez(kept / "voices.npz", voice=styles.mix(model.formula(preset))[:, None])
        files["voices"] = kept / "voices.npz"
    speak = stack.enter_context(peer_loop(model.family, files, _PEERS))

    def measure() -> tuple[float, list[float], float]:
        audio_s, busy_s = speak(texts)
        return audio_s, [], busy_s

    measure()
    return measure


def _find_piper(own: Path | None) -> Path:
    """A graph with its publisher's description, which the package needs."""
    found = sorted(own.glob("*.onnx")) if own else []
    if not found:
        raise SettingError(
            "piper-tts speaks a voice with its .onnx.json only: add one with voices add."
        )
    return found[0]


def _preset(backend: SherpaBackend) -> str:
    """The same voice in each row: Kokoro's best, or the last, which is somebody's own."""
    names = [one.preset_id for one in backend.capabilities.presets]
    return "af_heart" if "af_heart" in names else names[-1]


def _make_random(model: CatalogueModel, stack: ExitStack) -> CatalogueModel:
    """One of random weights, in a folder that goes with the stack."""
    if model.family != "kokoro":
        raise SettingError(
            f"{model.title} isn't installed, and only Kokoro can be measured with random weights."
        )
    from benchmarks.synthetic_kokoro import write_kokoro

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    write_kokoro(folder, _SYMBOLS)
    files = {role: file for role, file in model.older[0].files.items() if role != "lexicon"}
    needs = tuple(file.path for file in files.values())
    return replace(model, sources=(WeightSource(str(folder), needs, files),), older=())


def _voice(backend: SherpaBackend) -> Voice:
    if backend.capabilities.presets:
        return Voice("Ada", preset=_preset(backend))
    noise = np.random.default_rng(0).standard_normal(120_000).astype(np.float32)
    clip = Clip(np.clip(noise, -0.3, 0.3, dtype=np.float32))
    return Voice("Ada", Sample(clip, "ad" * 32, "Five seconds of noise."))


def _speak(
    backend: SherpaBackend, voice: Conditioning, texts: Sequence[str], at_once: int
) -> tuple[float, list[float]]:
    """Seconds of sound, and those to the first of each line."""
    rate_hz = backend.capabilities.sample_rate_hz

    def speak(text: str) -> tuple[float, float]:
        began_s = time.perf_counter()
        chunks = backend.speak(SpeechRequest(text, voice, seed=1))
        samples = len(next(chunks))
        first_s = time.perf_counter() - began_s
        return (samples + sum(map(len, chunks))) / rate_hz, first_s

    with ThreadPoolExecutor(at_once) as pool:
        spoken = list(pool.map(speak, texts))
    return sum(audio_s for audio_s, _ in spoken), [first_s for _, first_s in spoken]


def _measure_in_turns(
    engines: dict[str, Engine], size: str, lines: int, runs: int
) -> Iterator[dict[str, object]]:
    measured: dict[str, list[EngineMetrics]] = {name: [] for name in engines}
    for _ in range(runs):
        for name, run in engines.items():
            began_s = time.perf_counter()
            audio_s, first_s, busy_s = run()
            wall_s = time.perf_counter() - began_s
            measured[name].append(
                EngineMetrics(
                    name,
                    audio_s,
                    wall_s,
                    first_s,
                    memory_used_bytes("cpu"),
                    lines=lines,
                    cpu_s=busy_s,
                )
            )
    [first, *_] = measured.values()
    for known in measured.values():
        pairs = zip(known, first, strict=True)
        ratio = statistics.median(one.rate_on("cpu") / base.rate_on("cpu") for one, base in pairs)
        yield figures_row(size, "cpu", middle_of(known), ratio)
