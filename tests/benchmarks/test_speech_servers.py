"""`bench remote`: one speech server against two."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from remote_process import SpeechServer, serving

from benchmarks.speech_servers import remote_rows
from studio.errors import StudioError


def test_a_row_for_one_server_and_one_for_two() -> None:
    started: list[SpeechServer] = []
    asked: list[int] = []

    @contextmanager
    def start(_backend: str, count: int) -> Iterator[tuple[str, ...]]:
        with serving(*["custom"] * count) as servers:
            started.extend(servers)
            yield tuple(server.url for server in servers)
            asked.extend(len(server.requests) for server in servers)

    rows = list(remote_rows(6, 1, "draft", start))
    assert [row["servers"] for row in rows] == [1, 2]
    assert rows[0]["times as fast"] == "1.00"
    assert rows[0]["audio s"] == rows[1]["audio s"]
    assert sum(asked) == 6 * 2 * 2
    assert min(asked) > 0
    assert all(server.process.poll() is not None for server in started)


def test_a_server_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(StudioError, match="didn't start"):
        next(remote_rows(2, 1, "draft"))
