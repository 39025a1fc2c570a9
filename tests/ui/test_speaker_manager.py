"""Voices by hand: upload, record, listen, rename, remove."""

import pytest

pytestmark = pytest.mark.browser

RECORDED = "#speaker-recording [data-testid=audio-player-Recording]"
ENTRY = "#library .voice:has(.voice-name:text-is('{}'))"


@pytest.fixture
def page(open_page):
    """A window of its own: Gradio's form keeps what the test before put into it."""
    return open_page()


def entry(name):
    return ENTRY.format(name)


def name_it(page, name):
    page.fill("#speaker-name input, #speaker-name textarea", name)


def add(page, name, recording):
    name_it(page, name)
    page.set_input_files("#speaker-recording input[type=file]", recording)
    page.wait_for_selector(RECORDED, state="attached")
    page.click("#speaker-add")
    page.wait_for_selector(entry(name))


def test_an_uploaded_sample_becomes_a_voice_of_the_cast(page, write, recording):
    write("Wren: One.\nMara: Two.", 2)
    page.click("#cast .voice:has(.voice-name:text-is('Wren')) .voice-add")
    field = page.locator("#speaker-name input, #speaker-name textarea")
    assert field.input_value() == "Wren"
    add(page, "Wren", recording)
    assert "6.0 s" in page.inner_text(f"{entry('Wren')} .voice-kind")
    page.wait_for_selector("#cast .voice:has-text('own sample')")
    page.click(f"{entry('Wren')} .voice-listen")
    assert page.get_attribute(f"{entry('Wren')} .voice-listen", "aria-pressed") == "true"
    page.click("#read")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'done'")
    assert page.locator("#lines .line[data-state=ready]").count() == 2


def test_a_sample_recorded_by_the_microphone_is_checked(page):
    name_it(page, "Sparrow")
    page.click("#speaker-recording button[aria-label='Record audio']")
    page.click("#speaker-recording button.record-button, #speaker-recording .record")
    page.wait_for_timeout(4000)  # the microphone runs in real time
    page.click("#speaker-recording button.stop-button, #speaker-recording .stop-button")
    page.wait_for_selector(RECORDED, state="attached")
    page.click("#speaker-add")
    notice = page.locator(".notice[data-notice=speaker]")
    notice.wait_for()
    assert notice.locator(".notice-title").inner_text()


def test_a_voice_is_renamed_and_removed(page, recording):
    add(page, "Heron", recording)
    page.click(f"{entry('Heron')} .voice-edit")
    page.keyboard.type("Grey Heron")
    page.keyboard.press("Enter")
    page.wait_for_selector(entry("Grey Heron"))
    assert page.locator(entry("Heron")).count() == 0
    page.click(f"{entry('Grey Heron')} .voice-remove")
    page.click("#confirm button[value=keep]")
    assert page.locator(entry("Grey Heron")).count() == 1
    page.click(f"{entry('Grey Heron')} .voice-remove")
    page.click("#confirm button[value=remove]")
    page.wait_for_selector(entry("Grey Heron"), state="detached")


def test_a_refused_recording_says_why_and_keeps_the_form(page, tmp_path):
    broken = tmp_path / "voice.wav"
    broken.write_bytes(b"this is no sound")
    name_it(page, "Magpie")
    page.set_input_files("#speaker-recording input[type=file]", broken)
    page.wait_for_timeout(500)  # Gradio shows nothing of its own for a broken file
    page.click("#speaker-add")
    notice = page.locator(".notice[data-notice=speaker]")
    notice.wait_for()
    assert notice.get_attribute("data-kind") == "error"
    assert page.locator("#speaker-name input, #speaker-name textarea").input_value() == "Magpie"
    assert page.locator(entry("Magpie")).count() == 0


def test_a_voice_of_the_library_is_chosen_for_a_name(page, write, recording):
    add(page, "Robin", recording)
    write("Finch: One.\nHeron: Two.", 2)
    choice = page.locator("#cast .voice:has(.voice-name:text-is('Finch')) .voice-choice")
    assert choice.get_attribute("aria-label") == "Voice for Finch"
    choice.select_option(label="voice of Robin")
    with page.expect_request("**/studio/jobs") as asked:
        page.click("#read")
    chosen = asked.value.post_data_json["voices"]
    assert list(chosen) == ["Finch"]
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'done'")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert choice.input_value() == chosen["Finch"]
    choice.select_option(label="built-in voice")
    with page.expect_request("**/studio/jobs") as asked:
        page.click("#read")
    assert asked.value.post_data_json["voices"] == {}
