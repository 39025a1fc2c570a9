"""A loaded Chatterbox model: conditions voices, speaks lines and converts recordings."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from chatterbox import mtl_tts, tts, tts_turbo
from chatterbox.models.s3gen import s3gen
from chatterbox.models.s3gen.utils import mel
from chatterbox.models.tokenizers import tokenizer
from chatterbox.mtl_tts import ChatterboxMultilingualTTS
from chatterbox.tts import ChatterboxTTS
from chatterbox.tts_turbo import ChatterboxTurboTTS
from torch.nn import init
from torch.overrides import TorchFunctionMode

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.chatterbox.alignment import StopRule, install_attention_tap
from studio.backends.chatterbox.flow import RequestNoise, UndecodedTokens
from studio.backends.chatterbox.s3gen import (
    S3GenDecoder,
    fold_weight_norms,
    tokenize_recording,
)
from studio.backends.chatterbox.sequential_t3 import (
    Gpt2T3Decoder,
    LlamaT3Decoder,
    SpeechTokens,
    T3Decoder,
    T3LoopParams,
    generate_speech_tokens,
)
from studio.backends.chatterbox.t3_slots import T3Request
from studio.backends.chatterbox.variants import (
    ENGLISH,
    MULTILINGUAL,
    NO_SEGMENTER,
    TOKENS_PER_S,
    TURBO,
    ChatterboxVariant,
    choose_language,
    load_segmenter,
)
from studio.backends.chatterbox.voice_prompt import ClonedVoice, clone_voice, extract_voice
from studio.backends.device import load_faults, model_dtype, turn
from studio.errors import SpeechFailed

log = logging.getLogger(__name__)

_CLASSES = {
    ENGLISH.name: ChatterboxTTS,
    MULTILINGUAL.name: ChatterboxMultilingualTTS,
    TURBO.name: ChatterboxTurboTTS,
}
# Guards the process's standard output and the package's functions while a load swaps them.
_load_lock = threading.Lock()
# Guards the mel filter tables that the package caches for the whole process. It stores the
# basis before the window, so a second voice at the same time finds the one without the other.
_mel_lock = threading.Lock()
_MEL_WINDOW = 1_920  # samples at 24 kHz


def load_package(variant: ChatterboxVariant, folder: Path, device: str) -> Any:
    """Load a variant from a folder; asks no network."""
    # The package prints while it loads; standard output is the command line's.
    quiet, faults = contextlib.redirect_stdout(sys.stderr), load_faults(variant.title, folder)
    with faults, _load_lock, quiet, _offline_tokenizer(folder), _chosen_t3(folder), _SkipInit():
        return _CLASSES[variant.name].from_local(folder, device)


def clear_device_caches() -> None:
    """Clear the package's process-wide caches on a device: resamplers and mel filters."""
    s3gen.get_resampler.cache_clear()
    with _mel_lock:
        mel.mel_basis.clear()
        mel.hann_window.clear()


def _fill_mel_tables(device: str) -> None:
    with _mel_lock:
        mel.mel_spectrogram(torch.zeros(1, _MEL_WINDOW, device=device))


# Functions of `torch.nn.init` come here; what they call in turn doesn't.
_RANDOM_FILLS = {
    torch.Tensor.uniform_,
    torch.Tensor.normal_,
    init.uniform_,
    init.normal_,
    init.kaiming_uniform_,
}


class _SkipInit(TorchFunctionMode):  # type: ignore[misc]
    """Skips random initialization of weights that are read from files next; this thread only.

    For the 800 million weights of a full model it takes longer than reading them.
    """

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        options = options or {}
        if function in _RANDOM_FILLS:
            return arguments[0] if arguments else options["tensor"]
        return function(*arguments, **options)


@contextlib.contextmanager
def _offline_tokenizer(folder: Path) -> Iterator[None]:
    """Keep the multilingual tokenizer off the network.

    It asks the hub again for a file of the folder, and fetches a word segmenter for Chinese from
    elsewhere, without a word. Here it takes the file, and the segmenter only where that is.
    """
    converter = tokenizer.ChineseCangjieConverter
    download, segment = tokenizer.hf_hub_download, converter._init_segmenter
    tokenizer.hf_hub_download = lambda *, filename, **_: str(folder / filename)
    converter._init_segmenter = _init_segmenter
    try:
        yield
    finally:
        tokenizer.hf_hub_download, converter._init_segmenter = download, segment


@contextlib.contextmanager
def _chosen_t3(folder: Path) -> Iterator[None]:
    """Let the multilingual package load the version of T3 that the folder has.

    It reads the one safetensors file whose name it knows; its T3 is the same in all versions.
    """
    load_file, chosen = mtl_tts.load_safetensors, MULTILINGUAL.t3_in(folder)
    mtl_tts.load_safetensors = lambda named: load_file(chosen or named)
    try:
        yield
    finally:
        mtl_tts.load_safetensors = load_file


def _init_segmenter(converter: Any) -> None:
    converter.segmenter = load_segmenter()
    if converter.segmenter is None:
        log.info(NO_SEGMENTER)


SOUND_TOKENS = 6_561
"""Speech tokens below this one are sounds; the others steer the model."""

TOKEN_SAMPLES = STUDIO_RATE_HZ // TOKENS_PER_S

TURBO_TAIL = (4_299, 4_299, 4_299)
"""Silence, which the package puts after a turbo line."""


@dataclass(frozen=True, slots=True)
class SpokenLine:
    """A line's audio, and whether its whole text was spoken."""

    samples: Samples
    ended: bool


