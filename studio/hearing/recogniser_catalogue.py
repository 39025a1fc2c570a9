"""The recognisers there are: what each is and knows, and whether it is here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from studio.backends.hub.weights import list_weights
from studio.backends.sherpa.catalogue import DownloadableModel, HubSource, find_folders


@dataclass(frozen=True, slots=True)
class RecogniserModel:
    """One recogniser of the catalogue.

    Attributes:
        name: On the command line.
        title: For people.
        family: As in the name of sherpa-onnx's constructor, `OfflineRecognizer.from_…`.
        summary: One sentence.
        languages: BCP-47 codes.
        code_licence: Of the model's own code, as SPDX names it.
        weights_licence: Of the weights, in words.
        size_bytes: To download, to the megabyte.
        word_times: Whether it says when each word is said.
        sources: Where its files come from.
        non_commercial: Whether something forbids commercial use.
    """

    name: str
    title: str
    family: str
    summary: str
    languages: tuple[str, ...]
    code_licence: str
    weights_licence: str
    size_bytes: int
    word_times: bool
    sources: tuple[HubSource, ...]
    non_commercial: bool = False

    def knows(self, language: str | None) -> bool:
        """Whether it understands a BCP-47 language; None is any."""
        return language is None or language.split("-")[0].casefold() in self.languages


def _read_recognisers() -> dict[str, RecogniserModel]:
    data = files(__package__).joinpath("recognisers.toml")  # which may be in a zip
    entries: dict[str, dict[str, Any]] = tomllib.loads(data.read_text("utf-8"))
    return {name: _read_recogniser(name, dict(entry)) for name, entry in entries.items()}


def _read_recogniser(name: str, entry: dict[str, Any]) -> RecogniserModel:
    entry["languages"] = tuple(entry["languages"])
    entry["sources"] = tuple(HubSource(**source) for source in entry["sources"])
    return RecogniserModel(name=name, **entry)


RECOGNISERS: Mapping[str, RecogniserModel] = _read_recognisers()
"""By name, the best first."""


def describe_recognisers(catalogue: Mapping[str, RecogniserModel]) -> list[dict[str, Any]]:
    """The recognisers in words and figures, as the page and the command line list them.

    `used_for` has the languages for which one is used: the best of those that are here.
    """
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for model in catalogue.values():
        known = model.languages if find_folders(model) else ()
        used = [code for code in known if code not in taken]
        taken.update(used)
        found.append(_describe(model) | {"used_for": used})
    return found


def _describe(model: RecogniserModel) -> dict[str, Any]:
    weights = DownloadableModel(model)
    return {
        "name": model.name,
        "title": model.title,
        "summary": model.summary,
        "reason": weights.unavailable(),
        "to_fetch": weights.to_fetch(),
        "languages": list(model.languages),
        "word_times": model.word_times,
        "download_bytes": model.size_bytes,
        "removable": bool(list_weights(weights.weight_sources)),
        "code_licence": model.code_licence,
        "weights_licence": model.weights_licence,
        "non_commercial": model.non_commercial,
    }
