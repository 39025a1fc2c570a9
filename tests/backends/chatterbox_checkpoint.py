"""Small Chatterbox checkpoints in the package's own folder format, and what a test does with them.

The package's classes are all real; only their sizes shrink. Its constructors take no sizes, so
`small_architecture` puts smaller ones where the package looks them up, for building and loading.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.audio.clip import STUDIO_RATE_HZ, Clip, Samples
from studio.backends.base import Conditioning, SpeechRequest
from studio.backends.chatterbox import variants as chatterbox_variants
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.options import BackendOptions
from studio.voices.speaker import Sample, Voice

BY_NAME = {variant.name: variant for variant in chatterbox_variants.VARIANTS}
VARIANTS = tuple(BY_NAME)


def short_form(*variants: str) -> list[Any]:
    """All variants as parameters, in order; those not named are tried in campaigns only."""
    return [
        name if name in variants else pytest.param(name, marks=pytest.mark.campaign)
        for name in VARIANTS
    ]


LINE_TOKENS = 14
"""Speech tokens after which a line becomes likely to end; turbo's lines are longer."""

_SPECIAL = ("[STOP]", "[UNK]", "[SPACE]", "[PAD]", "[SEP]", "[CLS]", "[MASK]")
_START_ID = 255
_N_SOUNDS = 6561
_STOP_TOKEN = 6562
_PROMPT_TOKENS = {"chatterbox": 25, "chatterbox-multilingual": 25, "chatterbox-turbo": 140}
_TURBO_POSITIONS = 195
_SMALL_S3GEN = {
    "CAMPPlus": {"growth_rate": 8, "init_channels": 32},
    "UpsampleConformerEncoder": {
        "num_blocks": 1,
        "input_size": 64,
        "output_size": 64,
        "attention_heads": 2,
        "linear_units": 64,
    },
    "CausalMaskedDiffWithXvec": {"input_size": 64},
    "ConditionalDecoder": {
        "n_blocks": 1,
        "num_mid_blocks": 0,
        "channels": [32],
        "attention_head_dim": 8,
        "num_heads": 2,
    },
    "ConvRNNF0Predictor": {"cond_channels": 32},
    "HiFTGenerator": {
        "base_channels": 64,
        "resblock_kernel_sizes": [3, 7],
        "resblock_dilation_sizes": [[1, 3]] * 2,
        "source_resblock_dilation_sizes": [[1, 3]] * 3,
    },
}
_WIDTH = 128
_WATCHED = ((3, 15), (4, 11), (1, 2))  # layer and head; layers 12, 13 and 9 in the released model
_SMALL_GPT2 = {"n_layer": 2, "n_head": 4, "n_embd": 64, "hidden_size": 64}


def _small_llama(variant: str) -> dict[str, Any]:
    return {
        "hidden_size": _WIDTH,
        "num_hidden_layers": 5 if variant == "chatterbox-multilingual" else 2,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "head_dim": 8,
        "intermediate_size": 64,
    }


def _watch_low_layers() -> None:
    """Let the multilingual model's analyzer watch layers that a small model has, too.

    For good, since package and studio read the list when a line begins: a third of 14 layers'
    time. It counts for models of full size as well, so that all of a run are alike.
    """
    from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS

    from studio.backends.chatterbox import alignment

    LLAMA_ALIGNED_HEADS[:] = _WATCHED
    alignment._HEAD_OF_LAYER.clear()
    alignment._HEAD_OF_LAYER.update(_WATCHED)


