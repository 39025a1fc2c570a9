"""Small random ONNX models in the form of each family of small voices, with the files they need.

Their sound depends on every token, the voice, the speed and the noise they get.

Source: inputs and outputs of Kokoro, Kitten and Piper as their publishers' graphs have them; of the
others also metadata, as sherpa-onnx 2.0.1 reads them (`sherpa-onnx/csrc/offline-tts-*-model.cc`,
`vocos-vocoder.cc`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from studio.backends.sherpa.catalogue import CATALOGUE

IPA = "_^$ !,.:;?abcdefhijklmnopqrstuvwxyzæçðøŋœɐɑɒɔəɚɛɜɡɪɹɾʃʊʌʒʔʤʧʲθɫˈˌːᵊAIOQWYSTʁɔ̃"
STYLE_ROWS, STYLE = 420, 4
KOKORO_NUMBERS = 178
GRAPHS = ("kokoro", "kitten", "piper")


class Graph:
    """A graph under construction; `add` returns the name of a node's output."""

    def __init__(self, seed: int) -> None:
        self.noise = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: object, outputs: str = "", **attributes: object) -> str:
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        name = outputs or f"{op}{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, names, [name], **attributes))
        return name

    def random(self, *shape: int, scale: float = 0.3) -> np.ndarray:
        return (scale * self.noise.standard_normal(shape)).astype(np.float32)

    def finish(
        self,
        inputs: Mapping[str, tuple[type, list[object]]],
        outputs: list[str],
        metadata: Mapping[str, object] = {},
    ) -> bytes:
        graph = helper.make_graph(
            self._nodes,
            "random",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape
                )
                for name, (kind, shape) in inputs.items()
            ],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            self._constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        for key, value in metadata.items():
            entry = model.metadata_props.add()
            entry.key, entry.value = key, str(value)
        return model.SerializeToString()

    def _constant(self, value: object) -> str:
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name


def _table(symbols: str) -> bytes:
    rows = [f"{symbol} {number}" for number, symbol in enumerate(dict.fromkeys(symbols))]
    return ("\n".join(rows) + "\n").encode()


def _spoken(
    graph: Graph, tokens: str, n_tokens: int, gain: object, speed: object, *, noisy: bool = False
) -> str:
    """Sound of 2,000 samples a token, of a random table, with a gain and a speed: [samples].

    With `noisy`, a node draws noise as in the released graphs, from a seed of its own.
    """
    table = np.repeat(graph.random(n_tokens, 50), 40, axis=1).astype(np.float16)
    found = graph.add("Cast", graph.add("Gather", table, tokens, axis=0), to=TensorProto.FLOAT)
    flat = graph.add("Reshape", found, [1, 1, -1])
    scales = graph.add("Concat", np.ones(2, np.float32), graph.add("Reciprocal", speed), axis=0)
    stretched = graph.add("Resize", flat, np.zeros(0, np.float32), scales, mode="linear")
    louder = graph.add("Mul", stretched, graph.add("Tanh", gain))
    if noisy:
        noise = graph.add("RandomNormalLike", louder, scale=0.1, seed=7.0)
        louder = graph.add("Add", louder, noise)
    return graph.add("Reshape", louder, [-1], outputs="audio")


def kokoro(
    styles: Mapping[str, np.ndarray] | None = None, *, noisy: bool = False
) -> dict[str, bytes]:
    """As kokoro-onnx publishes it; `styles` are [rows, 1, 4], by default of every preset."""
    names = CATALOGUE["kokoro"].places
    archive = io.BytesIO()
    np.savez(archive, **(styles or {name: style(place) for place, name in enumerate(names)}))
    return {
        "kokoro-v1.0.int8.onnx": kokoro_graph(noisy=noisy),
        "voices-v1.0.bin": archive.getvalue(),
    }


def style(place: int) -> np.ndarray:
    """A voice's style, which is the louder the later its place: [rows, 1, 4]."""
    return np.full((STYLE_ROWS, 1, STYLE), 0.5 + place / 36, np.float32)


