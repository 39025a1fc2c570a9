"""Chatterbox lines for the decoding core, and the tokens that the package makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from chatterbox_checkpoint import BY_NAME, one_thread, sample_clip, small_architecture
from runner_driver import codes_of, decoded, refilled_slots

from studio.audio.clip import Samples
from studio.backends.batching.runner_contract import SlotLayout
from studio.backends.chatterbox.alignment import StopRule
from studio.backends.chatterbox.chatterbox_model import SOUND_TOKENS, ChatterboxModel, load_package
from studio.backends.chatterbox.flow import RequestNoise, UndecodedTokens
from studio.backends.chatterbox.sequential_t3 import (
    Gpt2T3Decoder,
    LlamaT3Decoder,
    SpeechTokens,
    T3LoopParams,
    generate_speech_tokens,
)
from studio.backends.chatterbox.t3_runner import T3Runner
from studio.backends.chatterbox.t3_slots import T3Admission, T3SamplingParams
from studio.backends.chatterbox.voice_prompt import ClonedVoice

ENGLISH, MULTILINGUAL, TURBO = "chatterbox", "chatterbox-multilingual", "chatterbox-turbo"
NEARLY_GREEDY = 1e-6  # the likeliest token, whatever the noise; the package can't take 0

TEXTS = (
    "Yes.",
    "The kettle is on, and the door is open to the garden.",
    "Who is there?",
    "No. No! Not the blue one, the one by the green door.",
    "Fine, then.",
    "It is only the wind, which has a key, apparently.",
    "Hush.",
    "A minute, then; not one more.",
)
LANGUAGES = ("en", "de", "fr", "zh", "es", "it", "nl", "pl")


@dataclass(frozen=True, slots=True)
class Said:
    """One line: its text, its voice by number, its settings."""

    text: str
    voice: int
    exaggeration: float
    sampling: T3SamplingParams
    bound: int = 40
    language: str = "en"


class Desk:
    """A small model of one variant, whose T3 serves the package and the core alike."""

    def __init__(
        self, variant: str, folder: Path, device: str = "cpu", ends: StopRule = StopRule.PACKAGE
    ) -> None:
        self.ends = ends
        with small_architecture(variant), one_thread():
            package = load_package(BY_NAME[variant], folder, device)
            self.model = ChatterboxModel(BY_NAME[variant], package, device, amp=False)
            clips = (None, sample_clip(110, 5.2), sample_clip(190, 5.6))
            self.voices: list[ClonedVoice] = [self.model.voice(clip) for clip in clips]
        self.variant = variant
        self.turbo = variant == TURBO
        self._folder = folder
        if self.turbo:
            _sharpen(self.model.t3)

    @cached_property
    def packages_own(self) -> Any:
        """The T3 that serves the package."""
        if self.variant != MULTILINGUAL:
            return self.model.t3
        # Its loop hangs hooks on the model, which has to have another kind of attention.
        with small_architecture(self.variant):
            return load_package(BY_NAME[self.variant], self._folder, self.model.device).t3

    def core(self, slots: int = 8, **options: Any) -> T3Runner:
        layout = SlotLayout(slots, positions=options.pop("positions", 512), max_frames=64)
        return T3Runner(self.model.t3, layout, **{"ends": self.ends, **options})

    def admission(self, core: T3Runner, slot: int, line: Said, *, seed: int = 0) -> T3Admission:
        text = self.model.text_tokens(line.text, line.language)
        prompt = core.prompt(text, self.voices[line.voice], line.exaggeration)
        return T3Admission(slot, prompt, line.sampling, seed, line.bound)

    def of_package(self, line: Said) -> torch.Tensor:
        """The tokens of the package's own loop: int64 [n], without the end."""
        t3, how = self.packages_own, line.sampling
        text = self.model.text_tokens(line.text, line.language).to(self.model.device)
        shared = {
            "t3_cond": self.voices[line.voice].to(self.model.device).for_t3(line.exaggeration),
            "temperature": how.temperature,
            "top_p": how.top_p,
            "repetition_penalty": how.repetition_penalty,
        }
        if self.turbo:
            return t3.inference_turbo(
                text_tokens=text, top_k=how.top_k, max_gen_len=line.bound, **shared
            )[0, : line.bound]
        made = t3.inference(
            text_tokens=text.expand(2, -1),
            min_p=how.min_p,
            cfg_weight=how.cfg_weight,
            max_new_tokens=line.bound,
            **shared,
        )[0]
        for layer in t3.tfmr.layers:
            layer.self_attn._forward_hooks.clear()  # which each call adds
        return made[:-1] if made[-1] == t3.hp.stop_speech_token else made

    def line_by_line(self, line: Said) -> torch.Tensor:
        """The tokens of the backend that makes one line at a time: int64 [n]."""
        return self.single(line).tokens

    def decode(self, lines: Sequence[UndecodedTokens]) -> list[Samples]:
        """Lines' tokens as audio with its watermark; what `speak` does after choosing them."""
        return [self.model.watermark(wave) for wave in self.model.decode_waves(lines)]

    def single(self, line: Said) -> SpeechTokens:
        """The same, with whether it ended by itself."""
        text = self.model.text_tokens(line.text, line.language).to(self.model.device)
        params = {name: getattr(line.sampling, name) for name in T3SamplingParams.__slots__}
        voice = self.voices[line.voice].to(self.model.device).for_t3(line.exaggeration)
        decoder = (
            Gpt2T3Decoder(self.model.t3, voice, text, params)
            if self.turbo
            else LlamaT3Decoder(self.model.t3, voice, text, params, ends=self.ends)
        )
        with torch.inference_mode():
            return generate_speech_tokens(
                decoder, T3LoopParams(line.bound, RequestNoise(0), lambda: False)
            )

    def weighed_by_package(
        self, scores: torch.Tensor, history: torch.Tensor, how: T3SamplingParams
    ) -> torch.Tensor:
        """Scores as the single-line decoders weigh them, which follow the package's loops."""
        decoder = Gpt2T3Decoder if self.turbo else LlamaT3Decoder
        voice = self.voices[0].for_t3(0.5)
        text = self.model.text_tokens("Yes.", "en")
        params = {name: getattr(how, name) for name in T3SamplingParams.__slots__}
        return decoder(self.model.t3, voice, text, params).weigh(scores, [history])


