"""The launcher's commands, and the packages that each one needs."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from studio import __version__
from studio.errors import BadInput

Models = Literal["never", "beside", "first"]

COMMANDS = {
    "serve": "start the studio and open the page (the default)",
    "render": "render a script to an audio file: render SCRIPT -o OUT",
    "convert": "write a script in another format: convert SCRIPT OUT",
    "spoken": "print each line of a text as it will be spoken: spoken FILE",
    "judge": "say how good the checks are on a project's takes: judge PROJECT",
    "voices": "list, install, verify, remove, try or add a voice: voices install kitten",
    "completion": "print what completes commands in a shell: completion bash",
    "test": "set up what the tests need and run them; with --fast without browser and models",
    "lint": "check style, types and layers",
    "check": "all that the continuous checks run: lint, then test",
    "bench": "run the benchmarks, as tables",
    "doctor": "tell what runs here, and why the rest doesn't",
}
DEVELOPER_COMMANDS = frozenset({"test", "lint", "check"})

FAST = "--fast"

_MODEL_BACKENDS = ("chatterbox", "qwen3")
_HELP = frozenset({"-h", "--help", "help"})
_VERSION = frozenset({"--version", "version"})
_NO = frozenset({"0", "false", "no", "off"})
_YES = frozenset({"", "1", "true", "yes", "on"})


@dataclass(frozen=True, slots=True)
class Request:
    """The launcher's command line.

    Attributes:
        command: A key of `COMMANDS`, or "help" or "version".
        arguments: Everything after the command.
        models: Whether the model packages are installed never, while the studio runs, or first.
        may_install_models: False if the environment or an option forbids it.
    """

    command: str
    arguments: tuple[str, ...]
    models: Models = "never"
    may_install_models: bool = True


_COMMAND, _SCRIPT = "tableread", "launch.py"

VERSION_TEXT = f"tableread {__version__}"


def program() -> str:
    """What a person types here to start the studio, for messages.

    Returns:
        "tableread" where that command was typed, or where the studio is an installed package;
        else "python launch.py".
    """
    is_clone = (Path(__file__).parents[2] / _SCRIPT).is_file()
    typed = Path(sys.argv[0]).stem if sys.argv else ""
    return f"python {_SCRIPT}" if is_clone and typed != _COMMAND else _COMMAND


def install_remedy() -> str:
    """A sentence that says how to get a model's packages; `tableread` installs nothing itself."""
    if program() == _COMMAND:
        return f"Install {_COMMAND} with its extra for this model; see docs/operate/install.md."
    return f"Start {program()}, which installs the versions that fit."


def help_text() -> str:
    """The help of launch.py: one line for each command."""
    rows = "\n".join(f"  {name:<12}{what}" for name, what in COMMANDS.items())
    return (
        f"Usage: python launch.py [COMMAND] [OPTIONS]\n\nCommands:\n{rows}\n\n"
        "`python launch.py COMMAND --help` lists a command's options. The first start installs "
        "what is missing; `python launch.py --version` installs nothing.\n"
        "The large model packages come by themselves where there is a graphics card, or when asked "
        "for; TABLEREAD_INSTALL_MODELS=true brings them anywhere, false keeps them away."
    )


def asks_help(arguments: Sequence[str]) -> bool:
    """Whether a command is to list its options only."""
    return "-h" in arguments or "--help" in arguments


def developer_help_text(command: str) -> str:
    """The help of a command that hands its options on to what it installs first."""
    options = f" [{FAST}] [OPTIONS OF PYTEST]" if command == "test" else ""
    return f"usage: launch.py {command}{options}\n\n{COMMANDS[command]}"


def read_request(argv: Sequence[str], environ: Mapping[str, str]) -> Request:
    """Parse the command line as far as the installation depends on it.

    Raises:
        BadInput: There is no such command, or a variable has an invalid value.
    """
    command, arguments = _split(argv)
    if command in {"help", "version"}:
        return Request(command, arguments)
    if command not in COMMANDS:
        names = ", ".join(COMMANDS)
        raise BadInput(f"There is no command '{command}'. The commands are {names}.")
    allowed = _models_allowed(environ) and "--no-models" not in arguments
    wanted = _wanted_models(command, arguments, environ)
    return Request(command, arguments, wanted if allowed else "never", allowed)


def with_command(argv: Sequence[str]) -> list[str]:
    """The command line, with `serve` in front if it names no command."""
    names_one = bool(argv) and (not argv[0].startswith("-") or argv[0] in _HELP | _VERSION)
    return [*argv] if names_one else ["serve", *argv]


def _split(argv: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    command, *arguments = with_command(argv)
    if command in _HELP:
        command = "help"
    elif command in _VERSION:
        command = "version"
    return command, tuple(arguments)


def is_fast(arguments: Sequence[str]) -> bool:
    """Whether `test` runs only the fast tests, for use after each edit."""
    return arguments[:1] == (FAST,)


def _models_allowed(environ: Mapping[str, str]) -> bool:
    value = environ.get("TABLEREAD_INSTALL_MODELS", "").strip().lower()
    if value in _NO | _YES:
        return value not in _NO
    raise BadInput(f"TABLEREAD_INSTALL_MODELS={value} can't be used: write true or false.")


def _wanted_models(command: str, arguments: tuple[str, ...], environ: Mapping[str, str]) -> Models:
    if command == "check" or (command == "test" and not is_fast(arguments)):
        return "first"
    if command == "voices" and not asks_help(arguments):
        return "first" if _installs_large_voice(arguments) else "never"
    if command == "serve" and not asks_help(arguments):
        asked = environ.get("TABLEREAD_INSTALL_MODELS", "").strip()
        return "beside" if asked or has_card() else "never"
    if command == "render" and not asks_help(arguments):
        backend = _backend(arguments) or environ.get("TTS_BACKEND", "")
        return "first" if backend.startswith(_MODEL_BACKENDS) else "never"
    return "never"


def _installs_large_voice(arguments: tuple[str, ...]) -> bool:
    brings = bool({"install", "try"} & set(arguments))
    names = (word for word in arguments if word.startswith(_MODEL_BACKENDS))
    return brings and any(" " not in name for name in names)


def has_card() -> bool:
    """Whether this machine seems to have what the large models need to be as fast as speech."""
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    return Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None


def _backend(arguments: tuple[str, ...]) -> str | None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--backend", nargs="?")
    known, _ = parser.parse_known_args(arguments)
    backend: str | None = known.backend
    return backend
