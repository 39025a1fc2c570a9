"""The small voices, installed from the tests' own hub."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import sherpa_models
from sherpa_backends import make
from tiny_hub import TinyHub

from studio.backends.sherpa.backend import SherpaBackend
from studio.backends.sherpa.catalogue import CATALOGUE

Serve = Callable[[dict[str, bytes]], TinyHub]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    """Serve files as every model on the hub, with an empty cache, until the test ends."""
    with ExitStack() as stack:

        def start(files: dict[str, bytes]) -> TinyHub:
            hub = TinyHub(files)
            stack.enter_context(hub.serving(monkeypatch, tmp_path / "cache"))
            return hub

        yield start


@pytest.fixture(scope="module", params=CATALOGUE)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def loaded(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SherpaBackend]:
    """A small voice that was downloaded and loaded."""
    with pytest.MonkeyPatch.context() as patch:
        hub = TinyHub(sherpa_models.FILES[name]())
        with hub.serving(patch, tmp_path_factory.mktemp("cache")):
            backend = make(name, cores=4)
            backend.load(lambda _progress: None)
            yield backend
            backend.unload()
