"""Recognisers beside the voice engines: told, downloaded, used, unloaded when idle, removed.

The tests build on one another: what one downloads, the next one finds.
"""

import pytest
from draft_ears import FOLDER
from ui_steps import fill, make, studio_url

pytestmark = pytest.mark.browser
pytest.importorskip("sherpa_onnx")

FULL = "Download (458 MB)"
BEGUN = 100_000


@pytest.fixture(scope="module")
def hub_files():
    """The tests' own recogniser under the names of one of the list, whose form it has."""
    return {name: (FOLDER / name).read_bytes() for name in ("model.onnx", "tokens.txt")}


@pytest.fixture(scope="module")
def server(first_start):
    """A studio of its own with nothing downloaded."""
    return first_start()


@pytest.fixture(scope="module")
def card(window):
    window.click("#model-chip")
    return window.locator("#recognisers .backend[data-engine=parakeet-ctc]")


def act(card, name):
    return card.locator(f"[data-act={name}]")


def shown(card):
    """The acts that a card offers."""
    return [one.inner_text() for one in card.locator("button").all() if one.is_visible()]


def files(server):
    cache = server.workspace.with_name("cache")
    return [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_what_a_recogniser_is_and_its_licences_are_told_before_it_is_downloaded(window, card):
    said = card.inner_text()
    assert "English with word times" in said
    assert "Licence: Apache-2.0; the model itself: CC BY 4.0" in said
    assert card.locator(".backend-languages summary").inner_text() == "English"
    assert shown(card) == [FULL]
    assert act(card, "download").get_attribute("aria-label") == f"{FULL}: Parakeet TDT-CTC 110M"
    titles = window.locator("#recognisers .backend-title").all_inner_texts()
    assert titles[0] == "Parakeet TDT 0.6B v3"
    assert len(titles) == 6
    assert window.locator("#recognisers input").count() == 0  # none is to be chosen


def test_a_download_that_is_cancelled_leaves_nothing(card, hub, server):
    hub.hold_after["model.onnx"] = BEGUN
    act(card, "download").click()
    card.locator(".backend-note:text-matches('Downloading')").wait_for()
    assert shown(card) == ["Pause", "Cancel"]
    act(card, "pause").click()
    card.locator("[data-act=pause]:disabled").wait_for()
    hub.hold_after.clear()
    card.locator(".backend-note:text-matches('^Paused')").wait_for()
    assert shown(card) == ["Resume", "Cancel"]
    act(card, "cancel").click()
    card.locator(f"[data-act=download]:text-is('{FULL}')").wait_for()
    assert files(server) == []


def test_what_arrives_broken_is_said(card, hub):
    hub.corrupt.add("model.onnx")
    act(card, "download").click()
    card.locator(".backend-note[data-failed=true]").wait_for()
    assert "The file model.onnx arrived broken" in card.locator(".backend-note").inner_text()
    assert shown(card) == ["Try again", "Cancel"]
    hub.corrupt.clear()


def test_takes_are_heard_as_soon_as_it_is_here(window, card):
    window.keyboard.press("Escape")
    fill(window, "Mara: The sailor carried water to the village.", 1)
    make(window)
    window.click("#model-chip")
    act(card, "download").click()
    act(card, "remove").wait_for()
    assert shown(card) == ["Remove"]
    assert card.locator(".backend-voices").inner_text() == "Checks takes in English."
    window.wait_for_function(
        "() => window.tableread.project.lines.some(({ take }) => take?.recognised)"
    )
    card.locator(".backend-speed:text-matches('^unloads in [0-9]+:[0-9]{2}$')").wait_for()


def test_it_is_unloaded_with_the_voices(window, card):
    url = studio_url(window, "model/timeout")
    assert window.request.post(url, data={"seconds": 60}).ok
    card.locator(".backend-speed:text-matches('^unloads in [01]:[0-9]{2}$')").wait_for()


def test_it_is_removed_after_a_question(window, card, server):
    assert files(server)
    act(card, "remove").click()
    title = window.locator("#remove-engine-title")
    assert title.inner_text() == "Remove Parakeet TDT-CTC 110M from this machine?"
    window.click("#remove-engine [value=remove]")
    act(card, "download").wait_for()
    assert shown(card) == [FULL]
    assert card.locator(".backend-speed").inner_text() == ""
    assert files(server) == []