def kokoro_graph(*, width: int = STYLE, noisy: bool = False) -> bytes:
    graph = Graph(1)
    gain = graph.add("ReduceMean", "style", axes=[0, 1], keepdims=0)
    _spoken(graph, "tokens", KOKORO_NUMBERS, gain, "speed", noisy=noisy)
    inputs = {
        "tokens": (np.int64, [1, "n"]),
        "style": (np.float32, [1, width]),
        "speed": (np.float32, [1]),
    }
    return graph.finish(inputs, ["audio"])


def kitten() -> dict[str, bytes]:
    graph = Graph(2)
    gain = graph.add("ReduceMean", "style", axes=[0, 1], keepdims=0)
    _spoken(graph, "input_ids", len(IPA), gain, "speed")
    inputs = {
        "input_ids": (np.int64, [1, "n"]),
        "style": (np.float32, [1, 256]),
        "speed": (np.float32, [1]),
    }
    gains = np.linspace(0.5, 2.0, 8, dtype=np.float32)
    return {
        "model.fp32.onnx": graph.finish(inputs, ["audio"]),
        "voices.bin": np.repeat(gains, 400 * 256).tobytes(),
        "tokens.txt": _table(IPA),
    }


def piper_graph(speakers: int) -> bytes:
    graph = Graph(3)
    speed = graph.add("Reciprocal", graph.add("Slice", "scales", [1], [2]))
    inputs = {
        "input": (np.int64, [1, "n"]), "input_lengths": (np.int64, [1]),
        "scales": (np.float32, [3]), "sid": (np.int64, [1]),
    }  # fmt: skip
    gain: object = 1.0
    if speakers > 1:
        sid = graph.add("Cast", "sid", to=TensorProto.FLOAT)
        gain = graph.add("Add", graph.add("Div", sid, float(speakers)), 0.5)
    else:
        inputs.pop("sid")
    _spoken(graph, "input", len(IPA), gain, speed)
    return graph.finish(inputs, ["audio"])


def piper() -> dict[str, bytes]:
    return {"en_US-libritts_r-medium.onnx": piper_graph(904), "tokens.txt": _table(IPA)}


def supertonic(rate_hz: int = 44_100) -> dict[str, bytes]:
    text = {"text_ids": (np.int64, [1, "t"]), "text_mask": (np.float32, [1, 1, "t"])}
    style = {"style": (np.float32, [1, 2, 4])}
    duration = Graph(4)
    length = duration.add("ReduceSum", "text_mask", [1, 2], keepdims=0)
    duration.add("Mul", length, 0.07, outputs="duration")
    encoder = Graph(5)
    table = encoder.random(128, 8)
    encoder.add(
        "Transpose", encoder.add("Gather", table, "text_ids"), perm=[0, 2, 1], outputs="emb"
    )
    estimator = Graph(6)
    pooled = estimator.add("ReduceMean", "text_emb", axes=[2])  # [1, 8, 1]
    tuned = estimator.add("Mul", pooled, estimator.add("ReduceMean", "style", axes=[1, 2]))
    halved = estimator.add("Mul", "noisy", 0.5)
    moved = estimator.add(
        "Add", halved, estimator.add("Tanh", estimator.add("Tile", tuned, [1, 2, 1]))
    )
    estimator.add("Mul", moved, "latent_mask", outputs="denoised")
    vocoder = Graph(7)
    frames = vocoder.add("Transpose", "latent", perm=[0, 2, 1])  # [1, n, 16]
    spread = vocoder.add("Tile", vocoder.add("Tanh", frames), [1, 1, 64])
    vocoder.add("Reshape", spread, [1, -1], outputs="wav")
    noisy = {
        "noisy": (np.float32, [1, 16, "n"]), "text_emb": (np.float32, [1, 8, "t"]),
        "style": (np.float32, [1, 2, 4]), "latent_mask": (np.float32, [1, 1, "n"]),
        "text_mask": (np.float32, [1, 1, "t"]),
        "step": (np.float32, [1]), "steps": (np.float32, [1]),
    }  # fmt: skip
    inputs = {"text_ids": text["text_ids"], **style, "text_mask": text["text_mask"]}
    indexer = np.where(np.arange(65_536) < 128, np.arange(65_536), -1).astype(np.int32)
    dims = np.array([10, 2, 4, 10, 2, 4], np.int64).tobytes()
    styles = np.repeat(np.linspace(0.3, 1.5, 10, dtype=np.float32), 8).tobytes()
    settings = {
        "ae": {"sample_rate": rate_hz, "base_chunk_size": 512},
        "ttl": {"chunk_compress_factor": 2, "latent_dim": 8},
    }
    return {
        "duration_predictor.int8.onnx": duration.finish(inputs, ["duration"]),
        "text_encoder.int8.onnx": encoder.finish(inputs, ["emb"]),
        "vector_estimator.int8.onnx": estimator.finish(noisy, ["denoised"]),
        "vocoder.int8.onnx": vocoder.finish({"latent": (np.float32, [1, 16, "n"])}, ["wav"]),
        "tts.json": json.dumps(settings).encode(),
        "unicode_indexer.bin": indexer.tobytes(),
        "voice.bin": dims + styles + styles,
    }


