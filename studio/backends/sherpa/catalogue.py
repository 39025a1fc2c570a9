"""The small voices there are: what each is, where it comes from, and whether it is here."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from studio.backends.base import LoadProgress, Preset, WeightFile, WeightPlace, WeightSource, Wheel
from studio.backends.hub.weights import fetch_weights, to_fetch, weights_at_hand
from studio.errors import ModelUnavailable
from studio.setup.commands import install_remedy
from studio.voices.automatic import VoiceTraits, describe_sound

_WHO = {"f": "woman", "m": "man"}
_MEASURED = ("pitches_hz", "paces_syl_s", "levels_lufs", "trebles_db")
_MIXED = "x"
_SECOND_CHOICE, _ODD = 0.5, 1.5  # below 1 rather than the same voice twice, above only by choice


class HubModel(Protocol):
    """A model of a catalogue: a small voice, or a recogniser."""

    @property
    def title(self) -> str:
        """For people."""

    @property
    def sources(self) -> tuple[WeightSource, ...]:
        """Where its files come from; its folder is that of the first."""


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """One small voice model.

    Attributes:
        name: The backend's name.
        title: For people.
        family: As sherpa-onnx's configuration names it, whatever runs it.
        summary: One sentence.
        languages: BCP-47 code to the language's English name.
        presets: Empty where it clones only.
        voice_ids: The model's own number of each preset, by its `preset_id`.
        levels_lufs: How loud voices are, by their `preset_id`, where that was measured.
        places: All voices, in the order in which a file has them one behind the other.
        styles: The formula of a preset's style, where it isn't its `preset_id`.
        traits: How each preset sounds, by its `preset_id`.
        cloning: Whether it speaks in the voice of a sample.
        code_licence: Of the model's own code, as SPDX names it.
        weights_licence: Of the weights, in words.
        non_commercial: Whether something forbids commercial use; the page says so first.
        size_bytes: To download.
        sample_rate_hz: Of its sound.
        expected_speed: Seconds of speech a second on two cores of a CPU, about.
        sources: Where its files come from; its folder is that of the first.
        older: Where they came from once; where all of these are here, they serve.
    """

    name: str
    title: str
    family: str
    summary: str
    languages: Mapping[str, str]
    presets: tuple[Preset, ...]
    voice_ids: Mapping[str, int]
    levels_lufs: Mapping[str, float]
    places: tuple[str, ...]
    styles: Mapping[str, str]
    traits: Mapping[str, VoiceTraits]
    cloning: bool
    code_licence: str
    weights_licence: str
    non_commercial: bool
    size_bytes: int
    sample_rate_hz: int
    expected_speed: float
    sources: tuple[WeightSource, ...]
    older: tuple[WeightSource, ...] = ()

    def formula(self, preset: str) -> str:
        """Of a preset's style."""
        return self.styles.get(preset, preset)

    def at_hand(self) -> CatalogueModel:
        """With the sources whose files are here: older ones go on serving who has them."""
        old = replace(self, sources=self.older)
        return old if self.older and find_folders(old) else self


def find_folders(model: HubModel) -> tuple[Path, ...]:
    """The folder of each of a model's sources; empty where any lacks a file."""
    folders = [weights_at_hand(source.source, source.needs) for source in model.sources]
    here = tuple(folder for folder in folders if folder is not None)
    return here if len(here) == len(folders) else ()