@contextmanager
def small_architecture(variant: str) -> Iterator[None]:
    """Make the package build and load a small model of a variant."""
    from chatterbox.models.s3gen import s3gen
    from chatterbox.models.s3gen.transformer import upsample_encoder
    from chatterbox.models.t3.llama_configs import LLAMA_CONFIGS
    from chatterbox.models.t3.modules import cond_enc
    from s3tokenizer.model_v2 import S3TokenizerV2

    _watch_low_layers()
    with pytest.MonkeyPatch.context() as patch:
        for name, smaller in (("Llama_520M", _small_llama(variant)), ("GPT2_medium", _SMALL_GPT2)):
            patch.setitem(LLAMA_CONFIGS, name, LLAMA_CONFIGS[name] | smaller)
        for name, smaller in _SMALL_S3GEN.items():
            patch.setattr(s3gen, name, _with(getattr(s3gen, name), smaller))
        for name, channels in (
            ("PreLookaheadLayer", {"channels": 64}),
            ("Upsample1D", {"channels": 64, "out_channels": 64}),
        ):
            made = getattr(upsample_encoder, name)
            patch.setattr(upsample_encoder, name, _with(made, channels))
        width = {"pre_attention_query_size": _WIDTH, "embedding_dim": _WIDTH}
        patch.setattr(cond_enc, "Perceiver", _with(cond_enc.Perceiver, width))
        tokenizer_config = S3TokenizerV2.__init__.__defaults__[0]
        for name, value in {"n_audio_state": 128, "n_audio_head": 2, "n_audio_layer": 1}.items():
            patch.setattr(tokenizer_config, name, value)
        yield


def _with(make: Callable[..., Any], smaller: dict[str, Any]) -> Callable[..., Any]:
    return lambda *args, **given: make(*args, **{**given, **smaller})


def checkpoint(
    variant: str,
    folders: pytest.TempPathFactory,
    *,
    ends: bool = True,
    full_size: bool = False,
) -> Path:
    """A checkpoint folder of a variant, built once per test run.

    Args:
        variant: One of `VARIANTS`.
        folders: pytest's `tmp_path_factory`.
        ends: Whether its lines come to an end by themselves.
        full_size: Whether it has all the package's weights, about 3 GB.
    """
    folder = folders.getbasetemp() / f"{variant} ends={ends} full_size={full_size}"
    if not folder.exists():
        build_checkpoint(variant, folder, ends=ends, full_size=full_size)
    return folder


def build_checkpoint(variant: str, folder: Path, *, ends: bool = True, full_size: bool) -> None:
    """Write a checkpoint into a new folder; arguments as in `checkpoint`."""
    import torch

    folder.mkdir()
    _watch_low_layers()
    sizes = nullcontext() if full_size else small_architecture(variant)
    with sizes, torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(VARIANTS.index(variant))
        _BUILDERS[variant](folder, ends)
        _write_builtin_voice(folder / "conds.pt", _PROMPT_TOKENS[variant])


def _build_english(folder: Path, ends: bool) -> None:
    from chatterbox.models.t3 import T3
    from safetensors.torch import save_file

    _save_voice_encoder(folder / "ve.safetensors")
    t3 = T3()
    _shape_length(t3, ends)
    save_file(t3.state_dict(), folder / "t3_cfg.safetensors")
    save_file(_s3gen_state(), folder / "s3gen.safetensors")
    _save_grapheme_tokenizer(folder / "tokenizer.json", ())


def _build_multilingual(folder: Path, ends: bool) -> None:
    import torch
    from chatterbox.models.t3 import T3
    from chatterbox.models.t3.modules.t3_config import T3Config
    from chatterbox.models.voice_encoder import VoiceEncoder
    from chatterbox.mtl_tts import SUPPORTED_LANGUAGES
    from safetensors.torch import save_file

    torch.save(VoiceEncoder().state_dict(), folder / "ve.pt")
    t3 = T3(T3Config.multilingual())
    _shape_length(t3, ends)
    save_file(t3.state_dict(), folder / "t3_mtl23ls_v2.safetensors")
    torch.save(_s3gen_state(), folder / "s3gen.pt")
    tags = tuple(f"[{code}]" for code in SUPPORTED_LANGUAGES)
    _save_grapheme_tokenizer(folder / "grapheme_mtl_merged_expanded_v1.json", tags)
    (folder / "Cangjie5_TC.json").write_text(json.dumps(["你\tonf", "好\tvnd"]), "utf-8")


