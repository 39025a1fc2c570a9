"""500 lines: what a gesture sets the page to do is counted; the time it takes is for campaigns."""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import CDPSession, Page
from ui_steps import fill, saved, states, texts

from benchmarks.page_timing import DELAY_KEYS, STRUCTURE_MS, p95, scene

pytestmark = pytest.mark.browser

LINES = 500
FEW_LINES = 125
# Four times the lines are four times the work where it is linear, sixteen times where it is not.
MOST_GROWTH = 8
TURNS = 20
"""How often a script of `STRUCTURE_MS` does its act."""
KEYS = " and more"
LONG = "And so it goes on, as long as anybody types. " * 12
"""Keeps the draft voice busy for minutes, so that a test need not hurry to be in time."""

COUNT_BUILT = """(() => {
  const inside = (node) => node.querySelectorAll?.('#lines .line').length ?? 0;
  const count = (records) => {
    for (const node of records.flatMap(({ addedNodes }) => [...addedNodes]))
      if (!node.matches?.('.line-group')) // its rows are told of one by one
        window.built += node.matches?.('.line') ? 1 : inside(node);
  };
  window.built = 0;
  new MutationObserver(count).observe(document, { subtree: true, childList: true });
})()"""
"""From now on `window.built` is how many rows were put into the page, moved ones included."""

WATCH = """() => {
  window.built = 0;
  window.written = new Set();
  const text = (node) => (node.closest ? node : node.parentElement)?.closest('.line-text');
  const watch = (records) => {
    for (const { type, target, addedNodes } of records) {
      for (const node of addedNodes) window.built += node.matches?.('.line') ? 1 : 0;
      if (type !== 'attributes' && text(target)) window.written.add(text(target));
    }
  };
  window.watcher = new MutationObserver(watch);
  const all = { subtree: true, childList: true, characterData: true };
  window.watcher.observe(document.getElementById('lines'), all);
}"""
SEEN = """() => {
  window.watcher.disconnect();
  return [window.built, window.written.size];
}"""


@dataclass(frozen=True)
class Work:
    """What the page did for some gestures: rows put in, texts rewritten, calls, layouts."""

    built: int
    written: int
    calls: int
    layouts: int


class Counter:
    """Counts what a page does, whatever time it takes."""

    def __init__(self, page: Page, devtools: CDPSession) -> None:
        self._page, self._devtools = page, devtools
        devtools.send("Performance.enable")
        devtools.send("Profiler.enable")
        devtools.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": False})

    def work(self, act: Callable[[], object]) -> Work:
        self._page.evaluate(WATCH)
        self._calls()  # each answer begins the count again
        layouts = self._layouts()
        act()
        calls, layouts = self._calls(), self._layouts() - layouts
        built, written = self._page.evaluate(SEEN)
        return Work(built, written, calls, layouts)

    def _calls(self) -> int:
        scripts = self._devtools.send("Profiler.takePreciseCoverage")["result"]
        own = [script for script in scripts if "/assets/page/" in script["url"]]
        return sum(
            function["ranges"][0]["count"] for script in own for function in script["functions"]
        )

    def _layouts(self) -> int:
        metrics = self._devtools.send("Performance.getMetrics")["metrics"]
        return next(int(one["value"]) for one in metrics if one["name"] == "LayoutCount")


@pytest.fixture(scope="module")
def long_page(open_window) -> Page:
    page = open_window()
    fill(page, scene(LINES), LINES)
    return page


@pytest.fixture(scope="module")
def counted(open_window) -> Iterator[tuple[Page, Counter]]:
    """A page of its own, since counting slows it down."""
    page = open_window()
    devtools = page.context.new_cdp_session(page)
    yield page, Counter(page, devtools)
    devtools.detach()


def type_keys(page: Page) -> None:
    """Press keys in the fifth line, and wait until each is shown."""
    before = texts(page)[5]
    page.click("#lines .line-text >> nth=5")
    page.keyboard.press("End")
    page.keyboard.type(KEYS)
    page.wait_for_function(
        "said => document.querySelectorAll('#lines .line-text')[5].textContent === said",
        arg=before + KEYS,
    )


def test_each_row_is_built_once_when_the_page_opens(open_page):
    page = open_page()
    fill(page, scene(LINES), LINES)
    page.add_init_script(COUNT_BUILT)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.locator("#lines .line").count() == LINES
    assert page.evaluate("() => window.built") == LINES


