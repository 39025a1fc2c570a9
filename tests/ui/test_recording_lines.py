"""Record a line: countdown, retakes, the character's voice, errors that help; comments; a read."""

import json

import numpy as np
import pytest
import soundfile
from ui_steps import NAMELESS, fill, saved, studio_url, violations

pytestmark = pytest.mark.browser

GO = "#record-go"
# Each is shown for a second only.
COUNTS = """() => {
  window.counts = [];
  const [panel, shown] = ['record-panel', 'record-count'].map((id) => document.getElementById(id));
  const note = () => shown.textContent
    && window.counts.push(`${panel.dataset.state} ${shown.textContent}`);
  new MutationObserver(note).observe(shown, { subtree: true, childList: true });
}"""
NO_MICROPHONE = """name => {
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', name));
}"""


@pytest.fixture(scope="module")
def server(server_of):
    """A studio of its own, whose voice engine converts recordings."""
    return server_of("acting_server.py")


@pytest.fixture
def page(page):
    yield page
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")


def state(page, name):
    page.wait_for_selector(f"#record-panel[data-state={name}]")


def recorded_for(page, seconds):
    """The microphone runs in real time; the page counts its seconds."""
    state(page, "recording")
    page.wait_for_function(
        "n => Number(document.querySelector('#record-panel').dataset.seconds) >= n", arg=seconds
    )


def takes(page):
    return page.evaluate(
        "() => window.tableread.project.lines.map(({ n_takes, take }) =>"
        " [n_takes, take?.source ?? null])"
    )


def test_a_line_is_recorded_again_and_the_next_one_by_keyboard_alone(page, write):
    project = write("Ida: How long?\nTom: Not long.", 2)
    page.click("#lines .line-number >> nth=0")
    page.keyboard.press("m")
    page.wait_for_selector("#record-panel[open]")
    assert page.inner_text("#record-text") == "How long?"
    assert page.inner_text("#record-after") == "Tom: Not long."
    page.uncheck("#record-acted")
    page.evaluate(COUNTS)
    page.focus(GO)
    page.keyboard.press("Enter")
    recorded_for(page, 1)
    assert page.evaluate("() => window.counts") == ["counting 3", "counting 2", "counting 1"]
    page.keyboard.press("Enter")
    page.wait_for_selector("#record-state:text-is('Saved as take 1.')")
    assert takes(page) == [[1, "recording"], [0, None]]
    page.keyboard.press("r")
    recorded_for(page, 1)
    page.keyboard.press("r")
    page.wait_for_selector("#record-state:text-is('Saved as take 2.')")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#record-text:text-is('Not long.')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#record-panel", state="hidden")
    page.click("#lines .line-number >> nth=0")
    page.wait_for_selector("#takes .take >> nth=1")
    assert "recorded" in page.inner_text("#takes .take-about >> nth=0")
    body = page.request.get(studio_url(page, f"projects/{project}")).json()
    assert body["lines"][0]["take"]["source"] == "recording"
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_function("() => window.tableread.project.lines[1].state === 'ready'")
    assert takes(page) == [[2, "recording"], [1, None]], "reading the scene keeps the recording"
    saved(page)


def test_the_countdown_is_cancelled_and_nothing_is_kept(page, write):
    write("Ida: How long?", 1)
    page.hover("#lines .line")
    page.click("#lines .line-record")
    page.click(GO)
    state(page, "counting")
    page.keyboard.press("Escape")
    state(page, "idle")
    assert page.is_visible("#record-panel"), "Escape stops first"
    page.keyboard.press("Escape")
    page.wait_for_selector("#record-panel", state="hidden")
    assert takes(page) == [[0, None]]


def is_converting(page):
    return page.request.get(studio_url(page, "state")).json()["model"]["active"] > 0


def withdrawn(page):
    """Wait for the studio's answer to what the block cancels."""
    return page.expect_response(lambda answer: answer.request.method == "DELETE")


def takes_there(page, project):
    """The takes that the studio has of the first line; the page's may be older."""
    body = page.request.get(studio_url(page, f"projects/{project}")).json()
    return [body["lines"][0]["n_takes"], body["lines"][0]["chosen"]]


def test_a_recording_that_is_cancelled_at_once_is_no_take(page, write, server, recording):
    project = write("Ida: How long?", 1)
    page.click("#lines .line-number")
    page.click("#act-record")
    page.check("#record-acted")
    hold = server.workspace / "hold"
    hold.touch()
    page.set_input_files("#record-file", recording)
    state(page, "sending")
    with withdrawn(page):
        page.click(GO)
        hold.unlink()  # it may not have begun to be converted, or be converted before it is stopped
    assert takes_there(page, project) == [0, None]


