"""The page says that a render waits for room, and no longer when it goes on."""

import pytest

pytestmark = pytest.mark.browser

NOTICE = ".notice[data-notice=storage]"
ALL_READY = "() => window.tableread.project.lines.every((line) => line.state === 'ready')"


@pytest.fixture(scope="module")
def server(server_of):
    """A studio whose disk is full when it is told to be."""
    return server_of("full_disk_server.py")


def test_the_page_says_that_a_render_waits_for_room_until_it_goes_on(server, page, write):
    write("Mara: One.\nTom: Two.\nMara: Three.", 3)
    full = server.workspace / "full"
    full.touch()
    page.click("#play")
    page.wait_for_selector(NOTICE)
    notice = page.locator(NOTICE)
    page.wait_for_function(
        "selector => document.querySelector(selector).innerText.includes('the disk is full')",
        arg=NOTICE,
    )
    assert "No space left on device" in notice.locator(".notice-text").inner_text()
    assert "goes on by itself" in notice.locator(".notice-text").inner_text()
    assert page.evaluate("() => window.tableread.project.rendering")
    assert not page.locator(".notice[data-notice=render]").is_visible()
    full.unlink()
    page.wait_for_function(ALL_READY)
    page.wait_for_selector(NOTICE, state="hidden")
    page.wait_for_function("() => !window.tableread.project.rendering")