def pocket() -> dict[str, bytes]:
    text = Graph(8)
    rows = text.add("Gather", text.random(512, 1), "token_ids")  # [1, t, 1]
    text.add("Tile", rows, [1, 1, 1024], outputs="embeddings")
    encoder = Graph(9)
    power = encoder.add("ReduceMean", encoder.add("Mul", "audio", "audio"), axes=[2])  # [1, 1, 1]
    encoder.add("Tile", power, [1, 3, 1024], outputs="voice")
    main = Graph(10)
    heard = main.add("ReduceMean", "text_embeddings", axes=[2])  # [1, t, 1]
    said = main.add("ReduceMean", "sequence", axes=[2])  # [1, s, 1]; not a number at first
    clean = main.add("Where", main.add("IsNaN", said), 0.0, said)
    counts = [
        main.add("Cast", main.add("Slice", main.add("Shape", one), [1], [2]), to=TensorProto.FLOAT)
        for one in ("text_embeddings", "sequence")
    ]
    sums = [main.add("ReduceSum", one, [0, 1, 2], keepdims=0) for one in (heard, clean)]
    joined = main.add("Concat", *counts, *(main.add("Reshape", one, [1]) for one in sums), axis=0)
    state = main.add("Add", "state", main.add("Reshape", joined, [1, 4]), outputs="new_state")
    wanted = main.add("Mul", main.add("Slice", state, [0], [1], [1]), 1.0)
    frames = main.add("Slice", state, [1], [2], [1])
    main.add("Sub", frames, wanted, outputs="eos_logit")
    content = main.add("Slice", state, [2], [4], [1])
    main.add("Tile", main.add("Sin", content), [1, 16], outputs="conditioning")
    flow = Graph(11)
    pull = flow.add("Sub", "c", "x")
    flow.add("Mul", pull, 0.5, outputs="direction")
    decoder = Graph(12)
    mixed = decoder.add("Add", "latent", decoder.add("Mul", "state", 0.1))
    samples = decoder.add("Tile", decoder.add("Tanh", mixed), [1, 1, 60])
    decoder.add("Reshape", samples, [1, 1, -1], outputs="audio")
    decoder.add("Slice", "latent", [-1], [1_000_000], [1], outputs="new_state")
    bytes_of_others = [f"<0x{number:02X}>" for number in range(256)]
    letters = ["▁", *(chr(code) for code in range(33, 127)), *bytes_of_others]
    return {
        "text_conditioner.onnx": text.finish({"token_ids": (np.int64, [1, "t"])}, ["embeddings"]),
        "encoder.onnx": encoder.finish({"audio": (np.float32, [1, 1, "n"])}, ["voice"]),
        "lm_main.int8.onnx": main.finish(
            {
                "sequence": (np.float32, [1, "s", 32]),
                "text_embeddings": (np.float32, [1, "t", 1024]),
                "state": (np.float32, [1, 4]),
            },
            ["conditioning", "eos_logit", "new_state"],
        ),
        "lm_flow.int8.onnx": flow.finish(
            {
                "c": (np.float32, [1, 32]), "s": (np.float32, [1, 1]),
                "t": (np.float32, [1, 1]), "x": (np.float32, [1, 32]),
            },
            ["direction"],
        ),
        "decoder.int8.onnx": decoder.finish(
            {"latent": (np.float32, [1, "t", 32]), "state": (np.float32, [1, 1, 32])},
            ["audio", "new_state"],
        ),
        "vocab.json": json.dumps({one: number for number, one in enumerate(letters)}).encode(),
        "token_scores.json": json.dumps({one: -1.0 for one in letters}).encode(),
    }  # fmt: skip


