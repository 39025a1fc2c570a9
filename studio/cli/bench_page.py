"""`bench page`: the editor beside one made of plain Gradio components, in a real browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from studio.cli.page_timing import DELAY_KEYS, STRUCTURE_MS, p95, scene
from studio.errors import SettingError
from studio.setup.browser import find_browser

_START_S = 120.0
_LONG_MS = 180_000
_SERVE = "import sys; from studio.app import main; sys.exit(main(sys.argv[1:]))"
_TYPED = " and some more words of it"
_PLAIN_ROWS = "() => document.querySelectorAll('.plain-text').length"
_PLAIN_STATE = """() => {
  const rows = document.querySelectorAll('.plain-text');
  return [rows.length, rows[20]?.querySelector('textarea, input').value];
}"""
_PLAIN_DONE = {
    "insert": "now[0] === before[0] + 1",
    "delete": "now[0] === before[0] - 1",
    "move": "now[0] === before[0] && now[1] !== before[1]",
}
_PRESS = "what => document.querySelectorAll(`.plain-${what}`)[20].click()"
_TURNS = 3


def page_rows(root: Path, lines: int) -> Iterator[dict[str, object]]:
    """One row a figure: ours, plain Gradio's, and how many times quicker ours is.

    Raises:
        SettingError: There is no browser, or no package to drive one.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise SettingError("It drives a browser; `python launch.py test` installs it.") from error
    program = find_browser(os.environ)
    if program is None:
        raise SettingError("No browser was found; `python launch.py test` installs one.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        ours = _ours(browser.new_context().new_page(), root, lines)
        plain = _plain(browser.new_context().new_page(), root, lines)
        browser.close()
    for figure, own_ms in ours.items():
        yield {
            "95th percentile": figure,
            "lines": lines,
            "ours ms": f"{own_ms:.0f}",
            "plain Gradio ms": f"{plain[figure]:.0f}",
            "times quicker": f"{plain[figure] / own_ms:.1f}",
        }


def _ours(page: Any, root: Path, lines: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        rest = ["serve", "--no-browser", "--no-models", "--backend", "draft"]
        command = [sys.executable, "-c", _SERVE, *rest, "--workspace", folder, "--port"]
        with _served(command, root) as url:
            made = page.request.post(f"{url}studio/projects", data={"text": scene(lines)})
            project = made.json()["project_id"]
            opened_ms = [_opened_ms(page, f"{url}?project={project}") for _ in range(_TURNS)]
            figures = {"open": p95(opened_ms)}
            page.click("#lines .line-text >> nth=5")
            figures["key to paint"] = _typed_ms(page)
            for name, script in STRUCTURE_MS.items():
                figures[name] = p95(page.evaluate(script))
            page.goto("about:blank")
    return figures


def _opened_ms(page: Any, url: str) -> float:
    page.goto("about:blank")
    began_s = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_selector("body[data-tableread=ready]", timeout=_LONG_MS)
    return 1000 * (time.perf_counter() - began_s)


def _plain(page: Any, root: Path, lines: int) -> dict[str, float]:
    command = [sys.executable, "-c", _plain_start(lines)]
    with _served(command, root) as url:
        began_s = time.perf_counter()
        page.goto(url, wait_until="commit")
        _wait_rows(page, lines)
        figures = {"open": 1000 * (time.perf_counter() - began_s)}
        page.click(".plain-text textarea, .plain-text input >> nth=5")
        figures["key to paint"] = _typed_ms(page)
        for what, done in _PLAIN_DONE.items():
            fresh = page.context.new_page()
            fresh.goto(url, wait_until="commit", timeout=_LONG_MS)
            _wait_rows(fresh, lines)
            figures[what] = _pressed_ms(fresh, what, done)
            fresh.close()
    return figures


def _plain_start(lines: int) -> str:
    return (
        "import sys; from studio.cli.plain_editor import plain_editor; "
        f"plain_editor({lines}).launch(server_port=int(sys.argv[1]), quiet=True)"
    )


def _typed_ms(page: Any) -> float:
    page.evaluate(DELAY_KEYS)
    page.keyboard.type(_TYPED, delay=60)
    page.wait_for_function("n => window.delays_ms.length >= n", arg=len(_TYPED), timeout=_LONG_MS)
    return p95(page.evaluate("() => window.delays_ms"))


def _wait_rows(page: Any, lines: int) -> None:
    page.wait_for_function(f"n => ({_PLAIN_ROWS})() === n", arg=lines, timeout=_LONG_MS)


def _pressed_ms(page: Any, what: str, done: str) -> float:
    """One press, since a second one before plain Gradio has settled is lost."""
    before = page.evaluate(_PLAIN_STATE)
    began_s = time.perf_counter()
    page.evaluate(_PRESS, what)
    page.wait_for_function(
        f"before => {{ const now = ({_PLAIN_STATE})(); return {done}; }}",
        arg=before,
        timeout=_LONG_MS,
    )
    return 1000 * (time.perf_counter() - began_s)


@contextmanager
def _served(command: list[str], root: Path) -> Iterator[str]:
    """Run a server on a free port, given as its last argument; its address once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([*command, str(port)], cwd=root, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/"
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - an address of this machine
                return
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.2)
    raise SettingError("The page to be measured did not start.")
