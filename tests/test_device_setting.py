"""TTS_DEVICE on its way to the backends."""

from __future__ import annotations

import os

import pytest
from environment import settings_from

from studio.app import _backend_options
from studio.errors import SettingError

CARDS = "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    ("given", "device"),
    [("", None), ("auto", None), ("cpu", "cpu"), ("mps", "mps"), ("cuda", "cuda")],
)
def test_it_reaches_the_backends(given: str, device: str | None) -> None:
    settings = settings_from({"TTS_DEVICE": given})
    assert _backend_options(settings).device == device


@pytest.mark.parametrize("given", ["gpu", "cuda:", "cuda:-1", "CPU:0", "cuda:1000"])
def test_a_value_that_cannot_be_used_is_refused(given: str) -> None:
    with pytest.raises(SettingError, match="TTS_DEVICE"):
        settings_from({"TTS_DEVICE": given})


@pytest.mark.parametrize(("seen", "left"), [(None, "1"), ("3,5", "5"), ("", "1")])
def test_of_several_cards_only_the_chosen_one_is_there(
    monkeypatch: pytest.MonkeyPatch, seen: str | None, left: str
) -> None:
    monkeypatch.setenv(CARDS, seen or "")  # so that it is put back, too
    if seen is None:
        monkeypatch.delenv(CARDS)
    settings = settings_from({"TTS_DEVICE": "cuda:1"})
    assert _backend_options(settings).device == "cuda"
    assert os.environ[CARDS] == left


def test_a_card_beyond_those_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CARDS, "3")
    with pytest.raises(SettingError, match="leaves 1 card"):
        _backend_options(settings_from({"TTS_DEVICE": "cuda:1"}))
