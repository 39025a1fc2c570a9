"""500 lines: figures printed, and bounds wide enough for any machine the tests may run on."""

import statistics

import pytest
from ui_steps import fill, saved

from studio.cli.page_timing import DELAY_KEYS, STRUCTURE_MS, p95, scene

pytestmark = pytest.mark.browser

LINES = 500


@pytest.fixture(scope="module")
def long_page(open_page):
    page = open_page()
    fill(page, scene(LINES), LINES)
    return page


def test_the_page_opens_with_500_lines(long_page):
    long_page.reload()
    long_page.wait_for_selector("body[data-tableread=ready]")
    assert long_page.locator("#lines .line").count() == LINES
    opened_ms = long_page.evaluate(
        "() => performance.getEntriesByName('tableread-ready')[0].startTime"
    )
    print(f"usable {opened_ms:.0f} ms after opening")
    assert opened_ms < 15_000


def test_a_key_is_painted_at_once(long_page):
    long_page.click("#lines .line-text >> nth=5")
    long_page.evaluate(DELAY_KEYS)
    long_page.keyboard.type(" and some more words of it", delay=40)
    delays_ms = long_page.evaluate("() => window.delays_ms")
    print(f"key to paint: median {statistics.median(delays_ms):.0f}, p95 {p95(delays_ms):.0f} ms")
    assert statistics.median(delays_ms) < 200
    saved(long_page)


def test_lines_are_added_deleted_and_moved_at_once(long_page):
    for name, step in STRUCTURE_MS.items():
        times_ms = long_page.evaluate(step)
        print(f"{name}: median {statistics.median(times_ms):.0f}, p95 {p95(times_ms):.0f} ms")
        assert statistics.median(times_ms) < 500
    saved(long_page)


def test_typing_stays_quick_while_lines_are_made(long_page):
    long_page.evaluate("() => { window.tableread.playback.make(); }")
    long_page.wait_for_selector("#lines .line[data-state=ready]")
    long_page.click("#lines .line-text >> nth=5")
    long_page.evaluate(DELAY_KEYS)
    long_page.keyboard.type(" while others are read", delay=40)
    delays_ms = long_page.evaluate("() => window.delays_ms")
    print(f"key to paint, rendering: p95 {p95(delays_ms):.0f} ms")
    assert statistics.median(delays_ms) < 300
    long_page.evaluate("() => window.tableread.playback.cancel()")
    long_page.wait_for_function("() => !window.tableread.project.rendering")
