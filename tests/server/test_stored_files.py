"""A file that one request removes while another fetches it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from studio.errors import StudioError
from studio.server.error_responses import answer_error
from studio.server.transfers import StoredFile

DATA = bytes(range(256)) * 1_000


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    app = FastAPI()

    @app.api_route("/found", methods=["GET", "HEAD"])
    def found() -> StoredFile:
        path = tmp_path / "take.wav"
        path.write_bytes(DATA)
        answer = StoredFile(path, media_type="audio/wav")
        path.unlink()
        return answer

    @app.get("/studio/gone")
    def gone() -> StoredFile:
        return StoredFile(tmp_path / "gone.wav", media_type="audio/wav")

    app.add_exception_handler(StudioError, answer_error)
    with TestClient(app) as client:
        yield client


def test_it_is_sent_whole_and_in_parts(client: TestClient) -> None:
    assert client.get("/found").content == DATA
    part = client.get("/found", headers={"Range": "bytes=1000-1999"})
    assert (part.status_code, part.content) == (206, DATA[1_000:2_000])
    head = client.head("/found")
    assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(DATA)))


def test_one_that_has_gone_is_not_found(client: TestClient) -> None:
    answer = client.get("/studio/gone")
    assert (answer.status_code, "has been removed" in answer.text) == (404, True)
