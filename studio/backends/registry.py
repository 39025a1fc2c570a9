"""The available backends, by their names in `TTS_BACKEND` and on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from studio.backends.base import Backend, FetchesWeights, canonical_name
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.variants import VARIANTS
from studio.backends.espeak.backend import DraftBackend
from studio.backends.options import BackendOptions
from studio.backends.qwen3.backend import Qwen3Backend
from studio.backends.remote.backend import RemoteBackend
from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel
from studio.errors import ModelUnavailable, SettingError
from studio.setup.commands import program


def _make_small_voice(model: CatalogueModel, _options: BackendOptions) -> Backend:
    return SherpaBackend(model)


BACKENDS: Mapping[str, Callable[[BackendOptions], Backend]] = {
    "remote": RemoteBackend,
    "qwen3": Qwen3Backend,
    **{variant.name: partial(ChatterboxBackend, variant) for variant in VARIANTS},
    **{name: partial(_make_small_voice, model) for name, model in CATALOGUE.items()},
    "draft": lambda _options: DraftBackend(),
}
"""Name to factory, best first: `auto` takes the first that can run now."""

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
        """Whether it can speak without network."""
        return self.unavailable is None and self.to_fetch is None


def offers(options: BackendOptions = DEFAULTS) -> tuple[Offer, ...]:
    """What each backend can do now, best first. Cheap: imports no model, asks no network."""
    return tuple(offer_of(create(name, options)) for name in BACKENDS)


def choose(name: str, options: BackendOptions = DEFAULTS) -> tuple[str, str | None]:
    """Turn `auto` into the best backend that can speak now, without a download.

    Returns:
        The backend's name and, where `auto` had to pass over better ones that this machine could
        have, a sentence that says so and where to see what they lack.

    Raises:
        SettingError: No backend has this name.
        ModelUnavailable: It is `auto`, and nothing can run.
    """
    if name != "auto":
        return create(name, options).name, None
    passed_over: list[Offer] = []
    for offer in offers(options):
        if offer.ready:
            return offer.name, _why(offer, passed_over)
        passed_over.append(offer)
    lacks = [f"{offer.title}: {offer.unavailable or offer.to_fetch}" for offer in passed_over]
    raise ModelUnavailable(f"No voice can run here. {' '.join(lacks)}")


def _why(taken: Offer, passed_over: list[Offer]) -> str | None:
    names = ", ".join(offer.title for offer in passed_over if offer.name not in ELSEWHERE)
    if not names:
        return None
    return (
        f"{taken.title} speaks, since it needs no download. There are better voices: {names}. "
        "Choose one under the voice engine or with --backend; "
        f"{program()} doctor lists what each of them lacks."
    )


def offer_of(backend: Backend) -> Offer:
    """What a backend can do now."""
    unavailable, lacking = backend.unavailable(), None
    if unavailable is None and isinstance(backend, FetchesWeights):
        lacking = backend.to_fetch()
    return Offer(backend.name, backend.title, unavailable, lacking)