class DownloadableModel:
    """What is the same of all models of a catalogue: whether one can run, and its weights."""

    package = "sherpa-onnx"
    """What runs it."""

    def __init__(self, model: HubModel) -> None:
        self.title = model.title
        self._downloaded = model

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its package is installed."""
        if find_spec(self.package.replace("-", "_")) is None:
            return f"{self.title} needs the package {self.package}. {install_remedy()}"
        return None

    @property
    def weight_sources(self) -> tuple[WeightSource, ...]:
        model = self._downloaded
        return (model.at_hand() if isinstance(model, CatalogueModel) else model).sources

    def to_fetch(self) -> str | None:
        """What a load would download, as a sentence with the remedy; None when all is here."""
        lacking = (to_fetch(one.source, one.needs) for one in self.weight_sources)
        return next(filter(None, lacking), None)

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        """Download the weights where needed, and load nothing; the folder they are in.

        Raises:
            ModelUnavailable: The package or the weights are missing or broken.
        """
        if reason := self.unavailable():
            raise ModelUnavailable(reason)
        first, *_ = [fetch_weights(one, progress) for one in self.weight_sources]
        return first


def _read_catalogue() -> dict[str, CatalogueModel]:
    data = files(__package__).joinpath("catalogue.toml")  # which may be in a zip
    entries = tomllib.loads(data.read_text("utf-8"))
    return {name: _read_model(name, dict(entry)) for name, entry in entries.items()}


def _read_model(name: str, entry: dict[str, Any]) -> CatalogueModel:
    voices = entry.pop("voices", None)
    readers = entry.pop("readers", 0)
    spoken = entry.pop("voice_languages", None)
    levels_lufs = dict(zip(voices or (), entry.get("levels_lufs", ()), strict=False))
    reluctance = dict.fromkeys(entry.pop("second_choices", ()), _SECOND_CHOICE)
    reluctance |= dict.fromkeys(entry.pop("odd_voices", ()), _ODD)
    if voices is None:
        voices = [f"reader_{number}" for number in range(1, readers + 1)]
    offered = {
        voice: number for number, voice in enumerate(voices) if spoken is None or voice[0] in spoken
    }
    columns = [[*entry.pop(name, ()), *[None] * len(voices)][: len(voices)] for name in _MEASURED]
    measured = dict(zip(voices, zip(*columns, strict=True), strict=True))
    styles = entry.pop("styles", {})
    older = {"sources": entry.pop("older", [])}
    add_sources(older)
    add_sources(entry)
    presets = tuple(
        Preset(
            voice,
            _label(voice),
            (spoken[voice[0]],) if spoken else (),
            _gender(voice),
            sound=describe_sound(_gender(voice), *measured[voice]),
        )
        for voice in offered
    )
    traits = {
        one.preset_id: VoiceTraits(
            one.label,
            measured[one.preset_id][0],
            (float(offered[one.preset_id]),),  # no two are of one timbre
            one.gender,
            reluctance.get(one.preset_id, 0.0),
        )
        for one in presets
    }
    return CatalogueModel(
        name=name,
        presets=presets,
        voice_ids=offered,
        places=tuple(voices),
        styles=styles,
        levels_lufs=levels_lufs,
        traits=traits,
        older=older["sources"],
        **entry,
    )


def add_sources(entry: dict[str, Any]) -> None:
    """Make the sources of a catalogue's entry from its tables, and add up their bytes."""
    sources = []
    for source in entry["sources"]:
        files = {role: _read_file(file) for role, file in source.pop("files").items()}
        needs = tuple(source.pop("needs", (file.path for file in files.values())))
        sources.append(WeightSource(needs=needs, files=files, **source))
    entry["sources"] = tuple(sources)
    firsts = {need.split("|")[0] for one in sources for need in one.needs}
    needed = [file for one in sources for file in one.files.values() if file.path in firsts]
    entry["size_bytes"] = sum(file.download_bytes for file in needed)


def _read_file(file: dict[str, Any]) -> WeightFile:
    places = [
        WeightPlace(wheels=tuple(Wheel(**wheel) for wheel in place.pop("wheels", ())), **place)
        for place in file.pop("places", ())
    ]
    return WeightFile(places=tuple(places), **file)


def _label(voice: str) -> str:
    """For people: "am_adam" is "Adam (man)", "reader_7" is "Reader 7", "F1" is "Woman 1".

    One that is mixed of another language's, such as "xm_kumo", is "Kumo (man, with an accent)".
    """
    mark, _, name = voice.partition("_")
    if not name:
        return f"{_WHO[voice[0].lower()].title()} {voice[1:]}"
    if name.isdecimal():
        return f"{mark.title()} {name}"
    accent = ", with an accent" if mark.startswith(_MIXED) else ""
    return f"{name.title()} ({_WHO[mark[-1]]}{accent})"


def _gender(voice: str) -> str:
    mark, _, name = voice.partition("_")
    if name.isdecimal():
        return ""
    return _WHO.get((mark[-1] if name else voice[0]).lower(), "")


CATALOGUE: Mapping[str, CatalogueModel] = _read_catalogue()
"""By name, in the order in which they are offered."""