class ChatterboxModel:
    """One variant in memory; any number of threads may call it at once.

    All requests share its modules, which are only read; whatever belongs to a request lives in the
    call that serves it.

    Attributes:
        t3: The package's.
        ends: The rule that ends a multilingual line.
    """

    def __init__(
        self,
        variant: ChatterboxVariant,
        package: Any,
        device: str,
        *,
        amp: bool,
        ends: StopRule = StopRule.SPOKEN,
    ) -> None:
        self.device = device
        self._variant = variant
        self._package = package
        self.t3 = package.t3
        fold_weight_norms(self._package.s3gen.mel2wav)
        self._s3gen = S3GenDecoder(self._package.s3gen, self._package.watermarker)
        self._amp = amp and device == "cuda"
        self.ends = ends
        self._builtin = extract_voice(self._package.conds)
        if variant is MULTILINGUAL:
            install_attention_tap(self.t3.tfmr)

    def voice(self, clip: Clip | None) -> ClonedVoice:
        """The voice of a sample, or the built-in voice."""
        if clip is None:
            return self._builtin
        with turn(self.device):
            _fill_mel_tables(self.device)
            return clone_voice(self._package, clip)

    def speak(self, line: T3Request) -> SpokenLine:
        """Generate a line's audio."""
        noise = RequestNoise(line.seed)
        with turn(self.device), torch.inference_mode():
            made = self._tokens(line, noise)
            sounds = self.sound_tokens(made.tokens)
            tokens = UndecodedTokens(sounds, line.voice, noise, line.cancelled)
            [wave] = self.decode_waves([tokens])
        return SpokenLine(self.watermark(wave), made.ended)

    def graphed_decoder(self) -> S3GenDecoder:
        """A decoder for `decode_waves` of one thread, which closes it."""
        return S3GenDecoder(self._package.s3gen, self._package.watermarker, graphed=True)

    def decode_waves(
        self, lines: Sequence[UndecodedTokens], decoder: S3GenDecoder | None = None
    ) -> list[Samples]:
        """Decode lines' tokens to audio without watermark; None for the decoder that all share."""
        with turn(self.device), torch.inference_mode():
            waves = (decoder or self._s3gen).synthesize_batch(lines)
            return [self._trim(wave) for wave in waves]

    def watermark(self, wave: Samples) -> Samples:
        """Watermark a waveform, on the CPU; from any number of threads."""
        with torch.inference_mode():
            return self._s3gen.watermark(wave)

    def sound_tokens(self, tokens: torch.Tensor) -> torch.Tensor:
        """The speech tokens of a line without special tokens: int64 [n] to int64 [m].

        Raises:
            SpeechFailed: There is no sound among them.
        """
        sounds = tokens[tokens < SOUND_TOKENS]
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
        """Convert a recording to another voice."""
        with turn(self.device), torch.inference_mode():
            tokens = tokenize_recording(self._package.s3gen, recording)
            line = UndecodedTokens(tokens, voice, RequestNoise(seed), cancelled)
            return Clip(self._s3gen.synthesize(line))

    def _trim(self, wave: Samples) -> Samples:
        """Cut the last token's audio off a multilingual waveform.

        That token is chosen with the attention already beyond the text, and sounds of 40 ms of
        noise. Source: `ChatterboxMultilingualTTS.generate` since the package's commit 3f35dfc.
        """
        if self._variant is not MULTILINGUAL or self.ends is StopRule.PACKAGE:
            return wave
        return wave[: max(TOKEN_SAMPLES, len(wave) - TOKEN_SAMPLES)]

    def _tokens(self, line: T3Request, noise: RequestNoise) -> SpeechTokens:
        steps = T3LoopParams(line.max_frames, noise, line.cancelled)
        with self._precision():
            return generate_speech_tokens(self._decoder(line), steps)

    def _decoder(self, line: T3Request) -> T3Decoder:
        t3 = self.t3
        conditioning = line.voice.to(self.device).for_t3(line.exaggeration)
        text, params = line.text.to(self.device), asdict(line.sampling)
        if self._variant is TURBO:
            return Gpt2T3Decoder(t3, conditioning, text, params)
        return LlamaT3Decoder(t3, conditioning, text, params, ends=self.ends)

    @property
    def dtype(self) -> torch.dtype:
        """T3's dtype, unless autocast chooses it."""
        return _half_dtype() if self._amp else torch.float32

    def text_tokens(self, text: str, language: str | None) -> torch.Tensor:
        """A text's tokens with start and stop tokens: int64 [1, n], on the CPU."""
        tokens = self._tokenize(text, language).long().cpu()
        if self._variant is TURBO:
            return tokens
        ends = self.t3.hp
        tokens = F.pad(tokens, (1, 0), value=ends.start_text_token)
        return F.pad(tokens, (0, 1), value=ends.stop_text_token)

    def _tokenize(self, text: str, language: str | None) -> torch.Tensor:
        tokenizer = self._package.tokenizer
        if self._variant is TURBO:
            text = tts_turbo.punc_norm(text)
            return tokenizer(text, return_tensors="pt", truncation=True).input_ids
        if self._variant is MULTILINGUAL:
            language = choose_language(language, text)
            return tokenizer.text_to_tokens(mtl_tts.punc_norm(text), language_id=language)
        return tokenizer.text_to_tokens(tts.punc_norm(text))

    def _precision(self) -> contextlib.AbstractContextManager[Any]:
        if not self._amp:
            return contextlib.nullcontext()
        return torch.autocast("cuda", dtype=_half_dtype())


def _half_dtype() -> torch.dtype:
    return torch.bfloat16 if model_dtype("cuda") is torch.bfloat16 else torch.float16
