"""The files of Gradio's client: recordings that it uploads, and audio that it fetches.

They stand at the addresses of Gradio's own routes, which would put the files of all callers into
one folder, and show whatever lies there to everybody.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, File, UploadFile
from fastapi.responses import FileResponse

from studio.server.middleware.gradio_calls import RECORDING
from studio.server.policies import UPLOAD_BYTES, StudioDep
from studio.services.studio import Studio

_MAX_FILES = 5

gradio_file_routes = APIRouter(prefix="/gradio_api")


@gradio_file_routes.post("/upload")
def upload(
    studio: StudioDep, files: Annotated[list[UploadFile], File(max_length=_MAX_FILES)]
) -> list[str]:
    """Store recordings; each is named by what stands for it in a call."""
    return [f"{RECORDING}{_store(studio, one)}" for one in files]


@gradio_file_routes.get("/file=spoken/{key}/{name}", response_class=FileResponse)
def spoken_file(studio: StudioDep, key: str, name: str) -> FileResponse:
    """Fetch audio that a function made; `name` is for people."""
    made = studio.spoken_files.find(key)
    headers = {"Cache-Control": "private, no-store"}
    return FileResponse(made.path, media_type=made.media_type, headers=headers)


def _store(studio: Studio, file: UploadFile) -> str:
    uploads = studio.voices.uploads
    with uploads.open_writer(max_bytes=UPLOAD_BYTES) as arriving:
        while chunk := file.file.read(1 << 20):
            arriving.write(chunk)
        return uploads.add(arriving.finish(), file.filename or "recording").upload_id
