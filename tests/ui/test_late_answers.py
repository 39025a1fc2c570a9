"""Answers of the studio that come late, or after those of later requests."""

import pytest
import soundfile
from playwright.sync_api import expect
from test_coming_in import drop
from ui_steps import fill, make, ready, studio_url
from voice_like import voice_like

pytestmark = pytest.mark.browser

CURRENT = "() => window.tableread.project.id"


@pytest.fixture
def held(page):
    """Holds the answers to reads of an address until they are let go."""
    routes = []

    def hold(address):
        def take(route):
            if route.request.method == "GET":
                routes.append(route)
            else:
                route.continue_()

        page.route(address, take)
        return let_go

    def let_go():
        while routes:
            routes.pop().continue_()
        page.unroute_all()

    yield hold
    let_go()


def test_the_project_that_was_asked_for_last_is_shown(page, write, held):
    write("Mara: Of the first.", 1)
    first = page.evaluate(CURRENT)
    page.request.patch(studio_url(page, f"projects/{first}"), data={"name": "First"})
    second = fill(page, "Mara: Of the second.", 1)
    third = fill(page, "Mara: Of the third.", 1)
    let_go = held(f"**/studio/projects/{first}")
    page.click("#project-open")
    page.click("#projects li:has-text('First') .project-item-name >> nth=0")
    page.click("#project-open")
    page.click("#projects li:has-text('Scene') .project-item-name >> nth=0")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=third)
    assert page.evaluate(CURRENT) == second
    with page.expect_event("requestfinished"):
        let_go()
    page.wait_for_timeout(300)
    assert page.evaluate(CURRENT) == second


def test_the_take_in_use_shows_before_the_studio_lists_the_takes_again(page, write, held):
    write("Mara: One and two.", 1)
    make(page)
    page.locator("#lines .line-text").first.click()
    first = page.evaluate("() => window.tableread.project.lines[0].take.take_id")
    page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
    rows = page.locator("#takes .take")
    expect(rows).to_have_count(2)
    ready(page)
    held("**/takes/*")
    old = page.locator(f"#takes .take[data-take='{first}']")
    old.locator(".take-choose").click()
    expect(old).to_have_attribute("data-chosen", "true")
    expect(old.locator(".take-delete")).to_be_disabled()


def test_a_recording_that_is_fine_leaves_the_refusal_of_another(page, write, tmp_path):
    write("Mara: One.", 1)
    path = tmp_path / "fine.wav"
    soundfile.write(path, voice_like(2.5).samples, 24_000)
    wav = "audio/wav"
    files = [("broken.wav", wav, b"no sound"), ("fine.wav", wav, path.read_bytes())]
    drop(page, "#lines .line", *files)
    page.wait_for_selector(".notice[data-passing]:has-text('fine.wav is in the scene.')")
    refused = page.locator(".notice[data-notice=refused]:has-text('broken.wav can')")
    expect(refused).to_be_visible()
    refused.locator(".notice-close").click()
