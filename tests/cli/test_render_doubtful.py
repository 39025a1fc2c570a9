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


def test_each_try_says_what_is_wrong_with_it_and_can_be_kept(
    render, capsys, tmp_path: Path
) -> None:
    kept = tmp_path / "tries"
    text = "Ida: Follow the brook.\nTom: Yes."
    assert render(text, "--tries", "2", "--keep-tries", str(kept)) == 2
    assert "must be a folder" in capsys.readouterr().err
    kept.mkdir()
    assert render(text, "--tries", "2", "--seed", "5", "--keep-tries", str(kept)) == 0
    first, second = json.loads(capsys.readouterr().out.splitlines()[-1])["tries"]
    assert (first["line"], first["kinds"], first["score"], first["used"]) == (1, ["tail"], 1, False)
    assert "after the last word" in first["message"]
    assert (second["kinds"], second["score"], second["used"]) == ([], 0, True)
    assert first["seed"] != second["seed"]
    names = sorted(path.name for path in kept.iterdir())
    assert names == ["0001-00000-try1.wav", "0001-00000-try2.wav"]
    assert (kept / names[0]).stat().st_size > (kept / names[1]).stat().st_size


@pytest.mark.parametrize("tries", ["0", "5", "two"])
def test_tries_are_one_to_four(render, capsys, tries: str) -> None:
    with pytest.raises(SystemExit) as ended:
        render("Ida: Hello.", "--tries", tries)
    assert ended.value.code == 2
    assert "--tries" in capsys.readouterr().err
