"""The command line between other programs: standard streams, captions, formats, completion."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import tracemalloc
from pathlib import Path

import mutagen
import pytest
import soundfile

from studio.app import main
from studio.cli.render import describe_duration
from studio.dialog.formats.dialog_file import Format, import_dialog
from studio.errors import SettingError
from studio.settings import Settings
from studio.setup.commands import COMMANDS

ROOT = Path(__file__).parents[2]
SCRIPT = "Ida: Good evening. [pause:0.5s] Is anybody there?\n[pause:1s]\nTom: [laugh] Only me.\n"


def run(
    *arguments: str | Path, given: str = "", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """A command in this process, with standard streams that are no terminal."""
    streams = [io.TextIOWrapper(io.BytesIO(data), "utf-8") for data in (given.encode(), b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"TTS_BACKEND": "draft", **environ}.items():
            patch.setenv(name, value)
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        try:
            status = main([*map(str, arguments)])
        except SystemExit as stop:
            status = int(stop.code or 0)
    written = []
    for stream in streams[1:]:
        stream.flush()
        written.append(stream.buffer.getvalue())
    return subprocess.CompletedProcess(arguments, status, *written)


@pytest.fixture
def workspace(tmp_path: Path) -> tuple[str, Path]:
    return "--workspace", tmp_path / "workspace"


@pytest.mark.parametrize(
    ("script", "option", "title"),
    [
        ("The Lamp\n\n" + SCRIPT, (), "The Lamp"),
        ("The Lamp\n\n" + SCRIPT, ("--title", "Another"), "Another"),
        (SCRIPT, (), "out"),
    ],
)
def test_a_file_is_titled_as_its_script(
    workspace: tuple[str, Path], tmp_path: Path, script: str, option: tuple[str, ...], title: str
) -> None:
    (tmp_path / "scene.txt").write_text(script)
    out = tmp_path / "out.flac"
    done = run("render", tmp_path / "scene.txt", "-o", out, *option, *workspace)
    assert done.returncode == 0, done.stderr
    assert mutagen.File(out)["title"] == [title]


@pytest.mark.parametrize(("option", "subtype"), [((), "WAV"), (("--format", "flac"), "FLAC")])
def test_a_script_comes_from_a_pipe_and_sound_goes_to_one(
    workspace: tuple[str, Path], option: tuple[str, ...], subtype: str
) -> None:
    command = [sys.executable, "-m", "studio", "render", "-", "-o", "-", "--json", *option]
    done = subprocess.run(
        [*command, "--backend", "draft", *map(str, workspace)],
        input=SCRIPT.encode(),
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    sound = soundfile.info(io.BytesIO(done.stdout))
    assert sound.format == subtype
    report = json.loads(done.stderr.splitlines()[-1])
    assert sound.duration == pytest.approx(report["audio_s"])
    assert b"\r" not in done.stderr, "a pipe gets no progress bar"


def test_quiet_prints_nothing_but_errors(workspace: tuple[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "scene.wav"
    done = run("render", "-", "-o", out, "--quiet", *workspace, given=SCRIPT)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = run("render", "-", "-o", out, "--quiet", *workspace, given="Ida: [sigh]\nTom: Only me.")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"Line 1: ")


def test_captions_have_the_times_of_the_sound_and_no_markup(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    sound, captions = tmp_path / "scene.wav", tmp_path / "scene.srt"
    done = run("render", "-", "-o", sound, "-o", captions, *workspace, given=SCRIPT)
    assert done.returncode == 0, done.stderr
    text = captions.read_text()
    assert "[" not in text
    assert "pause" not in text
    starts = [line.partition(" --> ") for line in text.splitlines() if "-->" in line]
    last_s = float(starts[-1][2].rpartition(":")[2].replace(",", "."))
    assert last_s == pytest.approx(soundfile.info(sound).duration, abs=0.002)


def test_captions_keep_the_written_words_between_the_pauses(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    words, captions = tmp_path / "words.csv", tmp_path / "scene.vtt"
    words.write_text("written,spoken\nSzczecin,Stettin\n")
    script = f"Ida: To Szczecin? (pause 1.5s) [laugh] Never.\nTom: {'So it goes on and on. ' * 60}"
    done = run(
        "render", "-", "-o", captions, *("--pronunciations", words), *workspace, given=script
    )
    assert done.returncode == 0, done.stderr
    lines = import_dialog(captions.read_bytes(), "a.vtt").dialog.lines
    first, pause, second, *rest = lines
    assert [first.text, pause.duration_s, second.text] == ["To Szczecin?", 1.5, "Never."]
    assert len(rest) > 1, "each segment of a long line has a cue"
    assert " ".join(line.text for line in rest) == ("So it goes on and on. " * 60).strip()


def test_language_and_speed_are_for_lines_that_name_none(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    def length_s(*options: str, given: str = "Ida: Good evening, is anybody there?") -> float:
        out = tmp_path / "scene.wav"
        done = run("render", "-", "-o", out, "--json", *options, *workspace, given=given)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["audio_s"]

    usual = length_s()
    assert length_s("--speed", "2") < 0.7 * usual
    own = "[Ida | speed:1.0] Good evening, is anybody there?"
    assert length_s("--speed", "2", given=own) == pytest.approx(usual)
    assert length_s("--language", "de") != pytest.approx(usual, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--speed", "9"], "“speed” must be a number from 0.5 to 2."),
        (["--speed", "fast"], "argument --speed: invalid float value: 'fast'"),
        (["--language", "english!"], "“english!” is no language code."),
        (["--language", "xx"], "--language xx can't be used"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name(
    workspace: tuple[str, Path], tmp_path: Path, options: list[str], message: str
) -> None:
    out = tmp_path / "scene.wav"
    done = run("render", "-", "-o", out, *options, *workspace, given=SCRIPT)
    assert done.returncode == 2
    assert message in done.stderr.decode()
    assert not out.exists()


def test_a_render_in_which_every_line_failed_writes_no_file(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    out = tmp_path / "scene.wav"
    done = run(
        "render", "-", "-o", out, "--json", *workspace, given="Ida: [sigh]\n[pause:2s]\nTom: [sigh]"
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["out"] is None
    assert not out.exists()


def test_the_bar_is_on_a_terminal_only_and_has_no_colour(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    script = tmp_path / "scene.txt"
    script.write_text("\n".join(f"Ida: This is line number {n}." for n in range(40)))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "studio", "render", str(script), "-o", str(tmp_path / "a.wav")]
    environ = {**os.environ, "NO_COLOR": "1", "TTS_BACKEND": "draft"}
    with subprocess.Popen(
        [*command, *map(str, workspace)], stderr=theirs, stdout=subprocess.PIPE, cwd=ROOT,
        env=environ,
    ) as child:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                shown += os.read(ours, 65_536)
            except OSError:  # the terminal's other end is closed
                break
        assert child.wait() == 0
    os.close(ours)
    assert b"40 of 40 segments" in shown
    assert b" left" in shown
    assert b"\x1b" not in shown


@pytest.mark.parametrize(
    ("duration_s", "text"), [(0.2, "1 s"), (89, "89 s"), (150, "2 min"), (4_800, "1 h 20 min")]
)
def test_durations_are_said_as_people_say_them(duration_s: float, text: str) -> None:
    assert describe_duration(duration_s) == text


ROUND = "[Ida | lang:de | seed:7] Guten Abend.\nTom: Only me.\n"


@pytest.mark.parametrize("format_", list(Format))
def test_convert_writes_and_reads_every_format(tmp_path: Path, format_: Format) -> None:
    script, there, back = (tmp_path / name for name in ("a.txt", f"b.{format_}", "c.json"))
    script.write_text(ROUND)
    assert main(["convert", str(script), str(there)]) == 0
    assert main(["convert", str(there), str(back)]) == 0
    before = import_dialog(script.read_bytes(), "a.txt").dialog
    after = import_dialog(back.read_bytes(), "c.json").dialog
    said = [(line.speaker, line.text) for line in after]
    assert said == [(line.speaker, line.text) for line in before]
    if format_ not in (Format.SRT, Format.VTT):
        assert after == before


def test_convert_reads_what_render_writes_of_a_scene(tmp_path: Path) -> None:
    script, sound, words = (tmp_path / name for name in ("a.txt", "b.wav", "b.words.json"))
    script.write_text("Ida: Good evening.\nTom: Only me.\n")
    outputs = ("-o", str(sound), "-o", str(words), "--podcast")
    assert run("render", script, *outputs, "--workspace", tmp_path / "w").returncode == 0
    for written in (words, tmp_path / "b.transcript.json"):
        done = run("convert", written, "-", "--format", "txt")
        assert (done.returncode, done.stdout.decode()) == (0, script.read_text())


def test_convert_reads_and_writes_pipes_and_says_what_it_leaves_out() -> None:
    done = run("convert", "-", "-", "--format", "srt", given=ROUND)
    assert done.returncode == 0
    assert done.stdout.startswith(b"1\n00:00:00,000 --> ")
    assert "leaves the language out" in done.stderr.decode()
    done = run("convert", "-", "scene.doc", given=ROUND)
    assert done.returncode == 2
    assert "doesn't say in which format" in done.stderr.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_knows_commands_and_options(shell: str) -> None:
    done = run("completion", shell)
    assert done.returncode == 0, done.stderr
    for word in (b"render", b"convert", b"loudness"):
        assert word in done.stdout


def test_a_configuration_file_stands_behind_the_environment(
    workspace: tuple[str, Path], tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('TTS_BACKEND = "nonsense"\nTTS_MAX_CONCURRENCY = 2\n')
    out = tmp_path / "scene.wav"

    def render(**environ: str) -> subprocess.CompletedProcess[bytes]:
        environ = {"TABLEREAD_CONFIG": str(config), **environ}
        return run("render", "-", "-o", out, *workspace, given=SCRIPT, **environ)

    assert "no backend “nonsense”" in render(TTS_BACKEND="").stderr.decode()
    assert render(TTS_BACKEND="draft").returncode == 0
    config.write_text("TTS_BAKEND = 'draft'")
    assert "the studio has no variable TTS_BAKEND" in render().stderr.decode()
    config.write_text("TTS_BACKEND =")
    assert "can't be read as TOML" in render().stderr.decode()
    missing = render(TABLEREAD_CONFIG=str(tmp_path / "none.toml"))
    assert (missing.returncode, b"it isn't there" in missing.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["render", "none.txt", "-o", "a.wav"], 2, "none.txt can't be read"),
        (["render", "--help"], 0, "--pronunciations"),
        (["convert", "--help"], 0, "--narrator"),
        (["render", "none.txt"], 2, "-o/--output"),
        (["serve", "--prot", "1"], 2, "--prot"),
        (["--help"], 0, "render"),
        *(([command, "--help"], 0, "usage:") for command in sorted(COMMANDS)),
    ],
)
def test_the_launcher_answers_before_it_installs_anything(
    tmp_path: Path, arguments: list[str], status: int, text: str
) -> None:
    """Without any package of the environment, and no environment is made."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("launch.py", "studio", "benchmarks", "requirements.txt", "tests"):
        (clone / name).symlink_to(ROOT / name)
    command = [sys.executable, "-I", "-S", "-c", _BARE, str(clone), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert text in done.stdout + done.stderr
    assert not (clone / ".venv").exists()


_BARE = """
import sys
sys.path.insert(0, sys.argv[1])
import launch
sys.exit(launch.main(sys.argv[2:]))
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    "words", [("voices", "list"), ("convert", "{script}", "-", "--format=txt")]
)
def test_an_output_that_is_full_is_told_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    script = tmp_path / "scene.txt"
    script.write_text(SCRIPT)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "studio", *(word.format(script=script) for word in words)],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"TTS_BACKEND": "draft", "TABLEREAD_WORKSPACE": str(tmp_path / "w")},
            check=False,
            cwd=ROOT,
        )
    assert done.stderr == b"The output can't be written: No space left on device.\n"
    assert done.returncode == 2


LONG = "a" * 300


@pytest.mark.parametrize(
    ("words", "environ"),
    [
        (("convert", LONG, "out.srt"), {}),
        (("render", LONG, "-o", "out.wav"), {}),
        (("render", "-", "-o", f"{LONG}.wav"), {}),
        (("render", "-", "-o", "out.wav", "--keep-tries", LONG), {}),
        (("voices", "add", f"{LONG}.onnx"), {}),
        (("voices", "try", "draft", "--voice", f"{LONG}.wav"), {}),
        (("voices", "list"), {"QWEN3_TTS_MODEL": LONG}),
        (("voices", "list"), {"TABLEREAD_CONFIG": LONG}),
        (("voices", "list"), {"TABLEREAD_WORKSPACE": f"/{LONG}"}),
        (("judge", "The Lamp"), {"TABLEREAD_WORKSPACE": f"/{LONG}"}),
        (("doctor",), {"TABLEREAD_WORKSPACE": f"/{LONG}"}),
    ],
)
def test_a_path_that_no_disk_takes_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], environ: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"TABLEREAD_WORKSPACE": str(tmp_path / "workspace"), **environ}
    done = run(*words, given=SCRIPT, **places)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert done.stderr.startswith((b"aaa", b"/aaa", "“aaa".encode(), b"The folder /aaa"))


@pytest.mark.skipif(os.name != "posix", reason="of shells there")
@pytest.mark.parametrize(
    "words", ["voices list", "convert {script} {out}", "render {script} -o {out}.wav"]
)
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(tmp_path: Path, words: str, closed: str) -> None:
    (tmp_path / "scene.txt").write_text(SCRIPT)
    filled = words.format(script=tmp_path / "scene.txt", out=tmp_path / "out.srt")
    done = subprocess.run(
        ["/bin/sh", "-c", f"exec '{sys.executable}' -m studio {filled} {closed}"],
        stderr=subprocess.PIPE,
        env=os.environ | {"TTS_BACKEND": "draft", "TABLEREAD_WORKSPACE": str(tmp_path / "w")},
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device that never ends")
def test_a_configuration_file_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEREAD_CONFIG", "/dev/zero")
    with pytest.raises(SettingError, match="zero can't be read as TOML: it is larger than 100 kB"):
        Settings.from_environment()


@pytest.mark.parametrize(
    "text",
    [
        "a=" + "[" * 40_000,
        "a=" + "{a=" * 20_000,
        "a." * 8_000 + "b=1",
        "[" + "a." * 8_000 + "b]",
        "x={" + '"\u2028".' * 8_000 + "b=1}",
    ],
    ids=["lists", "tables", "key", "head", "key in a table"],
)
def test_a_configuration_that_would_fill_the_memory_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "config.toml").write_text(text, "utf-8")
    monkeypatch.setenv("TABLEREAD_CONFIG", str(tmp_path / "config.toml"))
    tracemalloc.start()
    with pytest.raises(SettingError, match=r"config\.toml can't be read as TOML: "):
        Settings.from_environment()
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000_000


@pytest.mark.skipif(os.name != "posix", reason="a closed pipe is another error elsewhere")
@pytest.mark.parametrize(
    "words",
    [
        ("voices", "list"),
        ("doctor",),
        ("completion", "bash"),
        ("convert", "{script}", "-", "--format", "json"),
        ("render", "{script}", "-o", "-"),
    ],
    ids=" ".join,
)
def test_a_reader_that_goes_away_is_no_fault(
    workspace: tuple[str, Path], tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Nobody reads at all here, as `| head` does after its last line."""
    script = tmp_path / "scene.txt"
    script.write_text(SCRIPT)
    reader, writer = os.pipe()
    os.close(reader)
    filled = [word.format(script=script) for word in words]
    takes_workspace = words[0] in {"voices", "render"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "studio",
            *filled,
            *(map(str, workspace) if takes_workspace else ()),
        ],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=os.environ | {"TTS_BACKEND": "draft"},
        check=False,
        cwd=ROOT,
    )
    os.close(writer)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert b"Broken" not in done.stderr, done.stderr.decode()
    assert done.returncode == 141


