"""The recogniser of the tests, by benchmarks/train_recogniser.py: it knows the draft voice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studio.backends.sherpa.catalogue import HubSource
from studio.hearing.recogniser_catalogue import RecogniserModel

FOLDER = Path(__file__).parent / "hearing" / "draft_ears"


def catalogue(folder: Path = FOLDER) -> Mapping[str, RecogniserModel]:
    """A catalogue with this recogniser alone, in a folder of its own."""
    model = RecogniserModel(
        "draft-ears",
        "Draft ears",
        "nemo_ctc",
        "Understands the draft voice in English.",
        ("en",),
        "MIT",
        "MIT",
        (folder / "model.onnx").stat().st_size if folder.is_dir() else 0,
        word_times=True,
        sources=(HubSource(str(folder), {"model": "model.onnx", "tokens": "tokens.txt"}),),
    )
    return {model.name: model}