def test_a_key_changes_its_own_row_alone_and_costs_in_proportion_to_the_lines(counted):
    page, counter = counted
    works = []
    for lines in (FEW_LINES, LINES):
        fill(page, scene(lines), lines)
        works.append(counter.work(lambda: type_keys(page)))
        saved(page)
    few, many = works
    print(few, many)
    assert (many.built, many.written) == (few.built, few.written) == (0, 1)
    assert many.calls < MOST_GROWTH * few.calls
    assert many.layouts < 20 * len(KEYS)


@pytest.mark.parametrize(("act", "rows"), [("insert", 1), ("delete", 0), ("move", 2)])
def test_lines_are_added_deleted_and_moved_without_a_new_row_for_others(counted, act, rows):
    page, counter = counted
    works = []
    for lines in (FEW_LINES, LINES):
        fill(page, scene(lines), lines)
        works.append(counter.work(lambda: page.evaluate(STRUCTURE_MS[act])))
        saved(page)
    few, many = works
    print(few, many)
    assert many.built == few.built == rows * TURNS
    assert many.calls < MOST_GROWTH * few.calls
    assert many.layouts < 20 * TURNS


def test_typing_builds_no_row_while_lines_are_made(counted):
    page, counter = counted
    fill(
        page, scene(9) + "".join(f"\n{line} {LONG}" for line in scene(LINES).split("\n")[9:]), LINES
    )
    page.evaluate("() => { window.tableread.playback.make(); }")
    page.wait_for_selector("#lines .line[data-state=ready]")
    work = counter.work(lambda: type_keys(page))
    assert states(page).get("queued", 0) > 0
    assert (work.built, work.written) == (0, 1)
    page.evaluate("() => window.tableread.playback.cancel()")
    page.wait_for_function("() => !window.tableread.project.rendering")


@pytest.mark.campaign
def test_the_page_opens_with_500_lines(long_page):
    long_page.reload()
    long_page.wait_for_selector("body[data-tableread=ready]")
    assert long_page.locator("#lines .line").count() == LINES
    opened_ms = long_page.evaluate(
        "() => performance.getEntriesByName('tableread-ready')[0].startTime"
    )
    print(f"usable {opened_ms:.0f} ms after opening")
    assert opened_ms < 15_000


def type_timed(page: Page, field: str) -> list[float]:
    """Type into a field; each key's milliseconds to its paint."""
    page.click(field)
    page.evaluate(DELAY_KEYS)
    page.keyboard.type(" and some more words of it", delay=40)
    return page.evaluate("() => window.delays_ms")


@pytest.mark.campaign
def test_a_key_is_painted_at_once(long_page):
    """Beside it an empty page's figure: a key waits for the browser's next frame there, too."""
    empty = long_page.context.new_page()
    empty.set_content("<div contenteditable>One line.</div>")
    for where, page, field in (
        ("500 lines", long_page, "#lines .line-text >> nth=5"),
        ("an empty page", empty, "div"),
    ):
        page.bring_to_front()
        delays_ms = type_timed(page, field)
        median_ms = statistics.median(delays_ms)
        print(f"key to paint, {where}: median {median_ms:.0f}, p95 {p95(delays_ms):.0f} ms")
        assert median_ms < 200
    empty.close()
    saved(long_page)


@pytest.mark.campaign
def test_lines_are_added_deleted_and_moved_at_once(long_page):
    for name, step in STRUCTURE_MS.items():
        times_ms = long_page.evaluate(step)
        print(f"{name}: median {statistics.median(times_ms):.0f}, p95 {p95(times_ms):.0f} ms")
        assert statistics.median(times_ms) < 500
    saved(long_page)


@pytest.mark.campaign
def test_typing_stays_quick_while_lines_are_made(long_page):
    long_page.evaluate("() => { window.tableread.playback.make(); }")
    long_page.wait_for_selector("#lines .line[data-state=ready]")
    delays_ms = type_timed(long_page, "#lines .line-text >> nth=5")
    print(f"key to paint, rendering: p95 {p95(delays_ms):.0f} ms")
    assert statistics.median(delays_ms) < 300
    long_page.evaluate("() => window.tableread.playback.cancel()")
    long_page.wait_for_function("() => !window.tableread.project.rendering")