def test_what_is_said_when(tmp_path: Path, workspace: tuple[str, Path]) -> None:
    """Words as they are written, though another word is spoken in the place of one."""
    (tmp_path / "scene.txt").write_text(SCRIPT, "utf-8")
    (tmp_path / "words.csv").write_text("written,spoken\nanybody,any person\n", "utf-8")
    names = ("a.wav", "a.words.json", "a.TextGrid", "a.rhubarb.tsv", "a.rhubarb.zip", "a.words.srt")
    outputs = [part for name in names for part in ("-o", tmp_path / name)]
    said = ("--pronunciations", tmp_path / "words.csv")
    done = run("render", tmp_path / "scene.txt", *outputs, *said, *workspace)
    assert done.returncode == 0, done.stderr
    body = json.loads((tmp_path / "a.words.json").read_text("utf-8"))
    ida, tom = body["lines"]
    assert [one["word"] for one in ida["words"]] == ["Good", "evening", "Is", "anybody", "there"]
    assert [one["word"] for one in tom["words"]] == ["Only", "me"]
    assert ida["text"][ida["words"][3]["start"] : ida["words"][3]["end"]] == "anybody"
    assert ida["words"][2]["start_s"] - ida["words"][1]["end_s"] > 0.5
    assert tom["words"][0]["start_s"] > ida["words"][-1]["end_s"] + 1
    assert body["duration_s"] == pytest.approx(
        soundfile.info(tmp_path / "a.wav").duration, abs=0.01
    )
    assert 'name = "Tom - phones"' in (tmp_path / "a.TextGrid").read_text("utf-8")
    assert (tmp_path / "a.rhubarb.tsv").read_text().startswith("0.00\tX\n")
    assert (tmp_path / "a.words.srt").read_text().count("-->") == 7


def test_spoken_prints_a_row_for_each_row() -> None:
    done = run("spoken", "-", given="It cost $4.50.\n\n...\nDr. Lee, 3 a.m.\n")
    rows = done.stdout.decode().splitlines()
    assert rows == ["It cost four dollars fifty.", "", "...", "Doctor Lee, three a.m."]
    done = run("spoken", "-", "--language", "de", given="Am 3. Mai um 10:05 Uhr\n")
    assert done.stdout.decode() == "Am dritten Mai um zehn Uhr fünf\n"
    assert run("spoken", "nowhere.txt").returncode != 0
