"""The first minute with a trained natural voice: nothing to decide, and the first line at once."""

import io

import numpy as np
import pytest
import soundfile
from playwright.sync_api import TimeoutError as NothingCame
from playwright.sync_api import expect
from ui_steps import fill, first_take, make, mark, open_picker, wait_for_other_take

from studio.backends import registry

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCENE = """Ann: Good morning, Bob. Did you hear the storm last night?
Bob: I did. It took the roof off the old barn.
Ann: Oh no! Is the horse all right?
Maria: He is fine, only a little frightened.
Bob: Then let us go and see what can be saved."""

NOTE_SOUNDS = """() => {
  const { play } = HTMLMediaElement.prototype;
  window.soundsAt = [];
  HTMLMediaElement.prototype.play = function () {
    this.addEventListener("playing", () => window.soundsAt.push(performance.now()), { once: true });
    return play.call(this);
  };
  document.addEventListener("keydown", (event) => (window.pressedAt = event.timeStamp), true);
}"""
SINCE_PRESS_MS = """() => {
  const heard = window.soundsAt.find((at) => at > window.pressedAt);
  return heard && heard - window.pressedAt;
}"""


@pytest.fixture(scope="module")
def server(server_of, installed_kokoro):
    if lack := registry.create("kokoro").unavailable():
        pytest.skip(lack)
    return server_of("natural_server.py")


def test_plain_english_is_heard_at_once_by_voices_that_suit_the_names(page, server):
    fill(page, SCENE, 5)
    page.wait_for_selector("#model-chip[data-state=loaded]")
    expect(page.locator("#model-title")).to_have_text("Kokoro")
    page.wait_for_function("() => window.tableread.project.saving === 'saved'")
    for name, heard in (("Ann", "woman"), ("Bob", "(man"), ("Maria", "woman")):
        expect(page.locator("#cast > li", has_text=name)).to_contain_text(heard)
    page.click("#play")
    page.wait_for_function("() => window.tableread.player.first_sound_ms !== null", timeout=120_000)
    assert page.locator(".notice").count() == 0
    assert page.locator("#lines .line-hint:not([hidden])").count() == 0
    notes = (server.workspace / "spoken").read_text(encoding="utf-8").split()
    assert notes[:2] == ["line", "sound"], "nothing else was begun before the first sound"
    page.evaluate("() => window.tableread.playback.stop()")


def test_words_said_again_are_said_in_another_way(page, server):
    project = fill(page, "Ann: I never said that you could take the boat out tonight.", 1)
    page.wait_for_selector("#model-chip[data-state=loaded]")
    make(page)
    old = first_take(page)
    mark(page, "take the boat")
    page.click("#line-patch")
    new = wait_for_other_take(page, old["take_id"])
    line = page.evaluate("() => window.tableread.project.lines[0].line_id")
    at = f"{server.url}studio/projects/{project}/takes/{line}"
    before, after = (
        soundfile.read(io.BytesIO(page.request.get(f"{at}/{one['take_id']}/audio.wav").body()))[0]
        for one in (old, new)
    )
    start, end = new["patch"]["start"], new["patch"]["end"]
    tail = len(after) - end
    assert np.array_equal(after[:start], before[:start])
    assert np.array_equal(after[end:], before[-tail:])
    assert not np.array_equal(after[start:end], before[start : len(before) - tail])


@pytest.mark.campaign
def test_seconds_from_a_press_to_sound(page, server, capsys):
    """On a quiet machine of two ordinary cores."""
    page.evaluate(NOTE_SOUNDS)
    found = {"Play": [], "the next voice, made ahead": [], "the next voice, at once": []}
    for number in range(3):
        fill(page, SCENE.replace("storm", f"storm of {1950 + number}"), 5)
        page.wait_for_selector("#model-chip[data-state=loaded]")
        page.wait_for_function("() => window.tableread.project.saving === 'saved'")
        page.click("#play")
        heard = page.wait_for_function("() => window.tableread.player.first_sound_ms")
        found["Play"].append(heard.json_value() / 1000)
        page.evaluate("() => window.tableread.playback.stop()")
        open_picker(page, "Ann")
        page.keyboard.press("ArrowDown")
        for _ in range(3):
            wait_until_nothing_is_made(page)
            found["the next voice, made ahead"].append(press_s(page))
        for _ in range(3):
            found["the next voice, at once"].append(press_s(page))
        page.keyboard.press("Escape")
    with capsys.disabled():
        print()
        for what, times_s in found.items():
            print(f"{what}: {', '.join(f'{one:.2f}' for one in times_s)} s")
    bounds = {"Play": 1.5, "the next voice, made ahead": 0.3, "the next voice, at once": 1.2}
    assert {what for what, times_s in found.items() if np.median(times_s) > bounds[what]} == set()


def press_s(page):
    """Seconds from the key for the next voice to its sound."""
    page.keyboard.press("ArrowDown")
    return page.wait_for_function(SINCE_PRESS_MS).json_value() / 1000


def wait_until_nothing_is_made(page):
    """Wait until no voice has been made for longer than one takes."""
    for _ in range(20):
        try:
            with page.expect_request_finished(lambda one: "audition" in one.url, timeout=10_000):
                pass
        except NothingCame:
            return
