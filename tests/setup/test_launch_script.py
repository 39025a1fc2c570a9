from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys

import pytest
from tiny_index import REPO


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("launch_script", REPO / "launch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    # -S: no package of any environment can be imported.
    command = [sys.executable, "-S", str(REPO / "launch.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (3, 13, 9)])
def test_these_pythons_are_taken(script, version):
    assert script.wrong_python(version, "python") is None


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18), (3, 10, 99), (3, 14, 0), (4, 0, 0)])
def test_other_pythons_get_one_line_with_the_remedy(script, version):
    problem = script.wrong_python(version, "/opt/python")
    assert ".".join(map(str, version)) in problem
    assert "/opt/python" in problem
    assert "3.11, 3.12 or 3.13" in problem
    assert "\n" not in problem


def test_old_pythons_can_read_the_file():
    ast.parse((REPO / "launch.py").read_text(), feature_version=(3, 7))


def test_the_wrong_python_ends_with_2_before_anything_is_imported(script, monkeypatch, capsys):
    monkeypatch.setattr(script.sys, "version_info", (3, 8, 1, "final", 0))
    assert script.main(["serve"]) == 2
    assert "3.8.1" in capsys.readouterr().err


def test_help_needs_no_package_and_lists_every_command():
    done = _launch("--help")
    assert done.returncode == 0
    for command in ("serve", "render", "test", "bench", "doctor", "check"):
        assert f"\n  {command} " in done.stdout


def test_an_unknown_command_ends_with_2_and_the_list():
    done = _launch("rendr")
    assert done.returncode == 2
    assert "'rendr'" in done.stderr
    assert "render" in done.stderr
    assert done.stdout == ""
