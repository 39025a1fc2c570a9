"""`render` as a person runs it, in process: exit status, messages, files."""

from __future__ import annotations

import errno
import io
import json
import shutil
import wave
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mutagen.mp3
import mutagen.wave
import numpy as np
import pytest
import soundfile
from independent_meter import lufs
from voice_like import voice_like

from studio.app import main
from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import SpeechFailed, StorageFailed
from studio.storage.disk import Disk

ASSETS = Path(__file__).parents[2] / "assets" / "dialogs"


class Command:
    """Runs `render` in a workspace of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.out = folder / "scene.wav"
        self._capsys = capsys
        self.stdout = ""
        self.stderr = ""

    def write(self, script: str | bytes, name: str = "scene.txt") -> Path:
        path = self.folder / name
        path.write_bytes(script.encode() if isinstance(script, str) else script)
        return path

    def run(self, script: Path, *options: str) -> int:
        argv = ["render", str(script), "-o", str(self.out), "--backend", "draft", "--json"]
        argv += ["--workspace", str(self.folder / "workspace"), *options]
        status = main(argv)
        self.stdout, self.stderr = self._capsys.readouterr()
        return status

    @property
    def report(self) -> dict[str, Any]:
        return json.loads(self.stdout.splitlines()[-1])


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(ASSETS.iterdir()), ids=lambda path: path.stem)
def test_the_sample_dialogs_render_whole(command: Command, script: Path) -> None:
    command.out = command.folder / "scene.zip"
    assert command.run(script) == 0
    assert command.report["failed"] == []
    assert command.report["out"] == str(command.out)


def test_its_summary_counts_lines_as_the_page_does(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    script = command.write("# Act\nIda: One. [pause] Two.\n[pause:1s]\nTom: [sigh]\nTom: Three.")
    where = ["-o", str(command.out), "--workspace", str(command.folder / "workspace")]
    main(["render", str(script), "--backend", "draft", *where])
    assert ", 1 of 3 lines failed, " in capsys.readouterr().out


def test_the_scene_is_the_sum_of_its_parts(command: Command) -> None:
    script = command.write("Ida: One.\n[pause:1.25s]\nTom: Two. [pause] Three.\nIda: Four.")
    assert command.run(script) == 0
    report = command.report
    assert (report["lines"], report["segments"], report["failed"]) == (4, 6, [])
    assert report["backend"] == "draft"
    assert 1 <= report["max_in_flight"] <= 3
    assert 0 < report["first_audio_s"] <= report["wall_s"]
    assert 0 < report["device_busy_s"] <= report["wall_s"]
    samples, rate_hz = soundfile.read(command.out)
    assert rate_hz == STUDIO_RATE_HZ
    assert len(samples) == round(report["audio_s"] * STUDIO_RATE_HZ)
    steps = ["planned", "queued", "started", "generated", "saved"]
    speech = [one for one in report["timestamps"] if len(one["at_s"]) > 2]
    assert [(one["segment_idx"], one["line"]) for one in speech] == [(0, 1), (2, 3), (4, 3), (5, 4)]
    for one in speech:
        at_s = [one["at_s"][step] for step in steps]
        assert at_s == sorted(at_s)
        assert 0 <= at_s[0] < at_s[3] <= report["wall_s"]


LONG_SCRIPT = (
    "Ida: The lamp is still burning, and nobody has climbed the stairs since Tuesday.\n"
    "[pause:1s]\nTom: Did you really think that I would not notice?"
)


@pytest.mark.parametrize(("loudness", "wanted"), [("podcast", -16), ("-21.5", -21.5)])
def test_the_scene_comes_at_a_loudness(command: Command, loudness: str, wanted: float) -> None:
    assert command.run(command.write(LONG_SCRIPT), "--loudness", loudness, "--even") == 0
    samples, rate_hz = soundfile.read(command.out)
    found = lufs(samples, rate_hz)
    assert found == pytest.approx(wanted, abs=0.5)
    assert command.report["loudness_lufs"] == pytest.approx(found, abs=0.2)
    assert command.report["true_peak_db"] <= -0.95
    assert len(samples) == round(command.report["audio_s"] * STUDIO_RATE_HZ)


def test_an_audiobook_is_told_whether_it_passes(command: Command) -> None:
    command.out = command.folder / "scene.mp3"
    assert command.run(command.write(LONG_SCRIPT), "--loudness", "audiobook") == 0
    assert "keeps ACX" in command.stderr
    assert command.report["true_peak_db"] <= -3


def test_tracks_are_a_zip_with_a_file_each_speaker(command: Command) -> None:
    command.out = command.folder / "scene.zip"
    assert command.run(command.write(LONG_SCRIPT), "--tracks") == 0
    with zipfile.ZipFile(command.out) as archive:
        assert archive.namelist() == ["01-Ida.wav", "02-Tom.wav", "labels.txt", "scene.rpp"]


def test_a_file_beside_the_sound_never_replaces_another(command: Command) -> None:
    script, beside = command.write("Ida: Good evening."), command.out.with_suffix(".srt")
    assert command.run(script, "-o", str(beside), "--captions") == 2
    assert f"-o {beside} can't be used: what comes beside" in command.stderr
    assert not command.out.exists()
    assert command.run(script, "-o", str(beside)) == 0
    assert beside.exists()


def test_captions_lie_beside_the_sound_and_gaps_move_them(command: Command) -> None:
    script = command.write(LONG_SCRIPT.replace("[pause:1s]\n", ""))
    assert command.run(script, "--captions", "--gap", "1") == 0
    samples, _ = soundfile.read(command.out)
    assert len(samples) == round(command.report["audio_s"] * STUDIO_RATE_HZ)
    captions = command.out.with_suffix(".srt").read_text("utf-8")
    assert max(map(len, captions.splitlines())) <= 42
    starts = [row for row in captions.splitlines() if "-->" in row]
    command.out = command.folder / "scene.zip"
    assert command.run(script, "--captions", "--gap", "1") == 0
    with zipfile.ZipFile(command.out) as archive:
        assert archive.read("scene.srt").decode() == captions
    command.out = command.folder / "other.wav"
    assert command.run(script, "--captions") == 0
    other = command.out.with_suffix(".srt").read_text("utf-8").splitlines()
    assert [row for row in other if "-->" in row][-1] < starts[-1]
    assert command.run(script, "--gap", "31") == 2


def test_podcast_files_lie_beside_the_sound(command: Command) -> None:
    lines = "# The Weir\n\n## One\nIda: (softly) Good [pause] evening.\n## Two\nTom: Yes."
    script = command.write(lines)
    words = command.write("evening,eefning\n", "words.csv")
    command.out = command.folder / "episode.mp3"
    assert command.run(script, "--podcast", "--pronunciations", str(words)) == 0
    tags = mutagen.mp3.MP3(command.out).tags
    assert (tags["TIT2"].text, tags["TLAN"].text) == (["The Weir"], ["eng"])
    transcript = json.loads((command.folder / "episode.transcript.json").read_bytes())
    bodies = [one["body"] for one in transcript["segments"]]
    assert bodies == ["Good evening.", "Yes."]
    chapters = json.loads((command.folder / "episode.chapters.json").read_bytes())
    assert [one["title"] for one in chapters["chapters"]] == ["One", "Two"]


def test_files_of_lines_are_numbered_by_line(command: Command) -> None:
    script = command.write(f"Ida: {'Yes. ' * 300}[pause] And.\nTom: (beat)\n[pause:1s]\nTom: Two.")
    command.out = command.folder / "scene.zip"
    assert command.run(script, "--names", "{number}-{speaker}") == 0
    with zipfile.ZipFile(command.out) as archive:
        lines = sorted(name for name in archive.namelist() if name.startswith("0"))
    assert lines == ["0001-Ida-2.wav", "0001-Ida-3.wav", "0001-Ida.wav", "0003-Tom.wav"]


def test_a_scene_without_a_loudness_leaves_its_lines(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert command.run(command.write("[pause:2s]"), "--loudness", "podcast") == 2
    assert "Save it at the original level" in command.stderr
    assert not command.out.exists()
    assert str(next(tmp_path.glob("tableread-*"))) in command.stderr


def test_files_have_the_names_of_a_games_table(command: Command) -> None:
    command.out = command.folder / "scene.zip"
    table = (
        "id,character,line,filename,max_duration\nVO_1,Ida,Halt!,b/halt.wav,0.1\nVO_2,Tom,Who?,,"
    )
    script = command.write(table, "game.csv")
    assert command.run(script, "--names", "{file}") == 0
    with zipfile.ZipFile(command.out) as archive:
        assert archive.namelist() == ["scene.wav", "b/halt.wav", "VO_2.wav", "manifest.json"]
    assert "Line 2 may not be right: " in command.stderr
    assert "0.1 allowed." in command.stderr


SUBTITLES = (
    "1\n00:00:01,000 --> 00:00:02,000\nIda: Halt!\n\n"
    "2\n00:00:06,500 --> 00:00:07,000\nTom: Who goes there, in the middle of the night?\n\n"
    "3\n00:00:07,200 --> 00:00:08,000\nIda: Me.\n\n"
    "4\n00:00:20,000 --> 00:00:21,000\nTom: Oh.\n"
)


def test_subtitles_keep_their_times(command: Command) -> None:
    command.out = command.folder / "scene.zip"
    script = command.write(SUBTITLES, "scene.srt")
    assert command.run(script, "--fit", "-o", str(command.folder / "again.srt")) == 0
    with zipfile.ZipFile(command.out) as archive:
        rows = json.loads(archive.read("manifest.json"))["segments"]
        parts = [soundfile.info(io.BytesIO(archive.read(row["file"]))).frames for row in rows]
    assert [rows[idx]["start_s"] for idx in (0, 1, 3)] == [1.0, 6.5, 20.0]
    assert rows[2]["start_s"] > 7.2
    assert parts == [row["n_samples"] for row in rows]
    assert "Line 7 may not be right: " in command.stderr
    assert "too long for its time" in command.stderr
    again = (command.folder / "again.srt").read_text(encoding="utf-8")
    assert [row[:12] for row in again.splitlines() if "-->" in row][::3] == [
        "00:00:01,000",
        "00:00:20,000",
    ]


def test_segments_come_in_the_scripts_order_and_none_is_silent(command: Command) -> None:
    command.out = command.folder / "scene.zip"
    script = command.write("Ida: One.\n[pause:1.25s]\nTom: Two. [pause] Three.\nIda: Four.")
    assert command.run(script) == 0
    with zipfile.ZipFile(command.out) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        scene, _ = soundfile.read(io.BytesIO(archive.read("scene.wav")), dtype="int16")
        joined = []
        for segment in manifest["segments"]:
            if segment["type"] == "silence":
                joined.append(np.zeros(segment["n_samples"], np.int16))
                continue
            part, _ = soundfile.read(io.BytesIO(archive.read(segment["file"])), dtype="int16")
            assert np.abs(part).max() > 3_000, segment
            joined.append(part)
    assert [segment["text"] for segment in manifest["segments"]] == [
        "One.",
        None,
        "Two.",
        None,
        "Three.",
        "Four.",
    ]
    assert (np.concatenate(joined) == scene).all()


def test_failed_lines_are_named_and_the_rest_is_written(command: Command) -> None:
    broken = command.write("no sound", "broken.wav")
    script = command.write("# a comment\nIda: I am here.\nTom: So am I.\n\nMia:\nBen: And I.")
    status = command.run(
        script, "--voice", f"Tom={command.folder / 'gone.wav'}", "--voice", f"ben={broken}"
    )
    assert status == 1
    failed = command.report["failed"]
    assert [failure["line"] for failure in failed] == [3, 5, 6]
    assert "gone.wav" in failed[0]["message"]
    assert "broken.wav" in failed[2]["message"]
    for line in (3, 5, 6):
        assert f"Line {line}: " in command.stderr
    assert soundfile.info(command.out).duration == pytest.approx(command.report["audio_s"])


def test_a_scene_that_cannot_be_written_leaves_its_lines(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise StorageFailed("“scene.wav” can't be written: no space left on device.")

    monkeypatch.setattr("studio.audio.scene_file.Scene.write", full)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert command.run(command.write("Ida: One.\nTom: Two.")) == 2
    kept = next(tmp_path.glob("tableread-*"))
    assert str(kept) in command.stderr
    assert [path.name for path in sorted(kept.iterdir())] == ["00000.wav", "00001.wav"]


def test_lines_that_were_cut_are_named(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    speak = DraftBackend.speak

    def cut(backend: DraftBackend, request: SpeechRequest) -> Iterator[Samples]:
        yield from speak(backend, request)
        if request.text == "Never." or (request.text == "Once." and request.seed == 7):
            raise SpeechFailed("The voice didn't come to the end of this line.")

    monkeypatch.setattr(DraftBackend, "speak", cut)
    assert command.run(command.write("Ida: One.\nTom: Never.\nIda: Once."), "--seed", "7") == 1
    assert [(one["line"], one["cut"]) for one in command.report["failed"]] == [(2, True)]
    assert [one["line"] for one in command.report["second_tries"]] == [3]
    assert "Line 2: The voice didn't come to the end of this line. What was" in command.stderr
    assert "Line 3: The voice didn't come to the end of this line. It was begun" in command.stderr


def test_when_every_line_fails_nothing_is_written(command: Command) -> None:
    assert command.run(command.write("Ida:\nTom: …")) == 1
    assert command.report["out"] is None
    assert not command.out.exists()


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "scene.txt", "empty"),
        (b"# just a note", "scene.txt", "holds no lines"),
        (b"\x89PNG\r\n\x1a\n\0\0", "scene.txt", "text"),
        (b"Ida: Hi.\n" * 1_200_000, "scene.txt", "MB"),
        (b"Ida: Hi.\nTom: Well [pause:-1s] then.", "scene.txt", "Line 2"),
        (b"Ida: Hi.\n[pause:10h]\n", "scene.txt", "Line 2"),
        (b'{"type": "speech"', "scene.json", "scene.json"),
        (b'[{"type": "speech", "text": "Hi."}]', "scene.json", "speaker_id"),
    ],
)
def test_a_file_that_is_no_dialog_touches_nothing(
    command: Command, content: bytes, name: str, message: str
) -> None:
    command.out.write_bytes(b"an earlier scene")
    assert command.run(command.write(content, name)) == 2
    assert command.out.read_bytes() == b"an earlier scene"
    assert command.stdout == ""
    assert message in command.stderr
    assert len(command.stderr.strip().splitlines()) == 1
    assert not (command.folder / "workspace").exists()


def test_another_encoding_is_read_and_said_to_be_a_guess(command: Command) -> None:
    assert command.run(command.write("Ida: schön".encode("latin-1"), "scene.txt")) == 0
    assert "Windows-1252, which is a guess" in command.stderr


def test_a_narrator_reads_what_a_screenplay_describes(command: Command) -> None:
    screenplay = command.write("INT. KITCHEN - NIGHT\n\nRain.\n\nIDA\nIt rains.\n", "a.fountain")
    assert command.run(screenplay, "--narrator", "Reader", "--json") == 0
    assert json.loads(command.stdout.splitlines()[-1])["lines"] == 3
    assert command.run(screenplay, "--json") == 0
    assert json.loads(command.stdout.splitlines()[-1])["lines"] == 1
    assert "NARRATOR" in command.stderr
    assert "--narrator NAME" in command.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--voice", "Ida"], "NAME=SAMPLE"),
        (["--backend", "nobody"], "draft"),
        (["-o", "scene.docx"], ".wav"),
        (["--loudness", "loud"], "podcast, audiobook, broadcast"),
        (["--loudness", "-40"], "-30 to -9"),
        (["--tracks"], ".zip"),
        (["-o", "/no/such/folder/scene.wav"], "folder"),
        pytest.param(
            ["-o", "/proc/scene.wav"],
            "can't be written",
            marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc"),
        ),
    ],
)
def test_an_option_that_cannot_be_used_is_one_message(
    command: Command, options: list[str], message: str
) -> None:
    assert command.run(command.write("Ida: Hi."), *options) == 2
    assert message in command.stderr
    assert len(command.stderr.strip().splitlines()) == 1


def test_a_script_that_is_not_there(command: Command) -> None:
    assert command.run(command.folder / "none.txt") == 2
    assert "none.txt" in command.stderr


@pytest.mark.parametrize("value", ["0", "many"])
def test_an_unusable_setting_is_named(
    command: Command, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TTS_MAX_CONCURRENCY", value)
    assert command.run(command.write("Ida: Hi.")) == 2
    assert "TTS_MAX_CONCURRENCY" in command.stderr


def test_a_workspace_that_cannot_be_written(command: Command) -> None:
    command.write("a file where the folder should be", "workspace")
    assert command.run(command.write("Ida: Hi.")) == 2
    assert "--workspace" in command.stderr


@pytest.mark.slow
def test_a_line_of_10000_characters_is_split_and_rendered(command: Command) -> None:
    text = "Every wave that came in went out again with a little more of the pier. " * 141
    assert command.run(command.write(f"Ida: {text}")) == 0
    assert command.report["segments"] > 5


def test_a_word_of_10000_letters_fails_its_line_only(command: Command) -> None:
    assert command.run(command.write(f"Ida: {'a' * 10_000}\nTom: Bless you.")) == 1
    assert [failure["line"] for failure in command.report["failed"]] == [1]


def test_unusual_characters_in_text_and_names(command: Command) -> None:
    script = command.write(
        "Zoë 🎭: Hello 🎉 there.\nمريم: مرحبا بك.\nI\u200bda: In\u200bvisible.\n李: 你好。"
    )
    assert command.run(script) == 0
    assert command.report["segments"] == 4


@pytest.mark.parametrize("clones", [False, True])
def test_an_engine_that_cannot_clone_says_what_it_does_with_a_voice(
    command: Command, monkeypatch: pytest.MonkeyPatch, clones: bool
) -> None:
    if clones:
        can = replace(DraftBackend().capabilities, cloning=True)
        monkeypatch.setattr(DraftBackend, "capabilities", can)
    sample = command.folder / "voice.wav"
    soundfile.write(sample, voice_like(4.0).samples, STUDIO_RATE_HZ)
    script = command.write("Tom: Only me.\nBen: And me.\nTom: Yes.")
    assert command.run(script, "--voice", f"Tom={sample}", "--voice", f"Ben={sample}") == 0
    said = [row for row in command.stderr.splitlines() if row.startswith("--voice (Tom, Ben): ")]
    assert len(said) == (not clones)
    if not clones:
        assert "eSpeak NG) can't clone a recording; it speaks in a voice of its own" in said[0]


def test_a_voice_is_chosen_by_its_name(command: Command) -> None:
    """The same by an option, a character's settings, the script and a table."""
    plain, named = "Zed: Only me.", "[Zed | voice:draft/robert] Only me."
    doors: list[tuple[str, str, list[str]]] = [
        (plain, "a.txt", ["--voice", "Zed=low 1"]),
        (plain, "b.txt", ["--character", "Zed | voice:Low 1"]),
        (named, "c.txt", []),
        ("speaker,voice,text\nZed,Low 1,Only me.", "d.csv", []),
    ]
    command.out = command.folder / "scene.zip"
    sounds = set()
    for script, name, options in doors:
        assert command.run(command.write(script, name), *options) == 0
        with zipfile.ZipFile(command.out) as packed:
            (row,) = json.loads(packed.read("manifest.json"))["segments"]
            with wave.open(io.BytesIO(packed.read(row["file"]))) as sound:
                sounds.add(sound.readframes(sound.getnframes()))
        assert row["voice"] == "Low 1"
    assert len(sounds) == 1


