"""`bench engines --model turbo` on a tiny model: every engine makes the same seconds of audio."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

pytest.importorskip("chatterbox", reason="the neural voices' packages are not installed")

import torch
from chatterbox_checkpoint import small_architecture

from benchmarks import chatterbox_engines
from benchmarks.chatterbox_engines import MODELS, chatterbox_rows
from benchmarks.qwen3_engines import build_timed_lines
from studio.app import main
from studio.errors import SettingError

pytestmark = pytest.mark.models


@pytest.mark.parametrize(
    "model",
    [
        "turbo",
        pytest.param("chatterbox", marks=pytest.mark.campaign),
        pytest.param("multilingual", marks=pytest.mark.campaign),
    ],
)
def test_the_table_on_a_tiny_model(model, monkeypatch, capsys):
    torch.set_num_threads(1)
    monkeypatch.setitem(chatterbox_engines._SLOTS, "cpu", (2,))
    monkeypatch.setitem(chatterbox_engines._TRIES, "cpu", 1)
    lines = sorted(build_timed_lines(60), key=lambda line: line.frames)
    monkeypatch.setattr(chatterbox_engines, "build_timed_lines", lambda count: lines[:count])
    # "tiny" is a depth, of the released width; the campaign's models keep that.
    with small_architecture(MODELS[model].name) if model == "turbo" else nullcontext():
        asked = ["--model", model, "--size", "tiny", "--lines", "2", "--runs", "1"]
        assert main(["bench", "engines", *asked]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if " tiny |" in line]
    assert [row[0] for row in rows] == [
        "| chatterbox, one by one, tokens only",
        "| this engine, 2 slots, tokens only",
        "| chatterbox, one by one",
        "| this engine, 2 slots",
    ]
    tokens_only_s, sound_s = [{row[3] for row in rows[at : at + 2]} for at in (0, 2)]
    assert len(tokens_only_s) == 1
    # This engine cuts the multilingual model's last token off, 40 ms of two lines each.
    assert len(sound_s) == (2 if model == "multilingual" else 1), sound_s
    assert max(map(float, sound_s)) - min(map(float, sound_s)) < 0.11
    assert all(float(row[5]) > 0 for row in rows)


def test_an_unknown_size_is_refused_with_those_there_are():
    with pytest.raises(SettingError, match="tiny, mid, full"):
        next(chatterbox_rows(model="turbo", size="0.6B", device="cpu", lines=1, half=False))
