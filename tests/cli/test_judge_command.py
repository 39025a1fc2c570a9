"""`judge` says how good the checks are on a project's takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from project_scenes import rendered
from spoken_lines import iter_texts

from studio.app import main
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.services.studio import Studio, StudioOptions


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """One with two projects: one of nine lines that are ready, and an empty one."""
    long = (text for text in iter_texts("en") if len(text) >= 60)
    texts = [text for _, text in zip(range(9), long, strict=False)]
    dialog = read_dialog_text("\n".join(f"Zoë: {text}" for text in texts)).dialog
    options = StudioOptions(tmp_path / "workspace", "draft")
    with Studio.open(options, lambda _: DraftBackend()) as studio:
        session = studio.projects.create("The Mill", dialog)
        studio.projects.create("Empty")
        rendered(session)
    return options.workspace


def test_a_project_is_judged_by_its_name(workspace: Path, capsys) -> None:
    assert main(["judge", "the mill", "--workspace", str(workspace)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "VOICE"
    assert [row.split("  ")[0] for row in rows] == ["Zoë"] * 6
    [pitch] = [row for row in rows if "2 semitones higher or lower" in row]
    assert re.search(r"\d+ \(\d+ to \d+\), n = 9", pitch)
    assert main(["judge", "The Mill", "--json", "--workspace", str(workspace)]) == 0
    printed = capsys.readouterr().out
    assert printed.isascii(), "whatever the encoding of standard output"
    body = json.loads(printed)
    assert {one["voice"] for one in body["faults"]} == {"Zoë"}
    assert len(body["faults"]) == 6
    assert (body["off"], body["too_few"]) == ([], [])


def test_a_project_that_isnt_there_or_has_nothing_to_judge_by_is_named(
    workspace: Path, capsys
) -> None:
    assert main(["judge", "Mill", "--workspace", str(workspace)]) == 2
    assert "There is no project “Mill” in this workspace" in capsys.readouterr().err
    assert main(["judge", "Empty", "--workspace", str(workspace)]) == 2
    assert "at least 8 ready lines" in capsys.readouterr().err
