"""Word boundaries for Chinese, which the multilingual model was trained with.

The package fetches its segmenter's model without a word, and again wherever it is missing. Here
that happens with the model's load, shown as its progress; without it Chinese is still read.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from studio.backends.base import LoadProgress
from studio.errors import ModelUnavailable

WITHOUT = (
    "Chinese is read without word boundaries, which sounds worse: their model isn't on this "
    "machine. Load Chatterbox Multilingual again with a network to have it."
)
_MODEL = "spacy_ontonotes"

log = logging.getLogger(__name__)


def segmenter_folder() -> Path:
    """Where the segmenter's package looks for its model."""
    return Path(os.environ.get("PKUSEG_HOME", "~/.pkuseg")).expanduser() / _MODEL


def fetch_segmenter(progress: Callable[[LoadProgress], None]) -> None:
    """Fetch what is needed for word boundaries, where it isn't here; go on where it can't be had.

    Raises:
        Cancelled: `progress` raised it.
    """
    folder = segmenter_folder()
    if (
        folder.is_dir()
        or constants.HF_HUB_OFFLINE
        or importlib.util.find_spec("spacy_pkuseg") is None
    ):
        return
    from spacy_pkuseg.config import Config

    from studio.backends.loading.archive import fetch_archive

    try:
        fetch_archive(
            Config.model_urls[_MODEL],
            sha256=Config.model_hash[_MODEL],
            folder=folder,
            progress=progress,
        )
    except ModelUnavailable as error:
        log.warning("%s (%s)", WITHOUT, error)


def segmenter() -> Any:
    """The package's `pkuseg`; None where its model isn't here."""
    folder = segmenter_folder()
    if not folder.is_dir():
        return None
    from spacy_pkuseg import pkuseg

    return pkuseg(str(folder))
