"""A text whose reader doesn't end: its client goes, or the server ends."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from ports import reserve_port
from serving import Process

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals end a process otherwise on Windows"),
]

_START_S = 120
_PLACES = 8

# The fault: one reader never ends, and one asks once a line whether to go on. The studio's own
# grammar reads a text first, and so has it.
_STUDIO = """
import sys
import threading
from functools import partial
from pathlib import Path
from studio.dialog.formats import dialog_file
from studio.dialog.reading_limits import check_reading

log = Path({log!r})

def read(reads, text, *given, **options):
    if "stuck" not in text and "slow" not in text:
        return reads(text, *given, **options)
    with log.open("a") as noted:
        noted.write("begun\\n")
    if "stuck" in text:
        threading.Event().wait()
    try:
        while True:
            check_reading()
    finally:
        with log.open("a") as noted:
            noted.write("ended\\n")

dialog_file.read_own_script = partial(read, dialog_file.read_own_script)
from studio.app import main
sys.exit(main(sys.argv[1:]))
"""


class Studio:
    """A studio with that fault, as a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.port, self._noted = reserve_port(), folder / "noted.txt"
        script = folder / "studio.py"
        script.write_text(_STUDIO.format(log=str(self._noted)), encoding="utf-8")
        for log in (self._noted, folder / "log.txt"):
            log.touch()
        options = ["serve", "--no-browser", "--backend", "draft", "--port", str(self.port)]
        self.process = Process(
            [*options, "--workspace", str(folder / "workspace")],
            os.environ,
            folder / "log.txt",
            script=script,
        )
        self._wait(lambda: "The studio:" in self.process.said())

    def paste(self, text: str, route: str = "/studio/projects/lines") -> socket.socket:
        """Send a text, and don't wait for the answer."""
        sent = socket.create_connection(("127.0.0.1", self.port), timeout=_START_S)
        body = text.encode()
        sent.sendall(
            f"POST {route} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return sent

    def wait_for(self, what: str, times: int) -> None:
        self._wait(lambda: self._noted.read_text().count(what) >= times)

    def _wait(self, is_so) -> None:
        deadline_s = time.monotonic() + _START_S
        while not is_so():
            assert self.process.poll() is None, self.process.said()
            assert time.monotonic() < deadline_s, self.process.said()
            time.sleep(0.02)


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    made = Studio(tmp_path)
    yield made
    if made.process.poll() is None:
        made.process.kill()


@pytest.mark.parametrize("text", ["Ida: I am stuck.", "Ida: I am slow."])
def test_one_signal_ends_the_process_whatever_a_reader_does(studio: Studio, text: str) -> None:
    """Python waits for ever for a thread that does."""
    sent = [studio.paste(text), studio.paste(f'{{"text": "{text}"}}', "/studio/projects")]
    studio.wait_for("begun", 2)
    begun_s = time.monotonic()
    studio.process.send_signal(signal.SIGTERM)
    assert studio.process.wait(timeout=60) == 0
    print(f"ended after {time.monotonic() - begun_s:.1f} s")
    for one in sent:
        one.close()


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/studio/projects/lines", "Ida: I am slow."),
        ("/studio/projects", '{"text": "Ida: I am slow."}'),
        ("/v1/dialogs", '{"input": "Ida: I am slow."}'),
    ],
)
def test_a_reader_ends_when_its_client_has_gone(studio: Studio, route: str, body: str) -> None:
    """Eight of them had all the places, and nobody else got one."""
    gone = [studio.paste(body, route) for _ in range(2 * _PLACES)]
    studio.wait_for("begun", 1)
    for one in gone:
        one.close()
    studio.wait_for("ended", 1)
    with httpx.Client(base_url=f"http://127.0.0.1:{studio.port}", timeout=_START_S) as client:
        read = client.post("/studio/projects/lines", content=b"Ida: Hello.")
    assert read.json()["lines"][0]["text"] == "Hello."
    assert studio.process.poll() is None
