"""What the checks of sound make of trained voices: good lines they mark, faults they find.

The lines are other people's (`trained/lines.txt`: Austen, Brontë, Carroll, Dickens, Doyle,
Shakespeare, Shaw, Stevenson, Stoker, Twain, Wells, Wilde and others; `trained/scene_*.txt`). `-s`
prints a table. Takes are kept beside the weights, so that they are spoken once.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import pytest
from trained_weights import cache_folder, require

from studio.audio.clip import STUDIO_RATE_HZ, Clip, resample, write_wav
from studio.audio.line_edges import trim_edges
from studio.audio.timeline import read_take
from studio.backends.base import SpeechRequest, WeightSource
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.errors import ModelUnavailable
from studio.hearing.fault_planting import Fault, PlantableTake, plant_fault
from studio.hearing.listeners import VoiceEmbedder
from studio.hearing.model_catalogue import HEARING_MODELS
from studio.quality.checks import CheckTake, ExpectedSpeech, QualityReport, check_take
from studio.quality.voice_drift import VoiceBaseline, build_baseline, find_outliers
from studio.voices.speaker import Voice

pytest.importorskip("onnxruntime")
pytest.importorskip("espeakng_loader")

LINES = (Path(__file__).parent / "trained" / "lines.txt").read_text("utf-8").splitlines()
JOE = "joe"
VOICES = (JOE, "am_michael", "bm_george", "af_heart", "bf_emma")
OTHERS = {
    JOE: "am_michael", "am_michael": "bm_george", "bm_george": JOE,
    "af_heart": "bf_emma", "bf_emma": "af_heart",
}  # fmt: skip
"""Of the same gender."""
CASTS = {
    "earnest": ("am_michael", "bm_george", JOE, "bf_emma"),
    "tea_party": ("am_michael", "af_heart", "bm_george", "bf_emma"),
}
"""For the speakers of a scene, as they come."""


@cache
def backend_of(voice: str) -> SherpaBackend:
    if voice == JOE:
        [folder] = require("piper")
        backend = SherpaBackend(CATALOGUE["piper"], cores=1, own=folder)
    else:
        kokoro, styles = require("kokoro", "styles")
        files = {"model": CATALOGUE["kokoro"].sources[0].files["model"]}
        source = WeightSource(str(kokoro), (files["model"].path,), files)
        model = replace(CATALOGUE["kokoro"], sources=(source,), older=())
        backend = SherpaBackend(model, cores=1, own=styles)
    backend.load(lambda _: None)
    return backend


def speak(voice: str, text: str) -> Clip:
    """A line as a render has it."""
    name = hashlib.sha256(f"{voice} {text}".encode()).hexdigest()[:20]
    path = cache_folder() / "takes" / f"{name}.wav"
    if not path.exists():
        backend = backend_of(voice)
        preset = backend.capabilities.presets[-1].preset_id if voice == JOE else voice
        language = "en-GB" if voice[0] == "b" else "en-US"
        request = SpeechRequest(text, backend.condition(Voice("Ada", preset=preset)), language)
        spoken = resample(
            backend.speak(request), backend.capabilities.sample_rate_hz, STUDIO_RATE_HZ
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_wav(path, Clip(np.concatenate(list(trim_edges(spoken)))))
    return read_take(path)


@pytest.fixture(scope="module")
def check() -> CheckTake:
    embedder = VoiceEmbedder(HEARING_MODELS["ge2e"])
    try:
        embedder.load(lambda _: None)
    except ModelUnavailable as error:
        pytest.skip(str(error))
    return partial(check_take, embed=embedder.embed)


def take_of(voice: str, text: str) -> PlantableTake:
    return PlantableTake(partial(speak, voice, text), ExpectedSpeech(text), voice)


def marks(report: QualityReport, usual: VoiceBaseline | None) -> set[str]:
    return {one.kind for one in (*report.issues, *find_outliers(report.metrics, usual))}


def measure(check: CheckTake, voice: str, texts: Sequence[str]) -> dict[str, list[bool]]:
    """Which takes are marked as they are, two semitones higher or lower, and in another voice."""
    takes = [take_of(voice, text) for text in texts]
    reports = [check(take.load(), take.said) for take in takes]
    usual = build_baseline([one.metrics for one in reports], voice)
    found: dict[str, list[bool]] = {"clean": [bool(marks(one, usual)) for one in reports]}
    for text, one in zip(texts, reports, strict=True):
        if marked := marks(one, usual):
            print(f"  {voice}: {sorted(marked)} {text}")
    lenders = [take_of(OTHERS[voice], text) for text in texts]
    for number, (take, report) in enumerate(zip(takes, reports, strict=True)):
        if report.metrics.mean_pitch is None:
            continue
        length = "short" if report.metrics.speech_s < 2 else "long"
        rng = random.Random(number)
        moved = plant_fault(Fault.PITCH, take, takes, rng)
        other = plant_fault(Fault.OTHER_SPEAKER, take, [take, lenders[number]], rng)
        for fault, clip, kinds in (
            ("pitch", moved, {"pitch"}),
            ("either", moved, {"pitch", "timbre"}),
            ("speaker", other, {"pitch", "timbre"}),
            ("timbre", other, {"timbre"}),
        ):
            marked = marks(check(clip, take.said), usual)
            found.setdefault(f"{fault} {length}", []).append(bool(marked & kinds))
    return found


def show(voice: str, found: Mapping[str, Sequence[bool]]) -> None:
    cells = (f"{name} {sum(ones)}/{len(ones)}" for name, ones in sorted(found.items()))
    print(f"{voice}: {', '.join(cells)}")


def share(found: Iterable[Mapping[str, Sequence[bool]]], *names: str) -> float:
    ones = [one for each in found for name in names for one in each.get(name, ())]
    return sum(ones) / len(ones)


def read_scene(name: str) -> Iterator[tuple[str, str]]:
    """Voice and text of each line."""
    cast: dict[str, str] = {}
    path = Path(__file__).parent / "trained" / f"scene_{name}.txt"
    for row in path.read_text("utf-8").splitlines():
        speaker, _, text = row.partition(": ")
        yield cast.setdefault(speaker, CASTS[name][len(cast) % 4]), text


def mark_scene(check: CheckTake, lines: Sequence[tuple[str, str]]) -> list[str]:
    """The lines of a scene that are marked, each compared with the others of its voice in it."""
    reports = [check(speak(voice, text), ExpectedSpeech(text)) for voice, text in lines]
    usual = {
        voice: build_baseline(
            [one.metrics for one, (own, _) in zip(reports, lines, strict=True) if own == voice]
        )
        for voice, _ in lines
    }
    told = [
        f"{voice}: {sorted(marked)} {text}"
        for (voice, text), report in zip(lines, reports, strict=True)
        if (marked := marks(report, usual[voice]))
    ]
    print(*told, sep="\n")
    return told


@pytest.mark.slow
def test_lines_of_a_trained_voice_are_unmarked_and_another_of_its_gender_is_found(check):
    require("piper", "kokoro", "styles")
    texts = [text for text in LINES if 30 <= len(text) <= 60][:10]
    found = measure(check, JOE, texts)
    show(JOE, found)
    assert share([found], "clean") == 0
    assert share([found], "speaker short", "speaker long") >= 0.85


@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_trained_voices_are_hardly_marked_and_their_faults_are_found(check):
    found = {}
    for voice in VOICES:
        found[voice] = measure(check, voice, LINES)
        show(voice, found[voice])
    kokoro = [found[voice] for voice in VOICES if voice != JOE]
    assert share(found.values(), "clean") <= 0.02
    assert share(found.values(), "speaker short", "speaker long") >= 0.85
    assert share(kokoro, "pitch long") >= 0.9


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("scene", CASTS)
def test_of_a_good_scene_hardly_a_line_is_marked(check, scene):
    lines = list(read_scene(scene))
    assert len(mark_scene(check, lines)) <= len(lines) / 50
