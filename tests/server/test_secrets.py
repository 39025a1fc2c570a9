"""Where passwords and keys come from, and that other users of the machine don't see them."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path

import httpx
import psutil
import pytest
from environment import settings_from
from serving import serving
from test_sessions import no_tunnel

from studio.cli.serve import ServeArguments, ServerConfig
from studio.errors import SettingError
from studio.server.announcement import announced

SIGN_IN = {"username": "ida", "password": "secret: 1"}


def test_a_file_holds_the_password_and_another_the_key(tmp_path: Path) -> None:
    (tmp_path / "auth").write_text("ida:secret: 1\n")
    (tmp_path / "key").write_text("sk-owner\n")
    settings = settings_from(
        {
            "TABLEREAD_AUTH_FILE": str(tmp_path / "auth"),
            "TABLEREAD_API_KEY_FILE": str(tmp_path / "key"),
        }
    )
    assert settings.auth.get_secret_value() == "ida:secret: 1"
    assert settings.api_key.get_secret_value() == "sk-owner"
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("name", ["TABLEREAD_AUTH", "TABLEREAD_API_KEY"])
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for file in ("missing", "empty", "bytes", "."):
        with pytest.raises(SettingError, match=f"{name}_FILE=.*can't be"):
            settings_from({f"{name}_FILE": str(tmp_path / file)})
    (tmp_path / "good").write_text("ida:secret")
    with pytest.raises(SettingError, match=f"{name} and {name}_FILE are both set") as raised:
        settings_from({f"{name}_FILE": str(tmp_path / "good"), name: "tom:hidden"})
    assert "hidden" not in str(raised.value)


def arguments(host: str | None, auth: tuple[str, str] | None = None) -> ServeArguments:
    return ServeArguments(host=host, port=None, share=False, auth=auth, open_browser=False)


@pytest.mark.parametrize("host", [None, "localhost", "127.0.0.1", "127.0.0.9", "::1", "[::1]"])
def test_an_address_of_this_machine_only_is_not_open(host: str | None) -> None:
    assert not arguments(host).is_open


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "[::]", "192.168.1.7", "studio.lan"])
def test_an_address_of_the_network_is_open_without_a_password(host: str) -> None:
    assert arguments(host).is_open
    assert not arguments(host, ("ida", "secret")).is_open
    assert "secret" not in repr(arguments(host, ("ida", "secret")))


def test_a_key_is_in_no_representation() -> None:
    assert "sk-owner" not in repr(ServerConfig(api_key="sk-owner", auth="ida:sk-owner"))


@pytest.mark.slow
def test_an_open_studio_says_who_can_do_what(tmp_path: Path) -> None:
    environ = {"TABLEREAD_API_KEY": "sk-owner", "GRADIO_SERVER_NAME": "0.0.0.0"}  # as --host
    with serving(tmp_path / "workspace", environ=environ, fresh=True) as (_, process):
        said = process.said()
    for part in ("without a password", "change and delete", "TABLEREAD_AUTH", "/v1 only"):
        assert part in said


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="the browser is a shell script")
def test_no_argument_of_a_program_holds_a_secret(tmp_path: Path) -> None:
    """A password from a file, and the owner's link through a file that only this user reads."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nfor one in "$@"; do echo "$one" >> {opened}; done\n')
    browser.chmod(0o755)
    (tmp_path / "auth").write_text("ida:secret: 1\n")
    workspace = tmp_path / "workspace"
    environ = no_tunnel() | {
        "TABLEREAD_AUTH_FILE": str(tmp_path / "auth"),
        "BROWSER": str(browser),
    }
    with serving(workspace, "--share", environ=environ, opens=True, fresh=True) as (
        client,
        process,
    ):
        said = process.said()
        link = re.search(r"http://\S+/studio/enter\?key=(\S+)", said)
        running = " ".join(psutil.Process(process.pid).cmdline())
        assert client.post("/login", data=SIGN_IN).status_code == 200
        while not (opened.exists() and opened.read_text().endswith("\n")):
            assert process.poll() is None
        (argument,) = opened.read_text().split()
        assert link[1] not in argument
        assert "secret" not in running
        assert link[1] not in running
        file = Path(httpx.URL(argument).path)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert link[0] in file.read_text()
        process.terminate()
        process.wait(60)
    assert not file.exists()
    assert not list(workspace.glob("opening-*"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
def test_others_of_the_machine_read_nothing_whatever_the_umask(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        with serving(tmp_path / "workspace", fresh=True) as (client, _):
            project = client.post("/studio/projects", json={"text": "Ida: Good evening."}).json()
            at = f"/studio/projects/{project['project_id']}"
            client.post(f"{at}/render", json={}).raise_for_status()
            while not list((tmp_path / "workspace").rglob("*.wav")):
                client.get(at)
            made = list((tmp_path / "workspace").rglob("*"))
            assert len(made) > 10
            open_to_others = [str(one) for one in made if one.lstat().st_mode & 0o077]
    finally:
        os.umask(usual)
    assert open_to_others == []


@pytest.mark.parametrize("key", [None, "sk-owner"])
def test_an_open_studio_says_so_and_what_a_key_protects(
    key: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = replace(arguments("0.0.0.0"), config=ServerConfig(api_key=key))
    local = "http://127.0.0.1:7860"
    with announced(local, given, share_url=None, sessions=None, workspace=tmp_path):
        pass
    said = capsys.readouterr().out
    assert "Anybody who reaches port 7860 of this machine can do what you can" in said
    assert ("TABLEREAD_API_KEY protects /v1 only." in said) is (key is not None)


@pytest.mark.parametrize(
    ("share", "url", "says"),
    [
        (False, None, []),
        (True, None, ["The share link can't be made"]),
        (True, "https://ab.example", ["The share link: https://ab.example", "sign in as ida"]),
    ],
)
def test_a_share_link_is_told_with_its_password_or_why_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, share: bool, url: str, says: list[str]
) -> None:
    given = replace(arguments(None, ("ida", "sesame")), share=share, made_password=True)
    local = "http://127.0.0.1:7860"
    with announced(local, given, share_url=url, sessions=None, workspace=tmp_path):
        pass
    said = capsys.readouterr().out
    assert [part for part in says if part not in said] == []
    assert ("share link" in said) is share
    assert ("sesame" in said) is (url is not None)
