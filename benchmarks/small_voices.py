"""The small voices on this machine's cores: one line at a time, several, and the bare library."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine_table import figures_row, middle_of
from benchmarks.metrics import EngineMetrics
from studio.audio.clip import Clip
from studio.backends.base import Conditioning, SpeechRequest, WeightSource
from studio.backends.device import memory_used_bytes
from studio.backends.espeak.phonemizer import Phonemizer
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel, find_folders
from studio.backends.sherpa.line_pieces import make_splitter
from studio.backends.sherpa.load_check import build_tts
from studio.backends.sherpa.sherpa_model import locate_files
from studio.errors import SettingError
from studio.voices.speaker import Sample, Voice

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
    name: str, lines: int | None = None, runs: int | None = None
) -> Iterator[dict[str, object]]:
    """Rows of the table, once all are measured: the engines take turns, and medians count.

    Kokoro that isn't here has random weights of full size. The last row is what the library
    itself does with one object a core, which holds the weights as often; nothing of it is kept.

    Args:
        name: Of the catalogue.
        lines: How many are spoken.
        runs: Of each engine.

    Raises:
        SettingError: The voice isn't installed, and there are no random weights of it.
    """
    with ExitStack() as stack:
        model = _at_hand(CATALOGUE[name], stack)
        told = "random weights" if model is not CATALOGUE[name] else "installed"
        texts = [text for text, _ in zip(cycle(_SENTENCES), range(lines or _LINES), strict=False)]
        backend = SherpaBackend(model)
        backend.load(lambda _progress: None)
        stack.callback(backend.unload)
        voice = backend.condition(_voice())
        engines: dict[str, Callable[[], tuple[float, list[float]]]] = {
            "one line at a time": partial(_speak, backend, voice, texts, 1),
            f"{len(texts)} lines at once": partial(_speak, backend, voice, texts, len(texts)),
        }
        if model.presets:
            engines["sherpa-onnx alone, an object a core"] = _library_loop(model, texts)
        yield from _measure_in_turns(engines, f"{name}, {told}", len(texts), runs or _RUNS)


def _at_hand(model: CatalogueModel, stack: ExitStack) -> CatalogueModel:
    """The model, or one of random weights in a folder that goes with the stack."""
    if find_folders(model):
        return model
    if model.family != "kokoro":
        raise SettingError(
            f"{model.title} isn't installed, and only Kokoro can be measured with random weights."
        )
    from benchmarks.synthetic_kokoro import write_kokoro

    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    write_kokoro(folder, _SYMBOLS)
    files = {role: file for role, file in model.sources[0].files.items() if role != "lexicon"}
    needs = tuple(file.path for file in files.values())
    return replace(model, sources=(WeightSource(str(folder), needs, files),))


def _voice() -> Voice:
    noise = np.random.default_rng(0).standard_normal(120_000).astype(np.float32)
    return Voice(
        "Ada",
        Sample(
            Clip(np.clip(noise, -0.3, 0.3, dtype=np.float32)), "ad" * 32, "Five seconds of noise."
        ),
    )


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


def _library_loop(
    model: CatalogueModel, texts: Sequence[str]
) -> Callable[[], tuple[float, list[float]]]:
    files = locate_files(model, find_folders(model))
    cores = os.cpu_count() or 1
    objects = [build_tts(model.family, files, threads=1) for _ in range(cores)]
    phonemizer = Phonemizer(workers=1)
    split = make_splitter(model.family, Path(files["tokens"]), phonemizer)
    pieces = [[piece.phonemes for piece in split(text, "en-US")] for text in texts]
    phonemizer.close()

    def speak(numbered: tuple[int, list[str]]) -> float:
        number, phonemes = numbered
        made = objects[number % cores].generate("", _configure(phonemes), lambda *_: 1)
        return len(made.samples) / model.sample_rate_hz

    def run() -> tuple[float, list[float]]:
        with ThreadPoolExecutor(cores) as pool:
            return sum(pool.map(speak, enumerate(pieces))), []

    return run


def _configure(pieces: Sequence[str]) -> Any:
    import sherpa_onnx

    config = sherpa_onnx.GenerationConfig()
    config.silence_scale = 1.0
    config.phoneme_codepoints = [[ord(char) for char in one] for one in pieces]
    return config


def _measure_in_turns(
    engines: dict[str, Callable[[], tuple[float, list[float]]]], size: str, lines: int, runs: int
) -> Iterator[dict[str, object]]:
    measured: dict[str, list[EngineMetrics]] = {name: [] for name in engines}
    for _ in range(runs):
        for name, run in engines.items():
            began_s, busy_s = time.perf_counter(), time.process_time()
            audio_s, first_s = run()
            wall_s = time.perf_counter() - began_s
            busy_s = time.process_time() - busy_s
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
