"""The benchmark of the page runs to its end, on a dialog short enough for the plain half."""

import os
from pathlib import Path

import pytest

from benchmarks import page
from benchmarks.page import page_rows
from studio.setup.browser import find_browser

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.browser


@pytest.mark.skipif(find_browser(os.environ) is None, reason="no Chromium found")
def test_every_figure_is_compared(capsys, monkeypatch):
    monkeypatch.setattr(page, "_TURNS", 1)
    rows = list(page_rows(ROOT, 25))
    assert [row["what"] for row in rows] == ["open", "key to paint", "insert", "delete", "move"]
    for row in rows:
        assert float(row["ours ms, median"]) > 0
        assert float(row["plain Gradio ms, median"].removeprefix("> ")) > 0
    told = capsys.readouterr().err
    assert told.count("plain Gradio, ") == told.count("ours, ") == len(rows)
