"""Chatterbox models with random weights, to measure speed where no trained ones are at hand.

Lines never stop by themselves: all tokens but sounds have a score of 0, and what competes has
more. So every engine makes just the tokens it is asked for. The heads that the multilingual model
watches see all of the text alike, so that for them a line never gets beyond its first word.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from chatterbox.models.s3gen import S3Gen
from chatterbox.models.t3 import T3
from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS
from chatterbox.models.t3.llama_configs import LLAMA_CONFIGS
from chatterbox.models.t3.modules.cond_enc import T3Cond
from chatterbox.models.t3.modules.t3_config import T3Config
from chatterbox.mtl_tts import ChatterboxMultilingualTTS
from chatterbox.tts import ChatterboxTTS, Conditionals
from chatterbox.tts_turbo import ChatterboxTurboTTS

from studio.backends.chatterbox.chatterbox_model import SOUND_TOKENS
from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL, TURBO, ChatterboxVariant

_SEED = 1
_SPREAD = 6.0  # of the sounds' scores, so that no other token comes near the likeliest
_PROMPT_TOKENS = {True: 375, False: 150}
_WATCHED_LAYERS = 1 + max(layer for layer, _ in LLAMA_ALIGNED_HEADS)
_KINDS = {
    ENGLISH.name: ChatterboxTTS,
    MULTILINGUAL.name: ChatterboxMultilingualTTS,
    TURBO.name: ChatterboxTurboTTS,
}


@dataclass(frozen=True, slots=True)
class ModelDepth:
    """How deep a model is; its width is that of the released ones.

    Attributes:
        layers: Of T3; None for all. The multilingual one has no fewer than it watches.
        blocks: Of each kind in S3Gen; None for all.
        sample_tokens: Of the voice's sample, which S3Gen reads before each line.
    """

    layers: int | None
    blocks: int | None
    sample_tokens: int = 250


SIZES = {"tiny": ModelDepth(1, 1, 25), "mid": ModelDepth(8, 1), "full": ModelDepth(None, None)}


def build_random_package(variant: ChatterboxVariant, depth: ModelDepth, device: str) -> Any:
    """The package's model of a variant, without tokenizer and voice encoder.

    Args:
        variant: Which.
        depth: Of its layers.
        device: Where.
    """
    turbo = variant is TURBO
    t3 = copy.deepcopy(_build_t3_once(variant.name, depth)).to(device)
    with _drawing():
        s3gen = _build_s3gen(turbo, depth).to(device).eval()
        conditionals = _build_conditionals(_PROMPT_TOKENS[turbo], depth.sample_tokens).to(device)
    # The watermark prints while it loads; standard output is the table's.
    with contextlib.redirect_stdout(sys.stderr):
        return _KINDS[variant.name](t3, s3gen, None, None, device, conds=conditionals)


@contextlib.contextmanager
def _drawing() -> Iterator[None]:
    """The same weights each time, and nobody else's draws disturbed."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(_SEED)
        yield


@lru_cache(maxsize=1)
def _build_t3_once(name: str, depth: ModelDepth) -> Any:
    """A T3 on the CPU, to be copied: drawing one takes longer than all else."""
    with _drawing():
        return _build_t3(
            next(one for one in (ENGLISH, MULTILINGUAL, TURBO) if one.name == name), depth
        ).eval()


def _build_t3(variant: ChatterboxVariant, depth: ModelDepth) -> Any:
    layers, sizes = depth.layers, _sizes(variant)
    if variant is MULTILINGUAL and layers is not None:
        layers = max(layers, _WATCHED_LAYERS)
    with _limit_layers(sizes.llama_config_name, layers):
        t3 = T3(sizes)
    if variant is TURBO:
        del t3.tfmr.wte
        t3.speech_head.bias.zero_()
    if variant is MULTILINGUAL:
        for layer, head in LLAMA_ALIGNED_HEADS:
            attention = t3.tfmr.layers[layer].self_attn
            attention.q_proj.weight.view(-1, attention.head_dim, t3.dim)[head] = 0
    t3.speech_head.weight[:SOUND_TOKENS] *= _SPREAD
    t3.speech_head.weight[SOUND_TOKENS:] = 0
    return t3


def _sizes(variant: ChatterboxVariant) -> Any:
    if variant is TURBO:
        return _turbo_sizes()
    return T3Config.multilingual() if variant is MULTILINGUAL else T3Config.english_only()


def _turbo_sizes() -> Any:
    """As `ChatterboxTurboTTS.from_local` makes them."""
    sizes = T3Config(text_tokens_dict_size=50276)
    sizes.llama_config_name = "GPT2_medium"
    sizes.speech_tokens_dict_size = 6563
    sizes.input_pos_emb = None
    sizes.speech_cond_prompt_len = _PROMPT_TOKENS[True]
    sizes.use_perceiver_resampler = False
    sizes.emotion_adv = False
    return sizes


@contextlib.contextmanager
def _limit_layers(name: str, layers: int | None) -> Iterator[None]:
    """Let the package build its transformer with so many layers; it takes no such argument."""
    config = LLAMA_CONFIGS[name]
    fewer = {"n_layer" if "n_layer" in config else "num_hidden_layers": layers}
    LLAMA_CONFIGS[name] = config if layers is None else config | fewer
    try:
        yield
    finally:
        LLAMA_CONFIGS[name] = config


def _build_s3gen(turbo: bool, depth: ModelDepth) -> Any:
    s3gen = S3Gen(meanflow=turbo)
    if depth.blocks is None:
        return s3gen
    encoder, estimator = s3gen.flow.encoder, s3gen.flow.decoder.estimator
    encoder.encoders = encoder.encoders[: depth.blocks]
    encoder.up_encoders = encoder.up_encoders[: depth.blocks]
    estimator.mid_blocks = estimator.mid_blocks[: depth.blocks]
    for parts in (*estimator.down_blocks, *estimator.mid_blocks, *estimator.up_blocks):
        parts[1] = parts[1][: depth.blocks]
    return s3gen


def _build_conditionals(prompt_tokens: int, sample_tokens: int) -> Any:
    tokens = torch.randint(0, SOUND_TOKENS, (1, sample_tokens))
    return Conditionals(
        T3Cond(
            speaker_emb=torch.rand(1, 256),
            cond_prompt_speech_tokens=torch.randint(0, SOUND_TOKENS, (1, prompt_tokens)),
            emotion_adv=torch.full((1, 1, 1), 0.5),
        ),
        {
            "prompt_token": tokens,
            "prompt_token_len": torch.tensor([sample_tokens]),
            "prompt_feat": torch.randn(1, 2 * sample_tokens, 80) - 4,
            "prompt_feat_len": None,
            "embedding": torch.randn(1, 192),
        },
    )
