"""`bench page`: the editor beside one made of plain Gradio components, in a real browser."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.page_timing import DELAY_KEYS, STRUCTURE_MS, p95, scene
from studio.errors import SettingError
from studio.setup.browser import find_browser

LIMIT_S = 60.0
"""What takes longer is not waited for."""

_LIMIT_MS = 1000 * LIMIT_S
_ROWS = "n => document.querySelectorAll('.plain-text').length === n"
_WATCH = """() => {
  const note = () => (window.changed_ms = performance.now());
  note();
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true });
}"""
_QUIET = "() => performance.now() - window.changed_ms > 1000"
_DONE = {
    "insert": "now[0] === before[0] + 1",
    "delete": "now[0] === before[0] - 1",
    "move": "now[0] === before[0] && now[1] !== before[1]",
}
_PRESSED_MS = """() => {
  const state = () => {
    const rows = document.querySelectorAll('.plain-text');
    return [rows.length, rows[20]?.querySelector('textarea, input').value];
  };
  if (!window.press) {
    window.press = { before: state(), began_ms: performance.now() };
    document.querySelectorAll('.plain-WHAT')[20].click();
    return false;
  }
  const { before, began_ms } = window.press;
  const now = state();
  if (!(DONE)) return false;
  window.press = null;
  return performance.now() - began_ms;
}"""

FIGURES = tuple(_DONE)
"""What can be pressed."""


def opened_page(new_page: Callable[[], Any], url: str, lines: int) -> tuple[Any, float | None]:
    """Open the editor; the page, and the time until all its rows are there, None past the limit."""
    from playwright.sync_api import TimeoutError as PastLimit

    page = new_page()
    began_s = time.perf_counter()
    try:
        page.goto(url, wait_until="commit", timeout=_LIMIT_MS)
        page.wait_for_function(_ROWS, arg=lines, timeout=_LIMIT_MS)
    except PastLimit:
        return page, None
    opened_ms = 1000 * (time.perf_counter() - began_s)
    page.evaluate(_WATCH)
    return page, opened_ms


def pressed_ms(page: Any, what: str, turns: int) -> Iterator[float | None]:
    """Press a button of row 21 again and again, each time to the change that it makes.

    A press before plain Gradio has settled is lost, so each one waits until the page is quiet.
    The first one past the limit is None and the last.
    """
    from playwright.sync_api import TimeoutError as PastLimit

    step = _PRESSED_MS.replace("WHAT", what).replace("DONE", _DONE[what])
    for _ in range(turns):
        try:
            page.wait_for_function(_QUIET, timeout=_LIMIT_MS)
            yield page.wait_for_function(step, timeout=_LIMIT_MS).json_value()
        except PastLimit:
            yield None
            return


_START_S = 120.0
_LONG_MS = 180_000
_TYPED = " and some more words of it"
_TURNS = 3

_Times = dict[str, list[float | None]]


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
        ours = _measure_ours(browser.new_context().new_page(), root, lines)
        plain = _measure_plain(browser.new_context().new_page, root, lines)
        browser.close()
    for figure, times_ms in ours.items():
        yield {"what": figure, "lines": lines} | _compare(times_ms, plain[figure])


def _compare(ours_ms: list[float | None], plain_ms: list[float | None]) -> dict[str, object]:
    """Median to median; what plain Gradio didn't do within the limit is said to be above it."""
    own_ms = [one_ms for one_ms in ours_ms if one_ms is not None]
    median_ms = statistics.median(own_ms)
    above = "> " if None in plain_ms else ""
    limited_ms = [1000 * LIMIT_S if one_ms is None else one_ms for one_ms in plain_ms]
    other_ms = max(limited_ms) if above else statistics.median(limited_ms)
    return {
        "ours ms, median": f"{median_ms:.0f}",
        "p95 (open: worst)": f"{p95(own_ms) if len(own_ms) > _TURNS else max(own_ms):.0f}",
        "plain Gradio ms, median": f"{above}{other_ms:.0f}",
        "times quicker": f"{above}{other_ms / median_ms:.1f}",
    }


def _measure_ours(page: Any, root: Path, lines: int) -> _Times:
    with tempfile.TemporaryDirectory(prefix="tableread-bench-") as folder:
        rest = ["serve", "--no-browser", "--no-models", "--backend", "draft"]
        command = [sys.executable, "-m", "studio", *rest, "--workspace", folder, "--port"]
        with _serve(command, root) as url:
            made = page.request.post(f"{url}studio/projects", data={"text": scene(lines)})
            project = made.json()["project_id"]
            opened_ms = [_opened_ms(page, f"{url}?project={project}") for _ in range(_TURNS)]
            figures = {"open": _print_times("ours", "open", opened_ms)}
            page.click("#lines .line-text >> nth=5")
            figures["key to paint"] = _print_times("ours", "key to paint", _typed_ms(page))
            for name, script in STRUCTURE_MS.items():
                figures[name] = _print_times("ours", name, page.evaluate(script))
            page.goto("about:blank")
    return figures


def _opened_ms(page: Any, url: str) -> float | None:
    page.goto("about:blank")
    began_s = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_selector("body[data-tableread=ready]", timeout=_LONG_MS)
    return 1000 * (time.perf_counter() - began_s)


def _measure_plain(new_page: Callable[[], Any], root: Path, lines: int) -> _Times:
    with _serve([sys.executable, "-c", _plain_start(lines)], root) as url:
        opened_ms: list[float | None] = []
        for _ in range(_TURNS):
            page, one_ms = opened_page(new_page, url, lines)
            opened_ms.append(one_ms)
            if one_ms is None:
                return _all_timed_out(opened_ms)
        figures: _Times = {"open": _print_times("plain Gradio", "open", opened_ms)}
        page.click(".plain-text textarea, .plain-text input >> nth=5")
        figures["key to paint"] = _print_times("plain Gradio", "key to paint", _typed_ms(page))
        for what in FIGURES:
            times_ms = list(pressed_ms(page, what, _TURNS))
            figures[what] = _print_times("plain Gradio", what, times_ms)
            if None in times_ms:
                page, _ = opened_page(new_page, url, lines)
    return figures


def _all_timed_out(opened_ms: list[float | None]) -> _Times:
    names = ("open", "key to paint", *FIGURES)
    return {name: _print_times("plain Gradio", name, opened_ms) for name in names}


def _plain_start(lines: int) -> str:
    return (
        "import sys; from benchmarks.plain_editor import plain_editor; "
        f"plain_editor({lines}).launch(server_port=int(sys.argv[1]), quiet=True)"
    )


def _print_times(whose: str, what: str, times_ms: list[float | None]) -> list[float | None]:
    """Say on standard error what was measured, since the table comes at the end."""
    shown = [f"> {LIMIT_S:.0f} s" if one_ms is None else f"{one_ms:.0f} ms" for one_ms in times_ms]
    most = "" if len(shown) <= _TURNS else f", {len(shown)} times"
    print(f"{whose}, {what}: {', '.join(shown[:_TURNS])}{most}", file=sys.stderr, flush=True)
    return times_ms


def _typed_ms(page: Any) -> list[float | None]:
    page.evaluate(DELAY_KEYS)
    page.keyboard.type(_TYPED, delay=60)
    page.wait_for_function("n => window.delays_ms.length >= n", arg=len(_TYPED), timeout=_LONG_MS)
    times_ms: list[float | None] = page.evaluate("() => window.delays_ms")
    return times_ms


@contextmanager
def _serve(command: list[str], root: Path) -> Iterator[str]:
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
