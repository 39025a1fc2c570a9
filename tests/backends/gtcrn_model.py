"""A model in the form of GTCRN, whose mask is worked out by hand: it takes a level of noise away.

Source: inputs, outputs and metadata as sherpa-onnx 2.0.1 reads them
(`sherpa-onnx/csrc/offline-speech-denoiser-gtcrn-model.cc`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sherpa_models import Graph

from studio.backends.base import WeightFile, WeightSource
from studio.hearing.model_catalogue import HearingModel, Purpose

METADATA = {
    "model_type": "gtcrn",
    "version": 1,
    "sample_rate": 16_000,
    "n_fft": 512,
    "hop_length": 256,
    "window_length": 512,
    "window_type": "hann_sqrt",
    "conv_cache_shape": "2,1,16,16,33",
    "tra_cache_shape": "2,3,1,1,16",
    "inter_cache_shape": "2,1,33,16",
}
CACHES = {
    "conv_cache": (np.float32, [2, 1, 16, 16, 33]),
    "tra_cache": (np.float32, [2, 3, 1, 1, 16]),
    "inter_cache": (np.float32, [2, 1, 33, 16]),
}


def build_gtcrn(floor: float = 0.6, metadata: dict[str, object] = METADATA) -> bytes:
    """The model: each bin loses `floor` of its amplitude, down to nothing."""
    graph = Graph(15)
    squares = graph.add("Mul", "mix", "mix")
    power = graph.add("ReduceSum", squares, np.array([3], dtype=np.int64), keepdims=1)
    size = graph.add("Sqrt", graph.add("Add", power, np.float32(1e-12)))
    left = graph.add("Relu", graph.add("Sub", size, np.float32(floor)))
    graph.add("Mul", "mix", graph.add("Div", left, size), outputs="enh")
    for name in CACHES:
        graph.add("Identity", name, outputs=f"{name}_out")
    outputs = ["enh", *(f"{name}_out" for name in CACHES)]
    return graph.finish({"mix": (np.float32, [1, 257, 1, 2]), **CACHES}, outputs, metadata)


def write_gtcrn(folder: Path, data: bytes | None = None) -> HearingModel:
    """A denoiser whose model lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gtcrn.onnx").write_bytes(build_gtcrn() if data is None else data)
    source = WeightSource(str(folder), ("gtcrn.onnx",), {"model": WeightFile("gtcrn.onnx")})
    return HearingModel(
        name="small-denoiser",
        title="A small denoiser",
        purpose=Purpose.NOISE,
        family="gtcrn",
        summary="For tests.",
        code_licence="MIT",
        weights_licence="MIT",
        size_bytes=1_000,
        sources=(source,),
    )