def _sharpen(t3: Any) -> None:
    """Let a small turbo listen to voice and text, which fresh weights hardly do."""
    with torch.no_grad():
        attention, sounds = t3.tfmr.h[0].attn, t3.speech_head.weight[:SOUND_TOKENS]
        attention.c_attn.weight[:, -t3.dim :] *= 20
        attention.c_proj.weight *= 10
        sounds *= 6
        t3.speech_head.weight[t3.hp.stop_speech_token] *= 4


def settings(variant: str, number: int, **fixed: float) -> T3SamplingParams:
    """Settings that differ from line to line."""
    differing = {"repetition_penalty": (1.2, 1.0, 1.7)[number % 3], "top_p": (1.0, 0.7)[number % 2]}
    if variant == TURBO:
        differing["top_k"] = (1_000, 40)[number // 2 % 2]
    else:
        differing |= {"min_p": 0.05, "cfg_weight": (0.5, 0.9, 0.2, 0.0)[number % 4]}
    return T3SamplingParams(**{**differing, **fixed})


def lines_of(variant: str, temperature: float = NEARLY_GREEDY) -> tuple[Said, ...]:
    """Eight lines of different length, voice, settings and bound."""
    return tuple(
        Said(
            text,
            number % 3,
            0.0 if variant == TURBO else (0.5, 1.1)[number % 2],
            settings(variant, number, temperature=temperature),
            (30, 9)[number % 4 == 3],
            LANGUAGES[number] if variant == MULTILINGUAL else "en",
        )
        for number, text in enumerate(TEXTS)
    )


def tokens_in(core: T3Runner, slot: int) -> torch.Tensor:
    return codes_of(core, slot)[:, 0]


def tokens_together(
    core: T3Runner, bucket: int, admissions: Sequence[T3Admission]
) -> dict[int, torch.Tensor]:
    """Tokens by slot of lines that are decoded together; leaves the slots free."""
    return {slot: codes[:, 0] for slot, codes in decoded(core, bucket, admissions).items()}


def refilled(
    desk: Desk, core: T3Runner, slots: int, lines: Iterable[tuple[Said, int]]
) -> dict[Said, torch.Tensor]:
    """Tokens by line of lines with seeds that take slots as these become free."""
    made = refilled_slots(
        core, slots, lines, lambda slot, one: desk.admission(core, slot, one[0], seed=one[1])
    )
    return {line: codes[:, 0] for (line, _), codes in made.items()}
