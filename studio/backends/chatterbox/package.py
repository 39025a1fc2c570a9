"""Loading Chatterbox through the package's own `from_local`."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
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
from safetensors import SafetensorError
from torch.overrides import TorchFunctionMode

from studio.backends.chatterbox.variants import ENGLISH, MULTILINGUAL, TURBO, Variant
from studio.errors import ModelUnavailable

log = logging.getLogger(__name__)

_CLASSES = {
    ENGLISH.name: ChatterboxTTS,
    MULTILINGUAL.name: ChatterboxMultilingualTTS,
    TURBO.name: ChatterboxTurboTTS,
}
# Guards the process's standard output and the package's functions while a load swaps them.
_loading = threading.Lock()
_BROKEN = (OSError, RuntimeError, ValueError, KeyError, SafetensorError, pickle.UnpicklingError)


def load_package(variant: Variant, folder: Path, device: str) -> Any:
    """Load a variant from a folder; asks no network.

    Raises:
        ModelUnavailable: A file is broken or belongs to another model.
    """
    # The package prints while it loads; standard output is the command line's.
    swapped = contextlib.redirect_stdout(sys.stderr), _reading_locally(folder)
    with _loading, swapped[0], swapped[1], _Unfilled():
        try:
            return _CLASSES[variant.name].from_local(folder, device)
        except _BROKEN as error:
            reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            raise ModelUnavailable(
                f"{variant.title} can't be loaded from {folder} ({reason}). Put the whole, "
                "unchanged model there, or delete the folder to download it again."
            ) from error


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
    segmenters = Path(os.environ.get("PKUSEG_HOME", "~/.pkuseg")).expanduser()
    if not (segmenters / "spacy_ontonotes").is_dir():
        converter._init_segmenter = _without_segmenter
    try:
        yield
    finally:
        tokenizer.hf_hub_download, converter._init_segmenter = download, segment


def _without_segmenter(converter: Any) -> None:
    """What the package does itself where the segmenter isn't installed."""
    log.info("Chinese is read without word boundaries: there is no segmenter model.")
    converter.segmenter = None
