"""Voices that somebody adds: Piper's, an .onnx with its .onnx.json, and styles of Kokoro's.

They lie in one folder, by their own names, where anybody may put or remove them at any time.
Source: piper-tts 1.4 (`config.py`, `voice.py`).
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from studio.backends.base import Preset
from studio.backends.espeak.espeak_voices import Languages, find_package
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel
from studio.backends.sherpa.graph_model import STYLE_SHAPES, PiperGraph
from studio.backends.sherpa.line_pieces import Piece, split_text
from studio.backends.sherpa.sherpa_model import SmallVoiceLine
from studio.backends.sherpa.styles import StyleTable
from studio.errors import BadInput, ModelUnavailable, SpeechFailed, StudioError
from studio.storage.disk import Disk, read_file, read_json

_LOADED = 3  # voices at once, of 60 to 110 MB each
_MAX_SETTINGS_BYTES = 5_000_000
_STYLE_SUFFIXES = (".bin", ".npz")
OWN_SUFFIXES = (".onnx", *_STYLE_SUFFIXES)
"""What the names of files end with that are voices."""


@dataclass(frozen=True, slots=True)
class PiperVoice:
    """A voice of Piper's.

    Attributes:
        reads_as: What eSpeak NG calls the language; empty where the graph takes letters.
        speakers: Their names, in order of their numbers; one without a name where there is one.
        numbers: Of its phonemes.
        scales: Noise, length, and noise of lengths.
    """

    path: Path
    language: str
    language_name: str
    reads_as: str
    rate_hz: int
    speakers: tuple[str, ...]
    numbers: Mapping[str, int]
    scales: tuple[float, float, float]

    @property
    def presets(self) -> dict[str, int]:
        stem = self.path.stem
        return {f"{stem}:{one}" if one else stem: n for n, one in enumerate(self.speakers)}

    def read_language(self, language: str) -> str:
        """How eSpeak NG reads a line for it: its own way, or another language where it's that."""
        same = language.partition("-")[0] == self.language.partition("-")[0]
        return self.reads_as if same else language

    def split(self, text: str) -> list[Piece]:
        """A text in the letters that the graph takes, where it takes letters."""
        pieces = split_text(text, self.language)
        spelt = (unicodedata.normalize("NFD", one.text.lower()) for one in pieces)
        return [Piece(one.text, letters) for one, letters in zip(pieces, spelt, strict=True)]


