"""What a person reads of a voice engine before it is installed: licences, size, needs, speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from studio.backends.chatterbox.variants import VARIANTS
from studio.backends.sherpa.catalogue import CATALOGUE

REAL_TIME = 1.0
"""Seconds of speech a second below which somebody who listens has to wait."""


@dataclass(frozen=True, slots=True)
class EngineCard:
    """A voice engine in words and figures.

    Attributes:
        summary: One sentence.
        code_licence: Of the model's code, as SPDX names it.
        weights_licence: Of the weights; empty where there are none.
        non_commercial: Whether something forbids commercial use.
        free: Whether the licence of the weights allows any use.
        download_bytes: Of the weights, about; None where there are none or nobody knows.
        needs: What a machine needs to speak with it at ease, in a sentence; empty for nothing.
        expected: Seconds of speech a second by the kind of device, until it has been measured.
        untried: What nobody knows of a kind of device yet, in a sentence.
        large_packages: Whether it needs the second part of the requirements.
    """

    summary: str
    code_licence: str
    weights_licence: str = ""
    non_commercial: bool = False
    free: bool = True
    download_bytes: int | None = None
    needs: str = ""
    expected: Mapping[str, float] = field(default_factory=dict)
    untried: Mapping[str, str] = field(default_factory=dict)
    large_packages: bool = False


# To choose by before there is a measurement. Qwen3-TTS made 0.38 (one line) to 1.10 (eight) on
# two cores of a CPU, with random weights of full size; the others follow from how many parameters
# they have.
_QWEN3_SPEED = MappingProxyType({"cpu": 0.6, "mps": 0.5, "cuda": 10.0})
_CHATTERBOX_SPEED = MappingProxyType({"cpu": 0.3, "mps": 0.5, "cuda": 2.0})
_UNTRIED = MappingProxyType({"mps": "Nobody has tried it on a Mac yet."})
_CARD = "It needs a graphics card to be as fast as speech."
_FREE_LICENCES = ("Apache", "MIT", "CC BY 4.0")

_CHATTERBOX_SUMMARIES = {
    "chatterbox": "Clones a voice from a few seconds of English; expressive.",
    "chatterbox-turbo": "Clones English voices, quicker, and laughs and sighs where a tag says so.",
    "chatterbox-multilingual": "Clones a voice in 23 languages.",
}
_CHATTERBOX_BYTES = {
    "chatterbox": 3_200_000_000,
    "chatterbox-turbo": 3_000_000_000,
    "chatterbox-multilingual": 3_200_000_000,
}

CARDS: Mapping[str, EngineCard] = {
    "remote": EngineCard(
        "Other machines speak.",
        "",
        needs="It needs speech servers of yours, named as the guide says.",
    ),
    "qwen3": EngineCard(
        "Clones a voice, has voices of its own or makes one from a description, by its weights.",
        "Apache-2.0",
        "Apache-2.0",
        download_bytes=2_500_000_000,
        needs=_CARD,
        expected=_QWEN3_SPEED,
        untried=_UNTRIED,
        large_packages=True,
    ),
    **{
        one.name: EngineCard(
            _CHATTERBOX_SUMMARIES[one.name],
            "MIT",
            "MIT",
            download_bytes=_CHATTERBOX_BYTES[one.name],
            needs=_CARD,
            expected=_CHATTERBOX_SPEED,
            large_packages=True,
        )
        for one in VARIANTS
    },
    **{
        one.name: EngineCard(
            one.summary,
            one.code_licence,
            one.weights_licence,
            non_commercial=one.non_commercial,
            free=one.weights_licence.startswith(_FREE_LICENCES) and not one.non_commercial,
            download_bytes=one.size_bytes,
            expected=dict.fromkeys(("cpu", "mps", "cuda"), one.expected_speed),
        )
        for one in CATALOGUE.values()
    },
    "draft": EngineCard(
        "A robot that reads at once, to hear how a scene runs.",
        "GPL-3.0-or-later",
        expected=dict.fromkeys(("cpu", "mps", "cuda"), 50.0),
    ),
}
"""By the backend's name."""

_UNKNOWN = EngineCard("", "")


def card_of(name: str) -> EngineCard:
    """The card of a backend; an empty one for a backend that has none."""
    return CARDS.get(name, _UNKNOWN)
