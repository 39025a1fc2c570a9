"""The studio's state comes to the page by itself: nothing is asked for while nothing is done."""

import signal

import pytest
from ui_steps import studio_url

pytestmark = pytest.mark.browser

AWAKE_S = 6
"""The page once asked every second, a hidden one every five."""
TRIES = 4
"""What the opening has begun may come late, and so may what other tests have done to the studio."""
TOLD = """() => {
  window.told = [];
  const [chip, facts] = ['model-chip', 'model-facts'].map((id) => document.getElementById(id));
  const note = () => window.told.push(`${chip.dataset.state} ${facts.textContent}`);
  const observer = new MutationObserver(note);
  observer.observe(chip, { attributes: true });
  observer.observe(facts, { subtree: true, childList: true, characterData: true });
}"""
"""From now on `window.told` lists what is said of the model: each is said for a moment only."""


def posted(page, path, **body):
    answer = page.request.post(studio_url(page, path), data=body)
    assert answer.ok, answer.text()
    return answer.json()


def test_an_idle_page_asks_for_nothing(open_page):
    page = open_page()
    page.wait_for_selector("#model-chip[data-state=unloaded]")
    page.wait_for_timeout(2_000)  # what the opening has begun
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for _ in range(TRIES):
        asked.clear()
        page.wait_for_timeout(AWAKE_S * 1_000)
        if not asked:
            break
    assert asked == []


def test_a_model_loaded_elsewhere_is_seen_and_so_is_its_end(page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(TOLD)
    posted(page, "model/load")
    page.wait_for_function(
        "() => window.told.some((one) => /^loaded .*unloads in 0:0[0-4]/s.test(one))"
    )
    page.wait_for_selector("#model-chip[data-state=unloaded]")
    assert [url for url in asked if "/studio/state" in url] == []


def test_a_voice_added_elsewhere_appears(page):
    speaker = posted(page, "speakers", name="Added elsewhere")
    named = (
        "name => window.tableread.bus.latest('library.loaded')?.speakers"
        ".some((one) => one.name === name)"
    )
    page.wait_for_function(named, arg="Added elsewhere")
    assert page.request.delete(studio_url(page, f"speakers/{speaker['speaker_id']}")).ok
    page.wait_for_function(f"name => !({named})(name)", arg="Added elsewhere")


def test_a_choice_made_in_another_tab_is_shown(open_page):
    one, other = open_page(), open_page()
    one.click("#model-chip")
    one.fill("#model-at-once", "5")
    one.press("#model-at-once", "Enter")
    other.wait_for_function("() => document.querySelector('#model-at-once').value === '5'")
    posted(other, "model/concurrency", segments=3)
    one.wait_for_function("() => document.querySelector('#model-at-once').value === '3'")


def test_a_studio_that_is_gone_is_said_to_be_and_comes_back(mortal, browser):
    server = mortal()
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)
    page.wait_for_selector("body[data-tableread=ready]")
    server.process.send_signal(signal.SIGKILL)
    notice = page.locator(".notice[data-notice=offline]")
    notice.wait_for()
    assert "Connection lost" in notice.inner_text()
    assert page.inner_text("#model-state") == "offline"
    mortal()
    notice.wait_for(state="detached")
    page.wait_for_selector("#model-state:text-is('not loaded')")
    context.close()