def read_piper(graph: Path) -> PiperVoice:
    """A voice by what its .onnx.json says.

    Raises:
        BadInput: There is no such file, or it isn't Piper's; says so in one sentence.
    """
    settings = graph.with_name(f"{graph.name}.json")
    if not graph.is_file():
        raise BadInput(f"{settings.name} comes without {graph.name}: add both files of the voice.")
    if not settings.is_file():
        raise BadInput(f"{graph.name} comes without {settings.name}: add both files of the voice.")
    stat = settings.stat()
    return _read_piper(graph, settings, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _read_piper(graph: Path, settings: Path, mtime_ns: int, size_bytes: int) -> PiperVoice:
    del mtime_ns  # in the cache's key
    try:
        if size_bytes > _MAX_SETTINGS_BYTES:
            raise ValueError("too long")
        return _understand(graph, read_json(read_file(settings)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadInput(f"{settings.name} isn't the description of a Piper voice.") from error


def _understand(graph: Path, said: Mapping[str, Any]) -> PiperVoice:
    kind = said.get("phoneme_type") or "espeak"
    if kind not in {"espeak", "text"}:
        raise BadInput(f"{graph.name} reads text by “{kind}”, which this studio can't.")
    language, espeak = said.get("language") or {}, str(said["espeak"]["voice"])
    found = _languages().find(str(language.get("code") or espeak))
    if found is None:
        raise BadInput(f"{graph.name} speaks “{espeak}”, which eSpeak NG doesn't read.")
    count, by_name = int(said.get("num_speakers") or 1), said.get("speaker_id_map") or {}
    names = {int(number): str(name) for name, number in by_name.items()}
    scales = said.get("inference") or {}
    return PiperVoice(
        graph,
        str(language.get("code") or found.code).replace("_", "-"),
        str(language.get("name_english") or found.name),
        espeak if kind == "espeak" else "",
        int(said["audio"]["sample_rate"]),
        tuple(names.get(n, str(n + 1)) for n in range(count)) if count > 1 else ("",),
        {str(char): int(ids[0]) for char, ids in said["phoneme_id_map"].items()},
        (
            float(scales.get("noise_scale", 0.667)),
            float(scales.get("length_scale", 1.0)),
            float(scales.get("noise_w", 0.8)),
        ),
    )


@cache
def _languages() -> Languages:
    return Languages(find_package().folder / "espeak-ng-data")


class OwnVoices:
    """The Piper voices in a folder; those that spoke last stay in memory."""

    def __init__(self, model: CatalogueModel, folder: Path | None) -> None:
        self._model, self._folder = model, folder
        self._lock = threading.Lock()  # guards the graphs, and that one is loaded once
        self._graphs: dict[tuple[Path, float], PiperGraph] = {}

    def list(self) -> dict[str, PiperVoice]:
        """The voice of each preset; a file that is none of Piper's is passed over."""
        voices = list_voice_files(self._folder).values() if self._folder else ()
        return {preset: one for one in voices if one for preset in one.presets}

    def presets(self) -> tuple[Preset, ...]:
        """What `list` has, as the page shows it."""
        return tuple(
            Preset(name, _label(name), (voice.language,)) for name, voice in self.list().items()
        )

    def open(self, voice: PiperVoice, cores: threading.Semaphore) -> PiperGraph:
        """The graph of a voice.

        Raises:
            SpeechFailed: Its file is gone, broken or another model's.
        """
        with self._lock:
            try:
                key = (voice.path, voice.path.stat().st_mtime)
                graph = self._graphs.pop(key, None) or PiperGraph(self._model, voice, cores)
            except (OSError, ModelUnavailable) as error:
                raise SpeechFailed(
                    f"The voice {voice.path.stem} can't be loaded: {error}"
                ) from error
            self._graphs[key] = graph
            while len(self._graphs) > _LOADED:
                self._graphs.pop(next(iter(self._graphs)))
            return graph

    def unload(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._graphs.clear()


def _label(preset: str) -> str:
    """For people: "de_DE-thorsten-medium" is "Thorsten", a speaker of several "Mls: 1840"."""
    stem, _, speaker = preset.partition(":")
    parts = stem.split("-")
    name = parts[1].replace("_", " ").title() if len(parts) == 3 else stem
    return f"{name}: {speaker}" if speaker else name


def add_voices(files: Sequence[Path], folder: Path) -> list[str]:
    """Copy voices into the folder, once each has spoken; none where one is refused.

    Args:
        files: Each .onnx with its .onnx.json, which may also just lie beside it, and styles.
        folder: Made if need be.

    Returns:
        The presets that there are now.

    Raises:
        BadInput: Says of one file what it is, in one sentence.
    """
    graphs = dict.fromkeys(_graph_of(file) for file in files if file.suffix not in _STYLE_SUFFIXES)
    styles = [file for file in files if file.suffix in _STYLE_SUFFIXES]
    voices = [_prove(graph) for graph in graphs]
    presets = [name for voice in voices for name in voice.presets]
    for file in styles:
        presets += _name_styles(file)
    disk = Disk()
    disk.make_folder(folder)
    settings = [graph.with_name(f"{graph.name}.json") for graph in graphs]
    # The description last: by it, a voice is there.
    with ExitStack() as undo:
        for file in (*styles, *graphs, *settings):
            if not (folder / file.name).exists():
                undo.callback(disk.remove, folder / file.name)
            disk.copy(file, folder / file.name)
        undo.pop_all()
    return presets


def list_voice_files(folder: Path) -> dict[str, PiperVoice | None]:
    """What can be removed, by the file's name; None of a style, and of what is no voice."""
    found: dict[str, PiperVoice | None] = {}
    for file in sorted(one for one in folder.glob("*") if one.suffix in OWN_SUFFIXES):
        found[file.name] = None
        with suppress(StudioError):
            found[file.name] = read_piper(file)
    return found


def remove_voice(name: str, folder: Path) -> str:
    """Delete a voice's file with its description; lines that it speaks now are spoken to the end.

    Returns:
        Its name.

    Raises:
        BadInput: There is no such voice; names those there are.
    """
    there = list_voice_files(folder)
    if name not in there:
        names = ", ".join(there) or "none"
        raise BadInput(f"There is no voice {name} in {folder}. There are: {names}.")
    for file in (folder / f"{name}.json", folder / name):
        Disk().remove(file)
    return Path(name).stem


def _graph_of(file: Path) -> Path:
    if file.name.endswith(".onnx.json"):
        return file.with_suffix("")
    if file.suffix != ".onnx":
        raise BadInput(
            f"{file.name} is no voice: add a Piper voice (.onnx with its .onnx.json) or a style of "
            "Kokoro's (.bin or .npz)."
        )
    return file


def _prove(graph: Path) -> PiperVoice:
    """A voice that has spoken every phoneme it names, by the last of its speakers."""
    voice = read_piper(graph)
    line = SmallVoiceLine("", "", len(voice.speakers) - 1, None, 1.0, 0, None, lambda: False)
    letters = "".join(char for char in voice.numbers if len(char) == 1)
    try:
        opened = PiperGraph(CATALOGUE["piper"], voice, threading.Semaphore(1))
        opened.speak(Piece(graph.name, letters), line, number=0)
    except ModelUnavailable as error:
        raise BadInput(f"{graph.name} is no Piper voice, or broken.") from error
    except SpeechFailed as error:
        raise BadInput(f"{graph.name}.json is of another voice than {graph.name}.") from error
    return voice


def _name_styles(file: Path) -> list[str]:
    shape = STYLE_SHAPES["kokoro"]
    try:
        table = StyleTable([file], (), *shape)
        if not table.names or any(table.mix(one).shape[1] != shape[1] for one in table.names):
            raise ValueError("another shape")
    except (ModelUnavailable, ValueError) as error:
        raise BadInput(f"{file.name} holds no styles of Kokoro's.") from error
    return sorted(table.names)
