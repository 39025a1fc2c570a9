"""Qwen3-TTS checkpoints with random weights, to measure speed where no trained ones are at hand.

Dimensions decide the speed, not what the weights hold. Lines never stop by themselves: the end's
score is 0, and of thousands of random scores the 50 that compete are all above it. So every
engine makes just the frames it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from studio.backends.batched.checkpoint_files import (
    TOKEN_IDS,
    Made,
    made_codec,
    made_model,
    write_files,
)

_END = 2_150
_VOCABULARY = 3_072
_SEED = 1


@dataclass(frozen=True, slots=True)
class Size:
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
        Size("tiny", 64, 128, 2, 4, 16, 32, 64, 1, 64),
        Size("mid", 512, 1_536, 8, 8, 64, 256, 768, 3, 256),
        Size("0.6B", 1_024, 3_072, 28, 16, 128, 1_024, 3_072, 5, 1_536),
        Size("1.7B", 2_048, 6_144, 28, 16, 128, 1_024, 3_072, 5, 1_536),
    )
}


def write_checkpoint(folder: Path, size: Size) -> Path:
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
        model, codec = _model_of(size), made_codec(_codec_config(size))
    write_files(folder, model, codec, dtype=torch.bfloat16)
    return folder


def random_model(size: Size, *, seed: int = _SEED) -> Any:
    """The package's `Qwen3TTSForConditionalGeneration` with weights from a seed, in float32."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _model_of(size).model.eval()


def _model_of(size: Size) -> Made:
    made = made_model(_model_config(size))
    with torch.no_grad():
        made.model.talker.codec_head.weight[_END] = 0
    return made


def _attention(size: Size) -> dict[str, Any]:
    return {
        **{"num_attention_heads": size.heads, "num_key_value_heads": size.heads // 2},
        **{"head_dim": size.head_dim, "max_position_embeddings": 32_768},
        **{"rope_theta": 1_000_000, "num_code_groups": 16},
    }


def _model_config(size: Size) -> dict[str, Any]:
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


def _codec_config(size: Size) -> dict[str, Any]:
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