def _build_turbo(folder: Path, ends: bool) -> None:
    import torch
    from chatterbox.models.t3 import T3
    from chatterbox.models.t3.modules.t3_config import T3Config
    from safetensors.torch import save_file

    _save_voice_encoder(folder / "ve.safetensors")
    sizes = T3Config(text_tokens_dict_size=50276)
    sizes.llama_config_name = "GPT2_medium"
    sizes.speech_tokens_dict_size = 6563
    sizes.input_pos_emb = None
    sizes.speech_cond_prompt_len = 375
    sizes.use_perceiver_resampler = False
    sizes.emotion_adv = False
    t3 = T3(sizes)
    # It has no positions of speech to hang an end on, only those of prompt and speech together.
    direction = torch.nn.functional.normalize(torch.randn(t3.dim), dim=0)
    sign = torch.full((len(t3.tfmr.wpe.weight), 1), -1.0)
    if ends:
        sign[_TURBO_POSITIONS:] = 1.0
    t3.tfmr.wpe.weight += 20.0 * sign * direction
    t3.speech_head.weight[_STOP_TOKEN] = 4 * direction
    save_file(t3.state_dict(), folder / "t3_turbo_v1.safetensors")
    save_file(_s3gen_state(meanflow=True), folder / "s3gen_meanflow.safetensors")
    _save_turbo_tokenizer(folder)


_BUILDERS: dict[str, Callable[[Path, bool], None]] = {
    "chatterbox": _build_english,
    "chatterbox-multilingual": _build_multilingual,
    "chatterbox-turbo": _build_turbo,
}


def _shape_length(t3: Any, ends: bool) -> None:
    """Give the stop token weight from the position `LINE_TOKENS` on, and none before it.

    No other token beyond the sounds is ever chosen, as in a trained model. The multilingual one
    may not end before its watched heads have been through the text, at most a token a step.
    """
    import torch

    direction, constant = torch.nn.functional.normalize(torch.randn(2, t3.dim))
    sign = torch.full((len(t3.speech_pos_emb.emb.weight), 1), -1.0)
    if ends:
        sign[LINE_TOKENS:] = 1.0
    t3.speech_pos_emb.emb.weight += 20.0 * (sign * direction + constant)
    t3.speech_head.weight[_N_SOUNDS:] = -constant
    t3.speech_head.weight[_STOP_TOKEN] = direction
    if t3.hp.is_multilingual:
        if ends:
            _look_ahead(t3, constant)
        return
    # Fresh weights hardly listen to voice and text; these do.
    t3.tfmr.layers[0].self_attn.v_proj.weight *= 3
    t3.tfmr.layers[0].self_attn.o_proj.weight *= 3
    t3.speech_head.weight[:_N_SOUNDS] *= 6
    t3.speech_head.weight[_STOP_TOKEN] *= 3.5


def _look_ahead(t3: Any, constant: Any) -> None:
    """Let the watched heads look as far ahead in the text as they are let.

    A token's place in the text is an angle in two dimensions of the embeddings; from every token
    of speech, which all have `constant`, the heads look for the farthest.
    """
    import torch
    from chatterbox.models.t3.inference.alignment_stream_analyzer import LLAMA_ALIGNED_HEADS

    text = torch.linalg.qr(torch.stack([constant, *torch.randn(2, t3.dim)]).T).Q.T[1:]
    angle = (torch.arange(len(t3.text_pos_emb.emb.weight)) / 200).clamp(max=torch.pi / 2)
    t3.text_pos_emb.emb.weight.copy_(30 * torch.stack([angle.cos(), angle.sin()], dim=1) @ text)
    for other in (t3.text_emb.weight, t3.speech_emb.weight):
        other -= other @ text.T @ text
    sharp = 64 / t3.dim**0.5  # a layer reads vectors as long as the root of their size
    for layer, head in LLAMA_ALIGNED_HEADS:
        attention = t3.tfmr.layers[layer].self_attn
        dims = head * attention.head_dim + torch.tensor([3, 7])  # which turn slowest
        attention.q_proj.weight[dims] = sharp * torch.tensor([[0.0], [1.0]]) * constant
        attention.k_proj.weight[dims] = sharp * text


def _save_voice_encoder(path: Path) -> None:
    from chatterbox.models.voice_encoder import VoiceEncoder
    from safetensors.torch import save_file

    save_file(VoiceEncoder().state_dict(), path)


