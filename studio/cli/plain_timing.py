"""How long the editor of plain Gradio components takes, asked of a real browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

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
