"""The command line's commands and options.

Standard library only: the launcher reads a command line before it installs anything, so that a
misspelt option, a missing script and `--help` are answered at once.
"""

from __future__ import annotations

import argparse
import stat
from collections.abc import Callable
from pathlib import Path

from studio.audio.formats import BIT_RATES_KBPS, FILE_SUFFIXES
from studio.errors import BadInput, SettingError
from studio.setup.commands import VERSION_TEXT

STANDARD = Path("-")
"""Standard input as a script, standard output as a file."""

SHELLS = ("bash", "zsh", "fish", "tcsh")
VOICE_ACTIONS = ("list", "install", "remove", "try", "verify", "add")
SCRIPT_FORMATS = ("txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl")

_NATURAL_GAP_S = 0.35  # as in `studio.dialog.gaps`
_MAX_TRIES = 4  # as in `studio.engine.job`, which needs packages


def build_parser(
    program: str = "tableread",
    add_bench_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
) -> argparse.ArgumentParser:
    """The parser of all commands that need the studio.

    Args:
        program: The program's name in the usage line.
        add_bench_options: Adds the options of `bench`, which only a clone has.
    """
    parser = argparse.ArgumentParser(prog=program, description="Tableread: a studio for dialog.")
    parser.add_argument("--version", action="version", version=VERSION_TEXT)
    commands = parser.add_subparsers(dest="command", required=True)
    _add_serve(commands.add_parser("serve", help="start the studio and open the page"))
    _add_render(commands.add_parser("render", help="render a script to a file"))
    _add_convert(commands.add_parser("convert", help="write a script in another format"))
    spoken = commands.add_parser("spoken", help="print each line of a text as it will be spoken")
    spoken.add_argument("script", metavar="FILE", type=Path, help="- reads standard input")
    spoken.add_argument("--language", metavar="L", help="its BCP-47 code (default: by its words)")
    _add_judge(
        commands.add_parser("judge", help="say how good the checks are on a project's takes")
    )
    _add_voices(
        commands.add_parser("voices", help="list, install, verify, remove, try or add voices")
    )
    shells = commands.add_parser("completion", help="print what completes commands in a shell")
    shells.add_argument("shell", choices=SHELLS, help="the shell")
    add_bench_options(commands.add_parser("bench", help="run the benchmarks, as tables"))
    commands.add_parser("doctor", help="what runs here, and why the rest doesn't")
    return parser


def parse_voice(text: str) -> tuple[str, Path | str]:
    """Read `NAME=SAMPLE` or `NAME=VOICE`; what is no file and has no suffix is a voice's name.

    Raises:
        SettingError: There is no name, or nothing behind it.
    """
    name, equals, path = text.partition("=")
    if not (name.strip() and equals and path.strip()):
        raise SettingError(
            f"--voice {text} can't be used: write --voice NAME=SAMPLE or NAME=VOICE."
        )
    sample = Path(path.strip())
    return name.strip(), sample if sample.suffix or sample.is_file() else path.strip()


def parse_auth(text: str, source: str = "--auth", sign: str = " ") -> tuple[str, str]:
    """Read `NAME:PASSWORD`.

    Args:
        text: What was given.
        source: The option or variable that holds it, for the message.
        sign: What stands between the source and its value.

    Raises:
        SettingError: There is no name or no password.
    """
    name, colon, password = text.partition(":")
    if not (name and colon and password):
        raise SettingError(f"{source} can't be used: write {source}{sign}NAME:PASSWORD.")
    return name, password


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", metavar="B", help="who speaks (default: TTS_BACKEND, auto)")
    parser.add_argument(
        "--workspace", metavar="DIR", type=Path, help="folder of speakers, projects and renders"
    )
    parser.add_argument("--verbose", action="store_true", help="log every step")


