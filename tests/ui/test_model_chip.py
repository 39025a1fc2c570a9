"""The model's state in the header: loaded by use, counted down, unloaded, loaded again."""

import json

import pytest
from page_states import DRAFT
from playwright.sync_api import expect
from ui_steps import fill, ready, studio_url

pytestmark = pytest.mark.browser

RECORDED = """() => {
  const all = { subtree: true, childList: true, characterData: true };
  const record = (element) => {
    const said = [];
    new MutationObserver(() => said.push(element.textContent)).observe(element, all);
    return said;
  };
  window.recorded = record(document.getElementById('model-facts'));
  window.chip = record(document.getElementById('model-state'));
}"""
"""From now on `window.recorded` and `window.chip` hold what the engine's panel and the chip say."""


def stream(page, parts):
    """Let the event stream say parts of the state and end, so that the page opens it again."""

    def answer(route):
        message = json.dumps({"type": "state", "state": parts()})
        route.fulfill(content_type="text/event-stream", body=f"data: {message}\n\n")

    page.route("**/events?*", answer)
    page.evaluate("() => window.tableread.project.look()")


def wait_for_state(page, state):
    page.wait_for_selector(f"#model-chip[data-state={state}]")


def read(page):
    page.click("#play")
    ready(page)


def test_the_idle_countdown_runs_and_the_model_comes_back(page, write):
    write("Mara: One.", 1)
    page.evaluate(RECORDED)
    read(page)
    page.wait_for_function("() => window.recorded.some((said) => /unloads in 0:0[0-3]/.test(said))")
    assert page.evaluate("() => window.chip.every((said) => !/unloads/.test(said))")
    wait_for_state(page, "unloaded")
    assert page.inner_text("#model-state") == "not loaded"
    write("Mara: One.\nTomas: Two.", 2)
    page.evaluate(RECORDED)
    read(page)
    page.wait_for_function("() => window.recorded.some((said) => /unloads in/.test(said))")
    page.click("#model-chip")
    page.wait_for_selector("#model-facts dd:text-matches('([2-9]|[0-9]{2,}) loads')")
    page.keyboard.press("Escape")
    assert not page.is_visible("#model-panel")


@pytest.fixture
def kept_loaded(page):
    """From an unloaded model on, none is unloaded for being idle: a test need not hurry."""
    wait_for_state(page, "unloaded")
    url = studio_url(page, "model/timeout")
    assert page.request.post(url, data={"seconds": 0}).ok
    yield
    assert page.request.post(url, data={"seconds": 3}).ok


def test_the_model_is_loaded_and_unloaded_by_hand(page, kept_loaded):
    page.click("#model-chip")
    page.click("#model-load")
    wait_for_state(page, "loaded")
    page.click("#model-unload")
    wait_for_state(page, "unloaded")


def test_how_many_lines_are_read_at_once_is_set_by_hand(page):
    page.keyboard.press("Escape")
    page.click("#model-chip")
    page.fill("#model-at-once", "2")
    page.press("#model-at-once", "Enter")
    page.wait_for_selector("#model-facts dd:text-is('0 of at most 2')")
    page.fill("#model-at-once", "0")
    page.press("#model-at-once", "Enter")
    page.wait_for_function("() => document.querySelector('#model-at-once').value === '2'")
    page.fill("#model-at-once", "3")
    page.press("#model-at-once", "Enter")
    page.wait_for_selector("#model-facts dd:text-is('0 of at most 3')")
    page.keyboard.press("Escape")