def _s3gen_state(*, meanflow: bool = False) -> dict[str, Any]:
    from chatterbox.models.s3gen import S3Gen

    state = S3Gen(meanflow=meanflow).state_dict()
    # Fresh weights sound much the same whatever is said; louder, no mix-up goes unheard.
    state["mel2wav.conv_pre.parametrizations.weight.original0"] *= 30
    return state


def _save_grapheme_tokenizer(path: Path, tags: tuple[str, ...]) -> None:
    from tokenizers import Tokenizer, models

    letters = "".join(chr(code) for code in range(33, 127)) + "äöüßéèçñ"
    named = (*_SPECIAL, *letters)
    unused = (f"<{idx}>" for idx in range(len(named), _START_ID))
    vocabulary = {name: idx for idx, name in enumerate((*named, *unused, "[START]", *tags))}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token="[UNK]"))
    tokenizer.add_special_tokens([*_SPECIAL, "[START]", *tags])
    tokenizer.save(str(path))


def _save_turbo_tokenizer(folder: Path) -> None:
    """The files that the hub's model has: byte-level letters, and the tags as added tokens."""
    from tokenizers.pre_tokenizers import ByteLevel

    named = (*sorted(ByteLevel.alphabet()), "<|endoftext|>")
    tags = sorted(chatterbox_variants.TURBO_TAGS)
    files = {
        "vocab.json": {name: idx for idx, name in enumerate(named)},
        "added_tokens.json": {f"[{tag}]": 50257 + idx for idx, tag in enumerate(tags)},
        "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "model_max_length": 1024},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), "utf-8")
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")


def _write_builtin_voice(path: Path, n_tokens: int) -> None:
    import torch

    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(0, 6561, (1, n_tokens), generator=generator)
    voice = {
        "t3": {
            "speaker_emb": torch.rand(1, 256, generator=generator),
            "clap_emb": None,
            "cond_prompt_speech_tokens": tokens,
            "cond_prompt_speech_emb": None,
            "emotion_adv": torch.full((1, 1, 1), 0.5),
        },
        "gen": {
            "prompt_token": tokens,
            "prompt_token_len": torch.tensor([n_tokens]),
            "prompt_feat": torch.randn(1, 2 * n_tokens, 80, generator=generator) - 4,
            "prompt_feat_len": None,
            "embedding": torch.randn(1, 192, generator=generator),
        },
    }
    torch.save(voice, path)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch work on one thread a line; small models are quickest so."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@contextmanager
def opened(
    variant: str, folder: Path, device: str = "cpu", **options: Any
) -> Iterator[ChatterboxBackend]:
    """The backend of a variant, loaded from a small checkpoint; on CUDA from one of full size."""
    options = BackendOptions(chatterbox_model=str(folder), device=device, **options)
    backend = ChatterboxBackend(BY_NAME[variant], options)
    sizes = small_architecture(variant) if device == "cpu" else nullcontext()
    with sizes, one_thread():
        backend.load(lambda _progress: None)
        yield backend
        backend.unload()


def request(text: str, conditioning: Conditioning, **fields: Any) -> SpeechRequest:
    """A line with seed 7, unless another is given."""
    return SpeechRequest(text, conditioning, **{"seed": 7, **fields})


def whole(chunks: Iterator[Samples]) -> Samples:
    """A line's chunks joined."""
    return np.concatenate(list(chunks))


def sample_clip(pitch_hz: float, duration_s: float) -> Clip:
    """A buzz with syllables: enough of a voice for models with random weights."""
    time_s = np.arange(round(duration_s * STUDIO_RATE_HZ)) / STUDIO_RATE_HZ
    buzz = sum(np.sin(2 * np.pi * pitch_hz * k * time_s) / k for k in range(1, 12))
    syllables = 0.6 + 0.4 * np.sin(2 * np.pi * 3 * time_s)
    return Clip((0.2 * buzz * syllables).astype(np.float32))


def voice_of(speaker: str, pitch_hz: float, variant: str = "chatterbox") -> Voice:
    """A speaker with a sample as long as the variant needs; its `_PROMPT_TOKENS` last as long."""
    clip = sample_clip(pitch_hz, _PROMPT_TOKENS[variant] / 25)
    return Voice(speaker, Sample(clip, sha256=f"{pitch_hz} Hz, {clip.duration_s} s"))
