from __future__ import annotations

import pytest

from studio.errors import BadInput
from studio.setup import commands
from studio.setup.commands import install_remedy, program, read_request


@pytest.fixture(autouse=True)
def card(monkeypatch):
    """A machine with a graphics card."""
    monkeypatch.setattr(commands, "has_card", lambda: True)


@pytest.mark.parametrize(
    ("line", "environ", "command", "models"),
    [
        ("", {}, "serve", "beside"),
        ("--port 7000", {}, "serve", "beside"),
        ("serve --host 0.0.0.0", {}, "serve", "beside"),
        ("serve --backend draft", {}, "serve", "beside"),
        ("serve --no-models", {}, "serve", "never"),
        ("serve --help", {}, "serve", "never"),
        ("serve", {"TABLEREAD_INSTALL_MODELS": "false"}, "serve", "never"),
        ("serve", {"TABLEREAD_INSTALL_MODELS": "True"}, "serve", "beside"),
        ("render a.txt -o b.wav", {}, "render", "never"),
        ("render a.txt -o b.wav --backend draft", {}, "render", "never"),
        ("render a.txt -o b.wav --backend auto", {}, "render", "never"),
        ("render a.txt -o b.wav --backend remote", {}, "render", "never"),
        ("render a.txt -o b.wav --backend chatterbox", {}, "render", "first"),
        ("render a.txt -o b.wav --backend=chatterbox-turbo", {}, "render", "first"),
        ("render a.txt --backend qwen3-batched -o b.wav", {}, "render", "first"),
        ("render a.txt -o b.wav", {"TTS_BACKEND": "qwen3"}, "render", "first"),
        ("render a.txt -o b.wav --backend draft", {"TTS_BACKEND": "qwen3"}, "render", "never"),
        ("render --backend", {}, "render", "never"),
        ("render a.txt --backend qwen3 --help", {}, "render", "never"),
        ("test -k dialog", {}, "test", "first"),
        ("test --fast", {}, "test", "never"),
        ("test --fast tests/dialog", {}, "test", "never"),
        ("test tests/dialog --fast", {}, "test", "first"),
        ("test", {"TABLEREAD_INSTALL_MODELS": "0"}, "test", "never"),
        ("check", {}, "check", "first"),
        ("lint", {}, "lint", "never"),
        ("bench", {}, "bench", "never"),
        ("doctor", {}, "doctor", "never"),
        ("voices list", {}, "voices", "never"),
        ("voices install kitten", {}, "voices", "never"),
        ("voices install qwen3", {}, "voices", "first"),
        ("voices try --text Hello chatterbox-turbo", {}, "voices", "first"),
        ("voices remove qwen3", {}, "voices", "never"),
        ("--help", {}, "help", "never"),
        ("help", {}, "help", "never"),
    ],
)
def test_what_a_command_line_needs(line, environ, command, models):
    request = read_request(line.split(), environ)
    assert (request.command, request.models) == (command, models)


@pytest.mark.parametrize(
    ("environ", "models"),
    [
        ({}, "never"),
        ({"TABLEREAD_INSTALL_MODELS": "true"}, "beside"),
        ({"TABLEREAD_INSTALL_MODELS": "false"}, "never"),
    ],
)
def test_without_a_card_the_large_models_come_when_asked_for(monkeypatch, environ, models):
    monkeypatch.setattr(commands, "has_card", lambda: False)
    request = read_request(["serve"], environ)
    assert request.models == models
    assert request.may_install_models == (environ.get("TABLEREAD_INSTALL_MODELS") != "false")


def test_arguments_are_handed_on_as_they_are():
    argv = ["render", "a b.txt", "-o", "c.wav", "--voice", "Anna=x.wav"]
    assert read_request(argv, {}).arguments == tuple(argv[1:])
    assert read_request(["--port", "1"], {}).arguments == ("--port", "1")


def test_forbidden_models_are_told_from_unneeded_ones():
    assert read_request(["doctor"], {}).may_install_models
    assert not read_request(["serve", "--no-models"], {}).may_install_models


def test_an_unknown_command_lists_the_known_ones():
    with pytest.raises(
        BadInput, match=r"no command 'rendr'.*convert, spoken, judge, voices, compl"
    ):
        read_request(["rendr"], {})


def test_an_unusable_variable_is_refused():
    with pytest.raises(BadInput, match="TABLEREAD_INSTALL_MODELS=perhaps"):
        read_request(["serve"], {"TABLEREAD_INSTALL_MODELS": "perhaps"})


@pytest.mark.parametrize(
    ("typed", "name", "remedy"),
    [
        ("launch.py", "python launch.py", "Start python launch.py, which installs"),
        ("/src/tableread/studio/__main__.py", "python launch.py", "Start python launch.py"),
        ("/usr/bin/tableread", "tableread", "Install tableread with its extra"),
        ("tableread.exe", "tableread", "Install tableread with its extra"),
    ],
)
def test_messages_name_the_command_that_was_typed(typed, name, remedy, monkeypatch):
    monkeypatch.setattr("sys.argv", [typed])
    assert program() == name
    assert install_remedy().startswith(remedy)


def test_where_there_is_no_launcher_the_command_is_the_packages(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.argv", ["python"])
    monkeypatch.setattr(commands, "__file__", str(tmp_path / "studio" / "setup" / "commands.py"))
    assert program() == "tableread"
