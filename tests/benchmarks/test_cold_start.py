"""`bench cold` on the draft voice: the line that loads the model, and the same line again."""

from __future__ import annotations

import logging

from studio.app import main


def test_a_cold_line_waits_for_the_load_and_a_warm_one_does_not(capsys, caplog) -> None:
    caplog.set_level(logging.INFO, "studio.engine.model_manager")
    assert main(["bench", "cold", "--backend", "draft", "--runs", "2"]) == 0
    [header, _, row] = [
        line.strip("| ").split(" | ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("|")
    ]
    figures = dict(zip(header, row, strict=True))
    assert (figures["backend"], figures["runs"]) == ("draft", "2")
    cold_s, warm_s = float(figures["first audio s, cold"]), float(figures["first audio s, warm"])
    assert cold_s > 0
    assert warm_s >= 0
    assert float(figures["a cold start costs s"]) <= cold_s
    assert float(figures["processor s, cold"]) > 0
    assert float(figures["processor s, warm"]) >= 0
    assert caplog.text.count("model draft: loaded in") == 3, "once before, and in each run"
