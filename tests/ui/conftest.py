"""A real server process and a real browser for the page's tests."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soundfile
from ports import reserve_port
from serving import ROOT, Process
from tiny_hub import TinyHub

from studio.setup.browser import find_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

START_TIMEOUT_S = 120
INSTALL_TIMEOUT_S = 900
ENDED_WITHIN_S = 60
BROWSER_TIMEOUT_MS = 45_000
BROWSER = find_browser(os.environ)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    # Another way to this machine, by an address that is no secure context; else no way out of it.
    "--host-resolver-rules=MAP 198.51.100.7 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def pytest_collection_modifyitems(items):
    """Without a browser, tests that drive one are skipped."""
    if BROWSER:
        return
    reason = "no Chromium found; name one in TABLEREAD_BROWSER"
    for item in items:
        if item.get_closest_marker("browser"):
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass(frozen=True)
class Server:
    url: str
    workspace: Path
    process: Process | subprocess.Popen[bytes]


def _wait_until_up(server: Server, log: Path, within_s: float = START_TIMEOUT_S) -> None:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if server.process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{server.url}studio/state", timeout=5):
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.1)
    pytest.fail(f"The studio did not start:\n{log.read_text(encoding='utf-8')}")


def launched(
    folder: Path, hub_url: str, command: Sequence[str] | None = None, **more: str
) -> Server:
    """A person's first start: `python launch.py`, with nothing downloaded and a hub of the tests'.

    It brings no voice by itself.

    Args:
        folder: For the workspace, the hub's cache and what the studio says.
        hub_url: Where the hub answers.
        command: Python and launch.py, where they aren't the running ones, and may install first.
        more: Variables.
    """
    port = reserve_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TTS_")}
    environ |= {
        "HF_ENDPOINT": hub_url,
        "HF_HUB_CACHE": str(folder / "cache"),
        "TABLEREAD_INSTALL_MODELS": "false",
        "TABLEREAD_INSTALL_VOICES": "false",
        "PYTHONPATH": os.pathsep.join((str(Path(__file__).with_name("launched")), str(ROOT))),
        **more,
    }
    options = ["--port", str(port), "--no-browser", "--workspace", str(folder / "workspace")]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*(command or (sys.executable, str(ROOT / "launch.py"))), *options],
            env=environ,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    server = Server(f"http://127.0.0.1:{port}/", folder / "workspace", process)
    try:
        _wait_until_up(server, log, INSTALL_TIMEOUT_S if command else START_TIMEOUT_S)
    except BaseException:
        process.kill()
        raise
    return server


def started(folder: Path, port: int, script: Path | None = None) -> Server:
    """The studio on a port, on the draft voice, with models that soon count as idle.

    Another voice may be put in by a script that is run with the workspace and the port.
    """
    environ = os.environ | {
        "TTS_BACKEND": "draft",
        "MODEL_IDLE_TIMEOUT_SECONDS": "3",
        "MODEL_IDLE_CHECK_INTERVAL_SECONDS": "1",
    }
    arguments = ["serve", "--port", str(port), "--no-browser"]
    arguments += ["--workspace", str(folder / "workspace")]
    if script is not None:
        arguments = [str(folder / "workspace"), str(port)]
    log = folder / "server.log"
    process = Process(arguments, environ, log, script=script)
    server = Server(f"http://127.0.0.1:{port}/", folder / "workspace", process)
    try:
        _wait_until_up(server, log)
    except BaseException:
        process.kill()
        raise
    return server


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[Server]:
    """The studio all tests of the page share."""
    server = started(tmp_path_factory.mktemp("page"), reserve_port())
    yield server
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(timeout=ENDED_WITHIN_S)


@pytest.fixture(scope="module")
def server_of(tmp_path_factory) -> Iterator[Callable[[str], Server]]:
    """Starts a studio of a module's own by a script beside the tests."""
    alive = []

    def begin(script: str) -> Server:
        folder = tmp_path_factory.mktemp(Path(script).stem)
        alive.append(started(folder, reserve_port(), Path(__file__).with_name(script)))
        return alive[-1]

    yield begin
    for server in alive:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=ENDED_WITHIN_S)


@pytest.fixture(scope="module")
def hub_files() -> dict[str, bytes]:
    """What the hub of a module's first start holds."""
    return {}


@pytest.fixture(scope="module")
def hub(hub_files: dict[str, bytes]) -> Iterator[TinyHub]:
    """The hub that `first_start` downloads from."""
    hub = TinyHub(hub_files)
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture(scope="module")
def first_start(tmp_path_factory, hub: TinyHub) -> Iterator[Callable[..., Server]]:
    """Starts the studio as a person does for the first time; see `launched`."""
    alive = []

    def begin(command: Sequence[str] | None = None, **more: str) -> Server:
        alive.append(launched(tmp_path_factory.mktemp("first"), hub.url, command, **more))
        return alive[-1]

    yield begin
    for server in alive:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=ENDED_WITHIN_S)


@pytest.fixture
def mortal(tmp_path) -> Iterator[Callable[[], Server]]:
    """Starts a studio of the test's own; called again, it kills that one and starts it anew."""
    port, alive = reserve_port(), []

    def begin() -> Server:
        for server in alive:
            server.process.kill()
            server.process.wait(timeout=ENDED_WITHIN_S)
        alive[:] = [started(tmp_path, port)]
        return alive[0]

    yield begin
    for server in alive:
        server.process.kill()
        server.process.wait(timeout=ENDED_WITHIN_S)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=BROWSER_TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def open_window(server: Server, browser: Browser) -> Iterator:
    """Opens the page in a window of its own; at the end nothing foreign or broken happened.

    The voices that a module's tests added go with its windows: the next begins with none.
    """
    contexts, faults = [], []

    def check(request: Request) -> None:
        if not request.url.startswith((server.url, "data:", "blob:")):
            faults.append(f"asked for {request.url}")

    def opened(**look) -> Page:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, **look)
        contexts.append(context)
        context.set_default_timeout(BROWSER_TIMEOUT_MS)
        # No route: with one, each request goes through this process and nothing is cached.
        context.on("request", check)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(f"a dialog said {dialog.message}"))
        page.goto(server.url)
        page.wait_for_selector("body[data-tableread=ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    shutil.rmtree(server.workspace / "speakers", ignore_errors=True)
    assert faults == []


@pytest.fixture(scope="module")
def window(open_window) -> Page:
    return open_window()


@pytest.fixture
def open_page(open_window) -> Iterator:
    """Opens the page in a window that goes with the test: one that is open is never quite idle."""
    pages = []

    def opened(**look) -> Page:
        pages.append(open_window(**look))
        return pages[-1]

    yield opened
    for page in pages:
        page.context.close()


@pytest.fixture
def page(window: Page) -> Iterator[Page]:
    """The module's window, silent again after each test; opening one takes a second."""
    yield window
    window.evaluate("() => window.tableread.player.stop()")


@pytest.fixture
def write(page: Page):
    """Opens a new project of a text and waits until its lines are shown, and no earlier ones."""
    from ui_steps import fill

    return lambda text, lines: fill(page, text, lines)


@pytest.fixture
def recording(tmp_path) -> Path:
    """Six seconds that pass for a voice."""
    rate_hz = 24_000
    time_s = np.arange(6 * rate_hz) / rate_hz
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * 3 * time_s)
    voice = sum(np.sin(2 * np.pi * 140 * n * time_s) / n for n in range(1, 8))
    path = tmp_path / "voice.wav"
    soundfile.write(path, 0.15 * syllables * voice, rate_hz)
    return path
