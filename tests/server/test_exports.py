"""Files made for an answer: they end with whoever asked for them."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.testclient import TestClient
from live import live

from studio.errors import Cancelled
from studio.server.transfers import make_file, unless_left
from studio.services.studio import Studio


def files(studio: Studio) -> list[Path]:
    return [one for one in (studio.options.workspace / "exports").rglob("*") if one.is_file()]


def test_an_export_ends_when_the_caller_hangs_up(studio: Studio) -> None:
    app, ended = FastAPI(), threading.Event()

    def endless(path: Path, request: Request) -> None:
        left = unless_left(request)
        path.write_bytes(b"some of it")
        try:
            while True:
                left(0.5)
        except Cancelled:
            ended.set()
            raise

    @app.get("/file")
    def file(request: Request) -> Response:
        return make_file(studio, "a.wav", lambda path: endless(path, request))

    with live(app) as address:
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{address}/file", timeout=httpx.Timeout(60, read=0.5))
        assert ended.wait(60)
    assert files(studio) == []


def test_a_file_is_there_as_long_as_its_answer(studio: Studio) -> None:
    app = FastAPI()

    @app.get("/file")
    def file() -> Response:
        made = make_file(studio, "a.wav", lambda path: path.write_bytes(b"all of it"))
        assert len(files(studio)) == 1
        return made

    with TestClient(app) as client:
        assert client.get("/file").content == b"all of it"
    assert files(studio) == []
