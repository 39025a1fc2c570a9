"""A Qwen3-TTS checkpoint: kind and capabilities, parameters and bounds of a request."""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Capabilities, Param, Preset, SpeechRequest
from studio.backends.hub.weights import read_samples
from studio.errors import ModelUnavailable, SpeechFailed

FRAMES_PER_S = 12.5
MAX_CHARS = 400
"""Characters of one segment; far beyond, the voice drifts and words are lost."""

MIN_FRAMES = 2
"""As in the reference; with fewer, very short lines come out empty."""

COMMAND_CODES = 1_024
"""Codes at the vocabulary's end that are control tokens, not audio."""

MAX_FRAMES = 1_250  # 100 s; with the longest sample it fits the 2,048 positions of a CUDA graph

MAX_PARAM_TOP_K = 200

PARAMS = (
    Param(
        "temperature", "Temperature", 0.0, 1.5, 0.9, 0.05, "Liveliness; 0 is the same every time."
    ),
    Param("top_k", "Top k", 1, MAX_PARAM_TOP_K, 50, 1, "How many of the likeliest sounds compete."),
    Param("top_p", "Top p", 0.05, 1.0, 1.0, 0.05, "Share of likelihood that competes."),
    Param(
        "repetition_penalty",
        "Repetition penalty",
        1.0,
        2.0,
        1.05,
        0.05,
        "Above 1, sounds made before become less likely.",
    ),
)

_STARTING_S = 2.0
_S_PER_CHAR = 0.25  # slow speech takes 0.1 s
_S_PER_DENSE_CHAR = 0.8  # slow speech takes 0.4 s
_DENSE = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL")  # one character is a syllable or more


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Sampling of the next code; `temperature` 0 takes the likeliest one."""

    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 1.0
    repetition_penalty: float = 1.05

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


DEFAULT_SAMPLING = SamplingParams()
"""The released checkpoints' own, for a frame's first code and, but for repetition, the others."""


def build_params(usual: SamplingParams) -> tuple[Param, ...]:
    """Parameters of a line, with a checkpoint's own defaults, kept within the ranges."""
    return tuple(
        replace(param, default=min(max(getattr(usual, param.name), param.minimum), param.maximum))
        for param in PARAMS
    )


def read_sampling(
    request: SpeechRequest, usual: SamplingParams = DEFAULT_SAMPLING
) -> SamplingParams:
    """The request's parameters, with a checkpoint's defaults for what it leaves out."""
    chosen = {
        param.name: float(request.params.get(param.name, getattr(usual, param.name)))
        for param in PARAMS
    }
    return SamplingParams(
        temperature=chosen["temperature"],
        top_k=round(chosen["top_k"]),
        top_p=chosen["top_p"],
        repetition_penalty=chosen["repetition_penalty"],
    )


def strip_speakable(text: str) -> str:
    """The text without surrounding space.

    Raises:
        SpeechFailed: It has neither a letter nor a digit, on which the model would babble.
    """
    if not any(char.isalnum() for char in text):
        raise SpeechFailed(
            "There is nothing to speak in this line. Write at least one word, or use a pause."
        )
    return text.strip()


def estimate_frame_bound(text: str) -> int:
    """Frames after which a line counts as one that never stops.

    2 s, and 0.25 s a character, or 0.8 s where one character is a syllable or a spoken number:
    over twice what slow speech takes. At most `MAX_FRAMES`.
    """
    dense = sum(_is_dense(char) for char in text)
    bound_s = _STARTING_S + _S_PER_CHAR * (len(text) - dense) + _S_PER_DENSE_CHAR * dense
    return min(MAX_FRAMES, math.ceil(bound_s * FRAMES_PER_S))


def _is_dense(char: str) -> bool:
    return char.isdigit() or unicodedata.name(char, "").startswith(_DENSE)


DEFAULT_SOURCE = "Qwen/Qwen3-TTS-12Hz-0.6B-Base"
NEEDS = (
    "config.json",
    "generation_config.json",
    "model*.safetensors*",  # with the index of a model in several files
    "tokenizer_config.json",
    "vocab.json|tokenizer.json",  # the latter is all that newer transformers packages write
    "merges.txt|tokenizer.json",
    "speech_tokenizer/*",
)

