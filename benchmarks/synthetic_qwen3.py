"""Qwen3-TTS checkpoints with random weights, to measure speed where no trained ones are at hand."""

from __future__ import annotations

import json
import shutil
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
class SyntheticModel:
    """A model and the config that it was made of."""

    model: Any
    config: Mapping[str, Any]


def build_model(config: Mapping[str, Any]) -> SyntheticModel:
    """The package's `Qwen3TTSForConditionalGeneration` with weights of chance."""
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration

    return SyntheticModel(Qwen3TTSForConditionalGeneration(Qwen3TTSConfig(**config)), config)


def build_codec(config: Mapping[str, Any]) -> SyntheticModel:
    """The package's `Qwen3TTSTokenizerV2Model` with weights of chance."""
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Model,
    )

    return SyntheticModel(Qwen3TTSTokenizerV2Model(Qwen3TTSTokenizerV2Config(**config)), config)


def build_audible_codec(config: Mapping[str, Any]) -> SyntheticModel:
    """The same with weights that carry a signal through to the samples."""
    made = build_codec(config)
    with torch.no_grad():
        for name, parameter in made.model.named_parameters():
            _make_audible(name, parameter)
    for name, buffer in made.model.named_buffers():
        if name.endswith("embed_sum"):
            buffer.normal_()
    return made


def _make_audible(name: str, parameter: torch.Tensor) -> None:
    """Fill one parameter; the layers' own start values nearly mute the signal.

    Layer scales of 0.5 let attention matter, so that a too short context shows in the audio.
    """
    if not name.startswith("decoder."):
        return
    if name.endswith("embedding_sum"):
        parameter.normal_()
    elif name.endswith(("scale", "gamma")):
        parameter.fill_(0.5)
    elif name.endswith((".alpha", ".beta")):
        parameter.fill_(-1.0 if name.endswith(".alpha") else 2.0)
    elif parameter.ndim > 1:
        fan_in = parameter[0].numel()
        loud = 0.015 if name.endswith("decoder.6.conv.weight") else 1.0
        parameter.normal_(std=loud * fan_in**-0.5)


def write_checkpoint_files(
    folder: Path,
    model: SyntheticModel,
    codec: SyntheticModel,
    *,
    dtype: torch.dtype = torch.float32,
) -> None:
    """Write all files of a checkpoint.

    Args:
        folder: Is there.
        model: From `build_model`.
        codec: From `build_codec`; always in float32.
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


def _write_part(
    folder: Path, made: SyntheticModel, architecture: str, kind: str, dtype: torch.dtype
) -> None:
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


# Qwen3-TTS checkpoints with random weights, to measure speed where no trained ones are at hand.
#
# Dimensions decide the speed, not what the weights hold. Lines never stop by themselves: the end's
# score is 0, and of thousands of random scores the 50 that compete are all above it. So every
# engine makes just the frames it is asked for.

_END = 2_150
_VOCABULARY = 3_072
_SEED = 1


@dataclass(frozen=True, slots=True)
class SyntheticSize:
    """Dimensions of a checkpoint.

    Attributes:
        name: For the table.
        layers: Of the talker.
        heads: Query heads; the key-value heads are half as many.
        rest_layers: Of the code predictor.
        rest_hidden: Its width.
        codec_width: Of the codec's decoder at its widest.
    """

    name: str
    hidden: int
    forward: int
    layers: int
    heads: int
    head_dim: int
    rest_hidden: int
    rest_forward: int
    rest_layers: int
    codec_width: int


SIZES = {
    size.name: size
    for size in (
        SyntheticSize("tiny", 64, 128, 2, 4, 16, 32, 64, 1, 64),
        SyntheticSize("mid", 512, 1_536, 8, 8, 64, 256, 768, 3, 256),
        SyntheticSize("0.6B", 1_024, 3_072, 28, 16, 128, 1_024, 3_072, 5, 1_536),
        SyntheticSize("1.7B", 2_048, 6_144, 28, 16, 128, 1_024, 3_072, 5, 1_536),
    )
}


def kept_checkpoint(root: Path, size: SyntheticSize) -> Path:
    """The checkpoint of a size in a folder, which is made where there is none yet."""
    folder, partial = root / size.name, root / f"{size.name}.partial"
    if not folder.exists():
        shutil.rmtree(partial, ignore_errors=True)
        write_checkpoint(partial, size).rename(folder)
    return folder


def write_checkpoint(folder: Path, size: SyntheticSize) -> Path:
    """Write a checkpoint that clones, in the layout of the hub.

    Args:
        folder: Is made.
        size: Its dimensions; in 16 bits the largest takes 4 GB on disk.

    Returns:
        The folder.
    """
    folder.mkdir(parents=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        model, codec = _build_endless_model(size), build_audible_codec(_codec_config(size))
    write_checkpoint_files(folder, model, codec, dtype=torch.bfloat16)
    return folder


def build_random_model(size: SyntheticSize, *, seed: int = _SEED) -> Any:
    """The package's `Qwen3TTSForConditionalGeneration` with weights from a seed, in float32."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _build_endless_model(size).model.eval()


