"""What many tests share: a studio on the draft voice."""

from __future__ import annotations

import own_home  # isort: skip  # before whatever imports the hub's client

import gc
import math
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import trained_weights
from hypothesis import HealthCheck, settings
from scenes import OpenStudio
from serving import end_forks

from studio.backends.base import Backend
from studio.backends.registry import create
from studio.engine.model_manager import EvictionPolicy
from studio.hearing.model_catalogue import HearingModel
from studio.services.studio import Studio, StudioOptions

os.environ.setdefault("TABLEREAD_INSTALL_VOICES", "false")  # no studio of a test downloads unasked

# How long an example takes says more of what else the machine does than of the example. The suite
# tries the same examples each time, so what fails is what was changed; campaigns look for more.
settings.register_profile(
    "campaign",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("tests", settings.get_profile("campaign"), derandomize=True)


def pytest_configure(config: pytest.Config) -> None:
    """Hand out modules in the order of collection, as `tests/ui` needs it, not by their size."""
    settings.load_profile("campaign" if config.option.markexpr == "campaign" else "tests")
    config.option.loadscopereorder = False
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in the background so, and a child would ignore Ctrl+C too.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure() -> None:
    end_forks()
    own_home.remove()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules of the page last, the longest first, so that both workers end at once.

    One browser serves all of a worker's, and its event loop would stand in the way of asyncio tests
    that follow. One or two tests have a module of their own where they take as long as many. A seed
    in `TABLEREAD_SHUFFLE_TESTS` shuffles the modules of each half.
    """
    sizes = Counter(item.path for item in items)
    page = Path(__file__).with_name("ui")
    driving = {item.path for item in items if item.get_closest_marker("browser")}
    driving = {path for path in driving if path.parent == page}
    order = dict.fromkeys(sizes, 0.0)
    order |= {path: -sizes[path] if sizes[path] > 2 else -math.inf for path in driving}
    if seed := os.environ.get("TABLEREAD_SHUFFLE_TESTS"):
        shuffled = random.Random(seed).sample(sorted(sizes), len(sizes))
        order = {path: place for place, path in enumerate(shuffled)}
    items.sort(key=lambda item: (item.path in driving, order[item.path]))


def _nightly() -> frozenset[str]:
    """Tests by node, the last parameters too, that `tests/nightly.txt` leaves to the night."""
    lines = Path(__file__).with_name("nightly.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


_NIGHTLY = _nightly()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what `tests/nightly.txt` names: a test, or what it does with some parameters."""
    if not _NIGHTLY.isdisjoint((item.nodeid, item.nodeid.partition("[")[0])):
        item.add_marker("cost")


_MODULE_MARKS = re.compile(r"^pytestmark = (\[[^]]*]|.*)", re.MULTILINE)


def _left_out(expression: str) -> frozenset[str]:
    """The marks of which a test may have none, to be chosen by an expression of `-m`."""
    outside = re.sub(r"\([^()]*\)", "", expression)
    if re.search(r"\bor\b", outside):
        return frozenset()
    return frozenset(re.findall(r"\bnot (\w+)", outside))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Spare the import of a module of which `-m` leaves out every test: many import torch."""
    if collection_path.suffix != ".py":
        return None
    left_out = _left_out(config.option.markexpr)
    marks = _MODULE_MARKS.search(collection_path.read_text("utf-8"))
    if marks and left_out & {*re.findall(r"mark\.(\w+)", marks[1])}:
        return True
    return None


_MANY_MODULES = 50
_frozen_at = [0]


def pytest_runtest_setup() -> None:
    """Take what was imported out of the garbage collector's sight.

    Backends collect whenever a model goes or memory fails; looking through torch and what sits
    on it for each time took a second. To ask how much is frozen already walks through all of it,
    0.1 s a test, so nothing here thaws it again.
    """
    if len(sys.modules) - _frozen_at[0] >= _MANY_MODULES:
        gc.collect()
        gc.freeze()
        _frozen_at[0] = len(sys.modules)


@pytest.fixture(scope="module")
def installed_kokoro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trained Kokoro is installed, here and in what this process starts."""
    cache = tmp_path_factory.mktemp("hub")
    trained_weights.install_kokoro(cache)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", str(cache))
        patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
        yield


@pytest.fixture
def open_studio(tmp_path: Path) -> Iterator[OpenStudio]:
    """Makes started studios in one temporary workspace; closes them at the end."""
    opened: list[Studio] = []

    def open_one(
        backend: Backend | None = None,
        *,
        max_concurrency: int = 3,
        eviction: EvictionPolicy | None = None,
        recognisers: Mapping[str, HearingModel] | None = None,
        **options: object,
    ) -> Studio:
        studio = Studio.open(
            # Not those that may be installed on this machine.
            StudioOptions(tmp_path / "workspace", "draft", recognisers=recognisers or {}),
            create if backend is None else lambda _: backend,
            max_concurrency=max_concurrency,
            eviction=eviction,
            **options,
        )
        studio.start()
        opened.append(studio)
        return studio

    yield open_one
    for studio in opened:
        studio.close()


@pytest.fixture
def studio(open_studio: OpenStudio) -> Studio:
    """A started studio on the draft voice."""
    return open_studio()
