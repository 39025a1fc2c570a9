"""A hub that is busy for a while costs time and no download."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="the model packages are not installed")

from tiny_hub import TinyHub, safetensors

from studio.backends.base import LoadProgress, WeightSource
from studio.backends.hub import download
from studio.backends.hub.weights import fetch_weights
from studio.errors import Cancelled, ModelUnavailable

pytestmark = pytest.mark.models

FILES = {"config.json": b"{}", "model.safetensors": safetensors(200_000)}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TinyHub]:
    monkeypatch.setattr(download, "_FIRST_WAIT_S", 0.001)
    hub = TinyHub(dict(FILES))
    with hub.serving(monkeypatch, tmp_path):
        yield hub


def fetch(told: list[str] | None = None) -> Path:
    return fetch_weights(
        WeightSource("ada/voice", tuple(FILES)),
        lambda progress: told.append(progress.message) if told is not None else None,
    )


@pytest.mark.parametrize("status", [429, 500, 503])
def test_it_is_asked_again(hub: TinyHub, status: int) -> None:
    hub.busy = [status] * (download.TRIES - 1)
    told: list[str] = []
    folder = fetch(told)
    assert (folder / "model.safetensors").read_bytes() == FILES["model.safetensors"]
    assert any(message.startswith("The hub is busy") for message in told)


def test_one_that_stays_busy_ends_the_download(hub: TinyHub) -> None:
    hub.busy = [503] * download.TRIES
    with pytest.raises(ModelUnavailable, match="answered 503"):
        fetch()
    assert hub.busy == []
    assert (fetch() / "model.safetensors").is_file()


def test_what_will_not_pass_is_told_at_once(hub: TinyHub) -> None:
    hub.busy = [403, 503]
    with pytest.raises(ModelUnavailable):
        fetch()
    assert hub.busy == [503]


def test_the_waiting_can_be_cancelled(hub: TinyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_FIRST_WAIT_S", 600.0)
    hub.busy = [503]

    def stop(progress: LoadProgress) -> None:
        if progress.message.startswith("The hub is busy"):
            raise Cancelled

    with pytest.raises(Cancelled):
        fetch_weights(WeightSource("ada/voice", tuple(FILES)), stop)