_LANGUAGES = {
    "chinese": "zh",
    "english": "en",
    "french": "fr",
    "german": "de",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
}
_SMALL_SIZE = "0b6"  # its CustomVoice was not trained on instructions
_MAX_WIDE_CHARS = 150  # Chinese, Japanese or Korean ones: about 35 s, as long as 400 Latin ones


class CheckpointKind(StrEnum):
    """The three kinds of checkpoint, by how a voice is chosen."""

    BASE = "base"
    CUSTOM_VOICE = "custom_voice"
    VOICE_DESIGN = "voice_design"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Kind and abilities of one checkpoint.

    Attributes:
        speakers: Its own voices, lower case; the first is the built-in one.
        languages: BCP-47 code to the model's own name.
        takes_instruction: Whether an instruction changes how the model speaks a line.
        sampling: Of a frame's first code, where a line sets nothing.
        rest: Of the codes after it, whatever the line's own is: only the first carries the words.
    """

    kind: CheckpointKind = CheckpointKind.BASE
    speakers: tuple[str, ...] = ()
    languages: Mapping[str, str] = field(
        default_factory=lambda: {code: name for name, code in _LANGUAGES.items()}
    )
    takes_instruction: bool = False
    sampling: SamplingParams = DEFAULT_SAMPLING
    rest: SamplingParams = DEFAULT_SAMPLING

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            sample_rate_hz=STUDIO_RATE_HZ,
            max_chars=MAX_CHARS,
            wide_weight=MAX_CHARS / _MAX_WIDE_CHARS,
            cloning=self.kind is CheckpointKind.BASE,
            builtin_voice=bool(self.speakers),
            builtin_by_name=False,
            presets=tuple(Preset(name, speaker_label(name)) for name in self.speakers),
            described_voices=self.kind is CheckpointKind.VOICE_DESIGN,
            instructions=self.takes_instruction,
            languages={code: name.capitalize() for code, name in self.languages.items()},
            params=build_params(self.sampling),
            streaming=True,
        )


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint's `config.json` and `generation_config.json`.

    Raises:
        ModelUnavailable: It isn't one of Qwen3-TTS.
    """
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        generation = folder / "generation_config.json"
        chosen = json.loads(generation.read_text("utf-8")) if generation.is_file() else {}
        return _parse_checkpoint(config, chosen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelUnavailable(
            f"“{folder}” holds no Qwen3-TTS model: its config.json or "
            "generation_config.json can't be used. Give "
            f"QWEN3_TTS_MODEL a hub name such as {DEFAULT_SOURCE}, or a folder with such a model."
        ) from None


def compute_fingerprint(folder: Path) -> str:
    """12 hexadecimal digits that tell apart weights of the same shape."""
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.rglob("*.safetensors")):
        size_bytes = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()} {size_bytes}".encode())
        for sample in read_samples(path, size_bytes):
            digest.update(sample)
    return digest.hexdigest()[:12]


def _parse_checkpoint(config: Mapping[str, Any], chosen: Mapping[str, Any]) -> Checkpoint:
    talker = config["talker_config"]
    kind = CheckpointKind(config["tts_model_type"])
    known = talker["codec_language_id"]
    small = config.get("tts_model_size") == _SMALL_SIZE
    return Checkpoint(
        kind=kind,
        speakers=tuple(talker["spk_id"]) if kind is CheckpointKind.CUSTOM_VOICE else (),
        languages={code: name for name, code in _LANGUAGES.items() if name in known},
        takes_instruction=kind is CheckpointKind.VOICE_DESIGN
        or (kind is CheckpointKind.CUSTOM_VOICE and not small),
        sampling=_parse_sampling(chosen, "", "do_sample"),
        rest=_parse_sampling(chosen, "subtalker_", "subtalker_dosample"),
    )


def _parse_sampling(chosen: Mapping[str, Any], prefix: str, draws: str) -> SamplingParams:
    """Sampling from `generation_config.json`, with the usual values for missing ones."""
    usual = asdict(DEFAULT_SAMPLING)
    given = {name: type(value)(chosen.get(prefix + name, value)) for name, value in usual.items()}
    given["top_k"] = given["top_k"] or MAX_PARAM_TOP_K  # 0 stands for all
    return SamplingParams(**(given if chosen.get(draws, True) else given | {"temperature": 0.0}))


def speaker_label(speaker: str) -> str:
    """A preset's name as the page shows it."""
    return speaker.replace("_", " ").title()
