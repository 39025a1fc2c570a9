"""A small voice in memory: lines in, sound out; and sherpa-onnx's, with the check of its files."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import numpy as np

from studio.audio.clip import Clip, Samples
from studio.audio.line_edges import trim_edges
from studio.backends.sherpa import load_check
from studio.backends.sherpa.catalogue import CatalogueModel, HubModel
from studio.backends.sherpa.line_pieces import Piece
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed, StorageFailed
from studio.storage.disk import Disk, hash_file, read_file, read_json

_CHECK_TIMEOUT_S = 300.0
_POLL_S = 0.1  # how late a line that waits for a core notices that it is cancelled
_PAUSE_S = {"vits": 0.2, "supertonic": 0.3}
"""Silence behind a sentence that isn't the last, where the model itself ends without."""

_MARK_S = 0.28
"""Silence between two trimmed parts of a sentence. With the 50 ms that `trim_edges` leaves it is
what trained voices leave at a mark inside of one, in the median: Kokoro 0.36 s, Piper 0.31 s."""

_WHOLE = "1000000"  # sherpa-onnx is to split nothing that was split here


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """The sample that a voice is cloned from.

    Attributes:
        transcript: What it says; may be empty where the model doesn't ask for it.
        phonemes: The same, as the model spells it, where it speaks from phonemes.
    """

    clip: Clip
    transcript: str = ""
    phonemes: str = ""


@dataclass(frozen=True, slots=True)
class SmallVoiceLine:
    """How a line is spoken.

    Attributes:
        language: One of the catalogue's.
        preset: The voice's name; empty where it is cloned.
        voice_id: The model's own number of that voice.
        reference: What the voice is cloned from, if it is.
        speed: 1 is the voice's own.
        steps: Of models that have them.
        seed: None where the model has none.
        cancelled: Polled between pieces of sound.
    """

    language: str
    preset: str
    voice_id: int
    reference: Reference | None
    speed: float
    steps: int
    seed: int | None
    cancelled: Callable[[], bool]


class SmallVoiceModel(ABC):
    """One model in memory, for any number of threads; each computes while it has one of `cores`."""

    def __init__(self, model: CatalogueModel, cores: threading.Semaphore) -> None:
        self._model = model
        self._free_cores = cores

    def speak(self, piece: Piece, line: SmallVoiceLine, *, number: int) -> Samples:
        """Speak a piece of a line.

        Args:
            piece: What to speak.
            line: How.
            number: Of the piece in its line, from 0; no two draw the same noise.

        Returns:
            float32 [samples] at the catalogue's rate, within [-1, 1].

        Raises:
            SpeechFailed: Nothing came of it.
            Cancelled: It was cancelled.
        """
        self._wait_for_core(line)
        try:
            found = self._generate(piece, line, number)
        finally:
            self._free_cores.release()
        _stop_if_cancelled(line)
        if not len(found):
            raise SpeechFailed(
                f"{self._model.title} made no sound of “{piece.text}”. Write it differently, or "
                "speak it more slowly."
            )
        return found

    def pause_after(self, samples: Samples) -> Samples:
        """A sentence with the silence that belongs between it and the next."""
        pause_s = _PAUSE_S.get(self._model.family, 0.0)
        return np.pad(samples, (0, round(pause_s * self._model.sample_rate_hz)))

    def join(self, samples: Samples, speed: float, *, is_begun: bool, goes_on: bool) -> Samples:
        """A part of a sentence with the silence of a mark where the others join, and no more."""
        part = np.concatenate([*trim_edges(iter([samples]), begins=is_begun, ends=goes_on)])
        pause_s = _MARK_S / speed if goes_on else 0.0
        return np.pad(part, (0, round(pause_s * self._model.sample_rate_hz)))

    @abstractmethod
    def _generate(self, piece: Piece, line: SmallVoiceLine, number: int) -> Samples:
        """Speak on this thread; may be empty."""

    def _wait_for_core(self, line: SmallVoiceLine) -> None:
        while not self._free_cores.acquire(timeout=_POLL_S):
            _stop_if_cancelled(line)
        try:
            _stop_if_cancelled(line)
        except Cancelled:
            self._free_cores.release()
            raise