def _build_endless_model(size: SyntheticSize) -> SyntheticModel:
    made = build_model(_model_config(size))
    with torch.no_grad():
        made.model.talker.codec_head.weight[_END] = 0
    return made


def _attention(size: SyntheticSize) -> dict[str, Any]:
    return {
        **{"num_attention_heads": size.heads, "num_key_value_heads": size.heads // 2},
        **{"head_dim": size.head_dim, "max_position_embeddings": 32_768},
        **{"rope_theta": 1_000_000, "num_code_groups": 16},
    }


def _model_config(size: SyntheticSize) -> dict[str, Any]:
    half = size.head_dim // 2
    sections = [half - 2 * (half * 5 // 16), half * 5 // 16, half * 5 // 16]
    talker = _attention(size) | {
        **{"hidden_size": size.hidden, "intermediate_size": size.forward},
        **{"num_hidden_layers": size.layers, "vocab_size": _VOCABULARY},
        **{"text_hidden_size": size.hidden, "text_vocab_size": 512},
        **{"codec_eos_token_id": _END, "codec_think_id": 2154, "codec_nothink_id": 2155},
        **{"codec_think_bos_id": 2156, "codec_think_eos_id": 2157},
        **{"codec_pad_id": 2148, "codec_bos_id": 2149, "codec_language_id": {"english": 2050}},
        **{"spk_id": {}, "spk_is_dialect": {}},
        "rope_scaling": {"rope_type": "default", "mrope_section": sections, "interleaved": True},
        "code_predictor_config": _attention(size)
        | {"hidden_size": size.rest_hidden, "intermediate_size": size.rest_forward}
        | {"num_hidden_layers": size.rest_layers, "vocab_size": 2_048},
    }
    return {
        **{"tts_model_type": "base", "tts_model_size": "0b6"},
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        **TOKEN_IDS,
        "talker_config": talker,
        "speaker_encoder_config": {"enc_dim": size.hidden}
        | {"enc_channels": [64, 64, 64, 64, 192], "enc_attention_channels": 32},
    }


def _codec_config(size: SyntheticSize) -> dict[str, Any]:
    width = size.codec_width // 3
    decoder = {
        **{"codebook_dim": width, "hidden_size": width, "latent_dim": 2 * width},
        **{"intermediate_size": 2 * width, "decoder_dim": size.codec_width},
        **{"num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64},
    }
    small = {
        **{"codebook_dim": 16, "hidden_size": 32, "latent_dim": 32, "intermediate_size": 64},
        **{"num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16},
    }
    encoder = {
        **{"hidden_size": 32, "num_filters": 4, "codebook_dim": 16, "num_hidden_layers": 1},
        **{"vector_quantization_hidden_dimension": 16, "num_attention_heads": 2, "head_dim": 16},
        **{"num_key_value_heads": 2, "intermediate_size": 64, "upsample_groups": 32},
        **{"codebook_size": 2048, "num_quantizers": 32, "rope_theta": 10_000.0},
    }
    tiny = decoder | small | {"codebook_dim": 32, "num_hidden_layers": 2}
    return {"encoder_config": encoder, "decoder_config": tiny if width < 64 else decoder}
