"""Renders and speaks on a disk that is really full: `python full_disk_driver.py MOUNTED_FOLDER`.

Prints what came of it as JSON; run in a mount namespace of its own, on a small tmpfs.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "server"))

import numpy as np
from fastapi.testclient import TestClient
from project_scenes import until
from scenes import dialog_of
from speech_client import app_of

from studio.audio.clip import Clip, write_wav
from studio.audio.guarded_decode import decode_guarded
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.errors import StudioError
from studio.services.studio import Studio, StudioOptions

LINES = 40
TEXT = "The disk is full, and yet this is spoken to its very end. " * 20


class Counting(DraftBackend):
    lines = 0

    def speak(self, request: SpeechRequest) -> Iterator[object]:
        Counting.lines += request.text.startswith("This is line")
        return super().speak(request)


def main(root: Path) -> None:
    tempfile.tempdir = str(root)
    voice = Counting(workers=2)
    studio = Studio.open(StudioOptions(root / "workspace", "draft"), lambda _: voice)
    with studio:
        session = studio.projects.create("Scene", dialog_of(LINES))
        session.save(now=True)
        found: dict[str, object] = {}
        recording = root / "bell.wav"
        write_wav(recording, Clip(np.full(12_000, 0.1, np.float32)))
        filler = root / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(root).free - 500_000))
        session.render(None)
        until(lambda: session.waits_for_room)
        until(lambda: all(view.state != "generating" for view in session.list_views()))
        found["states"] = sorted({view.state.value for view in session.list_views()})
        found["message"] = session.storage_message
        found["spoken"] = Counting.lines
        with suppress(OSError), (root / "rest").open("wb", buffering=0) as rest:
            while rest.write(bytes(4_096)):
                pass
        with TestClient(app_of(studio)) as client:
            body = {"input": TEXT, "response_format": "pcm"}
            answer = client.post("/v1/audio/speech", json=body)
            found["speech"] = [answer.status_code, len(answer.content)]
            try:
                decode_guarded(recording)
            except StudioError as error:
                found["recording"] = f"{type(error).__name__}: {error}"
            filler.unlink()
            (root / "rest").unlink(missing_ok=True)
            found["speech later"] = len(client.post("/v1/audio/speech", json=body).content)
        until(lambda: not session.busy)
        found["ready"] = sum(view.state == "ready" for view in session.list_views())
        found["spoken in all"] = Counting.lines
        found["storage"] = session.storage_message
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
