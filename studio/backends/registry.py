"""The available backends, by their names in `TTS_BACKEND` and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from studio.backends.base import Backend, FetchesWeights, ManagesWeights, canonical_name
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.variants import VARIANTS
from studio.backends.device import likely_device
from studio.backends.engine_cards import REAL_TIME, EngineCard, card_of
from studio.backends.espeak.backend import DraftBackend
from studio.backends.hub.weights import list_weights
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.remote.backend import RemoteBackend
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel
from studio.errors import ModelUnavailable, SettingError
from studio.setup.commands import program
from studio.voices.automatic import DescribeVoice, VoiceTraits


def _make_small_voice(model: CatalogueModel, options: BackendOptions) -> Backend:
    return SherpaBackend(model, own=options.own_voices)


BACKENDS: Mapping[str, Callable[[BackendOptions], Backend]] = {
    "remote": RemoteBackend,
    "qwen3": Qwen3Backend,
    **{variant.name: partial(ChatterboxBackend, variant) for variant in VARIANTS},
    **{name: partial(_make_small_voice, model) for name, model in CATALOGUE.items()},
    "draft": lambda _options: DraftBackend(),
}
"""Name to factory, best first: `auto` takes the first that is ready and fast enough."""

ELSEWHERE = frozenset({"remote"})
"""Backends that nothing done on this machine brings: somebody else's server has to be named."""

DEFAULTS = BackendOptions()


def create(name: str, options: BackendOptions = DEFAULTS) -> Backend:
    """Make a backend by its name in `BACKENDS` or an old one; imports no model.

    Raises:
        SettingError: No backend has this name; the message lists those there are.
    """
    factory = BACKENDS.get(canonical_name(name))
    if factory is None:
        raise SettingError(f"There is no backend “{name}”. Choose one of: {', '.join(BACKENDS)}.")
    return factory(options)


def list_naming_backends() -> tuple[Backend, ...]:
    """The backends on which a name chooses a voice; always all, so that every door has the same."""
    names = ("draft", *CATALOGUE)
    return _make_all(*(BACKENDS[name] for name in names if name in BACKENDS))


@lru_cache(maxsize=1)
def _make_all(*factories: Callable[[BackendOptions], Backend]) -> tuple[Backend, ...]:
    return tuple(make(DEFAULTS) for make in factories)


def describe_engines(backend: Backend, language: str | None = None) -> list[DescribeVoice]:
    """How names sound on the engines on which they choose voices.

    Args:
        backend: Of the scene; it comes first.
        language: Of the scene, if known.
    """
    found: list[DescribeVoice] = []
    others = (one for one in list_naming_backends() if one.name != backend.name)
    for one in (backend, *others):
        can = one.capabilities
        if can.describe_builtin is not None and len(can.presets) > 1:
            found.append(partial(_describe, can.describe_builtin, language))
    return found


def _describe(
    describe: Callable[[str, str | None], VoiceTraits], language: str | None, name: str
) -> VoiceTraits:
    return describe(name, language)


@dataclass(frozen=True, slots=True)
class Offer:
    """Whether a backend can speak now, and why not; both reasons None if it can.

    Attributes:
        unavailable: Why it can't run here, with the remedy.
    """

    name: str
    title: str
    unavailable: str | None
    to_fetch: str | None

    @property
    def ready(self) -> bool:
        return self.unavailable is None and self.to_fetch is None


def offers(options: BackendOptions = DEFAULTS) -> tuple[Offer, ...]:
    """What each backend can do now, best first. Cheap: imports no model, asks no network."""
    return tuple(offer_of(create(name, options)) for name in BACKENDS)


def choose(
    name: str,
    options: BackendOptions = DEFAULTS,
    measured: Callable[[str], float | None] = lambda _: None,
) -> tuple[str, str | None]:
    """Turn `auto` into the best backend that is ready and speaks faster than real time here.

    Where none does, the fastest that is ready. Nothing is downloaded.

    Args:
        name: A backend, or `auto`.
        options: How backends are made.
        measured: The speed of a backend on this machine, in seconds of speech a second; None
            where it hasn't spoken yet: then its card's guess for the likely device counts.

    Returns:
        The backend's name and, where `auto` had to pass over better ones that this machine could
        have, a sentence that says so and where to see what they lack.

    Raises:
        SettingError: No backend has this name.
        ModelUnavailable: It is `auto`, and nothing can run.
    """
    if name != "auto":
        return create(name, options).name, None
    found = offers(options)
    device = likely_device(options.device)
    speeds = {one.name: measured(one.name) or expected_speed(one.name, device) for one in found}
    ready = [one for one in found if one.ready]
    if not ready:
        lacks = [f"{offer.title}: {offer.unavailable or offer.to_fetch}" for offer in found]
        raise ModelUnavailable(f"No voice can run here. {' '.join(lacks)}")
    fluent = (one for one in ready if speeds[one.name] >= REAL_TIME)
    chosen = next(fluent, None) or max(ready, key=lambda one: speeds[one.name])
    better = found[: found.index(chosen)]
    slow = [one for one in better if one.ready]
    return chosen.name, _why(chosen, [one for one in better if not one.ready], slow, speeds)


