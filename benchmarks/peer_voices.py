"""A package of somebody else's that speaks Kokoro or Piper, in an environment of its own.

Run by path in that environment, this file is the loop that such a package's users write: it reads
JSON lines of `texts` and answers each with the seconds of sound and of processor time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PACKAGES = {"kokoro": "kokoro-onnx==0.6.1", "vits": "piper-tts==1.8.0"}  # the second is under GPL
_RUNTIME = "onnxruntime==1.31.1"


@contextmanager
def peer_loop(
    family: str, files: Mapping[str, Path], folder: Path
) -> Iterator[Callable[[Sequence[str]], tuple[float, float]]]:
    """Install the package where it isn't yet, load its model, and give what speaks texts.

    Args:
        family: Of the model, in `PACKAGES`.
        files: Its `model` and, for Kokoro, an archive of `voices`.
        folder: Where environments of packages are kept.
    """
    environment = folder / PACKAGES[family].replace("==", "-")
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (environment / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", PACKAGES[family], _RUNTIME]
        subprocess.run(install, check=True)
        (environment / "whole").touch()
    command = [str(python), __file__, family, *(str(files[one]) for one in sorted(files))]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None
        assert answered is not None

        def speak(texts: Sequence[str]) -> tuple[float, float]:
            print(json.dumps(texts), file=asked, flush=True)
            audio_s, busy_s = json.loads(answered.readline())
            return audio_s, busy_s

        try:
            yield speak
        finally:
            asked.close()


def _load(family: str, paths: Sequence[str]) -> Callable[[str], float]:
    """What speaks a text and says how long it is."""
    if family == "vits":
        from piper import PiperVoice  # type: ignore[import-not-found]

        voice = PiperVoice.load(paths[0])

        def speak_piper(text: str) -> float:
            chunks = list(voice.synthesize(text))
            return sum(len(one.audio_float_array) / one.sample_rate for one in chunks)

        return speak_piper
    from kokoro_onnx import Kokoro  # type: ignore[import-not-found]

    kokoro: Any = Kokoro(*paths)

    def speak_kokoro(text: str) -> float:
        samples, rate_hz = kokoro.create(text, voice="voice", lang="en-us", trim=False)
        return len(samples) / float(rate_hz)

    return speak_kokoro


def _answer() -> None:
    speak = _load(sys.argv[1], sys.argv[2:])
    for line in sys.stdin:
        began_s = time.process_time()
        audio_s = sum(map(speak, json.loads(line)))
        print(json.dumps([audio_s, time.process_time() - began_s]), flush=True)


if __name__ == "__main__":
    _answer()
