"""A loaded Chatterbox model: conditions voices, speaks lines and converts recordings.

Its modules are shared by all requests and only read; whatever belongs to a request lives in the
call that serves it. So any number of threads may call it at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from chatterbox import mtl_tts, tts, tts_turbo

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.chatterbox.alignment import use_watched_attention
from studio.backends.chatterbox.conditioning import ClonedVoice, clone, voice_of
from studio.backends.chatterbox.noise import Noise
from studio.backends.chatterbox.package import forget_devices, load_package
from studio.backends.chatterbox.sound import Sound, Unsounded
from studio.backends.chatterbox.text import TOKENS_PER_S, language_or_guess, max_tokens
from studio.backends.chatterbox.tokens import (
    Decoder,
    Gpt2Decoder,
    LlamaDecoder,
    SpeechTokens,
    Steps,
    speech_tokens,
)
from studio.backends.chatterbox.variants import MULTILINGUAL, TURBO, Variant
from studio.backends.chatterbox.voice import converted
from studio.backends.chatterbox.watch import Ends
from studio.backends.device import model_dtype
from studio.backends.metal import turn
from studio.errors import SpeechFailed

N_SOUNDS = 6_561
"""Speech tokens below this one are sounds; the others steer the model."""

TOKEN_SAMPLES = STUDIO_RATE_HZ // TOKENS_PER_S

TURBO_TAIL = (4_299, 4_299, 4_299)
"""Silence, which the package puts after a turbo line."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line to speak: its text, voice and settings, complete."""

    text: str
    voice: ClonedVoice
    language: str | None
    params: Mapping[str, Any]
    seed: int
    cancelled: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A line's sound, and whether it ended with its text spoken."""

    samples: Samples
    ended: bool


