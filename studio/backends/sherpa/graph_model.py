"""Kokoro, Kitten and Piper as graphs of ONNX Runtime, from their publishers' files.

Sources: kokoro-onnx 0.5 (`kokoro_onnx/__init__.py`), KittenTTS 0.8 (`onnx_model.py`) and its
`config.json`, piper-tts 1.4 (`voice.py`, `phoneme_ids.py`).
"""

from __future__ import annotations

import json
import re
import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path
from typing import Protocol

import numpy as np

from studio.audio.clip import Samples, join_chunks, resample
from studio.backends.sherpa.catalogue import CatalogueModel
from studio.backends.sherpa.line_pieces import Piece
from studio.backends.sherpa.sherpa_model import (
    SmallVoiceLine,
    SmallVoiceModel,
    describe_load_failure,
    locate_files,
)
from studio.backends.sherpa.styles import StyleTable
from studio.errors import ModelUnavailable, SpeechFailed

STYLE_SHAPES: Mapping[str, tuple[int, int]] = {"kokoro": (510, 256), "kitten": (400, 256)}
"""Of families with styles: the rows and width of one in a file that doesn't say it."""

GRAPH_FAMILIES = frozenset({*STYLE_SHAPES, "vits"})

_ENDS = {"kokoro": ([0], [0]), "kitten": ([0], [10, 0])}  # numbers before and behind the phonemes
_PACES = {"m_hugo": 0.9}  # of Kitten's voices; the others have:
_PACE = {"kitten": 0.8}
_ROW = re.compile(r"(.+?)\s+(\d+)\s*")


class GraphModel(SmallVoiceModel):
    """A model as one graph; a line is computed by the thread that asks for it."""

    def __init__(
        self,
        model: CatalogueModel,
        path: Path,
        numbers: Mapping[str, int],
        cores: threading.Semaphore,
    ) -> None:
        """Load it.

        Args:
            model: Of the catalogue.
            path: Of the graph.
            numbers: Of phonemes.
            cores: One for each line that computes.

        Raises:
            ModelUnavailable: The file is broken, of a newer format, or another model's.
        """
        import onnxruntime

        super().__init__(model, cores)
        self._numbers = numbers
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.enable_mem_pattern = False  # memory would be kept for each length of a piece
        options.log_severity_level = 4
        try:
            self._session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except _faults() as error:
            raise ModelUnavailable(
                describe_load_failure(model, [path.parent], str(error), runtime="ONNX Runtime")
            ) from error
        self._inputs = [one.name for one in self._session.get_inputs()]

    def _generate(self, piece: Piece, line: SmallVoiceLine, number: int) -> Samples:
        del number  # no graph takes a seed
        known = self._numbers
        ids = [known[char] for char in piece.phonemes if char in known]
        if not ids:
            return np.zeros(0, np.float32)
        try:
            [sound, *_] = self._session.run(None, self._feed(ids, line))
        except _faults() as error:
            raise SpeechFailed(f"{self._model.title} failed at “{piece.text}”: {error}") from error
        samples: Samples = np.asarray(sound, np.float32).reshape(-1)
        return samples  # some styles of Kokoro are louder than full scale

    @abstractmethod
    def _feed(self, ids: list[int], line: SmallVoiceLine) -> Mapping[str, object]:
        """What the graph gets, by the names of its inputs."""

    def _check_inputs(self, *, fits: bool) -> None:
        if not fits:
            raise ModelUnavailable(
                f"The model of {self._model.title} can't be loaded: it is another one, which takes "
                f"{', '.join(self._inputs)}. Remove it and download it again."
            )


class StyledGraph(GraphModel):
    """Kokoro or Kitten, whose voices are styles."""

    def __init__(
        self,
        model: CatalogueModel,
        folders: Sequence[Path],
        styles: StyleTable,
        cores: threading.Semaphore,
    ) -> None:
        """Load it; raises what `GraphModel` does."""
        files = locate_files(model, folders)
        numbers = read_numbers(files.get("tokens"))
        super().__init__(model, Path(files["model"]), numbers, cores)
        self._styles = styles
        self._check_inputs(fits=len(self._inputs) == 3)

    def _feed(self, ids: list[int], line: SmallVoiceLine) -> Mapping[str, object]:
        style = self._styles.mix(self._model.formula(line.preset))
        before, behind = _ENDS[self._model.family]
        pace = _PACES.get(line.preset, _PACE.get(self._model.family, 1.0))
        values = (
            np.array([[*before, *ids, *behind]], np.int64),
            style[min(len(ids), len(style) - 1)][None],
            np.full(1, line.speed * pace, np.float32),
        )
        return dict(zip(self._inputs, values, strict=True))


class PiperFiles(Protocol):
    """What makes a voice of Piper's."""

    @property
    def path(self) -> Path:
        """Of its graph."""

    @property
    def numbers(self) -> Mapping[str, int]:
        """Of its phonemes."""

    @property
    def scales(self) -> tuple[float, float, float]:
        """Noise, length, and noise of lengths."""

    @property
    def rate_hz(self) -> int:
        """Of its sound."""


@dataclass(frozen=True, slots=True)
class CataloguedPiper:
    """The voice of the catalogue, as sherpa-onnx spoke it."""

    path: Path
    numbers: Mapping[str, int]
    rate_hz: int
    scales: tuple[float, float, float] = (0.667, 1.0, 0.8)


class PiperGraph(GraphModel):
    """A voice of Piper's, of one speaker or several."""

    def __init__(
        self, model: CatalogueModel, voice: PiperFiles, cores: threading.Semaphore
    ) -> None:
        """Load it; raises what `GraphModel` does."""
        super().__init__(model, voice.path, voice.numbers, cores)
        self._voice = voice
        known = {"_", "^", "$"} <= {*voice.numbers}
        self._check_inputs(fits=known and {"input", "input_lengths", "scales"} <= {*self._inputs})

    def _generate(self, piece: Piece, line: SmallVoiceLine, number: int) -> Samples:
        spoken = super()._generate(piece, line, number)
        from_hz, to_hz = self._voice.rate_hz, self._model.sample_rate_hz
        if from_hz == to_hz:
            return spoken
        return join_chunks([*resample(iter([spoken]), from_hz, to_hz)])

    def _feed(self, ids: list[int], line: SmallVoiceLine) -> Mapping[str, object]:
        noise, length, noise_of_lengths = self._voice.scales
        pad = self._numbers["_"]
        padded = [self._numbers["^"], pad, *(one for number in ids for one in (number, pad))]
        spoken = np.array([[*padded, self._numbers["$"]]], np.int64)
        values = {
            "input": spoken,
            "input_lengths": np.array([spoken.shape[1]], np.int64),
            "scales": np.array([noise, length / line.speed, noise_of_lengths], np.float32),
            "sid": np.array([line.voice_id], np.int64),
        }
        return {name: values[name] for name in self._inputs}


@cache
def _faults() -> tuple[type[Exception], ...]:
    """What ONNX Runtime raises, which has no class in common."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    own = (one for one in vars(runtime).values() if isinstance(one, type))
    return (RuntimeError, ValueError, *(one for one in own if issubclass(one, Exception)))


def read_numbers(tokens: str | None) -> Mapping[str, int]:
    """The numbers of a model's phonemes; without a table of its own, Kokoro's."""
    if tokens is None:
        data = package_files(__package__).joinpath("kokoro_symbols.json").read_text("utf-8")
        return dict(json.loads(data))
    rows = map(_ROW.fullmatch, Path(tokens).read_text("utf-8").split("\n"))
    return {row[1]: int(row[2]) for row in rows if row}
