"""What the tests of the speech API share: an application, and independent decoders."""

from __future__ import annotations

import io
import json
import shutil
import subprocess

import av
import numpy as np
import soundfile
from fastapi import FastAPI

from studio.audio.clip import STUDIO_RATE_HZ
from studio.server.v1.speech_api import speech_api
from studio.services.studio import Studio

FORMATS = ("mp3", "opus", "aac", "flac", "wav", "pcm")
TEXT = "Good evening. Did anybody hear the bell?"


def app_of(studio: Studio, guard=lambda: None) -> FastAPI:
    app = FastAPI()
    app.mount("/v1", speech_api(lambda _: studio, guard=guard))
    return app


def duration_s(data: bytes, audio_format: str) -> float:
    """The length of what was sent, as another decoder than the encoder's hears it."""
    if audio_format == "pcm":
        return len(data) / 2 / STUDIO_RATE_HZ
    if audio_format == "aac":  # libsndfile has no AAC
        with av.open(io.BytesIO(data)) as container:
            return sum(frame.samples / frame.sample_rate for frame in container.decode(audio=0))
    samples, rate_hz = soundfile.read(io.BytesIO(data), dtype="float32")
    assert np.abs(samples).max() > 0.01
    return len(samples) / rate_hz


def events_of(text: str) -> list[dict]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def curl(*arguments: str) -> subprocess.CompletedProcess:
    program = shutil.which("curl")
    assert program, "curl drives these tests"
    command = [program, "--silent", "--show-error", "--max-time", "60", *arguments]
    return subprocess.run(command, capture_output=True, check=False)
