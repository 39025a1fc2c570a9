"""The public Piper voices: what there is, and how one comes among those that somebody added."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from studio.backends.base import LoadProgress, WeightFile, WeightPlace, WeightSource
from studio.backends.hub.weights import discard_weights
from studio.backends.sherpa.catalogue import DownloadableModel
from studio.backends.sherpa.own_voices import add_voices

_HUB = "rhasspy/piper-voices"


@dataclass(frozen=True, slots=True)
class PublicVoice:
    """A voice that its publisher gives to everybody; the licence is that of its recordings."""

    title: str
    language: str
    language_name: str
    quality: str
    speakers: int
    licence: str
    size_bytes: int
    sources: tuple[WeightSource, ...]


@cache
def read_public_voices() -> Mapping[str, PublicVoice]:
    """All of them by title, which is what their files are called, language by language."""
    data = tomllib.loads(files(__package__).joinpath("piper_voices.toml").read_text("utf-8"))
    found = [
        _read_voice(f"@{data['commit']}", code, language["name"], *row)
        for code, language in data["languages"].items()
        for row in language["voices"]
    ]
    return {one.title: one for one in found}


def _read_voice(at: str, code: str, spoken: str, name: str, quality: str, *row: Any) -> PublicVoice:
    speakers, licence, size_bytes, md5, settings_bytes, settings_md5 = row
    title = f"{code}-{name}-{quality}"
    path = f"{code.partition('_')[0]}/{code}/{name}/{quality}/{title}.onnx"
    place = (WeightPlace(hub=_HUB + at),)
    graph = WeightFile(path, size_bytes, places=place, md5=md5)
    settings = WeightFile(f"{path}.json", settings_bytes, places=place, md5=settings_md5)
    both = {one.path: one for one in (graph, settings)}
    # Each in a folder of its own, so that one is cancelled while another one comes.
    sources = (WeightSource(f"{_HUB}-{title}{at}", tuple(both), both),)
    size_bytes += settings_bytes
    language = code.replace("_", "-")
    return PublicVoice(title, language, spoken, quality, speakers, licence, size_bytes, sources)


class VoiceDownload(DownloadableModel):
    """Brings a public voice into the folder of those that somebody added."""

    package = "onnxruntime"

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(read_public_voices()[name])
        self.name, self._folder = name, folder

    def to_fetch(self) -> str | None:
        """Whether it lacks there, in a sentence; None when it's there."""
        here = (self._folder / f"{self.name}.onnx.json").is_file()
        return None if here else f"{self.title} isn't here yet."

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download it and add it, as `add_voices`; the hub's cache keeps no copy."""
        cached = super().fetch(progress)
        [source] = self.weight_sources
        add_voices([cached / source.needs[0]], self._folder)
        discard_weights([source])
        return self._folder