def test_a_recording_whose_take_is_there_when_it_is_cancelled_is_none(page, write, recording):
    project = write("Ida: How long?", 1)
    page.click("#lines .line-number")
    page.click("#act-record")
    page.uncheck("#record-acted")
    answers = []

    # The studio answers, and the page waits for it.
    page.route("**/lines/*/recording?*", lambda route: answers.append(route.fetch()))
    try:
        page.set_input_files("#record-file", recording)
        while not answers:
            page.wait_for_selector("#record-panel[data-state=sending]")
        assert takes_there(page, project)[0] == 1
        with withdrawn(page):
            page.click(GO)
    finally:
        page.unroute("**/lines/*/recording?*")
    assert takes_there(page, project) == [0, None]
    page.wait_for_function("() => window.tableread.project.lines[0].n_takes === 0")


def test_a_recording_is_said_in_the_characters_voice(page, write, server, recording):
    write("Ida: How long?", 1)
    page.click("#lines .line-number")
    page.click("#act-record")
    assert page.inner_text("#record-acted-word") == "Convert to Ida’s voice"
    page.check("#record-acted")
    hold = server.workspace / "hold"
    hold.touch()
    try:
        page.set_input_files("#record-file", recording)
        state(page, "sending")
        while not is_converting(page):
            pass
        page.click(GO)
        state(page, "idle")
        while is_converting(page):
            pass  # the engine notices that nobody waits any more
        assert takes(page) == [[0, None]], "it was cancelled"
    finally:
        hold.unlink()
    page.set_input_files("#record-file", recording)
    page.wait_for_selector("#record-state:text-is('Saved as take 1.')")
    assert takes(page) == [[1, "acted"]]
    page.click("#record-listen")
    page.wait_for_selector("#player[data-playing=true]")
    page.evaluate("() => window.tableread.player.stop()")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("NotAllowedError", "Allow it in the browser"),
        ("NotFoundError", "There is no microphone"),
        ("NotReadableError", "Another program uses the microphone"),
    ],
)
def test_what_keeps_the_microphone_away_is_said(open_page, fault, said):
    page = open_page()
    page.evaluate(NO_MICROPHONE, fault)
    page.locator("#lines .line[data-kind=speech]").first.click()
    page.click("#act-record")
    page.click(GO)
    page.wait_for_selector(f"#record-panel .sheet-message:has-text('{said}')")
    assert page.is_enabled("#record-choose")


def test_a_microphone_that_is_disconnected_ends_the_recording(open_page):
    page = open_page()
    fill(page, "Ida: How long?", 1)
    page.evaluate("""() => {
      const devices = navigator.mediaDevices;
      const ask = devices.getUserMedia.bind(devices);
      devices.getUserMedia = async (how) => (window.microphone = await ask(how));
    }""")
    unplug = "() => window.microphone.getTracks().forEach((track) => track.stop())"
    said = page.locator("#record-panel .sheet-message")
    page.click("#lines .line-number")
    page.click("#act-record")
    page.click(GO)
    recorded_for(page, 1)
    page.evaluate(unplug)
    said.filter(has_text="Saved, but: The microphone was disconnected.").wait_for()
    assert takes(page)[0][0] == 1
    page.click(GO)
    state(page, "counting")
    page.evaluate(unplug)
    state(page, "idle")
    said.filter(has_text="The microphone was disconnected.").wait_for()
    assert takes(page)[0][0] == 1


def test_the_browser_asks_before_a_recording_is_left(server, browser):
    context = browser.new_context()
    context.set_default_timeout(45_000)
    page, asked = context.new_page(), []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    try:
        page.goto(server.url)
        page.wait_for_selector("body[data-tableread=ready]")
        fill(page, "Ida: How long?", 1)
        page.click("#lines .line-number")
        page.click("#act-record")
        page.click(GO)
        recorded_for(page, 1)
        page.evaluate("() => void setTimeout(() => location.reload())")
        recorded_for(page, 3)
        assert asked == ["beforeunload"]
        page.click(GO)
        page.wait_for_selector("#record-state:has-text('Saved as take 1.')")
        page.reload()
        page.wait_for_selector("body[data-tableread=ready]")
        assert asked == ["beforeunload"]
    finally:
        context.close()


def test_silence_and_a_recording_that_clips_are_told(page, write, tmp_path):
    write("Ida: How long?", 1)
    page.click("#lines .line-number")
    page.click("#act-record")
    page.uncheck("#record-acted")
    soundfile.write(tmp_path / "silent.wav", np.zeros(24_000), 24_000)
    page.set_input_files("#record-file", tmp_path / "silent.wav")
    message = page.locator("#record-panel .sheet-message")
    message.filter(has_text="Nothing can be heard").wait_for()
    assert takes(page) == [[0, None]]
    time_s = np.arange(48_000) / 24_000
    loud = np.clip(9 * np.sin(2 * np.pi * 140 * time_s) * np.sin(2 * np.pi * 3 * time_s), -1, 1)
    soundfile.write(tmp_path / "loud.wav", loud, 24_000)
    page.set_input_files("#record-file", tmp_path / "loud.wav")
    message.filter(has_text="Saved, but: Clipping").wait_for()
    assert takes(page) == [[1, "recording"]]


