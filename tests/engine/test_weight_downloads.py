"""Downloads of weights: progress, pause, resume, cancel, removal; from the tests' own hub."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_hub import TinyHub, safetensors

from studio.backends.base import LoadProgress, WeightSource
from studio.backends.espeak.backend import DraftBackend
from studio.backends.hub.weights import fetch_weights, to_fetch
from studio.engine.event_log import StateChange
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.weight_downloads import DownloadState, WeightDownloads
from studio.errors import BadInput, Conflict

SIZE = 300_000
WITHIN_S = 30


class Small(DraftBackend):
    """Speaks as the draft voice does, and wants weights of the hub."""

    name = "small"
    title = "Small"
    needs: tuple[str, ...] = ("a.safetensors", "config.json")

    def __init__(self, hold: threading.Event | None = None) -> None:
        super().__init__()
        self.hold = hold
        self.reached = threading.Event()

    @property
    def weight_sources(self) -> tuple[WeightSource, ...]:
        return (WeightSource("ada/voice", self.needs),)

    def to_fetch(self) -> str | None:
        return to_fetch("ada/voice", self.needs)

    def fetch(self, progress: Callable[[LoadProgress], None]) -> Path:
        def report(state: LoadProgress) -> None:
            if self.hold is not None and state.fraction:  # some of it is here
                self.reached.set()
                assert self.hold.wait(WITHIN_S)
            progress(state)

        return fetch_weights(self.weight_sources[0], report)


class Sibling(Small):
    """Needs one of the same files, and one of its own."""

    name = "sibling"
    title = "Sibling"
    needs = ("b.safetensors", "config.json")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TinyHub]:
    files = {"a.safetensors": safetensors(SIZE), "b.safetensors": safetensors(1_000)}
    hub = TinyHub(files | {"config.json": b"{}"})
    with hub.serving(monkeypatch, tmp_path / "cache"):
        yield hub


@pytest.fixture
def hold() -> threading.Event:
    return threading.Event()


@pytest.fixture
def downloads(hub: TinyHub, hold: threading.Event) -> Iterator[WeightDownloads]:
    made = {"small": Small(hold), "sibling": Sibling(), "draft": DraftBackend()}
    downloads = WeightDownloads(ModelPool(made.__getitem__, EvictionPolicy()), lambda _: None)
    downloads.backend_names = tuple(made)
    downloads.made = made
    yield downloads
    hold.set()
    downloads.close()


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def fetched(downloads: WeightDownloads, name: str) -> None:
    downloads.start(name)
    until(lambda: name not in downloads.list())
    assert downloads.made[name].to_fetch() is None


def files_in(cache: Path) -> list[str]:
    return sorted(
        path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"
    )


def test_weights_come_and_what_follows_is_done(downloads, hold) -> None:
    hold.set()
    done = threading.Event()
    downloads.start("small", done.set)
    assert done.wait(WITHIN_S)
    until(lambda: not downloads.list())
    assert downloads.made["small"].to_fetch() is None
    assert downloads.n_changes == 1


def test_a_second_start_changes_nothing(downloads, hub, hold) -> None:
    downloads.start("small")
    assert downloads.made["small"].reached.wait(WITHIN_S)
    downloads.start("small")
    hold.set()
    until(lambda: not downloads.list())
    assert hub.served["a.safetensors"] == len(safetensors(SIZE))


def test_a_paused_download_goes_on_from_there(downloads, hub, hold, tmp_path) -> None:
    hub.break_after["a.safetensors"] = [100_000]
    downloads.start("small")
    assert downloads.made["small"].reached.wait(WITHIN_S)
    downloads.pause("small")
    assert downloads.list()["small"].state is DownloadState.STOPPING
    hold.set()
    until(lambda: downloads.list()["small"].state is DownloadState.PAUSED)
    assert downloads.made["small"].to_fetch() is not None
    fetched(downloads, "small")
    assert hub.served["a.safetensors"] <= len(safetensors(SIZE)) + 70_000


@pytest.mark.parametrize("paused_first", [False, True])
def test_a_cancelled_download_leaves_nothing(downloads, hold, tmp_path, paused_first) -> None:
    downloads.start("small")
    assert downloads.made["small"].reached.wait(WITHIN_S)
    if paused_first:
        downloads.pause("small")
        hold.set()
        until(lambda: downloads.list()["small"].state is DownloadState.PAUSED)
        assert files_in(tmp_path / "cache")
    downloads.cancel("small")
    hold.set()
    until(lambda: not downloads.list())
    assert files_in(tmp_path / "cache") == []


def test_a_failed_download_says_why_and_can_be_tried_again(downloads, hub, hold) -> None:
    hold.set()
    hub.corrupt.add("a.safetensors")
    downloads.start("small")
    until(lambda: downloads.list()["small"].state is DownloadState.FAILED)
    assert "arrived broken" in downloads.list()["small"].message
    hub.corrupt.clear()
    fetched(downloads, "small")


def test_removed_weights_are_gone_but_for_what_others_need(downloads, hold, tmp_path) -> None:
    hold.set()
    fetched(downloads, "small")
    fetched(downloads, "sibling")
    downloads.remove("small")
    assert downloads.made["small"].to_fetch() is not None
    assert downloads.made["sibling"].to_fetch() is None
    downloads.remove("sibling")
    assert files_in(tmp_path / "cache") == []


def test_what_is_not_there_or_on_its_way_cannot_be_removed(downloads) -> None:
    with pytest.raises(BadInput, match="Small has no weights"):
        downloads.remove("small")
    with pytest.raises(BadInput, match="nothing to download"):
        downloads.remove("draft")
    downloads.start("small")
    with pytest.raises(Conflict, match="Small is being downloaded"):
        downloads.remove("small")


def test_the_end_stops_them_and_keeps_what_came(downloads, hold) -> None:
    downloads.start("small")
    assert downloads.made["small"].reached.wait(WITHIN_S)
    threading.Timer(0.05, hold.set).start()
    downloads.close()
    assert downloads.list()["small"].state is DownloadState.PAUSED


def test_each_step_is_told(hub, hold) -> None:
    hold.set()
    told: list[StateChange] = []
    pool = ModelPool({"small": Small()}.__getitem__, EvictionPolicy())
    downloads = WeightDownloads(pool, told.append)
    downloads.start("small")
    until(lambda: not downloads.list())
    downloads.close()
    assert told[0] is StateChange.WORK
    assert StateChange.MODELS in told