def zipvoice() -> dict[str, bytes]:
    """Its noise is drawn by sherpa-onnx without a seed; the vocoder rounds it away."""
    mels = 8
    encoder = Graph(13)
    table = np.round(16 * encoder.random(len(IPA), mels)) / np.float32(16)
    spoken = encoder.add("Gather", table, "tokens")  # [1, t, mels]
    frames = encoder.add("Transpose", spoken, perm=[0, 2, 1])
    scale = encoder.add("Div", 8.0, "speed")
    scales = encoder.add("Concat", np.ones(2, np.float32), scale, axis=0)
    said = encoder.add("Resize", frames, np.zeros(0, np.float32), scales, mode="nearest")
    before = encoder.add("Concat", [1], [mels], "prompt_features_len", axis=0)
    told = encoder.add(
        "ReduceMean",
        encoder.add("Cast", "prompt_tokens", to=TensorProto.FLOAT),
        axes=[0, 1],
        keepdims=0,
    )
    silent = encoder.add("Mul", encoder.add("Expand", 0.001, before), told)
    joined = encoder.add("Concat", silent, said, axis=2)
    encoder.add("Transpose", joined, perm=[0, 2, 1], outputs="text_condition")
    decoder = Graph(14)
    way = decoder.add("Sub", "text_condition", "x")
    decoder.add("Div", way, decoder.add("Sub", 1.0, "t"), outputs="v")
    vocoder = Graph(15)
    rounded = vocoder.add("Div", vocoder.add("Round", vocoder.add("Mul", "mels", 16.0)), 160.0)
    frames = vocoder.add("Transpose", rounded, perm=[0, 2, 1])
    bins = vocoder.add("MatMul", frames, vocoder.random(mels, 513, scale=4.0))
    spectrum = vocoder.add("Transpose", bins, perm=[0, 2, 1])
    vocoder.add("Abs", spectrum, outputs="mag")
    vocoder.add("Cos", spectrum, outputs="x")
    vocoder.add("Sin", spectrum, outputs="y")
    sound = {"sample_rate": 24_000, "n_fft": 1024, "hop_length": 256}
    return {
        "zipvoice_distill/text_encoder_int8.onnx": encoder.finish(
            {
                "tokens": (np.int64, [1, "t"]), "prompt_tokens": (np.int64, [1, "p"]),
                "prompt_features_len": (np.int64, [1]), "speed": (np.float32, [1]),
            },
            ["text_condition"],
            {"use_espeak": 1},
        ),
        "zipvoice_distill/fm_decoder_int8.onnx": decoder.finish(
            {
                "t": (np.float32, [1]), "x": (np.float32, [1, "n", mels]),
                "text_condition": (np.float32, [1, "n", mels]),
                "speech_condition": (np.float32, [1, "n", mels]),
                "guidance_scale": (np.float32, [1]),
            },
            ["v"],
            {"version": 1, "feat_dim": mels, "num_mels": mels, "window_length": 1024, **sound},
        ),
        "zipvoice_distill/tokens.txt": _table(IPA).replace(b" ", b"\t"),
        "vocos_24khz.onnx": vocoder.finish(
            {"mels": (np.float32, [1, mels, "n"])},
            ["mag", "x", "y"],
            {"model_type": "vocos", "win_length": 1024, "center": 1, **sound},
        ),
    }  # fmt: skip


FILES: Mapping[str, Callable[[], dict[str, bytes]]] = {
    "kokoro": kokoro, "supertonic": supertonic, "kitten": kitten, "piper": piper,
    "pocket": pocket, "zipvoice": zipvoice,
}  # fmt: skip