def test_a_voices_name_that_nobody_here_has_is_answered_with_the_nearest(command: Command) -> None:
    script = command.write("[Zed | voice:Lowe 1] Only me.")
    assert command.run(script, "--voice", "Zed=Hihg 5") == 2
    assert "There is no voice “Hihg 5”; there is “High 5”" in command.stderr
    assert command.run(script, "--voice", "Zed=Heart") == 2
    assert "“Heart (woman)” is a voice of Kokoro, and one engine speaks all" in command.stderr
    assert command.run(script) == 0, "a script is read all the same"
    assert "Line 1: There is no voice “Lowe 1”; there is “Low 1”" in command.stderr


def test_each_file_of_a_zip_says_what_spoke_it(command: Command) -> None:
    command.out = command.folder / "scene.zip"
    script = command.write("Zed: Only me.\n[pause:1s]\nAnn: Oh.")
    for options in ((), ("--tracks",), ("--loudness", "podcast")):
        assert command.run(script, "--title", "Lamp", *options) == 0
        with zipfile.ZipFile(command.out) as packed:
            names = [name for name in packed.namelist() if name.endswith(".wav")]
            for name in set(names) - {"scene.wav"}:
                file = io.BytesIO(packed.read(name))
                with wave.open(file) as sound:
                    assert sound.getnframes() > 1000
                tags = mutagen.wave.WAVE(file).tags
                assert tags["COMM::und"].text[0].startswith("Synthetic speech, made with Draft")
                assert tags["TPE1"].text[0] in name
                assert tags["TIT2"].text[0] == "Lamp"
            if "scene.wav" in names:
                rows = json.loads(packed.read("manifest.json"))["segments"]
                known = [{key: row.get(key) for key in ("engine", "model")} for row in rows]
                assert known[0] == {
                    "engine": DraftBackend.title,
                    "model": DraftBackend().revision,
                }
                assert known[1] == {"engine": None, "model": None}


