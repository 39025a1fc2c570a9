"""A browser without a sound output never says so: it lets the page wait for ever."""

import pytest
from ui_steps import fill

pytestmark = pytest.mark.browser

WITHHOLD = """() => {
  const resume = AudioContext.prototype.resume;
  AudioContext.prototype.resume = () => new Promise(() => {});
  window.giveSound = () => (AudioContext.prototype.resume = resume);
}"""


def test_a_page_without_sound_output_says_so_and_plays_once_there_is_one(open_page):
    page = open_page()
    fill(page, "Mara: The lamp is still burning, and so it will until the morning.", 1)
    page.evaluate(WITHHOLD)
    page.click("#play")
    page.wait_for_selector("[data-notice=sound]:has-text('no audio output')")
    page.wait_for_selector("#lines .line[data-state=ready]")
    assert page.inner_text("#play").strip() == "Play"
    page.evaluate("() => window.giveSound()")
    page.click("#play")
    page.wait_for_selector("[data-notice=sound]", state="detached")
    page.wait_for_function("() => window.tableread.player.clock_s > 0")
