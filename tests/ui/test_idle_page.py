"""A page on which nothing happens draws nothing."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COUNT_FRAMES = """() => {
  const ask = window.requestAnimationFrame.bind(window);
  window.asked = 0;
  window.requestAnimationFrame = (callback) => {
    window.asked += 1;
    return ask(callback);
  };
}"""
IN_A_SECOND = """() => new Promise((done) => {
  const before = window.asked;
  setTimeout(() => done(window.asked - before), 1000);
})"""


def test_an_idle_page_asks_for_no_frames(open_page) -> None:
    page = open_page()
    page.add_init_script(f"({COUNT_FRAMES})()")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    asked = []
    while 0 not in asked and len(asked) < 30:  # what the page does when it opens comes to an end
        asked.append(page.evaluate(IN_A_SECOND))
    print("frames asked for, second by second:", asked)
    assert asked[-1] == 0
    assert page.evaluate("() => window.asked") > 0
