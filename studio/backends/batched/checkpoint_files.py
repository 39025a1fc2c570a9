"""The files of a Qwen3-TTS checkpoint in the layout of the hub, whatever weights it has."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_N_BYTES = 256
_SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<tts_pad>", "<tts_text_bos>", "<tts_text_eod>"),
)

TOKEN_IDS = {
    **{"im_start_token_id": _N_BYTES + 1, "im_end_token_id": _N_BYTES + 2},
    **{"tts_pad_token_id": _N_BYTES + 3, "tts_bos_token_id": _N_BYTES + 4},
    "tts_eos_token_id": _N_BYTES + 5,
}
"""What a config says of the tokenizer that is written with it."""

_SAMPLING = {
    **{"do_sample": True, "top_k": 50, "top_p": 1.0, "temperature": 0.9},
    **{"subtalker_dosample": True, "subtalker_top_k": 50, "subtalker_top_p": 1.0},
    **{"subtalker_temperature": 0.9, "repetition_penalty": 1.05, "max_new_tokens": 8192},
}


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A model and the config that it was made of."""

    model: Any
    config: Mapping[str, Any]


def made_model(config: Mapping[str, Any]) -> Made:
    """The package's `Qwen3TTSForConditionalGeneration` with weights of chance."""
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration

    return Made(Qwen3TTSForConditionalGeneration(Qwen3TTSConfig(**config)), config)


def made_codec(config: Mapping[str, Any]) -> Made:
    """The package's `Qwen3TTSTokenizerV2Model` with weights of chance."""
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Model,
    )

    return Made(Qwen3TTSTokenizerV2Model(Qwen3TTSTokenizerV2Config(**config)), config)


def write_files(
    folder: Path, model: Made, codec: Made, *, dtype: torch.dtype = torch.float32
) -> None:
    """Write all files of a checkpoint.

    Args:
        folder: Is there.
        model: From `made_model`.
        codec: From `made_codec`; always in float32.
        dtype: Of the model's weights.
    """
    from transformers import EncodecFeatureExtractor

    _write_tokenizer(folder)
    _write_part(folder, model, "Qwen3TTSForConditionalGeneration", "qwen3_tts", dtype)
    (folder / "generation_config.json").write_text(json.dumps(_SAMPLING))
    inner = folder / "speech_tokenizer"
    inner.mkdir()
    kind = "qwen3_tts_tokenizer_12hz"
    _write_part(inner, codec, "Qwen3TTSTokenizerV2Model", kind, torch.float32)
    EncodecFeatureExtractor(feature_size=1, sampling_rate=24_000).save_pretrained(inner)


def _write_part(folder: Path, made: Made, architecture: str, kind: str, dtype: torch.dtype) -> None:
    from safetensors.torch import save_file

    weights = {
        name: (tensor.to(dtype) if tensor.is_floating_point() else tensor).contiguous()
        for name, tensor in made.model.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    written = {"architectures": [architecture], "model_type": kind}
    (folder / "config.json").write_text(json.dumps(written | dict(made.config)))


def _write_tokenizer(folder: Path) -> None:
    """A byte-level tokenizer without merges: every byte is a token."""
    from tokenizers.pre_tokenizers import ByteLevel

    vocabulary = {letter: n for n, letter in enumerate(sorted(ByteLevel.alphabet()))}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    added = {
        str(_N_BYTES + n): {
            **{"content": token, "special": True, "normalized": False},
            **{"lstrip": False, "rstrip": False, "single_word": False},
        }
        for n, token in enumerate(_SPECIAL)
    }
    written = {
        "tokenizer_class": "Qwen2Tokenizer",
        "added_tokens_decoder": added,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "model_max_length": 131_072,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(written))