class ChatterboxModel:
    """One variant in memory."""

    @classmethod
    def load(
        cls,
        variant: Variant,
        folder: Path,
        device: str,
        *,
        amp: bool,
        ends: Ends = Ends.SPOKEN,
    ) -> ChatterboxModel:
        """Load a variant.

        Args:
            variant: Which.
            folder: Holds all files that the variant needs.
            device: "cuda", "mps" or "cpu".
            amp: Whether T3 runs in mixed precision; CUDA only. S3Gen stays in float32.
            ends: Whose rule ends a multilingual line.

        Raises:
            ModelUnavailable: A file is broken or belongs to another model.
        """
        return cls(variant, load_package(variant, folder, device), device, amp=amp, ends=ends)

    def __init__(
        self,
        variant: Variant,
        package: Any,
        device: str,
        *,
        amp: bool,
        ends: Ends = Ends.SPOKEN,
    ) -> None:
        """Take the package's loaded model of a variant; the rest as for `load`."""
        self.device = device
        self._variant = variant
        self._package = package
        self._sound = Sound(self._package.s3gen, self._package.watermarker)
        self._amp = amp and device == "cuda"
        self._ends = ends
        self._builtin = voice_of(self._package.conds)
        if variant is MULTILINGUAL:
            use_watched_attention(self._package.t3.tfmr)

    def release(self) -> None:
        """Let go of what the package holds for the whole process."""
        forget_devices()

    def voice(self, clip: Clip | None) -> ClonedVoice:
        """The voice of a sample, or the model's own."""
        if clip is None:
            return self._builtin
        with turn(self.device):
            return clone(self._package, clip)

    def speak(self, line: Line) -> Spoken:
        """Speak a line.

        Raises:
            SpeechFailed: The model made no sound of it.
            Cancelled: `line.cancelled` became true.
        """
        noise = Noise(line.seed)
        with turn(self.device), torch.inference_mode():
            made = self._tokens(line, noise)
            sounds = self.sounds_of(made.tokens)
            wave = self._waves([Unsounded(sounds, line.voice, noise, line.cancelled)])[0]
        return Spoken(self.marked(wave), made.ended)

    def sounded(self, lines: Sequence[Unsounded]) -> list[Samples]:
        """Turn lines' tokens into sound; what `speak` does after choosing them.

        Args:
            lines: With what `sounds_of` left of their tokens.

        Raises:
            Cancelled: Nobody wants any of them any more.
        """
        return [self.marked(wave) for wave in self.waves(lines)]

    def waves(self, lines: Sequence[Unsounded]) -> list[Samples]:
        """The first half of `sounded`: without the watermark, without which nothing is given out.

        Raises:
            Cancelled: As from `sounded`.
        """
        with turn(self.device), torch.inference_mode():
            return self._waves(lines)

    def marked(self, wave: Samples) -> Samples:
        """The second half: a wave with the watermark, on the CPU; any number at once."""
        with torch.inference_mode():
            return self._sound.marked(wave)

    def sounds_of(self, tokens: torch.Tensor) -> torch.Tensor:
        """What of a line's tokens is heard: int64 [n] to int64 [m].

        Raises:
            SpeechFailed: There is no sound among them.
        """
        sounds = tokens[tokens < N_SOUNDS]
        if not len(sounds):
            raise SpeechFailed(
                f"{self._variant.title} made no sound for this line. Change its seed or its words."
            )
        if self._variant is TURBO:
            sounds = torch.cat([sounds, sounds.new_tensor(TURBO_TAIL)])
        return sounds

    def convert(
        self, recording: Clip, voice: ClonedVoice, seed: int, cancelled: Callable[[], bool]
    ) -> Clip:
        """Say a recording again in another voice.

        Raises:
            Cancelled: `cancelled` became true.
        """
        with turn(self.device), torch.inference_mode():
            tokens = converted(self._package.s3gen, recording)
            return Clip(self._sound.spoken(Unsounded(tokens, voice, Noise(seed), cancelled)))

    def _waves(self, lines: Sequence[Unsounded]) -> list[Samples]:
        return [self._trimmed(wave) for wave in self._sound.waves(lines)]

    def _trimmed(self, wave: Samples) -> Samples:
        """A multilingual wave without its last token's sound.

        That token is chosen with the attention already beyond the text, and sounds of 40 ms of
        noise. Source: `ChatterboxMultilingualTTS.generate` since the package's commit 3f35dfc.
        """
        if self._variant is not MULTILINGUAL or self._ends is Ends.PACKAGE:
            return wave
        return wave[: max(TOKEN_SAMPLES, len(wave) - TOKEN_SAMPLES)]

    def _tokens(self, line: Line, noise: Noise) -> SpeechTokens:
        steps = Steps(max_tokens(line.text), noise, line.cancelled)
        with self._precision():
            return speech_tokens(self._decoder(line), steps)

    def _decoder(self, line: Line) -> Decoder:
        t3 = self._package.t3
        exaggeration = float(line.params.get("exaggeration", 0.0))
        conditioning = line.voice.to(self.device).for_t3(exaggeration)
        text = self.text_tokens(line.text, line.language).to(self.device)
        if self._variant is TURBO:
            return Gpt2Decoder(t3, conditioning, text, line.params)
        return LlamaDecoder(t3, conditioning, text, line.params, ends=self._ends)

    @property
    def ends(self) -> Ends:
        """Whose rule ends a multilingual line."""
        return self._ends

    @property
    def t3(self) -> Any:
        """The package's T3."""
        return self._package.t3

    @property
    def dtype(self) -> torch.dtype:
        """Of T3, where it isn't left to autocast."""
        return _half() if self._amp else torch.float32

    def text_tokens(self, text: str, language: str | None) -> torch.Tensor:
        """A text as T3 reads it, with the marks of its start and stop: int64 [1, n], on the CPU."""
        tokens = self._tokenized(text, language).long().cpu()
        if self._variant is TURBO:
            return tokens
        ends = self.t3.hp
        tokens = F.pad(tokens, (1, 0), value=ends.start_text_token)
        return F.pad(tokens, (0, 1), value=ends.stop_text_token)

    def _tokenized(self, text: str, language: str | None) -> torch.Tensor:
        tokenizer = self._package.tokenizer
        if self._variant is TURBO:
            text = tts_turbo.punc_norm(text)
            return tokenizer(text, return_tensors="pt", truncation=True).input_ids
        if self._variant is MULTILINGUAL:
            language = language_or_guess(language, text)
            return tokenizer.text_to_tokens(mtl_tts.punc_norm(text), language_id=language)
        return tokenizer.text_to_tokens(tts.punc_norm(text))

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        if not self._amp:
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=_half())


def _half() -> torch.dtype:
    return torch.bfloat16 if model_dtype("cuda") is torch.bfloat16 else torch.float16
