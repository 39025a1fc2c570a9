"""A loaded Qwen3-TTS model: voices in, frames and audio out, and nothing kept of a request."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studio.audio.clip import Clip, Samples, resample
from studio.backends.batching.sequence import stop_error
from studio.backends.device import in_turns, load_faults, model_dtype, turn
from studio.backends.qwen3.checkpoint import Checkpoint, read_checkpoint
from studio.backends.qwen3.codec import CodecStream
from studio.backends.qwen3.prompt import PromptBuilder, Qwen3Tokenizer, Qwen3Voice
from studio.backends.qwen3.sequential_talker import (
    EagerTalkerForward,
    FrameGenerator,
    Sampler,
    TalkerCudaGraphs,
    TalkerForward,
)
from studio.backends.qwen3.talker_slots import TalkerRequest
from studio.errors import SpeechFailed

FIRST_CHUNK_FRAMES = 4  # 0.3 s of audio, so that a listener waits little
CHUNK_FRAMES = 16  # each chunk costs ten frames of context


class Qwen3Model:
    """The package's model on one device.

    Attributes:
        package: Its `Qwen3TTSForConditionalGeneration`.
    """

    def __init__(self, package_model: Any, checkpoint: Checkpoint, *, graphs: bool = True) -> None:
        self.package = package_model.model
        self._codec = self.package.speech_tokenizer
        self.tokens = Qwen3Tokenizer(package_model.processor.tokenizer)
        self._prompts = PromptBuilder(self.package)
        self.checkpoint = checkpoint
        captures = graphs and self._device.type == "cuda"
        self._graphs = TalkerCudaGraphs(self.package.talker, checkpoint.rest) if captures else None

    @property
    def codec_decoder(self) -> Any:
        """The package's `Qwen3TTSTokenizerV2Decoder`."""
        return self._codec.model.decoder

    def preset_voice(self, name: str, instruction: str | None) -> Qwen3Voice:
        """One of the checkpoint's own voices, spoken in a manner."""
        return Qwen3Voice(preset=name, instruction=self._instruction(instruction))

    def design_voice(self, description: str) -> Qwen3Voice:
        """A voice made from words."""
        return Qwen3Voice(instruction=self._instruction(description))

    def clone_voice(self, clip: Clip, transcript: str | None, silence_s: float) -> Qwen3Voice:
        """The voice of a recording of at least a second; without a transcript its timbre alone.

        The silence after it keeps its last sound from beginning the line.
        """
        encoder_hz = int(self.package.speaker_encoder_sample_rate)
        with turn(self._device):
            timbre = self.package.extract_speaker_embedding(_at_rate(clip, encoder_hz), encoder_hz)
            embedding = timbre.float().cpu().clone()
            if not transcript or not transcript.strip():
                return Qwen3Voice(embedding=embedding)
            codec_hz = self._codec.get_input_sample_rate()
            silence = Clip.silence(silence_s, codec_hz).samples
            encoded = self._codec.encode(np.append(_at_rate(clip, codec_hz), silence), sr=codec_hz)
            return Qwen3Voice(
                embedding=embedding,
                ref_codes=encoded.audio_codes[0].cpu().clone(),
                ref_tokens=self.tokens.transcript(transcript),
            )

    def frames(self, task: TalkerRequest) -> Generator[torch.Tensor, None, None]:
        """Make a line's frames; int64 [groups] each."""
        _check_wanted(task)
        talker = self.package.talker
        rest = self.checkpoint.rest
        sampler = Sampler(task.sampling, task.seed, self._device, rest=rest)
        with torch.inference_mode(), turn(self._device):
            prompt = self._prompts.build(task.tokens, task.voice, task.language)
        with self._steps(task, sampler) as steps:
            frames = FrameGenerator(talker, prompt, sampler, steps).frames(task.max_frames)
            for codes in in_turns(frames, self._device):
                yield codes
                _check_wanted(task)

    def speak(self, task: TalkerRequest) -> Iterator[Samples]:
        """Make a line's audio; float32 [samples], a small chunk first.

        Raises:
            SpeechFailed: As from `frames`; all that was made has been yielded.
        """
        stream = self._stream(task.voice)
        waiting: list[torch.Tensor] = []
        wanted, failure = FIRST_CHUNK_FRAMES, None
        with closing(self.frames(task)) as frames:
            try:
                for codes in frames:
                    waiting.append(codes)
                    if len(waiting) == wanted:
                        yield self._decode(stream, waiting)
                        waiting, wanted = [], CHUNK_FRAMES
            except SpeechFailed as error:
                failure = error
        if waiting:
            yield self._decode(stream, waiting)
        if failure is not None:
            raise failure

    @property
    def _device(self) -> torch.device:
        return self.package.talker.device

    def _steps(
        self, task: TalkerRequest, sampler: Sampler
    ) -> AbstractContextManager[TalkerForward]:
        if self._graphs is None:
            return nullcontext(EagerTalkerForward(self.package.talker, sampler))
        stop = partial(_check_wanted, task)
        return self._graphs.line(greedy=task.sampling.greedy, seed=task.seed, stop=stop)

    def _stream(self, voice: Qwen3Voice) -> CodecStream:
        """A decoder that has read the voice's sample, if it has one."""
        with turn(self._device):
            stream = CodecStream(self.codec_decoder)
            if voice.ref_codes is not None:
                stream.skip(voice.ref_codes)
        return stream

    def _decode(self, stream: CodecStream, codes: list[torch.Tensor]) -> Samples:
        with turn(self._device):
            return stream.decode(torch.stack(codes))

    def _instruction(self, text: str | None) -> torch.Tensor | None:
        return self.tokens.instruction(text) if text and text.strip() else None


def _check_wanted(task: TalkerRequest) -> None:
    """End a line that nobody wants any more."""
    if task.cancelled():
        raise stop_error()


def load_model(
    folder: Path, device: str, dtype: torch.dtype | None = None, *, graphs: bool = True
) -> Qwen3Model:
    """Load a checkpoint; the codec is in float32 whatever the talker is in."""
    checkpoint = read_checkpoint(folder)
    with load_faults("Qwen3-TTS", folder):
        _check_json(folder)
        from qwen_tts import Qwen3TTSModel, Qwen3TTSTokenizer

        dtype = dtype or model_dtype(device)
        package_model = Qwen3TTSModel.from_pretrained(
            str(folder), device_map=device, dtype=dtype, use_safetensors=True
        )
        if dtype is not torch.float32:
            # It was loaded in the talker's precision, which is audible.
            codec = Qwen3TTSTokenizer.from_pretrained(
                str(folder / "speech_tokenizer"), device_map=device, dtype=torch.float32
            )
            package_model.model.load_speech_tokenizer(codec)
        return Qwen3Model(package_model, checkpoint, graphs=graphs)


def _check_json(folder: Path) -> None:
    """Find a broken file before the tokenizer does, which raises nothing more than `Exception`."""
    for path in folder.rglob("*.json"):
        json.loads(path.read_bytes())


def _at_rate(clip: Clip, rate_hz: int) -> Samples:
    if clip.rate_hz == rate_hz:
        return clip.samples
    return np.concatenate(list(resample(iter([clip.samples]), clip.rate_hz, rate_hz)))