def test_the_panel_is_named_and_has_no_fault(page, write):
    write("Ida: How long?\nTom: Not long.", 2)
    page.click("#lines .line-number >> nth=0")
    page.click("#act-record")
    assert page.evaluate(NAMELESS) == []
    assert violations(page, ["#record-panel"]) == []


HOSTILE = "<img src=x onerror=alert(1)>"


def comment(page, text, name="Ruth"):
    page.fill("#comment-author", name)
    page.fill("#comment-text", text)
    page.click("#comment-add")


def test_a_comment_is_written_seen_resolved_and_undone(page, write):
    project = write("Ida: How long?\nTom: Not long.", 2)
    page.click("#lines .line-number >> nth=1")
    comment(page, HOSTILE)
    badge = page.locator("#lines .line-comments")
    badge.wait_for()
    assert badge.get_attribute("aria-label") == "1 open comment"
    assert page.inner_text("#comments .comment-text") == HOSTILE
    assert page.inner_text("#comments .comment-author") == "Ruth"
    page.click("#lines .line-number >> nth=0")
    assert page.locator("#comments .comment").count() == 0
    assert page.input_value("#comment-author") == "Ruth"
    page.click("#comments-open")
    page.click("#comments-list .comment-place:text-is('Line 2, Tom')")
    page.wait_for_selector("#comments-panel", state="hidden")
    assert page.evaluate("() => document.activeElement.dataset.line") == page.evaluate(
        "() => window.tableread.project.view.order[1]"
    )
    page.click("#comments .comment-resolve")
    badge.wait_for(state="detached")
    page.click("#comments-open")
    page.wait_for_selector("#comments-none:not([hidden])")
    page.check("#comments-resolved")
    page.wait_for_selector("#comments-list .comment[data-resolved=true]")
    assert violations(page, ["#comments-panel"]) == []
    page.keyboard.press("Escape")
    saved(page)
    page.click("#undo")
    badge.wait_for()
    saved(page)
    body = page.request.get(studio_url(page, f"projects/{project}")).json()
    assert [one["text"] for one in body["comments"]] == [HOSTILE]
    assert violations(page, ["#comments-part"]) == []


def test_a_table_read_follows_the_play_head_and_a_reader_goes_on_alone(page, write, browser):
    script = f"## One\nIda: How long?\nTom: Not long.\n[pause: 1]\nIda: Good.\nTom: {'On. ' * 400}"
    project = write(script, 6)
    device = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    device.set_default_timeout(45_000)
    phone = device.new_page()
    try:
        phone.goto(page.evaluate("() => document.querySelector('#table-read').href"))
        phone.wait_for_selector("#text:text-is('One')")
        order = page.evaluate("() => window.tableread.project.view.order")
        page.request.put(
            studio_url(page, f"projects/{project}/heard"),
            data=json.dumps({"line_id": order[2], "playing": True}),
            headers={"Content-Type": "application/json"},
        )
        phone.wait_for_selector("#text:text-is('Not long.')")
        assert phone.inner_text("#speaker") == "Tom"
        assert phone.inner_text("#place") == "2 / 4", "as the studio's page numbers them"
        assert phone.locator("#next li").first.inner_text() == "Ida Good."
        assert phone.inner_text("#before") == "Ida: How long?"
        phone.keyboard.press("ArrowUp")
        phone.wait_for_selector("#text:text-is('How long?')")
        assert phone.get_attribute("#follow", "aria-pressed") == "false"
        phone.click("#follow")
        phone.wait_for_selector("#text:text-is('Not long.')")
        assert phone.evaluate("() => document.scripts.length") == 2, "its own and the language's"
        for look, width in (("dark", 195), ("dark", 844), ("light", 390)):
            phone.emulate_media(color_scheme=look)
            phone.set_viewport_size({"width": width, "height": 844})
            assert violations(phone, ["body"]) == []
            assert phone.evaluate("() => document.documentElement.scrollWidth") <= width
        page.evaluate("([id]) => window.tableread.playback.placeAt(id)", [order[4]])
        phone.wait_for_selector("#text:text-is('Good.')")
        page.evaluate("([id]) => window.tableread.playback.placeAt(id)", [order[5]])
        phone.wait_for_selector("#text:has-text('On. On.')")
        phone.evaluate("() => scrollTo(0, 9999)")
        phone.wait_for_function("() => scrollY > 400")
        page.evaluate("([id]) => window.tableread.playback.placeAt(id)", [order[4]])
        phone.wait_for_selector("#text:text-is('Good.')")
        assert phone.evaluate("() => scrollY") == 0
        device.set_offline(True)
        phone.wait_for_selector("#message:has-text('Connection lost')")
        assert phone.inner_text("#text") == "Good."
        device.set_offline(False)
        phone.wait_for_selector("#message", state="hidden")
        page.evaluate("([id]) => window.tableread.playback.placeAt(id)", [order[1]])
        phone.wait_for_selector("#text:text-is('How long?')")
    finally:
        device.close()