def test_the_set_up_of_the_neural_voices_is_shown_with_its_remedy(open_page):
    page = open_page()
    setup = {"state": "installing", "message": "Fetching <b>torch</b>.", "fraction": 0.4}
    stream(page, lambda: {"setup": setup | {"detail": ""}})
    page.route("**/studio/setup/start", lambda route: route.fulfill())
    page.wait_for_selector("#setup-progress")
    assert page.inner_text("#setup-message") == "Fetching <b>torch</b>."
    assert page.evaluate("() => document.querySelector('#setup-progress').value") == 0.4
    setup.update(state="failed", message="The disk is full. Free 5 GB.", fraction=None)
    notice = page.locator(".notice[data-notice=setup]")
    notice.wait_for()
    assert "Free 5 GB" in notice.inner_text()
    with page.expect_request("**/studio/setup/start"):
        notice.locator(".notice-act").click()
    page.unroute_all(behavior="wait")


def test_another_voice_is_chosen_and_its_load_watched_and_stopped(open_page):
    page = open_page()
    asked = []
    backends = [
        {"name": "big", "title": "Big", "reason": None, "to_fetch": "It downloads 3 GB."},
        {"name": "gone", "title": "Gone", "reason": "It needs a package.", "to_fetch": None},
        {"name": "draft", "title": "Draft voice", "reason": None, "to_fetch": None},
    ]
    loading = {
        "state": "loading",
        "message": "model.safetensors, 1.2 of 3.0 GB, 40 MB/s",
        "fraction": 0.4,
        "memory_before": {"resident_bytes": 300_000_000, "device_bytes": None},
        "memory_after": {"resident_bytes": 900_000_000, "device_bytes": None},
    }

    def take(route):
        asked.append((route.request.url.rsplit("/", 1)[1], route.request.post_data_json))
        route.fulfill(body="{}")

    model = page.request.get(studio_url(page, "state")).json()["model"]
    stream(page, lambda: {"backends": backends, "model": model | loading})
    page.route("**/studio/backend", take)
    page.route("**/studio/model/cancel", take)
    page.wait_for_selector("#model-chip[data-state=loading]")
    assert page.inner_text("#model-state") == "loading, 40 %"
    page.click("#model-chip")
    assert "1.2 of 3.0 GB" in page.inner_text("#model-message")
    assert "300 MB to 900 MB" in page.inner_text("#model-facts")
    assert page.is_checked("#backends [value=draft]")
    assert page.is_disabled("#backends [value=gone]")
    assert "It needs a package." in page.inner_text(".backend:has([value=gone])")
    page.check("#backends [value=big]")
    while not asked:
        page.wait_for_timeout(10)
    page.click("#model-stop")
    while len(asked) < 2:
        page.wait_for_timeout(10)
    page.unroute_all(behavior="wait")  # an answer under way would outlive the window
    assert asked == [("backend", {"name": "big"}), ("cancel", None)]


def test_chip_and_notice_are_of_the_engine_that_speaks_in_the_project(open_page):
    page = open_page()
    fill(page, "Mara: One.", 1)
    notice = page.locator(".notice[data-notice=draft]")
    page.evaluate(DRAFT, "No natural voice is here.")
    expect(notice).to_be_visible()
    page.evaluate(
        "name => window.tableread.project.editSettings({ backend: name })",
        page.locator("#project-engine option").nth(1).get_attribute("value"),
    )
    expect(notice).to_have_count(0)
    page.evaluate("() => window.tableread.project.editSettings({ backend: null })")
    expect(notice).to_be_visible()
    # In one breath, as the studio soon says which engine it really has.
    natural, own = page.evaluate("""() => {
      const { bus, project } = window.tableread;
      const text = (id) => document.getElementById(id).textContent;
      const shown = () => ['model-title', 'model-state'].map(text)
        .concat(document.querySelectorAll('.notice[data-notice=draft]').length);
      const backend = { name: 'kitten', title: 'Natural', languages: {}, params: [] };
      bus.emit('engine.changed', { backend });
      const natural = shown();
      project.editSettings({ backend: 'draft' });
      return [natural, shown()];
    }""")
    assert (natural[0], natural[2]) == ("Natural", 0)
    assert own == ["Draft voice (eSpeak NG)", "", 0]
