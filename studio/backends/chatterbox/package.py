"""Loading Chatterbox through the package's own `from_local`."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from chatterbox.models.s3gen import s3gen
from chatterbox.models.s3gen.utils import mel
from chatterbox.models.tokenizers import tokenizer
from chatterbox.mtl_tts import ChatterboxMultilingualTTS
from chatterbox.tts import ChatterboxTTS
from chatterbox.tts_turbo import ChatterboxTurboTTS
from torch.overrides import TorchFunctionMode

from studio.backends.chatterbox.segmenter import WITHOUT, segmenter
from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL, TURBO, Variant
from studio.backends.faults import load_faults

log = logging.getLogger(__name__)

_CLASSES = {
    ENGLISH.name: ChatterboxTTS,
    MULTILINGUAL.name: ChatterboxMultilingualTTS,
    TURBO.name: ChatterboxTurboTTS,
}
# Guards the process's standard output and the package's functions while a load swaps them.
_loading = threading.Lock()


def load_package(variant: Variant, folder: Path, device: str) -> Any:
    """Load a variant from a folder; asks no network.

    Raises:
        ModelUnavailable: As from `load_faults`.
    """
    # The package prints while it loads; standard output is the command line's.
    swapped = contextlib.redirect_stdout(sys.stderr), _reading_locally(folder)
    faults = load_faults(variant.title, folder)
    with faults, _loading, swapped[0], swapped[1], _Unfilled():
        return _CLASSES[variant.name].from_local(folder, device)


def forget_devices() -> None:
    """Drop what the package keeps on a device for the whole process: resamplers and mel bases."""
    s3gen.get_resampler.cache_clear()
    mel.mel_basis.clear()
    mel.hann_window.clear()


class _Unfilled(TorchFunctionMode):  # type: ignore[misc]
    """Leaves out the random filling of weights that are read from files next; this thread only.

    For the 800 million weights of a full model it takes longer than reading them.
    """

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        if function in {torch.Tensor.uniform_, torch.Tensor.normal_}:
            return arguments[0]
        return function(*arguments, **(options or {}))


@contextlib.contextmanager
def _reading_locally(folder: Path) -> Iterator[None]:
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


def _init_segmenter(converter: Any) -> None:
    converter.segmenter = segmenter()
    if converter.segmenter is None:
        log.info(WITHOUT)
