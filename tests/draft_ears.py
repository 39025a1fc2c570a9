"""The recogniser of the tests, by benchmarks/train_recogniser.py: it knows the draft voice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studio.backends.base import WeightFile, WeightSource
from studio.hearing.model_catalogue import HearingModel, Purpose

FOLDER = Path(__file__).parent / "hearing" / "draft_ears"


def catalogue(folder: Path = FOLDER) -> Mapping[str, HearingModel]:
    """A catalogue with this recogniser alone, in a folder of its own."""
    model = HearingModel(
        name="draft-ears",
        title="Draft ears",
        purpose=Purpose.WORDS,
        family="nemo_ctc",
        summary="Understands the draft voice in English.",
        languages=("en",),
        code_licence="MIT",
        weights_licence="MIT",
        size_bytes=(folder / "model.onnx").stat().st_size if folder.is_dir() else 0,
        word_times=True,
        sources=(
            WeightSource(
                str(folder),
                ("model.onnx", "tokens.txt"),
                {"model": WeightFile("model.onnx"), "tokens": WeightFile("tokens.txt")},
            ),
        ),
    )
    return {model.name: model}
