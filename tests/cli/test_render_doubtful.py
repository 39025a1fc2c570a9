"""`render` names lines that may not be right, and tries them again when asked to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from wandering import WanderingDraft

from studio.app import main
from studio.backends import registry


@pytest.fixture
def render(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Renders a script in a workspace of its own; the exit status."""
    monkeypatch.setattr(registry, "BACKENDS", {"draft": lambda _: WanderingDraft()})
    script, out = tmp_path / "scene.txt", tmp_path / "scene.wav"

    def run(text: str, *options: str) -> int:
        script.write_text(text, encoding="utf-8")
        argv = ["render", str(script), "-o", str(out), "--backend", "draft", "--json"]
        return main([*argv, "--workspace", str(tmp_path / "workspace"), *options])

    return run


def test_doubtful_lines_are_named(render, capsys) -> None:
    assert render("Ida: All is well.\nTom: I saw the marsh.") == 0
    out, err = capsys.readouterr()
    [one] = json.loads(out.splitlines()[-1])["doubtful"]
    assert (one["segment_idx"], one["line"], one["kinds"]) == (1, 2, ["tail"])
    assert f"Line 2 may not be right: {one['message']}" in err


def test_a_doubtful_line_is_tried_again_when_asked_to(render, capsys) -> None:
    assert render("Ida: Follow the brook.\nTom: Yes.", "--tries", "2") == 0
    out, err = capsys.readouterr()
    report = json.loads(out.splitlines()[-1])
    assert report["doubtful"] == []
    assert [one["line"] for one in report["second_tries"]] == [1]
    assert "the better one is kept" in err


@pytest.mark.parametrize("tries", ["0", "5", "two"])
def test_tries_are_one_to_four(render, capsys, tries: str) -> None:
    with pytest.raises(SystemExit) as ended:
        render("Ida: Hello.", "--tries", tries)
    assert ended.value.code == 2
    assert "--tries" in capsys.readouterr().err
