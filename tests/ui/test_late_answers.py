"""Answers of the studio that come late, or after those of later requests."""

import pytest
import soundfile
from playwright.sync_api import expect
from test_coming_in import drop
from ui_steps import add_voice, fill, make, ready, saved, stored, studio_url, texts
from voice_like import voice_like

pytestmark = pytest.mark.browser

SLOW_EVENTS = """(delay_ms) => {
  window.late = 0;
  const { prototype } = EventSource;
  const { set } = Object.getOwnPropertyDescriptor(prototype, 'onmessage');
  Object.defineProperty(prototype, 'onmessage', {
    set(take) {
      const later = (message) => {
        window.late += JSON.parse(message.data).type === 'edit' ? 1 : 0;
        take(message);
      };
      set.call(this, (message) => setTimeout(later, delay_ms, message));
    },
  });
}"""
"""From now on what a stream tells comes that late; `window.late` counts its edits."""
WATCH_VIEW = """() => {
  const { bus, project } = window.tableread;
  window.views = [];
  bus.on('project.changed', () => {
    const view = project.lines.map(({ text }) => text).join(' ');
    if (window.views.at(-1) !== view) window.views.push(view);
  });
}"""
"""From now on `window.views` lists what the lines say, one after the other."""
LATE_MS = 3_000
"""Long enough for a few edits to be answered."""
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
    late = studio_url(page, f"projects/{first}")
    with page.expect_event("requestfinished", lambda request: request.url == late):
        let_go()
    page.evaluate("url => fetch(url).then((answer) => answer.json())", late)  # comes after it
    assert page.evaluate(CURRENT) == second


def test_an_event_that_comes_late_takes_no_later_edit_back(open_page):
    page = open_page()
    page.evaluate(SLOW_EVENTS, LATE_MS)
    fill(page, "Mara: One.\nIlse: Two.", 2)
    page.evaluate(WATCH_VIEW)
    for text in ("1.", "10.", "100."):
        page.evaluate(
            """async (text) => {
              const { project } = window.tableread;
              project.edit([{ op: 'set', line_ids: [project.view.order[0]], fields: { text } }]);
              await project.flush();
            }""",
            text,
        )
    page.evaluate(
        """() => {
          const { commands, project } = window.tableread;
          commands.move([project.view.order[0]], project.view.order[1]);
        }"""
    )
    saved(page)
    page.wait_for_function("() => window.late === 4")
    assert page.evaluate("() => window.views") == [
        "1. Two.",
        "10. Two.",
        "100. Two.",
        "Two. 100.",
    ]


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


def test_all_recordings_of_a_drop_stay_in_the_project_they_were_let_go_in(page, write, tmp_path):
    first = write("Mara: One.", 1)
    path = tmp_path / "sound.wav"
    soundfile.write(path, voice_like(2.5).samples, 24_000)
    waiting = []
    page.route("**/audio", lambda route: waiting.append(route))
    drop(page, "#lines .line", *((f"{n}.wav", "audio/wav", path.read_bytes()) for n in "ab"))
    while not waiting:
        page.wait_for_timeout(10)
    fill(page, "Ilse: Another.", 1)
    waiting.pop().continue_()
    while not waiting:
        page.wait_for_timeout(10)
    waiting.pop().continue_()
    page.wait_for_selector(".notice[data-passing]:has-text('b.wav is in')")
    assert texts(page) == ["Another."]
    page.unroute("**/audio")
    assert len(stored(page, first)) == 3


def test_the_focus_returns_to_a_cast_that_changed_under_the_panel(page, write, server):
    write("Wren: One.\nMara: Two.", 2)
    page.click("#cast [aria-label='Set a voice for Wren']")
    button = page.locator("#cast [aria-label='Set a voice for Wren']")
    add_voice(server.url, server.workspace, "Wren", description="A deep voice.")
    expect(button).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#cast [aria-label^='Voice for Wren']")).to_be_focused()
