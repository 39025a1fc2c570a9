"""All states of the page, in both themes, in five windows, at 100 and 200 %: axe, names, reflow."""

from __future__ import annotations

from itertools import product

import pytest
from page_states import STATES, calm, prepare
from ui_steps import NAMELESS, findings

pytestmark = pytest.mark.browser

LOOKS = ("light", "dark")
SIZES = ((360, 740), (390, 844), (844, 390), (1024, 768), (1440, 900))
# A browser's zoom halves the window in CSS pixels and doubles what each of them has of the
# screen's; the width of a phone at 200 % is below the 320 px down to which WCAG asks for reflow.
ZOOMS = (1, 2)
CELLS = tuple(product(LOOKS, SIZES, ZOOMS))
APART = 7  # has no divisor in common with the number of cells, so that the short form meets many

# What stands out of the window, unless it is scrolled to or cut off on purpose.
OUTSIDE = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, [role=slider], h2, h3, p, label, .line-text')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
  .filter((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    if (width <= 1 || (left >= -1 && right <= innerWidth + 1)) return false;
    for (let up = one.parentElement; up && up !== document.body; up = up.parentElement) {
      const { overflowX, clipPath } = getComputedStyle(up);
      if (clipPath !== 'none') return false;
      if (['auto', 'scroll'].includes(overflowX) && up.scrollWidth > up.clientWidth) return false;
    }
    return getComputedStyle(one).clipPath === 'none';
  })
  .map((one) => `${one.id || one.className || one.outerHTML.slice(0, 80)} from `
    + `${Math.round(one.getBoundingClientRect().left)} to `
    + `${Math.round(one.getBoundingClientRect().right)}`)"""

# Panels that any press beside them closes.
IS_UNDER_PANEL = """([target, over]) => {
  const panel = (place) =>
    document.querySelector(place).closest('.popover, .sound-form, .menu-items, #extras');
  return over.length > 0 && !panel(target) && over.every(panel);
}"""


class Window:
    """A window of one theme, with the scene; its size and zoom are the browser's own."""

    def __init__(self, page):
        self.page = page
        self.project = prepare(page)
        self.session = page.context.new_cdp_session(page)

    def bring(self, state):
        """Bring the page into a state, in a window of usual size."""
        page = self.page
        self.show((1440, 900), 1)
        calm(page)
        if page.evaluate("() => window.tableread.project.id") != self.project:
            page.evaluate(
                "async (id) => window.tableread.projects.adopt("
                "(await fetch(new URL(`studio/projects/${id}`, document.baseURI))).json())",
                self.project,
            )
            page.wait_for_selector("#lines .line >> nth=9")
        STATES[state](page)

    def show(self, size, zoom):
        """Give the window a size, in pixels at 100 %."""
        width, height = (side // zoom for side in size)
        look = {"width": width, "height": height, "deviceScaleFactor": zoom, "mobile": False}
        self.session.send("Emulation.setDeviceMetricsOverride", look)
        self.page.wait_for_function("width => innerWidth === width", arg=width)
        self.page.evaluate(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
        )

    def is_covered(self, node):
        """Whether all that axe says is that controls of an open panel lie on a part of a target.

        Nothing is pressed there while the panel is open: any press beside it closes it first, and
        Escape does from wherever the keyboard is. What else covers a target, or what is covered
        within the panel, is a finding.
        """
        obscured = [one for one in node["any"] if "partially obscured" in one["message"]]
        over = [part["target"][0] for one in obscured for part in one["relatedNodes"]]
        return self.page.evaluate(IS_UNDER_PANEL, [node["target"][0], over])

    def faults(self, size, zoom):
        """What is wrong in a window of this size."""
        self.show(size, zoom)
        page = self.page
        wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        found = [f"the page is {wide} px wider than the window"] if wide > 0 else []
        found += [f"outside: {one}" for one in page.evaluate(OUTSIDE)]
        found += [f"nameless: {one}" for one in page.evaluate(NAMELESS)]
        found += [told for told, node in findings(page, ["html"]) if not self.is_covered(node)]
        return [f"{size[0]} px, {100 * zoom} %: {one}" for one in found]


@pytest.fixture(scope="module")
def window_of(open_window):
    """The window of a theme, opened when it is asked for."""
    windows = {}

    def opened(look):
        if look not in windows:
            windows[look] = Window(open_window(color_scheme=look))
        return windows[look]

    return opened


@pytest.mark.parametrize(("number", "state"), [*enumerate(STATES)], ids=[*STATES])
def test_every_state_in_one_of_the_windows(window_of, number, state):
    look, size, zoom = CELLS[number * APART % len(CELLS)]
    window = window_of(look)
    window.bring(state)
    assert window.faults(size, zoom) == []


@pytest.mark.campaign
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("state", STATES)
def test_every_state_in_every_window(window_of, look, state):
    window = window_of(look)
    window.bring(state)
    assert [one for size in SIZES for zoom in ZOOMS for one in window.faults(size, zoom)] == []
