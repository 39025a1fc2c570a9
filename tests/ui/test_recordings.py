"""Lines that play a recording: their file is chosen, dropped, heard, replaced; or missing."""

import base64

import pytest
import soundfile
from ui_steps import drawn, saved, texts
from voice_like import voice_like

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>.wav"
AUDIO = "#lines .line[data-kind=audio]"
READY = f"{AUDIO}[data-state=ready]"

DROP = """([selector, name, data]) => {
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  const carried = new DataTransfer();
  carried.items.add(new File([bytes], name, { type: 'audio/wav' }));
  const target = document.querySelector(selector);
  for (const type of ['dragover', 'drop']) {
    const event = new DragEvent(type, { dataTransfer: carried, bubbles: true, cancelable: true });
    target.dispatchEvent(event);
    if (type === 'dragover') window.veil = document.querySelector('#drop-veil').textContent.trim();
  }
}"""


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "door.wav"
    soundfile.write(path, voice_like(2.5).samples, 24_000)
    return path


def drop(page, selector, path, name):
    data = base64.b64encode(path.read_bytes()).decode()
    page.evaluate(DROP, [selector, name, data])
    return page.evaluate("() => window.veil")


def choose(page, press, path):
    with page.expect_file_chooser() as chooser:
        press()
    chooser.value.set_files(path)


def test_a_missing_file_is_told_and_chosen_from_its_row(page, write, sound):
    write("Mara: One.\n[audio: door.wav]\nTomas: Two.", 3)
    hint = page.locator(f"{AUDIO} .line-hint:not([hidden])")
    hint.wait_for()
    assert "“door.wav” isn't in this project yet. Choose the file" in hint.get_attribute("title")
    choose(page, lambda: page.click(f"{AUDIO} .line-file"), sound)
    page.wait_for_selector(READY)
    hint.wait_for(state="hidden")
    assert texts(page) == ["One.", "door.wav", "Two."]
    assert page.inner_text(f"{AUDIO} .line-length") == "2.5 s"
    page.click(f"{AUDIO} .line-grip")
    drawn(page)
    assert page.inner_text("#recording-name") == "door.wav"
    assert page.inner_text("#recording-length") == "2.5 s"
    assert page.is_hidden("#act-again")
    page.click("#act-play")
    page.wait_for_selector("#player[data-playing=true]")


def test_a_render_of_a_missing_file_leaves_what_to_do(page, write):
    write("[audio: door.wav]", 1)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector(f"{AUDIO}[data-state=failed]")
    page.wait_for_selector(f"{AUDIO} .line-hint:not([hidden]):has-text('Choose the file')")
    assert page.is_hidden(f"{AUDIO} .line-reason")


def test_a_file_dropped_on_the_line_replaces_its_own_and_undo_brings_that_back(
    page, write, sound, tmp_path
):
    write("[audio: door.wav]", 1)
    choose(page, lambda: page.click(f"{AUDIO} .line-file"), sound)
    page.wait_for_selector(READY)
    other = tmp_path / "gate.wav"
    soundfile.write(other, voice_like(1.5).samples, 24_000)
    assert drop(page, AUDIO, other, HOSTILE) == "Drop to play in this line"
    page.wait_for_selector(f"{READY} .line-length:text-is('1.5 s')")
    assert texts(page) == [HOSTILE]
    saved(page)
    page.click("#undo")
    page.wait_for_selector(f"{READY} .line-length:text-is('2.5 s')")
    assert texts(page) == ["door.wav"]


def test_a_file_dropped_elsewhere_becomes_a_line_of_its_own(page, write, sound):
    write("Mara: One.\nTomas: Two.", 2)
    assert drop(page, "#lines .line", sound, "bell.wav") == "Drop to add as a recording"
    page.wait_for_selector(READY)
    assert texts(page) == ["One.", "bell.wav", "Two."]


def test_a_file_dropped_on_the_voices_begins_a_voice(page, write, sound):
    write("Mara: One.", 1)
    assert drop(page, "#library-title", sound, "voice.wav") == "Drop to add a voice"
    page.wait_for_selector("#sample-editor:not([hidden])")
    page.keyboard.press("Escape")
    page.wait_for_selector("#sample-panel", state="hidden")
    assert texts(page) == ["One."]


def test_a_recording_is_added_and_its_file_chosen_by_keyboard_alone(page, write, sound):
    # Or choosers would be let through between the two, and the driver may miss the second.
    page.on("filechooser", lambda _: None)
    write("Mara: One.", 1)
    page.focus("#add-recording")
    with page.expect_response("**/render"):
        choose(page, lambda: page.keyboard.press("Enter"), sound)
    page.wait_for_selector(READY)
    page.wait_for_function("() => document.activeElement.dataset.kind === 'audio'")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.classList.contains('line-file')")
    with page.expect_response("**/render"):
        choose(page, lambda: page.keyboard.press("Enter"), sound)
    page.wait_for_selector(READY)


def test_what_is_no_sound_is_refused_and_the_line_stays(page, write, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"no sound")
    write("[audio: door.wav]", 1)
    choose(page, lambda: page.click(f"{AUDIO} .line-file"), broken)
    refused = page.locator(".notice[data-notice=refused]:has-text('broken.wav can')")
    refused.wait_for()
    assert texts(page) == ["door.wav"]
    refused.locator(".notice-close").click()