def _add_serve(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument("--host", metavar="H", default=None, help="address (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="P", type=int, default=None, help="port (default: 7860)")
    parser.add_argument("--share", action="store_true", help="also open a public Gradio link")
    parser.add_argument(
        "--auth",
        metavar="NAME:PASSWORD",
        help="ask for this name and password; every user of the machine sees them in the list "
        "of processes, TABLEREAD_AUTH or TABLEREAD_AUTH_FILE keeps them out of it",
    )
    parser.add_argument("--no-browser", action="store_true", help="don't open the page")
    parser.add_argument(
        "--no-models", action="store_true", help="don't install the model packages beside it"
    )
    parser.add_argument(
        "--no-voices", action="store_true", help="don't download a natural voice beside it"
    )


def _add_render(parser: argparse.ArgumentParser) -> None:
    _add_common(parser)
    parser.add_argument(
        "script", metavar="SCRIPT", type=Path, help="the script; - reads standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        action="append",
        required=True,
        help=f".{' .'.join(FILE_SUFFIXES)} .zip; .srt or .vtt, .words.vtt or .sentences.vtt; "
        ".words.json, .TextGrid, .rhubarb.tsv or .rhubarb.zip; - writes audio to standard output; "
        "may be given several times",
    )
    parser.add_argument(
        "--format",
        choices=FILE_SUFFIXES,
        default="wav",
        help="of standard output (default: wav)",
    )
    _add_speech(parser)
    _add_sound(parser)
    parser.add_argument("--json", action="store_true", help="end with one JSON object")
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but errors, and what --json asks for"
    )


def _add_speech(parser: argparse.ArgumentParser) -> None:
    """Who speaks, and how."""
    parser.add_argument("--language", metavar="CODE", help="of lines that name none: en, de, pt-BR")
    parser.add_argument(
        "--speed", metavar="X", type=float, help="of lines that name none; 2 is twice as fast"
    )
    parser.add_argument(
        "--voice",
        metavar="NAME=VOICE",
        action="append",
        default=[],
        help="a speaker's voice: a sample, or a name that `voices list ENGINE` prints, such as "
        "Heart or kokoro/Heart; may be given several times",
    )
    parser.add_argument(
        "--character",
        metavar="'NAME | KEY:VALUE'",
        action="append",
        default=[],
        help="what a speaker's lines have that say nothing else, such as speed, pitch, mood, "
        "level in dB, and pan from -1, left, to 1; and voice; may be given several times",
    )
    parser.add_argument(
        "--narrator",
        metavar="NAME",
        help="who speaks action, headings and stage directions, and all of a story",
    )
    parser.add_argument(
        "--fit",
        action="store_true",
        help="keep the times of subtitles: each line begins when its subtitle does, and "
        "one that is too long for its time is spoken faster",
    )
    parser.add_argument(
        "--pronunciations",
        metavar="FILE",
        type=Path,
        help="how words are said: .csv, .tsv, .json, or text with “written = spoken” in each line",
    )
    parser.add_argument("--seed", metavar="N", type=int, help="for lines without a seed")
    parser.add_argument(
        "--tries",
        metavar="N",
        type=int,
        choices=range(1, _MAX_TRIES + 1),
        default=1,
        help=f"how often a doubtful line is spoken, 1 to {_MAX_TRIES}; the best is kept (default: "
        "1)",
    )
    parser.add_argument(
        "--keep-tries",
        metavar="DIR",
        type=Path,
        help="copy all tries of such lines there, to listen to them",
    )


def _add_sound(parser: argparse.ArgumentParser) -> None:
    """What becomes of the sound."""
    parser.add_argument(
        "--loudness",
        metavar="L",
        default="rendered",
        help="podcast, audiobook, broadcast, or LUFS from -30 to -9 (default: rendered)",
    )
    parser.add_argument("--even", action="store_true", help="even out the speakers' loudness")
    parser.add_argument(
        "--gap",
        metavar="S",
        type=float,
        default=0.0,
        help="seconds between lines, with a natural spread (default: 0; new projects have "
        f"{_NATURAL_GAP_S:g})",
    )
    parser.add_argument("--tracks", action="store_true", help="a .zip with a track each speaker")
    parser.add_argument(
        "--bitrate",
        metavar="KBPS",
        type=int,
        choices=BIT_RATES_KBPS,
        help=f"of MP3, Opus and AAC: {', '.join(map(str, BIT_RATES_KBPS))}",
    )
    parser.add_argument(
        "--title", metavar="T", help="in the file's tags (default: the script's, else OUT's name)"
    )
    parser.add_argument("--cover", metavar="IMAGE", type=Path, help="a JPEG or PNG for the tags")
    parser.add_argument(
        "--names",
        metavar="PATTERN",
        default="{segment}-{speaker}",
        help="of a .zip's files, from {number}, {segment}, {id}, {file}, {speaker} and {words}; "
        "/ makes folders (default: {segment}-{speaker})",
    )
    parser.add_argument(
        "--captions",
        action="store_true",
        help="beside each sound a .srt in short lines; in a .zip scene.srt and scene.vtt",
    )
    parser.add_argument(
        "--podcast",
        action="store_true",
        help="chapters and transcript as JSON beside the sound (in a .zip: within it)",
    )


def _add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "script", metavar="SCRIPT", type=Path, help="the script; - reads standard input"
    )
    parser.add_argument(
        "output",
        metavar="OUT",
        type=Path,
        help=f".{' .'.join(SCRIPT_FORMATS)}; - writes standard output",
    )
    parser.add_argument(
        "--format", choices=SCRIPT_FORMATS, help="of standard output, or of OUT by another suffix"
    )
    parser.add_argument(
        "--narrator",
        metavar="NAME",
        help="who speaks action, headings and stage directions, and all of a story",
    )


def _add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("project", metavar="PROJECT", help="its name, or its folder's name")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--workspace", metavar="DIR", type=Path, help="folder of speakers, projects and renders"
    )
    parser.add_argument("--verbose", action="store_true", help="log every step")


def _add_voices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=VOICE_ACTIONS, help="what to do")
    parser.add_argument(
        "engine",
        metavar="ENGINE",
        nargs="?",
        help="a name that `voices list` shows, such as kitten; list: the names of its voices; add, "
        "remove: a voice's file",
    )
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="add: a Piper voice's .onnx and .onnx.json, or a style of Kokoro's",
    )
    parser.add_argument(
        "--recognisers", action="store_true", help="list: only the recognisers, which check words"
    )
    parser.add_argument(
        "--public", action="store_true", help="list: the Piper voices that `install` downloads"
    )
    parser.add_argument("--json", action="store_true", help="list: as one JSON array")
    parser.add_argument("--yes", action="store_true", help="remove: without a question")
    parser.add_argument("--text", metavar="TEXT", help="try: the sentence")
    parser.add_argument(
        "--voice", metavar="SAMPLE", type=Path, help="try: a recording of the voice to clone"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        help="try: a file of sound to write (default: ENGINE.wav)",
    )
    parser.add_argument(
        "--workspace", metavar="DIR", type=Path, help="folder of speakers, projects and renders"
    )
    parser.add_argument("--verbose", action="store_true", help="log every step")


def check_script(arguments: argparse.Namespace) -> None:
    """Check that the script that a command reads is there.

    Raises:
        BadInput: It isn't, or is a folder.
    """
    script: Path | None = getattr(arguments, "script", None)
    if script is None or script == STANDARD:
        return
    try:
        if stat.S_ISDIR(script.stat().st_mode):
            raise BadInput(f"{script} is a folder. Name the script's file.")
    except OSError as error:
        raise BadInput(f"{str(script)[:100]} can't be read: {error.strerror}.") from error
