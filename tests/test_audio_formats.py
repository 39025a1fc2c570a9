"""The formats of sound are the same at every door."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from studio.audio.formats import FILE_FORMATS, AudioFormat
from studio.cli.arguments import build_parser
from studio.server.gradio_functions import GradioFunctions
from studio.server.mcp_tools import RenderSceneArguments
from studio.server.routes.project_files import ExportFormat, SoundBody
from studio.server.v1.speech_api import speech_api
from studio.ui.blocks import render_template

ROOT = Path(__file__).resolve().parents[1]
FILES = ("wav", "flac", "mp3", "m4a", "m4b", "opus", "aiff")
STREAMS = (*FILES, "aac", "pcm")


def list_at_each_door() -> dict[str, list[str]]:
    """What each door offers of sound, without zips, scripts and times."""
    page = render_template("sound_form.html", min_lufs="-30", max_lufs="-9")
    hints = get_type_hints(GradioFunctions.dialog), get_type_hints(GradioFunctions.loudness)
    document = speech_api(lambda _: None, guard=lambda: None).openapi()
    schemas = document["components"]["schemas"]
    (query,) = (
        one["schema"]
        for one in document["paths"]["/dialogs/{dialog_id}/audio"]["get"]["parameters"]
        if one["name"] == "format"
    )
    (render,) = (
        action.choices["render"]
        for action in build_parser()._actions
        if isinstance(action.choices, dict)
    )
    options = {one: action for action in render._actions for one in action.option_strings}
    guide = (ROOT / "docs/guide/files.md").read_text(encoding="utf-8")
    guide = guide.partition("<!-- generated: formats -->")[2].partition("<!-- end -->")[0]
    return {
        "page": re.findall(r'<option value="(\w+)"', page.partition("</select>")[0]),
        "export": list(SoundBody.model_json_schema()["properties"]["format"]["enum"]),
        "routes": [one for one in ExportFormat.__args__ if one in STREAMS],
        "gradio": list(hints[0]["audio_format"].__args__),
        "gradio loudness": list(hints[1]["audio_format"].__args__),
        "mcp": RenderSceneArguments.model_json_schema()["properties"]["audio_format"]["enum"],
        "--format": list(options["--format"].choices),
        "-o": re.findall(r"\.(\w+)", options["-o"].help.partition(";")[0]),
        "guide": re.findall(r"^\|[^|]+\| `\.(\w+)` \|", guide, re.MULTILINE),
        "/v1 audio": schemas[query["$ref"].rpartition("/")[2]]["enum"],
    }


def test_every_door_offers_the_same_formats() -> None:
    streamed = {"/v1 audio"}
    zips = {"zip", "tracks"}
    found = list_at_each_door()
    assert tuple(FILE_FORMATS) == FILES
    assert tuple(AudioFormat) == STREAMS
    assert {door: sorted(set(names) - zips) for door, names in found.items()} == {
        door: sorted(STREAMS if door in streamed else FILES) for door in found
    }


def test_the_page_knows_what_can_be_chosen_of_a_format() -> None:
    page = render_template("sound_form.html", min_lufs="-30", max_lufs="-9")
    lossy = re.findall(r'value="(\w+)"\s+data-lossy', page)
    covered = re.findall(r'value="(\w+)"[^>]*data-covered', page)
    assert lossy == ["mp3", "m4a", "m4b", "opus"]
    assert covered == [one for one in FILES if one not in ("wav", "aiff")]


@pytest.mark.parametrize("module", ["studio.cli.arguments", "studio.audio.formats"])
def test_the_launcher_needs_no_packages_for_the_table(module: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)
