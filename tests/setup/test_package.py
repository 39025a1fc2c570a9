"""The package: what it needs, what it holds, and that the command runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tiny_index import REPO

from studio import __version__, settings
from studio.setup.launcher import Launcher
from studio.setup.requirements import read_parts
from studio.storage import workspace

PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
STUDIO_RANGES = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRA_RANGES = [
    Requirement(text) for extra in PROJECT["optional-dependencies"].values() for text in extra
]


def pins(part: str) -> dict[str, str]:
    return {pin.name: pin.version for pin in read_parts(REPO / "requirements.txt")[part].pins}


def test_package_and_clone_need_the_same_packages():
    assert {one.name for one in STUDIO_RANGES} == set(pins("studio"))


@pytest.mark.parametrize("wanted", STUDIO_RANGES, ids=str)
def test_the_tested_version_is_in_the_range(wanted):
    assert wanted.specifier.contains(pins("studio")[wanted.name])


@pytest.mark.parametrize("wanted", EXTRA_RANGES, ids=str)
def test_the_tested_model_packages_are_in_the_ranges_of_the_extras(wanted):
    assert wanted.specifier.contains(pins("models")[wanted.name])


def test_the_range_of_pythons_is_the_launchers():
    from studio.setup.environment import SUPPORTED_MINORS

    taken = Requirement(f"python {PROJECT['requires-python']}").specifier
    minors = [minor for minor in range(40) if taken.contains(f"3.{minor}.1")]
    assert minors == list(SUPPORTED_MINORS)


def test_the_version_is_told_before_anything_is_installed(capsys):
    launcher = Launcher.of_script(REPO / "launch.py", lambda *_: pytest.fail("it was started"))
    assert launcher.run(["--version"]) == 0
    assert capsys.readouterr().out == f"tableread {__version__}\n"


def test_the_command_tells_its_version():
    done = subprocess.run(
        [sys.executable, "-m", "studio", "--version"],
        capture_output=True,
        text=True,
        cwd=REPO,
        check=True,
    )
    assert done.stdout == f"tableread {__version__}\n"


def test_a_clone_keeps_its_files_beside_itself():
    assert REPO / "assets" == workspace.ASSETS
    assert workspace.default_workspace() == REPO / "workspace"


def test_a_package_keeps_its_files_in_the_users_home(monkeypatch, tmp_path):
    monkeypatch.setattr(workspace, "IS_PACKAGED", True)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("TABLEREAD_WORKSPACE", raising=False)
    assert settings.Settings().workspace == tmp_path / "Tableread"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The package, built without a network."""
    pytest.importorskip("hatchling", reason="hatchling builds the package; launch.py installs it")
    folder = tmp_path_factory.mktemp("wheel")
    # A target of its own, so that parallel builds don't meet in the repository.
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=REPO, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def tracked(*folders: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no clone of git's")
    return {name for name in listed.stdout.split() if (REPO / name).is_file()}


def test_the_wheel_holds_the_studio_and_what_the_page_needs_and_nothing_else(wheel):
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    code = tracked("studio", "tableread_engine")
    assets = {f"studio/{name}" for name in tracked("assets/page", "assets/dialogs")}
    assert packed == code | assets


def test_the_engine_is_imported_from_the_wheel_under_a_name_of_its_own(wheel, tmp_path):
    code = "import tableread_engine as door; print(door.__file__, door.SpeechModel.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(wheel)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    file, module = done.stdout.split()
    assert Path(file) == wheel / "tableread_engine" / "__init__.py"
    assert module == "tableread_engine.speech_model"


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("way", ["pip", "pipx", "uvx"])
def test_a_package_that_was_just_installed_renders_and_serves(tmp_path, way):
    """Every way of the documentation, in environments of its own; needs a package index."""
    tableread = install(way, tmp_path)
    version = subprocess.run([*tableread, "--version"], capture_output=True, check=True)
    assert version.stdout.decode() == f"tableread {__version__}\n"
    script = REPO / "assets" / "dialogs" / "lighthouse.txt"
    options = ["--backend", "draft", "--workspace", str(tmp_path / "workspace")]
    out = tmp_path / "scene.wav"
    subprocess.run([*tableread, "render", str(script), "-o", str(out), *options], check=True)
    assert out.stat().st_size > 100_000
    with served([*tableread, "serve", "--no-browser", *options]) as address:
        for path in ("", "studio/assets/page/main.js"):
            with urllib.request.urlopen(address + path) as answer:
                assert answer.status == 200


def install(way: str, folder: Path) -> list[str]:
    """Install the package as the documentation says; returns its command."""
    tools = folder / "tools"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    scripts = tools / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "-q"]
    if way == "pip":
        subprocess.run([*pip, str(REPO)], check=True)
        return [str(scripts / "tableread")]
    if way == "uvx":
        subprocess.run([*pip, "uv"], check=True)
        return [str(scripts / "uvx"), "--python", sys.executable, "--from", str(REPO), "tableread"]
    subprocess.run([*pip, "pipx"], check=True)
    environ = {
        **os.environ,
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "bin"),
        "PIPX_MAN_DIR": str(folder / "man"),
    }
    subprocess.run([str(scripts / "pipx"), "install", str(REPO)], check=True, env=environ)
    return [str(folder / "bin" / "tableread")]


@contextmanager
def served(command: list[str]) -> Iterator[str]:
    """The address of a studio that runs as long as the block."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            lines = (line for line in child.stdout if line.startswith("The studio: "))
            yield next(lines).removeprefix("The studio: ").strip()
        finally:
            child.terminate()