def expected_speed(name: str, device: str) -> float:
    """Seconds of speech a second that a backend may make on a kind of device.

    A backend that nobody described counts as fast enough, as a speech server does.
    """
    return card_of(name).expected.get(device, REAL_TIME)


_FIRST_BYTES = 150_000_000
"""Most of a download that is offered to somebody who has only just come."""


def first_voices(backends: Iterable[Backend], device: str) -> tuple[str, ...]:
    """The small natural voices to offer where there is none yet, the best fit first.

    Each needs a download only, is allowed for any trade, is expected to be fast enough, and speaks
    without a sample. Those with a free licence go before those whose licence forbids some uses.
    """
    found = [
        (card_of(one.name), one)
        for one in backends
        if one.unavailable() is None
        and (one.capabilities.presets or one.capabilities.builtin_voice)
    ]
    fitting = [
        (not card.free, one.name)
        for card, one in found
        if card.download_bytes is not None
        and card.download_bytes <= _FIRST_BYTES
        and not card.non_commercial
        and expected_speed(one.name, device) >= REAL_TIME
        and offer_of(one).to_fetch is not None
    ]
    return tuple(name for _, name in sorted(fitting, key=lambda one: one[0]))


def _why(
    taken: Offer, lacking: list[Offer], slow: list[Offer], speeds: Mapping[str, float]
) -> str | None:
    names = ", ".join(offer.title for offer in lacking if offer.name not in ELSEWHERE)
    said = [
        f"{one.title} is here too, and makes {speeds[one.name]:.2g} s of speech a second on this "
        "machine."
        for one in slow
    ]
    if names:
        said = [
            f"{taken.title} speaks, since it needs no download. There are better voices: {names}.",
            *said,
        ]
    elif slow:
        said = [f"{taken.title} speaks, since it is fast enough to listen to.", *said]
    if not said:
        return None
    said.append(
        "Choose one under the voice engine or with --backend; "
        f"{program()} doctor lists what each of them lacks."
    )
    return " ".join(said)


def offer_of(backend: Backend) -> Offer:
    """What a backend can do now."""
    unavailable, lacking = backend.unavailable(), None
    if unavailable is None and isinstance(backend, FetchesWeights):
        lacking = backend.to_fetch()
    return Offer(backend.name, backend.title, unavailable, lacking)


def find_card(backend: Backend) -> EngineCard:
    """The card of a backend as it is set up: of weights that somebody else made it knows little."""
    card = card_of(backend.name)
    if not isinstance(backend, ManagesWeights) or backend.name not in BACKENDS:
        return card
    released = create(backend.name)
    if isinstance(released, ManagesWeights) and _models(released) == _models(backend):
        return card
    licence = "not known here, as the settings name other weights"
    return replace(card, weights_licence=licence, free=False, download_bytes=None)


def _models(backend: ManagesWeights) -> list[str]:
    return [one.source.partition("@")[0] for one in backend.weight_sources]


def describe_engine(backend: Backend, device: str) -> dict[str, Any]:
    """A backend in words and figures, as the page and the command line list it.

    Args:
        backend: The backend.
        device: The kind of device that it is likely to run on.
    """
    offer, card, can = offer_of(backend), find_card(backend), backend.capabilities
    weights = backend.weight_sources if isinstance(backend, ManagesWeights) else ()
    return {
        "name": offer.name,
        "title": offer.title,
        "summary": card.summary,
        "languages": dict(sorted(can.languages.items())),
        "presets": len(can.presets),
        "cloning": can.cloning,
        "described_voices": can.described_voices,
        "seeded": can.seeded,
        "download_bytes": card.download_bytes,
        "downloadable": bool(weights),
        "removable": bool(list_weights(weights)),
        "code_licence": card.code_licence,
        "weights_licence": card.weights_licence,
        "non_commercial": card.non_commercial,
        "needs": card.needs,
        "untried": card.untried.get(device, ""),
        "large_packages": card.large_packages,
    }
