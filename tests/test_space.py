"""Started as a Hugging Face Space starts it: `python launch.py`, no options, its variables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from environment import settings_from
from ports import reserve_port
from serving import ROOT

from studio.app import _server_config, _settings
from studio.cli.arguments import build_parser
from studio.cli.serve import ServeArguments

START_TIMEOUT_S = 300


def space(port: int, workspace: Path) -> dict[str, str]:
    """What the platform sets, and a workspace, for the tests' own sake."""
    return {
        "SPACE_ID": "somebody/tableread",
        "SPACE_HOST": "somebody-tableread.hf.space",
        "SYSTEM": "spaces",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_SERVER_NAME": "0.0.0.0",
        "TABLEREAD_WORKSPACE": str(workspace),
        "TABLEREAD_INSTALL_MODELS": "false",
    }


@contextmanager
def started(python: str, folder: Path, log: Path, environ: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [python, "launch.py"],
            cwd=folder,
            env=os.environ | environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while "The studio:" not in log.read_text() and process.poll() is None:
            assert time.monotonic() < deadline_s, log.read_text()
            time.sleep(0.1)
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.kill()
        process.wait()


def _works(port: int) -> None:
    """What a visitor's browser does there, by the platform's proxy."""
    proxied = {"Host": "somebody-tableread.hf.space", "X-Forwarded-Proto": "https"}
    address = f"http://127.0.0.1:{port}"
    with httpx.Client(base_url=address, headers=proxied, timeout=120) as client:
        page = client.get("/")
        assert page.status_code == 200
        assert (
            "frame-ancestors 'self' https://huggingface.co"
            in (page.headers["content-security-policy"])
        )
        assert "x-frame-options" not in page.headers
        (cookie,) = page.headers.get_list("set-cookie")
        assert {"HttpOnly", "SameSite=None", "Secure", "Partitioned"} <= set(cookie.split("; "))
        kept = {"Cookie": cookie.split(";")[0]}
        assert client.get("/studio/state", headers=kept).json()["backend"]["name"] == "draft"
        made = client.post("/studio/projects", json={"text": "Ida: Hello."}, headers=kept).json()
        project = f"/studio/projects/{made['project_id']}"
        client.post(f"{project}/render", json={}, headers=kept).raise_for_status()
        # The answer begins when the line is made.
        sound = f"{project}/lines/{made['lines'][0]['line_id']}/audio"
        assert len(client.get(sound, headers=kept).raise_for_status().content) > 10_000
        # Another browser is another visitor.
        assert client.get(project).status_code == 404
        assert client.post("/studio/model/unload", headers=kept).status_code == 403


@pytest.mark.slow
def test_it_serves_visitors_in_the_running_environment(tmp_path: Path) -> None:
    port, log = reserve_port(), tmp_path / "space.log"
    venvs = set(ROOT.glob(".venv"))
    with started(sys.executable, ROOT, log, space(port, tmp_path / "data")):
        _works(port)
    assert set(ROOT.glob(".venv")) == venvs  # none was made
    assert "The share link" not in log.read_text()


def _arguments(environ: dict[str, str], *options: str) -> ServeArguments:
    settings = settings_from(environ)
    parsed = build_parser().parse_args(["serve", *options])
    return ServeArguments.check(parsed, _server_config(settings))


def test_it_listens_where_the_platform_asks(tmp_path: Path) -> None:
    port = reserve_port()
    arguments = _arguments(space(port, tmp_path))
    assert (arguments.host, arguments.port) == ("0.0.0.0", port)
    assert arguments.is_shared
    assert not arguments.open_browser
    assert "somebody-tableread.hf.space" in arguments.config.allowed_hosts
    assert not _arguments(space(reserve_port(), tmp_path), "--share").share


def test_a_domain_of_ones_own_beside_the_spaces_is_known(tmp_path: Path) -> None:
    hosts = {"SPACE_HOST": "somebody-tableread.hf.space, studio.example.com"}
    around = _arguments(space(reserve_port(), tmp_path) | hosts).config
    assert around.allowed_hosts == ("somebody-tableread.hf.space", "studio.example.com")


def test_elsewhere_it_stays_on_this_machine() -> None:
    arguments = _arguments({})
    assert (arguments.host, arguments.port, arguments.is_shared) == (None, None, False)
    shared = _arguments({}, "--share")
    assert shared.is_shared
    assert shared.made_password
    assert len(shared.auth[1]) >= 16
    assert shared.auth != _arguments({}, "--share").auth
    given = _arguments({}, "--share", "--auth", "ida:lamp")
    assert given.auth == ("ida", "lamp")
    assert not given.made_password


def test_storage_is_used_when_it_is_there(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("studio.app.SPACE_STORAGE", tmp_path)
    parsed = build_parser().parse_args(["serve"])
    for name in ("SPACE_ID", "TABLEREAD_WORKSPACE", "TTS_BACKEND", "SPACES_ZERO_GPU"):
        monkeypatch.delenv(name, raising=False)
    assert _settings(parsed).workspace != tmp_path / "tableread"
    monkeypatch.setenv("SPACE_ID", "somebody/tableread")
    assert _settings(parsed).workspace == tmp_path / "tableread"
    monkeypatch.setenv("TABLEREAD_WORKSPACE", str(tmp_path / "mine"))
    assert _settings(parsed).workspace == tmp_path / "mine"
    monkeypatch.setattr("studio.app.SPACE_STORAGE", tmp_path / "missing")
    monkeypatch.delenv("TABLEREAD_WORKSPACE")
    assert "missing" not in str(_settings(parsed).workspace)


def test_without_a_card_the_draft_voice_speaks(monkeypatch) -> None:
    parsed = build_parser().parse_args(["serve"])
    for name in ("TTS_BACKEND", "SPACES_ZERO_GPU"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPACE_ID", "somebody/tableread")
    monkeypatch.setattr("studio.app._has_card", lambda _: False)
    assert _settings(parsed).backend == "draft"
    monkeypatch.setattr("studio.app._has_card", lambda _: True)
    assert _settings(parsed).backend == "auto"


@pytest.mark.campaign
@pytest.mark.timeout(3_600)
def test_a_fresh_environment_as_the_platform_makes_it(tmp_path: Path) -> None:
    """`pip install -r requirements.txt`, all of it, then the start; takes minutes and gigabytes."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    python = str(environment / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "-r", "requirements.txt"]
    subprocess.run(install, cwd=ROOT, check=True)
    port, log = reserve_port(), tmp_path / "space.log"
    with started(python, ROOT, log, space(port, tmp_path / "data")):
        _works(port)


def test_the_front_matter_names_the_launcher() -> None:
    """Where the README has front matter, it is what the platform reads."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    matter = re.match(r"---\n(.*?)\n---\n", readme, re.DOTALL)
    if matter is None:
        pytest.skip("this README has no front matter")
    fields = dict(re.findall(r"^(\w+): *(.*)$", matter[1], re.MULTILINE))
    assert fields["sdk"] == "gradio"
    assert fields["app_file"] == "launch.py"
    pinned = re.search(r"^gradio==(.+)$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert fields["sdk_version"] == pinned[1]
