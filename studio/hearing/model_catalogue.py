"""The models that listen: what each is and knows, and whether it is here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from studio.backends.base import WeightSource
from studio.backends.hub.weights import list_weights
from studio.backends.sherpa.catalogue import DownloadableModel, add_sources, find_folders


class Purpose(StrEnum):
    """What a model listens for."""

    WORDS = "words"
    """It is a recogniser: understands what is said."""

    VOICES = "voices"
    """Tells voices apart."""

    NOISE = "noise"
    """Takes noise out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HearingModel:
    """One model of the catalogue.

    Attributes:
        name: On the command line.
        title: For people.
        purpose: What it listens for.
        family: A recogniser's as in the name of sherpa-onnx's constructor,
            `OfflineRecognizer.from_…`, or `faster_whisper`.
        summary: One sentence.
        languages: BCP-47 codes of what a recogniser understands.
        code_licence: Of the model's own code, as SPDX names it.
        weights_licence: Of the weights, in words.
        size_bytes: To download.
        word_times: Whether a recogniser says when each word is said.
        sources: Where its files come from.
        non_commercial: Whether something forbids commercial use.
    """

    name: str
    title: str
    purpose: Purpose
    family: str
    summary: str
    code_licence: str
    weights_licence: str
    size_bytes: int
    sources: tuple[WeightSource, ...]
    languages: tuple[str, ...] = ()
    word_times: bool = False
    non_commercial: bool = False

    def knows(self, language: str | None) -> bool:
        """Whether it understands a BCP-47 language; None is any."""
        if self.purpose is not Purpose.WORDS:
            return False
        return language is None or language.split("-")[0].casefold() in self.languages


WHISPER_FAMILY = "faster_whisper"


def lacks_package(model: HearingModel) -> str | None:
    """The package that a model lacks here, as a sentence with the remedy; None if it has it."""
    if model.family != WHISPER_FAMILY:
        return DownloadableModel(model).unavailable()
    if find_spec(WHISPER_FAMILY) is not None:
        return None
    return f"{model.title} needs the package faster-whisper. Install it with: {_REMEDY}"


_REMEDY = "pip install faster-whisper"


def _read_models() -> dict[str, HearingModel]:
    data = files(__package__).joinpath("model_catalogue.toml")  # which may be in a zip
    entries: dict[str, dict[str, Any]] = tomllib.loads(data.read_text("utf-8"))
    return {name: _read_model(name, dict(entry)) for name, entry in entries.items()}


def _read_model(name: str, entry: dict[str, Any]) -> HearingModel:
    entry["purpose"] = Purpose(entry["purpose"])
    entry["languages"] = tuple(entry.get("languages", ()))
    add_sources(entry)
    return HearingModel(name=name, **entry)


HEARING_MODELS: Mapping[str, HearingModel] = _read_models()
"""By name, of each purpose the best first."""


def list_recognisers(catalogue: Mapping[str, HearingModel]) -> dict[str, HearingModel]:
    """Those that understand words."""
    return {name: one for name, one in catalogue.items() if one.purpose is Purpose.WORDS}


def describe_models(catalogue: Mapping[str, HearingModel]) -> list[dict[str, Any]]:
    """The models in words and figures, as the page and the command line list them.

    `used_for` has the languages for which a recogniser is used: the best of those that are here.
    """
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for model in catalogue.values():
        is_here = find_folders(model) and not lacks_package(model)
        known = model.languages if is_here else ()
        used = [code for code in known if code not in taken]
        taken.update(used)
        found.append(_describe(model) | {"used_for": used})
    return found


def _describe(model: HearingModel) -> dict[str, Any]:
    weights = DownloadableModel(model)
    return {
        "name": model.name,
        "title": model.title,
        "purpose": model.purpose,
        "summary": model.summary,
        "reason": lacks_package(model),
        "to_fetch": weights.to_fetch(),
        "languages": list(model.languages),
        "word_times": model.word_times,
        "download_bytes": model.size_bytes,
        "removable": bool(list_weights(weights.weight_sources)),
        "code_licence": model.code_licence,
        "weights_licence": model.weights_licence,
        "non_commercial": model.non_commercial,
    }
