"""Lines for the decoding core, and the codes that the package itself makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from qwen3_checkpoint import GROUPS
from qwen3_speakers import loaded_backend, loaded_model, loaded_package, recording, speaker
from runner_driver import codes_of, decoded, refilled_slots, run_out

from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.qwen3.checkpoint import SamplingParams
from studio.backends.qwen3.prompt import Qwen3Tokenizer, Qwen3Voice
from studio.backends.qwen3.talker import TalkerRunner
from studio.backends.qwen3.talker_slots import TalkerAdmission
from studio.voices.speaker import Sample, Voice

__all__ = ["codes_of", "decoded", "run_out"]  # for tests that take all from here

FRAMES = 8
GREEDY = SamplingParams(temperature=0)
LIVELY = SamplingParams()

VOICES = {
    "full reference": ("base", speaker()),
    "timbre only": ("base", speaker(pitch_hz=190, transcript=None)),
    "another full reference": (
        "base",
        Voice("Tom", sample=Sample(recording(90, 1.3), "of Tom", "A rather long transcript.")),
    ),
    "preset with dialect": ("custom_voice", Voice("Ida", preset="eric")),
    "preset with instruction": (
        "custom_voice",
        Voice("Ida", preset="ryan", description="Whisper it."),
    ),
    "described": ("voice_design", Voice("Ida", description="An old sailor, hoarse and kind.")),
}

TEXTS = (
    "Yes.",
    "The kettle is on, and the door is open to the garden.",
    "Who is there?",
    "No. No! Not the blue one, the other one, the one that is behind the tall green door.",
    "Fine, then.",
    "7",
    "It is only the wind, which has a key, apparently.",
    "Hush.",
)


@dataclass(frozen=True, slots=True)
class Scripted:
    """One line by name of voice, text and language."""

    voice: str
    text: str
    language: str | None = "english"

    @property
    def kind(self) -> str:
        return VOICES[self.voice][0]


def lines_of(kind: str) -> tuple[Scripted, ...]:
    """Eight lines of different length, taking turns among the voices of a kind of checkpoint."""
    names = [name for name, (of, _) in VOICES.items() if of == kind]
    return tuple(
        Scripted(names[n % len(names)], text, ("english", None)[n % 2])
        for n, text in enumerate(TEXTS)
    )


@cache
def voice_of(name: str) -> Qwen3Voice:
    kind, voice = VOICES[name]
    return loaded_backend(kind, groups=GROUPS).condition(voice).payload


def tokens_of(line: Scripted) -> torch.Tensor:
    return Qwen3Tokenizer(loaded_package(line.kind).processor.tokenizer).line(line.text)


def made_core(kind: str = "base", slots: int = 8, **options: Any) -> TalkerRunner:
    kept = {name: options.pop(name) for name in ("positions", "kept_bytes") if name in options}
    layout = SlotLayout(slots, **({"positions": 256, "max_frames": 64} | kept))
    return TalkerRunner(loaded_model(kind).package, layout, **options)


def admission(
    core: TalkerRunner,
    slot: int,
    line: Scripted,
    sampling: SamplingParams = GREEDY,
    *,
    seed: int = 0,
    max_frames: int = FRAMES,
) -> TalkerAdmission:
    prompt = core.prompt(tokens_of(line), voice_of(line.voice), line.language)
    return TalkerAdmission(slot, prompt, sampling, seed, max_frames)


def refilled(
    core: TalkerRunner, slots: int, lines: Iterable[Scripted], **options: Any
) -> dict[Scripted, torch.Tensor]:
    """Codes by line of lines that take slots as these become free."""
    return refilled_slots(
        core, slots, lines, lambda slot, line: admission(core, slot, line, **options)
    )


class _Made(Exception):
    """Carries the codes out of the package; no error, it ends the call before the codec."""


@cache
def reference_codes(line: Scripted, frames: int = FRAMES) -> torch.Tensor:
    """What the package's own `generate` makes of one line alone, without chance."""
    package = loaded_package(line.kind)
    generate = package.model.generate

    def made(*args: Any, **kwargs: Any) -> None:
        raise _Made(generate(*args, **kwargs)[0][0])

    greedy = {
        **{"do_sample": False, "subtalker_dosample": False, "repetition_penalty": 1.05},
        "max_new_tokens": frames + 1,  # the package drops the frame of the last one
    }
    try:
        with patch.object(package.model, "generate", made):
            _speak(package, line, greedy)
    except _Made as carried:
        codes: torch.Tensor = carried.args[0]
        return codes
    raise AssertionError("the package made no codes")


def _speak(package: Any, line: Scripted, greedy: Mapping[str, object]) -> None:
    from qwen_tts import VoiceClonePromptItem

    voice, language = VOICES[line.voice][1], line.language or "auto"
    if voice.sample is not None:
        made = voice_of(line.voice)
        full = made.ref_codes is not None
        item = VoiceClonePromptItem(
            made.ref_codes, made.embedding, not full, full, voice.sample.transcript
        )
        package.generate_voice_clone(line.text, language, voice_clone_prompt=[item], **greedy)
    elif voice.preset is not None:
        package.generate_custom_voice(
            line.text, voice.preset, language, voice.description, **greedy
        )
    else:
        package.generate_voice_design(line.text, voice.description, language, **greedy)


def moved(part: Any, device: str) -> Any:
    """The same weights or layers on another device."""
    if torch.is_tensor(part):
        return part.to(device)
    if isinstance(part, tuple):
        return tuple(moved(one, device) for one in part)
    if hasattr(part, "__dataclass_fields__"):
        names = [field.name for field in fields(part)]
        return replace(part, **{name: moved(getattr(part, name), device) for name in names})
    return part
