"""What listens beside the voice engines: told, downloaded, used, unloaded when idle, removed.

The tests build on one another: what one downloads, the next one finds.
"""

import pytest
from draft_ears import FOLDER
from playwright.sync_api import expect
from ui_steps import fill, make, studio_url, violations

pytest.importorskip("sherpa_onnx")

from gtcrn_model import build_gtcrn
from voiceprint_model import build_embedding_model

pytestmark = pytest.mark.browser

FULL = "Download (458 MB)"
BEGUN = 100_000


@pytest.fixture(scope="module")
def hub_files():
    """The tests' own models under the names of some of the list, whose form they have."""
    return {
        **{name: (FOLDER / name).read_bytes() for name in ("model.onnx", "tokens.txt")},
        "3dspeaker_speech_campplus_sv_en_voxceleb_16k.onnx": build_embedding_model(),
        "gtcrn_simple.onnx": build_gtcrn(),
    }


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
    assert "Whisper base" in titles
    assert titles[-3:] == ["CAM++ (3D-Speaker)", "GE2E (Resemblyzer)", "GTCRN"]
    assert window.locator("#recognisers input").count() == 0  # none is to be chosen


def test_the_setting_says_that_nothing_hears_missing_words_and_leads_to_the_cards(window):
    window.keyboard.press("Escape")
    window.click("#project-open")
    window.wait_for_selector("#hear-words:has-text('only with a recogniser')")
    window.click("#hear-words-show")
    window.wait_for_selector("#project-panel", state="hidden")
    window.wait_for_selector("#model-panel:not([hidden])")
    assert window.evaluate("() => document.activeElement.id") == "recognisers-part"
    expect(window.locator("#recognisers-title")).to_be_in_viewport()
    assert violations(window, ["#model-panel"]) == []


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


def test_the_setting_says_no_more_that_nothing_hears(window):
    assert window.locator("#hear-words").get_attribute("hidden") is not None


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


@pytest.fixture
def voices(window):
    return window.locator("#recognisers .backend[data-engine=campplus]")


@pytest.fixture
def denoiser(window):
    return window.locator("#recognisers .backend[data-engine=gtcrn]")


def test_what_compares_voices_is_told_and_its_download_cancelled(voices, hub, server):
    assert "a take that sounds like another speaker is marked" in voices.inner_text()
    licence = "Licence: Apache-2.0; the model itself: Apache-2.0 (trained on VoxCeleb2)"
    assert licence in voices.inner_text()
    assert shown(voices) == ["Download (30 MB)"]
    hub.hold_after["3dspeaker_speech_campplus_sv_en_voxceleb_16k.onnx"] = 100
    act(voices, "download").click()
    act(voices, "cancel").click()
    hub.hold_after.clear()
    act(voices, "download").wait_for()
    assert files(server) == []


def test_it_is_loaded_with_the_next_take_and_unloaded_when_idle(window, voices):
    act(voices, "download").click()
    act(voices, "remove").wait_for()
    assert voices.locator(".backend-voices").inner_text() == "Compares the voices of new takes."
    assert voices.locator(".backend-speed").inner_text() == ""
    window.keyboard.press("Escape")
    fill(window, "Mara: Nobody has climbed the stairs since.", 1)
    make(window)
    window.click("#model-chip")
    voices.locator(".backend-speed:text-matches('^unloads in [01]:[0-9]{2}$')").wait_for()


def test_it_and_the_denoiser_are_removed(window, voices, denoiser, server):
    assert shown(denoiser) == ["Download (536 kB)"]
    act(denoiser, "download").click()
    act(denoiser, "remove").wait_for()
    assert denoiser.locator(".backend-voices").inner_text() == "Removes noise from voice samples."
    for card in (voices, denoiser):
        act(card, "remove").click()
        window.click("#remove-engine [value=remove]")
        act(card, "download").wait_for()
    assert files(server) == []
