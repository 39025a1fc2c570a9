"""Downloads from a card: paused, resumed, cancelled, failed and tried again; and what came of them.

The tests build on one another: what one downloads, the next one finds.
"""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, reopened, studio_url

pytest.importorskip("sherpa_onnx")
pytest.importorskip("onnx")
import sherpa_models

pytestmark = pytest.mark.browser

MODEL = "en_US-libritts_r-medium.onnx"
BEGUN = 100_000
FULL = "Download (79 MB)"

KEEP_SOUND = """() => {
  const { play } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.play = function () {
    window.sound = this;
    return play.call(this);
  };
}"""
"""From now on `window.sound` is what was played last."""


@pytest.fixture(scope="module")
def hub_files():
    return sherpa_models.piper()


@pytest.fixture(scope="module")
def server(first_start):
    """A studio of its own with nothing downloaded."""
    return first_start()


@pytest.fixture(scope="module")
def card(window):
    window.click("#model-chip")
    return window.locator(".backend[data-engine=piper]")


@pytest.fixture
def held(hub):
    """The model's file comes to its beginning only, until the test lets it go on."""
    hub.hold_after[MODEL] = BEGUN
    yield lambda: hub.hold_after.pop(MODEL, None)
    hub.hold_after.clear()


def act(card, name):
    return card.locator(f"[data-act={name}]")


def note(card, text):
    """Wait until the card says this."""
    card.locator(f".backend-note:text-matches('{text}')").wait_for()


def files(server):
    cache = server.workspace.with_name("cache")
    return [path for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock"]


def offers(card, *acts):
    """Wait until these are all acts that the card offers; what it is made of comes in parts."""
    expect(card.locator("button:visible")).to_have_text(list(acts))


def test_a_first_voice_that_cant_be_had_is_said_in_its_notice(window):
    """The hub of these tests has Piper only."""
    notice = window.locator(".notice[data-notice=draft]")
    offered = "Download Kokoro (91 MB)"
    notice.locator(f".notice-act:text-is('{offered}')").click()
    notice.locator(".notice-title:text-matches('^Kokoro isn.t downloaded')").wait_for()
    assert "has no file kokoro-v1.0.int8.onnx" in notice.inner_text()
    assert notice.locator(".notice-act").inner_text() == "Try again"
    assert window.request.post(studio_url(window, "engines/kokoro/cancel")).ok
    notice.locator(f".notice-act:text-is('{offered}')").wait_for()


def test_loading_a_voice_measures_how_fast_it_is_here(window, card):
    speed = window.locator(".backend[data-engine=draft] .backend-speed")
    assert speed.inner_text() == "Not measured here; likely faster than real time"
    window.click("#model-load")
    speed.locator("xpath=self::*[contains(., 's of speech a second')]").wait_for()


def test_a_download_is_paused_and_goes_on_where_it_was(card, window, hub, held):
    offers(card, FULL)
    act(card, "download").click()
    note(card, "Downloading")
    offers(card, "Pause", "Cancel")
    act(card, "pause").click()
    card.locator("[data-act=pause]:disabled").wait_for()
    held()
    note(card, "^Paused. [0-9]+% is here.$")
    offers(card, "Resume", "Cancel")
    assert 0 < card.locator("progress").evaluate("bar => bar.value") < 1
    reopened(window)
    window.click("#model-chip")
    note(card, "^Paused")
    act(card, "download").click()
    act(card, "try").wait_for()
    offers(card, "Try", "Remove")
    assert hub.served[MODEL] <= 2 * len(hub.files[MODEL]) - BEGUN


def test_a_voice_that_is_here_is_tried_and_the_chosen_one_stays(card, window):
    window.evaluate(KEEP_SOUND)
    act(card, "try").click()
    window.wait_for_function("() => window.sound?.duration > 1")
    card.locator("[data-act=try][aria-pressed=false]").wait_for()  # it has ended
    assert window.request.get(studio_url(window, "state")).json()["backend"]["name"] == "draft"


def test_a_voice_is_removed_after_a_question(card, window, server):
    assert files(server)
    act(card, "remove").click()
    assert "Remove Piper from this machine?" in window.inner_text("#remove-engine")
    window.click("#remove-engine [value=keep]")
    assert files(server)
    act(card, "remove").click()
    window.click("#remove-engine [value=remove]")
    act(card, "download").wait_for()
    offers(card, FULL)
    assert files(server) == []


@pytest.mark.parametrize("paused_first", [False, True])
def test_a_cancelled_download_leaves_nothing(card, server, held, paused_first):
    act(card, "download").click()
    note(card, "Downloading")
    if paused_first:
        act(card, "pause").click()
        card.locator("[data-act=pause]:disabled").wait_for()
        held()
        note(card, "^Paused")
    act(card, "cancel").click()
    held()
    card.locator(f"[data-act=download]:text-is('{FULL}')").wait_for()
    offers(card, FULL)
    assert files(server) == []


def test_what_arrives_broken_is_said_and_comes_whole_the_next_time(card, hub, server):
    hub.corrupt.add(MODEL)
    act(card, "download").click()
    note(card, f"^The file {MODEL} arrived broken and was thrown away; try again")
    offers(card, "Try again", "Cancel")
    assert not card.locator("progress").is_visible()
    hub.corrupt.clear()
    act(card, "download").click()
    act(card, "try").wait_for()


def test_a_connection_that_breaks_is_said_and_what_came_is_kept(card, window, hub):
    act(card, "remove").click()
    window.click("#remove-engine [value=remove]")
    act(card, "download").wait_for()
    hub.served.clear()
    hub.break_after[MODEL] = [BEGUN, 0]  # the second time nothing new comes, which ends it
    act(card, "download").click()
    note(card, "can.t be reached .* try again .what has come is kept.")
    offers(card, "Try again", "Cancel")
    act(card, "download").click()
    act(card, "try").wait_for()
    assert hub.served[MODEL] == len(hub.files[MODEL])


def test_what_a_card_brought_is_offered_to_read_the_scene(window):
    page = window
    page.keyboard.press("Escape")
    fill(page, "Mara: Good evening.", 1)
    notice = page.locator(".notice[data-notice=draft]")
    expect(notice).to_contain_text("Piper is ready and sounds natural.")
    notice.locator(".notice-act:text-is('Use Piper')").click()
    page.wait_for_function(
        """() => {
          const lines = window.tableread.project.lines.filter(({ kind }) => kind === "speech");
          return lines.length > 0 && lines.every(({ take }) => take?.backend === "piper");
        }"""
    )
    page.evaluate("() => window.tableread.player.stop()")
    notice.wait_for(state="detached")
