"""Small real Qwen3-TTS checkpoints: the package's own classes, a few dimensions, random weights.

They load through the package's `from_pretrained` and speak noise, in lines that end by
themselves after one or two seconds.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.synthetic_qwen3 import (
    TOKEN_IDS,
    build_audible_codec,
    build_model,
    write_checkpoint_files,
)

LANGUAGES = {"english": 2050, "chinese": 2055, "german": 2053, "beijing_dialect": 2074}
SPEAKERS = {"vivian": 3000, "eric": 3010, "ryan": 3020}
_TEXT_VOCABULARY = 512
_CODEC_EOS = 2150
GROUPS = 16
FEW_GROUPS = 4
_END_PULL = {
    GROUPS: {"base": 1.6, "custom_voice": 1.3, "voice_design": 1.3},
    FEW_GROUPS: {"base": 1.6, "custom_voice": 1.3, "voice_design": 1.1},
}


def small_checkpoint(
    kind: str = "base", size: str = "1b7", *, ends: bool = True, groups: int = GROUPS
) -> Path:
    """A checkpoint that all tests of a run share; only read it."""
    return _shared_checkpoint(kind, size, ends, groups)  # one key, however it was asked for


@cache
def _shared_checkpoint(kind: str, size: str, ends: bool, groups: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="qwen3-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    seed = 2 if groups == GROUPS else 4  # lines of a second or two
    return build_checkpoint(folder / kind, kind, size=size, ends=ends, groups=groups, seed=seed)


def build_checkpoint(
    folder: Path,
    kind: str = "base",
    *,
    size: str = "1b7",
    ends: bool = True,
    full_size: bool = False,
    groups: int = GROUPS,
    seed: int = 2,
) -> Path:
    """Write a checkpoint in the layout of the hub.

    Args:
        folder: Is made.
        kind: "base", "custom_voice" or "voice_design".
        size: "0b6" or "1b7"; the smaller CustomVoice takes no instruction.
        ends: Whether its lines stop by themselves.
        full_size: With the dimensions of the 0.6B model: 2.5 GB.
        groups: Codes in a frame, each a pass of the code predictor; `FEW_GROUPS` are made in a
            third of the time.
        seed: Of the weights.
    """
    import torch

    folder.mkdir(parents=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build_model(_model_config(kind, size, full_size=full_size, groups=groups))
        _lend_an_end(model.model, _END_PULL[groups][kind] if ends else 0.0)
        codec = build_audible_codec(_codec_config(groups, full_size=full_size))
    write_checkpoint_files(folder, model, codec)
    return folder


_ATTENTION = {
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16},
    **{"num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 1_000_000},
    "initializer_range": 0.08,  # so that attention, and with it the prompt, is heard
}

_PREDICTOR = {
    **_ATTENTION,
    **{"vocab_size": 2048, "hidden_size": 32, "intermediate_size": 64},
    "num_hidden_layers": 1,
}

_TALKER = {
    **_ATTENTION,
    **{"vocab_size": 3072, "hidden_size": 64, "intermediate_size": 128},
    **{"text_hidden_size": 64, "text_vocab_size": _TEXT_VOCABULARY},
    **{"codec_eos_token_id": _CODEC_EOS, "codec_think_id": 2154, "codec_nothink_id": 2155},
    **{"codec_think_bos_id": 2156, "codec_think_eos_id": 2157},
    **{"codec_pad_id": 2148, "codec_bos_id": 2149},
    "codec_language_id": LANGUAGES,
    "rope_scaling": {"rope_type": "default", "mrope_section": [4, 2, 2], "interleaved": True},
}

_SPEAKER_ENCODER = {
    **{"enc_dim": 64, "enc_channels": [16, 16, 16, 16, 48], "enc_attention_channels": 8},
    **{"enc_res2net_scale": 2, "enc_se_channels": 8},
}

_CODEC_ENCODER = {
    **{"hidden_size": 32, "num_filters": 4, "codebook_dim": 16, "num_hidden_layers": 1},
    **{"vector_quantization_hidden_dimension": 16, "num_attention_heads": 2, "head_dim": 16},
    **{"num_key_value_heads": 2, "intermediate_size": 64, "upsample_groups": 32},
    **{"codebook_size": 2048, "num_quantizers": 32, "rope_theta": 10_000.0},
}

_CODEC_DECODER = {
    **{"hidden_size": 32, "latent_dim": 32, "decoder_dim": 64, "codebook_dim": 32},
    **{"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    **{"num_key_value_heads": 2, "head_dim": 16},
}

_CODEC = {"encoder_config": _CODEC_ENCODER, "decoder_config": _CODEC_DECODER}

_FULL_CODEC = {
    "encoder_config": {"rope_theta": 10_000.0},
    "decoder_config": {
        **{"codebook_dim": 512, "head_dim": 64, "hidden_size": 512, "intermediate_size": 1024},
    },
}

_FULL_ATTENTION = {
    "initializer_range": 0.02,
    **{"num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
    **{"hidden_size": 1024, "intermediate_size": 3072},
}

_FULL_TALKER = {
    **_FULL_ATTENTION,
    **{"num_hidden_layers": 28, "text_hidden_size": 2048, "max_position_embeddings": 32_768},
    "rope_scaling": {"rope_type": "default", "mrope_section": [24, 20, 20], "interleaved": True},
}


def _model_config(kind: str, size: str, *, full_size: bool, groups: int = GROUPS) -> dict[str, Any]:
    talker = _TALKER | (_FULL_TALKER if full_size else {}) | {"num_code_groups": groups}
    predictor = _PREDICTOR | (_FULL_ATTENTION | {"num_hidden_layers": 5} if full_size else {})
    predictor |= {"num_code_groups": groups}
    custom = kind == "custom_voice"
    dialects = {name: "beijing_dialect" if name == "eric" else False for name in SPEAKERS}
    speakers = {
        "spk_id": SPEAKERS if custom else {},
        "spk_is_dialect": dialects if custom else {},
    }
    return {
        "tts_model_type": kind,
        "tts_model_size": size,
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        **TOKEN_IDS,
        "talker_config": talker | speakers | {"code_predictor_config": predictor},
        "speaker_encoder_config": {"enc_dim": 1024} if full_size else _SPEAKER_ENCODER,
    }


def _codec_config(groups: int, *, full_size: bool) -> dict[str, Any]:
    config = _FULL_CODEC if full_size else _CODEC
    return config | {
        "decoder_config": config["decoder_config"] | {"num_quantizers": groups},
        "encoder_valid_num_quantizers": groups,
    }


def _lend_an_end(model: Any, pull: float) -> None:
    """Let lines vary, hear their text, and stop.

    The end is made likely, about one frame in ten, by what stands in for text once all text is
    spoken. So a line lasts longer the longer its text is, where text is fed frame by frame.
    """
    import torch

    talker, ids = model.talker, model.config
    tables = (talker.model.codec_embedding, *talker.code_predictor.model.codec_embedding)
    with torch.no_grad():
        for table in tables:
            table.weight.normal_(std=0.3)
        talker.model.text_embedding.weight.normal_()
        talker.text_projection.linear_fc1.weight.normal_(std=0.15)
        talker.text_projection.linear_fc2.weight.normal_(std=0.1)
        for head in talker.code_predictor.lm_head:
            head.weight.normal_(std=0.5)
        talker.codec_head.weight.normal_(std=0.2)
        silent = talker.text_projection(talker.model.text_embedding.weight[ids.tts_pad_token_id])
        talker.codec_head.weight[_CODEC_EOS] = pull * silent / silent.norm()
