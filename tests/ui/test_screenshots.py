"""The pictures of the README, made from the page as it is.

They are written beside the test's other output; TABLEREAD_SCREENSHOTS names a folder to keep them.
"""

import os
from pathlib import Path

import pytest
from ui_steps import fill, make

from benchmarks.page_timing import NAMES, line_text, scene

pytestmark = pytest.mark.browser

LARGEST_BYTES = 300_000
LIGHTHOUSE = Path(__file__).resolve().parents[2] / "assets" / "dialogs" / "lighthouse.txt"


@pytest.fixture
def shoot(tmp_path):
    folder = Path(os.environ.get("TABLEREAD_SCREENSHOTS") or tmp_path)

    def shot(page, name):
        path = folder / f"{name}.png"
        page.evaluate("() => document.fonts.ready")
        page.screenshot(path=path, animations="disabled", caret="hide")
        assert path.stat().st_size < LARGEST_BYTES

    return shot


@pytest.fixture
def page(mortal, browser):
    """A window on a studio of its own, so that no other test is in the picture."""
    server = mortal()
    page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
    page.set_default_timeout(240_000)  # it makes 200 lines, on a machine that may be busy
    page.goto(server.url)
    page.wait_for_selector("body[data-tableread=ready]")
    yield page
    page.close()


def waves_drawn(page):
    page.wait_for_function(
        """() => {
          const { project, timeline } = window.tableread;
          return project.lines.every((line) => !line.take || timeline.drawn(line.take));
        }"""
    )


def test_the_pictures_of_the_page(page, shoot):
    fill(page, LIGHTHOUSE.read_text(encoding="utf-8"), 9)
    make(page)
    page.click("#lines .line-text >> nth=3")
    page.wait_for_selector("#takes .take")
    waves_drawn(page)
    shoot(page, "screenshot")
    page.click("#theme-toggle")
    shoot(page, "screenshot-dark")
    page.click("#theme-toggle")
    page.set_viewport_size({"width": 390, "height": 844})
    shoot(page, "screenshot-phone")
    page.set_viewport_size({"width": 1440, "height": 900})
    fill(page, scene(200), 200)
    make(page)
    shoot(page, "screenshot-200-lines")
    generating(page)
    shoot(page, "screenshot-generating")


def generating(page):
    """Stand in the middle of a long scene while it is made from there on."""
    words = "with words enough to keep the voice busy for a good while, " * 3
    fill(page, "\n".join(f"{NAMES[n % 4]}: {line_text(n)} And {words}." for n in range(400)), 400)
    page.evaluate(
        """() => {
          const { playback, project } = window.tableread;
          playback.playOn(project.view.order[120]);
        }"""
    )
    page.wait_for_selector("#player[data-playing=true]")
    page.wait_for_function(
        """() => {
          const { project, lines } = window.tableread;
          const row = lines.row(project.view.order[120]).root;
          return row.dataset.state === 'ready' && row.hasAttribute('aria-current') &&
            Math.abs(row.getBoundingClientRect().top - 400) < 250;
        }"""
    )
    page.mouse.move(400, 20)
