"""The first minutes without a card: one button from the draft voice to a natural one."""

import json
import sys

import psutil
import pytest
from ui_steps import studio_url, violations

pytest.importorskip("sherpa_onnx")
pytest.importorskip("onnx")

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(server_of):
    """A studio of its own that has nothing but the draft voice."""
    return server_of("first_voice_server.py")


def card(page, name):
    return page.locator(f".backend[data-engine={name}]")


def loaded_libraries(pid):
    return {one.path for one in psutil.Process(pid).memory_maps()}


def test_one_button_brings_a_natural_voice_that_reads_the_scene(window, server):
    page = window
    notice = page.locator(".notice[data-notice=draft]")
    button = notice.locator(".notice-act")
    assert button.inner_text() == "Download Kitten (60 MB)"
    assert "Licence: Apache-2.0" in notice.inner_text()
    button.click()  # the only click: three of the four stay unused
    page.wait_for_selector("#model-title:text-is('Kitten')")
    page.wait_for_function(
        """() => {
          const lines = window.tableread.project.lines.filter(({ kind }) => kind === "speech");
          return lines.every(({ take }) => take?.backend === "kitten");
        }"""
    )
    page.evaluate("() => window.tableread.player.stop()")
    notice.wait_for(state="detached")
    if sys.platform == "linux":
        libraries = loaded_libraries(server.process.pid)
        assert any("onnxruntime" in path or "sherpa" in path for path in libraries)
        assert not any("/torch/" in path for path in libraries)


def test_its_card_says_how_fast_it_is_here_and_tries_a_line(window):
    page = window
    page.click("#model-chip")
    kitten = card(page, "kitten")
    kitten.locator(".backend-speed:text-matches('^[0-9.]+ s of speech a second$')").wait_for()
    with page.expect_response("**/try") as answer:
        kitten.locator("[data-act=try]").click()
    assert answer.value.ok
    asked = answer.value.request.post_data_json
    first = page.evaluate("() => window.tableread.project.lines.find((one) => one.text).text")
    assert asked["engine"] == "kitten"
    assert first.startswith(asked["text"])


def test_licences_stand_before_the_download_and_what_forbids_trade_first(window):
    zipvoice = card(window, "zipvoice")
    text = zipvoice.inner_text().splitlines()
    assert text[0] == "Not for commercial use."
    assert any("CC BY-NC 4.0" in line for line in text)
    assert "Download (184 MB)" in text
    assert "pip" not in window.inner_text("#backends").lower().split()
    assert "TTS_" not in window.inner_text("#backends")


def test_a_voice_in_use_stays_and_another_is_removed_after_a_question(window):
    page = window
    kitten = card(page, "kitten")
    assert kitten.locator("[data-act=remove]").is_disabled()
    answer = page.request.delete(studio_url(page, "engines/kitten/weights"))
    assert answer.status == 409
    assert "is the voice engine now" in json.loads(answer.text())["error"]["message"]
    card(page, "draft").locator("input").check()
    page.wait_for_selector("#model-title:text-matches('Draft')")
    kitten.locator("[data-act=remove]").click()
    page.click("#remove-engine [value=keep]")
    assert kitten.locator("[data-act=try]").is_visible()
    kitten.locator("[data-act=remove]").click()
    page.click("#remove-engine [value=remove]")
    kitten.locator("[data-act=download]").wait_for()
    assert kitten.locator("[data-act=try]").is_hidden()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_the_cards(open_page, look):
    page = open_page(color_scheme=look)
    page.click("#model-chip")
    card(page, "kitten").wait_for()
    assert violations(page, ["#model-panel", "#notices"]) == []
