"""`render --pronunciations`: what is heard, and what is refused before anything is written."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.app import main

SCRIPT = "Ida: Mr Hoxha is here.\nTom: Who? [pause:0.2s] Hoxha?"

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Renders the script with a list, given as the file's name and what is in it."""
    script = tmp_path / "scene.txt"
    script.write_text(SCRIPT, encoding="utf-8")

    def run_with(name: str, content: str | bytes | None) -> int:
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        out = str(tmp_path / "scene.zip")
        argv = ["render", str(script), "-o", out, "--backend", "draft", "--json"]
        argv += ["--workspace", str(tmp_path / "workspace"), "--pronunciations", str(path)]
        return main(argv)

    return run_with


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.txt", "# names\nHoxha = hodja\n"),
        ("list.csv", "written,spoken,match_case\nHoxha,hodja,yes\n"),
        ("list.tsv", "Hoxha\thodja\n"),
        ("list.json", '{"Hoxha": "hodja"}'),
    ],
)
def test_words_are_said_as_the_file_says(run: Run, tmp_path: Path, name: str, content: str) -> None:
    assert run(name, content) == 0
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        manifest = json.loads(archive.read("manifest.json"))
    said = [segment["text"] for segment in manifest["segments"] if segment["text"]]
    assert said == ["Mister hodja is here.", "Who?", "hodja?"]


@pytest.mark.parametrize(
    ("option", "names"),
    [
        (["--names", "{number}-{words}"], ["0001-Mr_Hoxha_is_here.wav", "0002-Who.wav"]),
        (["--tracks"], ["Ida: Mr Hoxha is here."]),
    ],
)
def test_files_and_items_are_named_by_what_is_written(
    tmp_path: Path, option: list[str], names: list[str]
) -> None:
    script, words, out = (tmp_path / name for name in ("scene.txt", "words.csv", "scene.zip"))
    script.write_text("Ida: Mr Hoxha is here.\nTom: Who?", encoding="utf-8")
    words.write_text("Hoxha,hodja\n", encoding="utf-8")
    argv = ["render", str(script), "-o", str(out), "--backend", "draft", *option]
    argv += ["--workspace", str(tmp_path / "workspace"), "--pronunciations", str(words)]
    assert main(argv) == 0
    with zipfile.ZipFile(out) as archive:
        texts = [archive.read(one).decode() for one in archive.namelist() if one[-4:] != ".wav"]
        told = "\n".join([*archive.namelist(), *texts])
    assert all(name in told for name in names)
    assert "hodja" not in told.replace('"text": "Mister hodja is here."', "")


def test_a_line_of_which_nothing_is_left_fails_alone(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("list.txt", "Who = \nHoxha =") == 1
    stdout, stderr = capsys.readouterr()
    (failure,) = json.loads(stdout.splitlines()[-1])["failed"]
    assert failure["line"] == 2
    assert "The pronunciations leave nothing of this line to speak" in stderr


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("gone.txt", None, "can't be read"),
        ("list.txt", "Hoxha = hodja\nno sign", "Line 2: “no sign” has no “=”"),
        ("list.json", "[", "JSON can't be used"),
        ("list.txt", b"\x00\x01\x02", "not a text file"),
    ],
)
def test_bad_lists_are_refused_and_nothing_is_written(
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str | bytes | None,
    message: str,
) -> None:
    assert run(name, content) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "scene.zip").exists()
