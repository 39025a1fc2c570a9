"""A model in the form of Whisper that takes deep sounds for English and hiss for German.

Source: inputs, outputs and metadata as sherpa-onnx 2.0.1 reads them
(`sherpa-onnx/csrc/offline-whisper-model.cc`).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sherpa_models import Graph

from studio.backends.base import WeightFile, WeightSource
from studio.hearing.model_catalogue import HearingModel, Purpose

METADATA = {
    "model_type": "whisper-small", "version": 1, "n_mels": 80, "n_text_layer": 1, "n_text_ctx": 8,
    "n_text_state": 2, "n_vocab": 9, "sot": 1, "eot": 2, "blank_id": 0, "translate": 3,
    "transcribe": 4, "is_multilingual": 1, "no_timestamps": 7, "no_speech": 8,
    "sot_sequence": "1,5,4", "all_language_tokens": "5,6", "all_language_codes": "en,de",
}  # fmt: skip
CACHE = (np.float32, [1, 1, 8, 2])


def write_whisper(folder: Path, metadata: dict[str, object] = METADATA) -> HearingModel:
    """A recogniser whose model lies in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    encoder = Graph(1)
    bands = np.repeat([1.0, 0.0, -1.0], [20, 40, 20]).astype(np.float32).reshape(1, 80, 1)
    slope = encoder.add("ReduceMean", encoder.add("Mul", "mel", bands), axes=[1, 2], keepdims=0)
    for name in ("n_layer_cross_k", "n_layer_cross_v"):
        encoder.add("Reshape", slope, [1, 1, 1, 1], outputs=name)
    inputs = {"mel": (np.float32, [1, 80, "t"])}
    outputs = ["n_layer_cross_k", "n_layer_cross_v"]
    (folder / "encoder.onnx").write_bytes(encoder.finish(inputs, outputs, metadata))
    decoder = Graph(2)
    chances = np.array([0, 0, 0, 0, 0, 1, -1, 0, 0], np.float32)
    said = decoder.add("Mul", decoder.add("ReduceSum", "cross_k", keepdims=0), chances)
    decoder.add("Reshape", said, [1, 1, 9], outputs="logits")
    kept = []
    for name in ("k", "v"):
        kept.append(decoder.add("Identity", f"self_{name}", outputs=f"out_{name}"))
    cross = (np.float32, [1, 1, 1, 1])
    inputs = {
        "tokens": (np.int64, [1, "n"]), "self_k": CACHE, "self_v": CACHE,
        "cross_k": cross, "cross_v": cross, "offset": (np.int64, [1]),
    }  # fmt: skip
    (folder / "decoder.onnx").write_bytes(decoder.finish(inputs, ["logits", *kept]))
    (folder / "tokens.txt").write_text("".join(f"YQ== {number}\n" for number in range(9)))
    paths = {"encoder": "encoder.onnx", "decoder": "decoder.onnx", "tokens": "tokens.txt"}
    files = {role: WeightFile(path) for role, path in paths.items()}
    return HearingModel(
        name="whisper-tests",
        title="Whisper of the tests",
        purpose=Purpose.WORDS,
        family="whisper",
        summary="For tests.",
        languages=("en", "de"),
        code_licence="MIT",
        weights_licence="MIT",
        size_bytes=1_000,
        sources=(WeightSource(str(folder), tuple(paths.values()), files),),
    )
