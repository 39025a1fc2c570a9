"""A model in the form of CAM++, which takes the mean of each band.

So it tells voices apart as far as their colour does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sherpa_models import Graph

from studio.backends.base import WeightFile, WeightSource
from studio.hearing.model_catalogue import HearingModel, Purpose

METADATA = {
    "framework": "3d-speaker",
    "language": "English",
    "url": "",
    "comment": "",
    "sample_rate": 16_000,
    "output_dim": 80,
    "normalize_samples": 1,
    "feature_normalize_type": "",
}


def build_embedding_model() -> bytes:
    """The mean of each of 80 bands over time, less the mean of all: [N, 80]."""
    graph = Graph(3)
    bands = graph.add("ReduceMean", "x", axes=[1], keepdims=0)
    middle = graph.add("ReduceMean", bands, axes=[1], keepdims=1)
    graph.add("Sub", bands, middle, outputs="embedding")
    return graph.finish({"x": (np.float32, ["N", "T", 80])}, ["embedding"], METADATA)


def write_voiceprints(folder: Path, data: bytes | None = None) -> HearingModel:
    """A model of voices that lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "voices.onnx").write_bytes(build_embedding_model() if data is None else data)
    source = WeightSource(str(folder), ("voices.onnx",), {"model": WeightFile("voices.onnx")})
    return HearingModel(
        name="small",
        title="A small model",
        purpose=Purpose.VOICES,
        family="campplus",
        summary="For tests.",
        code_licence="MIT",
        weights_licence="MIT",
        size_bytes=1_000,
        sources=(source,),
    )
