"""Memory of a codec's step: the tensors that live at once beside weights and state."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.synthetic_qwen3 import SIZES, _codec_config
from studio.backends.qwen3.codec import CodecDecoder


def full_size_decoder(device: str) -> Any:
    """The package's decoder as in the released models, with random weights; none on "meta"."""
    from qwen_tts.core.tokenizer_12hz import (
        configuration_qwen3_tts_tokenizer_v2 as configuration,
    )
    from qwen_tts.core.tokenizer_12hz import (
        modeling_qwen3_tts_tokenizer_v2 as modeling,
    )

    config = configuration.Qwen3TTSTokenizerV2Config(**_codec_config(SIZES["0.6B"]))
    with torch.device(device):
        return modeling.Qwen3TTSTokenizerV2Decoder(config.decoder_config).eval()


def full_size_step(device: str) -> CodecDecoder:
    """The step of such a decoder."""
    return CodecDecoder(full_size_decoder(device))


def _tensors(nest: Any) -> list[torch.Tensor]:
    """All but weights in a library's own order, which show no storage."""
    return [one for one in tree_leaves(nest) if torch.is_tensor(one) and not one.is_mkldnn]


class Living(TorchDispatchMode):
    """Counts the bytes of tensors that operations make, until they are given up."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes: dict[int, int] = {}
        self.most = 0

    @classmethod
    def most_bytes(cls, step: CodecDecoder, *, rows: int, frames: int) -> int:
        """The most that lives at once while a chunk is decoded."""
        state = step.new_state(rows)
        codes = torch.zeros(rows, frames, step.groups, dtype=torch.int64, device=step.device)
        with cls() as living:
            made = step(codes, state)
        del made
        return living.most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {id(one.untyped_storage()) for one in _tensors((args, kwargs))}
        out = func(*args, **(kwargs or {}))
        for one in _tensors(out):
            if id(one.untyped_storage()) not in given:
                self._count(one.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = id(storage)
        if key not in self._bytes:
            self._bytes[key] = storage.nbytes()
            self.most = max(self.most, sum(self._bytes.values()))
            weakref.finalize(storage, self._bytes.pop, key, None)
