"""The page where it isn't Chromium at home: with what a Safari lacks, and over plain http."""

import re

import pytest
from playwright.sync_api import expect
from ui_steps import fill, make, ready, reopened, save_sound

pytestmark = pytest.mark.browser

SCENE = "Mara: One.\nTomas: Two, of which more is to be said.\nIlse: Three."
LONG = "\n".join(f"Mara: Line {number}, with a few words." for number in range(60))
# What Safari 16.4 has, as far as the page could use what it lacks.
OLD_SAFARI = """() => {
  delete Element.prototype.checkVisibility;
  delete window.onscrollend;
  addEventListener('scrollend', (event) => event.stopImmediatePropagation(), true);
  delete window.Highlight;
  delete CSS.highlights;
  const { get } = Object.getOwnPropertyDescriptor(PointerEvent.prototype, 'pointerType');
  Object.defineProperty(PointerEvent.prototype, 'pointerType', {
    get() { return this.type === 'click' ? undefined : get.call(this); },
  });
}"""
PURPOSES = """() => {
  window.purposes = [];
  const audioSession = { set type(purpose) { window.purposes.push(purpose); } };
  Object.defineProperty(navigator, 'audioSession', { value: audioSession });
}"""
SEES = """number => {
  const { lines, project } = window.tableread;
  return lines.sees(project.view.order[number]);
}"""
MARKED = "#lines .line[aria-selected=true]"
# The conftest's browser finds this machine there: an address that is no secure context.
PLAIN = "198.51.100.7"


@pytest.fixture
def old(open_page):
    """A phone's page on an old Safari's means."""
    page = open_page(has_touch=True)
    page.add_init_script(f"({OLD_SAFARI})()")
    reopened(page)
    return page


@pytest.fixture
def far(server, browser):
    """The page as a phone in the same house has it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(server.url.replace("127.0.0.1", PLAIN))
    page.wait_for_selector("body[data-tableread=ready]")
    body = context.request.post(f"{server.url}studio/projects", data={"text": SCENE}).json()
    page.evaluate("body => window.tableread.projects.adopt(body)", body)
    expect(page.locator("#lines .line-text").first).to_have_text("One.")
    yield page
    context.close()
    assert faults == []


def copy_and_paste_all(page):
    page.evaluate(
        """() => {
          const { selection, project } = window.tableread;
          selection.go(project.view.order[0]);
          selection.focus();
        }"""
    )
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")


def test_an_old_safari_shows_the_script_copies_lines_and_finds_words(old):
    fill(old, SCENE, 3)
    old.click("#views [data-view=script]")
    expect(old.locator("#script")).to_have_value(re.compile("of which more"))
    old.click("#views [data-view=lines]")
    copy_and_paste_all(old)
    expect(old.locator("#lines .line")).to_have_count(6)
    old.click("#find-open")
    old.fill("#find", "more")
    expect(old.locator("#find-count")).to_have_text("2 in 2 lines")


def test_an_old_safari_marks_lines_by_their_numbers_and_scrolls_to_a_line(old):
    fill(old, LONG, 60)
    for number in (0, 2):
        old.tap(f"#lines .line >> nth={number} >> .line-grip")
    expect(old.locator(MARKED)).to_have_count(2)
    for number in (30, 38, 4):
        old.evaluate(
            """number => {
              const { lines, project } = window.tableread;
              lines.reveal(project.view.order[number]);
            }""",
            number,
        )
        old.wait_for_function(SEES, arg=number)


def test_a_phone_over_plain_http_reads_copies_and_saves(far):
    assert far.evaluate("() => [isSecureContext, typeof navigator.clipboard]") == [
        False,
        "undefined",
    ]
    far.click("#play")
    ready(far)
    far.wait_for_function("() => window.tableread.player.clock_s > 0")
    far.evaluate("() => window.tableread.player.stop()")
    with far.expect_download() as saved:
        save_sound(far, "wav")
    assert saved.value.suggested_filename.endswith(".wav")
    far.keyboard.press("Escape")
    copy_and_paste_all(far)
    expect(far.locator("#lines .line")).to_have_count(6)


def test_over_plain_http_the_microphone_says_why_it_is_not_to_be_had(far, recording):
    far.click("#voice-new")
    far.click("#sample-source .source-record")
    told = far.locator("#sample-panel .sheet-message")
    expect(told).to_contain_text("on this machine or over https")
    far.set_input_files("#sample-source input[type=file]", recording)
    far.wait_for_selector("#sample-editor:not([hidden])")


def test_an_iphone_hears_the_scene_when_it_is_silenced_and_can_record(open_page):
    page = open_page()
    page.add_init_script(f"({PURPOSES})()")
    reopened(page)
    fill(page, SCENE, 3)
    page.click("#play")
    page.wait_for_function("() => window.tableread.player.clock_s > 0")
    assert set(page.evaluate("() => window.purposes")) == {"playback"}
    page.evaluate("() => window.tableread.player.stop()")
    page.click("#voice-new")
    page.click("#sample-source .source-record")
    page.wait_for_selector("#sample-source .source[data-seconds]")
    assert page.evaluate("() => window.purposes.at(-1)") == "play-and-record"
    page.click("#sample-source .source-record")
    page.wait_for_function("() => window.purposes.at(-1) === 'playback'")


def test_what_plays_from_an_address_can_be_had_in_pieces(open_page, recording):
    # Safari plays nothing else.
    page = open_page()
    asked = []
    page.on("request", lambda one: one.resource_type == "media" and asked.append(one.url))
    fill(page, SCENE, 3)
    make(page)
    page.click("#lines .line-text >> nth=0")
    page.click("#takes .take-play")
    page.wait_for_selector("#takes .take-play[aria-pressed=false]")
    page.click("#voice-new")
    page.set_input_files("#sample-source input[type=file]", recording)
    page.wait_for_selector("#sample-editor:not([hidden])")
    page.click("#sample-listen")
    page.wait_for_selector("#sample-listen[aria-pressed=true]:not([aria-busy=true])")
    addresses = {url for url in asked if url.startswith("http")}
    assert addresses
    for url in addresses:
        answer = page.request.get(url, headers={"Range": "bytes=0-1"})
        assert (answer.status, len(answer.body())) == (206, 2), url


def test_what_is_marked_in_the_script_is_what_is_looked_for(open_page):
    page = open_page()
    fill(page, SCENE, 3)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value(re.compile("of which more"))
    page.evaluate(
        """() => {
          const area = document.querySelector('#script');
          const at = area.value.indexOf('which');
          area.focus();
          area.setSelectionRange(at, at + 5);
        }"""
    )
    page.keyboard.press("Control+f")
    expect(page.locator("#find")).to_have_value("which")