def test_a_voice_that_cannot_be_read_is_named(command: Command) -> None:
    """Or its speaker would take another one without a word."""
    path = command.folder / "workspace" / "speakers" / "0123456789ab" / "speaker.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"version": 9, "name": "Ida", "colour": "#046bd0"}')
    assert command.run(command.write("Ida: Hello.")) == 0
    (said,) = [row for row in command.stderr.splitlines() if "0123456789ab" in row]
    assert "made by a newer studio" in said


def test_names_that_differ_in_case_share_a_voice_and_say_so(command: Command) -> None:
    assert command.run(command.write("Ida: Hello.\nIDA: Hello.")) == 0
    assert "IDA" in command.stderr
    samples, _ = soundfile.read(command.out)
    assert len(samples) % 2 == 0
    first, second = samples[: len(samples) // 2], samples[len(samples) // 2 :]
    assert (first == second).all()


def test_json_items_render_like_a_script(command: Command) -> None:
    items = [
        {"type": "speech", "speaker_id": "Ida", "text": "Guten Abend.", "language": "de"},
        {"type": "silence", "duration": 0.5},
        {"type": "speech", "speaker_id": "Tom", "text": "Quickly now.", "speed": 1.5},
    ]
    assert command.run(command.write(json.dumps(items), "scene.json")) == 0
    assert command.report["segments"] == 3


def test_the_same_seed_gives_the_same_bytes(command: Command) -> None:
    script = command.write("Ida: Once more.\nTom: The very same.")
    made = []
    for _ in range(2):
        assert command.run(script, "--seed", "7") == 0
        made.append(command.out.read_bytes())
    assert made[0] == made[1]


def test_a_disk_that_runs_full_stops_the_render_with_one_message(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    rename = Disk._rename

    def refuse(self: Disk, source: Path, target: Path) -> None:
        if target.suffix == ".wav":
            if len(saved) == 3:
                raise OSError(errno.ENOSPC, "No space left on device")
            saved.append(target.name)
        rename(self, source, target)

    spoken: list[str] = []
    speak = DraftBackend.speak

    def counted(self: DraftBackend, request: SpeechRequest) -> Iterator[Samples]:
        spoken.append(request.text)
        return speak(self, request)

    monkeypatch.setattr(Disk, "_rename", refuse)
    monkeypatch.setattr(DraftBackend, "speak", counted)
    script = command.write("".join(f"Ida: This is line {n}.\n" for n in range(80)))
    assert command.run(script) == 2
    assert command.stderr.count("No space left on device") == 1
    assert "stopped after 3 of 80 segments" in command.stderr
    assert not command.out.exists()
    assert len(spoken) < 20
    folder = Path(command.stderr.rsplit(" are in ", 1)[1].strip().rstrip("."))
    assert sorted(path.name for path in folder.iterdir()) == sorted(saved)
    shutil.rmtree(folder)
