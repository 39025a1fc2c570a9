"""The command line and the environment: options, exit codes, what `render --json` says."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import sys
import time
import wave
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from pins_studio import ROOT, Project, Server, environment, run, serving, tone

OPTIONS = {
    "": {"-h", "--help", "--version"},
    "serve": {
        "-h", "--help", "--backend", "--workspace", "--verbose", "--host", "--port", "--share",
        "--auth", "--no-browser", "--no-models", "--no-voices",
    },
    "render": {
        "-h", "--help", "--backend", "--workspace", "--verbose", "-o", "--output", "--voice",
        "--narrator", "--fit", "--character", "--pronunciations", "--seed", "--tries", "--loudness",
        "--even", "--tracks", "--json", "--format", "--language", "--speed", "--quiet", "--bitrate",
        "--title", "--cover", "--names", "--podcast", "--keep-tries", "--gap", "--captions",
    },
    "doctor": {"-h", "--help"},
}  # fmt: skip
REPORT = {
    "backend", "lines", "segments", "failed", "second_tries", "tries", "doubtful", "audio_s",
    "wall_s",
    "first_audio_s", "max_in_flight", "device_busy_s", "timestamps", "out", "loudness_lufs",
    "true_peak_db",
}  # fmt: skip

TOO_LITTLE = {
    "TTS_MAX_CONCURRENCY": "0",
    "TTS_DEVICE": "tpu",
    "TTS_BATCH_SIZE": "0",
    "TTS_BATCH_POSITIONS": "255",
    "TTS_BATCH_MAX_WAIT_MS": "-1",
    "TTS_BATCH_CONTINUOUS": "perhaps",
    "TTS_BATCH_TUNING": "perhaps",
    "MODEL_EVICTION_ENABLED": "perhaps",
    "MODEL_IDLE_TIMEOUT_SECONDS": "-1",
    "MODEL_IDLE_CHECK_INTERVAL_SECONDS": "0",
    "CHATTERBOX_PACKAGE_ENDS": "perhaps",
    "TTS_ENABLE_AMP_ON_CUDA": "perhaps",
    "TTS_TF32": "perhaps",
    "TABLEREAD_INSTALL_VOICES": "perhaps",
    "TTS_REFERENCE_SILENCE_SECONDS": "-0.1",
    "TTS_REMOTE_URLS": "http://127.0.0.1:1,nowhere",
    "TTS_REMOTE_KEY": "with a space",
    "TTS_REMOTE_CONCURRENCY": "0",
    "TTS_REMOTE_TIMEOUT_SECONDS": "0",
    "TTS_REMOTE_PATIENCE_SECONDS": "-1",
    "TABLEREAD_API_KEY": "with a space",
    "TABLEREAD_VISITOR_GB": "0.04",
    "GRADIO_SERVER_PORT": "0",
    "SPACES_ZERO_GPU": "perhaps",
}
TOO_MUCH = {
    "TTS_MAX_CONCURRENCY": "257",
    "TTS_DEVICE": "cuda:100",
    "TTS_BATCH_SIZE": "65",
    "TTS_BATCH_POSITIONS": "8193",
    "TTS_BATCH_MAX_WAIT_MS": "10001",
    "MODEL_IDLE_TIMEOUT_SECONDS": "inf",
    "MODEL_IDLE_CHECK_INTERVAL_SECONDS": "nan",
    "TTS_REFERENCE_SILENCE_SECONDS": "5.1",
    "TTS_REMOTE_CONCURRENCY": "65",
    "TTS_REMOTE_TIMEOUT_SECONDS": "inf",
    "TTS_REMOTE_PATIENCE_SECONDS": "inf",
    "TABLEREAD_VISITOR_GB": "10001",
    "GRADIO_SERVER_PORT": "65536",
}
LEAST = {
    "TTS_BACKEND": "auto",
    "TTS_MAX_CONCURRENCY": "1",
    "TTS_DEVICE": "cpu",
    "TTS_BATCH_SIZE": "1",
    "TTS_BATCH_POSITIONS": "256",
    "TTS_BATCH_MAX_WAIT_MS": "0",
    "TTS_BATCH_CONTINUOUS": "false",
    "MODEL_EVICTION_ENABLED": "false",
    "MODEL_IDLE_TIMEOUT_SECONDS": "0",
    "MODEL_IDLE_CHECK_INTERVAL_SECONDS": "0.1",
    "TTS_REFERENCE_SILENCE_SECONDS": "0",
    "TTS_REMOTE_CONCURRENCY": "1",
    "TTS_REMOTE_TIMEOUT_SECONDS": "0.1",
    "TTS_REMOTE_PATIENCE_SECONDS": "0",
    "TABLEREAD_VISITOR_GB": "0.05",
    "GRADIO_SERVER_PORT": "1",
}
MOST = {
    "TTS_MAX_CONCURRENCY": "256",
    "TTS_BATCH_SIZE": "64",
    "TTS_BATCH_POSITIONS": "8192",
    "TTS_BATCH_MAX_WAIT_MS": "10000",
    "TTS_BATCH_TUNING": "fused,any-sampling",
    "TTS_BATCH_COMPILE": "true",
    "TTS_BATCH_FUSE": "true",
    "CHATTERBOX_PACKAGE_ENDS": "true",
    "TTS_ENABLE_AMP_ON_CUDA": "true",
    "TTS_TF32": "true",
    "TTS_REFERENCE_SILENCE_SECONDS": "5",
    "TTS_REMOTE_CONCURRENCY": "64",
    "TABLEREAD_VISITOR_GB": "10000",
    "TABLEREAD_ALLOWED_HOSTS": "a.example, b.example",
    "GRADIO_SERVER_PORT": "65535",
}


@pytest.mark.parametrize("command", OPTIONS)
def test_options(command: str, tmp_path: Path) -> None:
    done = run(*filter(None, [command]), "--help", home=tmp_path)
    assert done.returncode == 0
    names = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", done.stdout.partition("options:")[2]))
    named = {one for one in names if one in OPTIONS[command] or one.startswith("--")}
    assert named == OPTIONS[command]
    if command == "":
        assert {"serve", "render", "bench", "doctor"} <= set(re.findall(r"\w+", done.stdout))


@pytest.mark.parametrize("values", [TOO_LITTLE, TOO_MUCH], ids=["too little", "too much"])
def test_values_that_cannot_be_used_are_named(tmp_path: Path, values: dict[str, str]) -> None:
    done = run("doctor", home=tmp_path, **values)
    assert (done.returncode, done.stdout) == (2, "")
    for name, value in values.items():
        assert f"{name} " in done.stderr or f"{name}={value} " in done.stderr, name
        assert "can't be used" in done.stderr
    assert "with a space" not in done.stderr, "a key is never quoted"


@pytest.mark.parametrize("values", [LEAST, MOST], ids=["least", "most"])
def test_the_ends_of_each_range_are_taken(tmp_path: Path, values: dict[str, str]) -> None:
    assert _refused_for_its_script(tmp_path, **values)


def test_names_and_folders_are_taken_from_the_environment(tmp_path: Path) -> None:
    named = {
        "TTS_DEVICE": "cpu",
        "CHATTERBOX_MODEL": "pins/chatterbox@one",
        "CHATTERBOX_TURBO_MODEL": "pins/turbo",
        "CHATTERBOX_MULTILINGUAL_MODEL": "pins/multilingual",
        "QWEN3_TTS_MODEL": "pins/qwen3",
        "TTS_REMOTE_URLS": "http://127.0.0.1:9/v1",
        "TTS_REMOTE_MODEL": "any",
        "TABLEREAD_WORKSPACE": str(tmp_path / "elsewhere"),
    }
    done = run("doctor", home=tmp_path, **named)
    assert done.returncode == 0, done.stderr
    headings = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert headings == ["Machine", "Packages", "Model packages", "Backends", "Memory"]
    rows = dict(re.findall(r"^  (\S[^\n]*?) {2,}(.*)$", done.stdout, re.MULTILINE))
    assert rows["device"].startswith("cpu (TTS_DEVICE)")
    assert rows["workspace"].startswith(f"{tmp_path / 'elsewhere'}, writable, ")
    assert rows.keys() >= {
        "system", "python", "processors", "memory", "graphics card", "device", "workspace",
        "gradio", "torch", "remote", "qwen3", "chatterbox", "chatterbox-multilingual",
        "chatterbox-turbo", "draft",
    }  # fmt: skip
    if "can run after a download" in rows["qwen3"]:
        assert "pins/qwen3" in rows["qwen3"]
        assert "pins/chatterbox" in rows["chatterbox"]
        assert "pins/turbo" in rows["chatterbox-turbo"]
        assert "pins/multilingual" in rows["chatterbox-multilingual"]


def test_empty_ones_count_as_not_set(tmp_path: Path) -> None:
    assert _refused_for_its_script(tmp_path, TTS_MAX_CONCURRENCY="", TTS_DEVICE=" ")


def _refused_for_its_script(home: Path, **variables: str) -> bool:
    """Whether nothing but the script stands against a render: the settings are read before it."""
    done = run("render", "none.txt", "-o", str(home / "none.wav"), home=home, **variables)
    return done.returncode == 2 and done.stderr.startswith("none.txt can't be read")


def test_the_defaults_that_show(client: httpx.Client) -> None:
    state = client.get("/studio/state").json()
    assert state["engine"]["max_concurrency"] == 3
    assert state["model"]["idle_timeout_s"] == 900
    assert state["model"]["eviction_enabled"] is True


def test_a_backend_that_is_not_there(tmp_path: Path) -> None:
    script = tmp_path / "a.txt"
    script.write_text("Ann: Oh.")
    done = run(
        *("render", str(script), "-o", str(tmp_path / "a.wav")), home=tmp_path, TTS_BACKEND="none"
    )
    assert done.returncode == 2
    assert "“none”" in done.stderr
    for name in ("remote", "qwen3", "chatterbox", "chatterbox-turbo", "draft"):
        assert name in done.stderr


@pytest.mark.parametrize(
    "name",
    [
        "qwen3-batched",
        "chatterbox-batched",
        "chatterbox-multilingual-batched",
        "chatterbox-turbo-batched",
    ],
)
def test_old_names_of_voice_engines_are_taken(client: httpx.Client, name: str) -> None:
    """In a project and at `/v1`; to speak with one takes weights that aren't here."""
    answer = client.get("/v1/audio/voices", params={"model": name})
    assert answer.status_code in (200, 503), answer.text
    project = Project.made(client, "Old names", "Ann: Oh.")
    project.edit({"op": "settings", "fields": {"backend": name}})
    chosen = project.now()["settings"]["backend"]
    assert chosen in (name, name.removesuffix("-batched"))


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scripts and a sample."""
    folder = tmp_path_factory.mktemp("rendered")
    (folder / "bell.wav").write_bytes(tone(300))
    (folder / "whole.txt").write_text("[Ann | speed:2] Oh.\n[pause:250ms]\n[Bob | speed:2] Yes.")
    (folder / "partly.txt").write_text("Ann: Oh.\nBob: [sigh]\n")
    (folder / "words.csv").write_text("written,spoken\nYes,Yah\n")
    return folder


def test_what_render_says_as_json(rendered: Path) -> None:
    out = rendered / "whole.wav"
    done = _render(
        rendered, "whole.txt", "-o", str(out), "--json", "--voice", f"Ann={rendered / 'bell.wav'}",
        "--pronunciations", str(rendered / "words.csv"), "--seed", "3", "--tries", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report.keys() == REPORT
    assert (report["backend"], report["lines"], report["segments"]) == ("draft", 3, 3)
    assert (report["failed"], report["second_tries"], report["out"]) == ([], [], str(out))
    with wave.open(str(out)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (24_000, 1, 2)
        assert sound.getnframes() / 24_000 == pytest.approx(report["audio_s"], abs=0.26)


def test_what_failed_is_named_and_the_rest_written(rendered: Path) -> None:
    done = _render(rendered, "partly.txt", "-o", str(rendered / "partly.mp3"), "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    [failed] = report["failed"]
    assert failed.keys() == {"segment_idx", "line", "message", "cut"}
    assert (failed["segment_idx"], failed["line"], failed["cut"]) == (1, 2, False)
    assert (rendered / "partly.mp3").is_file()
    assert f"Line 2: {failed['message']}" in done.stderr


def test_a_zip_holds_segments_scene_and_manifest(rendered: Path) -> None:
    done = _render(rendered, "whole.txt", "-o", str(rendered / "whole.zip"), "--loudness", "-20")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(rendered / "whole.zip") as packed:
        names = sorted(packed.namelist())
        manifest = json.loads(packed.read("manifest.json"))
    assert names == ["0001-Ann.wav", "0003-Bob.wav", "manifest.json", "scene.wav"]
    assert manifest.keys() == {
        "version", "file", "rate_hz", "duration_s", "n_samples", "failed", "segments",
    }  # fmt: skip


def test_tracks_are_a_zip_too(rendered: Path) -> None:
    out = rendered / "tracks.zip"
    done = _render(rendered, "whole.txt", "-o", str(out), "--tracks", "--even")
    assert done.returncode == 0, done.stderr
    assert "Ann" not in done.stdout
    with zipfile.ZipFile(io.BytesIO(out.read_bytes())) as packed:
        names = sorted(packed.namelist())
    assert names == ["01-Ann.wav", "02-Bob.wav", "labels.txt", "scene.rpp"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["none.txt", "-o", "a.wav"],
        ["whole.txt", "-o", "a.ogg"],
        ["whole.txt", "-o", "a.wav", "--loudness", "loud"],
        ["whole.txt", "-o", "a.wav", "--voice", "Ann"],
    ],
    ids=["no script", "suffix", "loudness", "voice"],
)
def test_bad_input_is_2_and_nothing_is_written(rendered: Path, arguments: list[str]) -> None:
    script, *rest = arguments
    rest = [str(rendered / one) if one.startswith("a.") else one for one in rest]
    done = _render(rendered, script, *rest)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr
    assert not list(rendered.glob("a.*"))


def test_bad_options_of_serve_are_2(tmp_path: Path, server: Server) -> None:
    port = server.url.rpartition(":")[2]
    for more in (["--port", "70000"], ["--auth", "nobody"], ["--port", port]):
        done = run("serve", "--no-browser", *more, home=tmp_path)
        assert done.returncode == 2, done.stderr
        assert more[0] in done.stderr


def test_an_interrupted_render_is_130(tmp_path: Path) -> None:
    script = tmp_path / "long.txt"
    line = "Ann: This is a line that is long enough to take its time, one of very many of them."
    script.write_text("\n".join([line] * 3_000))
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "studio", "render", str(script), "--backend", "draft"),
            *("-o", str(tmp_path / "long.wav"), "--workspace", str(tmp_path / "workspace")),
        ],
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end_s = time.monotonic() + 60
    while not (tmp_path / "workspace").is_dir():
        assert process.poll() is None
        assert time.monotonic() < end_s
        time.sleep(0.02)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Stopped." in said
    assert not (tmp_path / "long.wav").exists()


def _render(folder: Path, script: str, *more: str) -> subprocess.CompletedProcess[str]:
    workspace = ["--backend", "draft", "--workspace", str(folder / "workspace")]
    return run("render", str(folder / script), *workspace, *more, home=folder)


def test_serve_ends_in_order(tmp_path: Path) -> None:
    """With a name and a password, which a browser's form asks for."""
    with serving(tmp_path / "own", "--backend", "draft", "--auth", "me:secret") as running:
        assert running.client.get("/studio/state").status_code == 401
        assert running.client.get("/healthz").status_code == 200
        signed = running.client.post("/login", data={"username": "me", "password": "secret"})
        assert signed.status_code == 200
        names = sorted(running.client.cookies, key=len)
        assert len(names) == 2
        mark = names[1].removeprefix("access-token-unsecure-")
        assert names == [f"access-token-{mark}", f"access-token-unsecure-{mark}"]
        assert _state(running)["backend"]["name"] == "draft"
        assert running.stop() == 0


def _state(running: Server) -> Any:
    headers = {"Cookie": "; ".join(f"{k}={v}" for k, v in running.client.cookies.items())}
    return httpx.get(f"{running.url}/studio/state", headers=headers).json()