class SherpaModel(SmallVoiceModel):
    """A model that sherpa-onnx runs.

    Attributes:
        tokens: The model's table of phonemes; None where it reads text.
    """

    def __init__(
        self, model: CatalogueModel, folders: Sequence[Path], cores: threading.Semaphore
    ) -> None:
        """Load a model that `check_model` has found good.

        Raises:
            ModelUnavailable: It broke since then.
        """
        super().__init__(model, cores)
        files = locate_files(model, folders)
        self.tokens = Path(files["tokens"]) if "tokens" in files else None
        try:
            self._tts: Any = load_check.build_tts(model.family, files, threads=1)
        except (ValueError, RuntimeError) as error:
            raise ModelUnavailable(describe_load_failure(model, folders, str(error))) from error

    def _generate(self, piece: Piece, line: SmallVoiceLine, number: int) -> Samples:
        chunks: list[Samples] = []

        def take(samples: Samples, _progress: float) -> int:
            chunks.append(samples)
            return int(not line.cancelled())

        try:
            audio = self._tts.generate(piece.text, self._configure(piece, line, number), take)
        except RuntimeError as error:
            raise SpeechFailed(f"{self._model.title} failed at “{piece.text}”: {error}") from error
        # ZipVoice tells the callback nothing where it is given phonemes.
        found = np.concatenate(chunks) if chunks else np.asarray(audio.samples, dtype=np.float32)
        return cast(Samples, np.clip(found, -1.0, 1.0))

    def _configure(self, piece: Piece, line: SmallVoiceLine, number: int) -> Any:
        import sherpa_onnx

        config = sherpa_onnx.GenerationConfig()
        config.sid = line.voice_id
        config.speed = line.speed
        config.silence_scale = 1.0  # else pauses are cut to a fifth
        if line.steps:
            config.num_steps = line.steps
        extra = {
            "lang": line.language,
            "min_char_in_sentence": _WHOLE,
            "max_char_in_sentence": _WHOLE,
            "min_words_in_sentence": _WHOLE,
            "max_len": _WHOLE,
        }
        if line.seed is not None:
            extra["seed"] = str((line.seed + number) % (2**31 - 1))
        config.extra = extra
        if reference := line.reference:
            config.reference_audio = reference.clip.samples
            config.reference_sample_rate = reference.clip.rate_hz
            config.reference_text = reference.transcript
        if reference and reference.phonemes:
            config.tokens = [list(reference.phonemes), list(piece.phonemes)]
        elif piece.phonemes:
            config.phoneme_codepoints = [[ord(char) for char in piece.phonemes]]
        return config


def locate_files(model: HubModel, folders: Sequence[Path]) -> dict[str, str]:
    """Path by what sherpa-onnx's configuration of the family calls the file."""
    return {
        role: str(folder / file.path)
        for source, folder in zip(model.sources, folders, strict=True)
        for role, file in source.files.items()
    }


def try_load(model: HubModel, folders: Sequence[Path], *, family: str, kind: str) -> dict[str, Any]:
    """Load a model in a process of its own, which may end without a word; see `load_check`.

    A note beside the files spares the same files that at the next start.

    Returns:
        What the model says about itself.

    Raises:
        ModelUnavailable: It can't be loaded.
    """
    files = locate_files(model, folders)
    note = folders[0] / f".tableread-checked-{_identify_check(kind, family, files)}.json"
    with suppress(OSError, ValueError):
        return dict(read_json(read_file(note)))
    asked = {
        "paths": [path for path in sys.path if path],
        "kind": kind,
        "family": family,
        "files": files,
        "threads": 1,
    }
    try:
        ended = subprocess.run(
            [sys.executable, "-I", load_check.__file__],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=_CHECK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelUnavailable(
            f"{model.title} can't be checked before it is loaded: {error}."
        ) from (error)
    if ended.returncode:
        raise ModelUnavailable(describe_load_failure(model, folders, ended.stderr))
    about: dict[str, Any] = json.loads(ended.stdout)
    with suppress(StorageFailed):  # in a folder that is read only
        Disk().write_whole(note, ended.stdout.encode(), synced=False)
    return about


def _identify_check(kind: str, family: str, files: Mapping[str, str]) -> str:
    """16 hexadecimal digits: sherpa-onnx's version, what is loaded, and every byte of its files."""
    hashes = [hash_file(Path(path)) for path in files.values() if Path(path).is_file()]
    named = " ".join((version("sherpa-onnx"), kind, family, *hashes))
    return sha256(named.encode()).hexdigest()[:16]


def check_model(model: CatalogueModel, folders: Sequence[Path]) -> None:
    """Check that a model can be loaded, and is the one that the catalogue describes.

    Raises:
        ModelUnavailable: It can't, or isn't.
    """
    about = try_load(model, folders, family=model.family, kind="voice")
    if about["sample_rate_hz"] != model.sample_rate_hz:
        raise ModelUnavailable(
            f"The model in {folders[0]} speaks at {about['sample_rate_hz']:,} Hz and isn't "
            f"{model.title}, which speaks at {model.sample_rate_hz:,} Hz. Remove it and download "
            "it again."
        )
    if model.voice_ids and about["voices"] <= max(model.voice_ids.values()):
        raise ModelUnavailable(
            f"The model in {folders[0]} has {about['voices']} voices and isn't {model.title}, "
            f"which has {max(model.voice_ids.values()) + 1}. Remove it and download it again."
        )


def describe_load_failure(
    model: HubModel, folders: Sequence[Path], said: str, *, runtime: str = "sherpa-onnx"
) -> str:
    """Why a model can't be loaded, from what the runtime said."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "no reason")
    if "Unsupported model IR version" in said or "opset" in said:
        return (
            f"The model of {model.title} in {folders[0]} is of a newer format than this version of "
            f"{runtime} reads ({last}). Update the studio."
        )
    return (
        f"The model of {model.title} in {folders[0]} can't be loaded ({last}). Remove it and "
        "download it again."
    )


def _stop_if_cancelled(line: SmallVoiceLine) -> None:
    if line.cancelled():
        raise Cancelled("The line was stopped before it was finished.")
