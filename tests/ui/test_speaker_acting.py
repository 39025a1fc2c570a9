"""Act a line, and described voices: offered where the voice engine has them."""

import numpy as np
import pytest
import soundfile
from ui_steps import drawn

from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.browser

START_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def server(server_of):
    """A studio of its own, whose voice engine converts recordings."""
    return server_of("acting_server.py")


def open_ida(page):
    if not page.locator("#library .voice:has-text('Ida')").count():
        page.click("#voice-new")
        page.fill("#speaker-name", "Ida")
        page.check("#sample-kinds input[value=described]")
        page.fill("#sample-description", "an old sailor, hoarse and slow")
        page.click("#speaker-add")
    page.click("#library .voice:has-text('Ida') .voice-open")
    page.wait_for_selector("#voice-act:not([hidden])")


@pytest.fixture
def page(page):
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")
    open_ida(page)
    return page


def act(page, recording):
    page.set_input_files("#voice-act-source input[type=file]", recording)


def test_a_described_voice_keeps_its_description(page):
    assert page.input_value("#voice-description") == "an old sailor, hoarse and slow"
    assert "Described voice: an old sailor" in page.inner_text("#voice-own")


def test_an_acted_line_is_heard_and_saved(page, recording, tmp_path):
    act(page, recording)
    page.wait_for_selector("#voice-acted:not([hidden])")
    page.click("#voice-act-listen")
    page.wait_for_selector("#voice-act-listen[aria-pressed=true]:not([aria-busy=true])")
    with page.expect_download() as saved:
        page.click("#voice-act-save")
    assert saved.value.suggested_filename == "Ida.wav"
    saved.value.save_as(tmp_path / "acted.wav")
    samples, rate_hz = soundfile.read(tmp_path / "acted.wav")
    assert (len(samples), rate_hz) == (6 * 24_000, 24_000)
    assert np.abs(samples).max() > 0.01


def test_a_line_is_acted_through_the_microphone_by_keyboard(page):
    page.focus("#voice-act-source .source-record")
    page.keyboard.press("Enter")
    # The microphone runs in real time; the page counts its seconds.
    page.wait_for_function(
        "() => Number(document.querySelector('#voice-act-source .source').dataset.seconds) >= 1"
    )
    page.keyboard.press("Enter")
    page.wait_for_selector("#voice-acted:not([hidden])")
    assert page.inner_text("#voice-act-state") == "The line is ready."


def test_a_conversion_is_stopped_and_gives_its_place_back(page, server, recording):
    hold = server.workspace / "hold"
    hold.touch()
    try:
        act(page, recording)
        page.click("#voice-act-stop")
        page.wait_for_selector("#voice-act-stop", state="hidden")
        assert page.locator("#voice-acted").is_hidden()
        assert page.locator("#voice-panel .sheet-message").is_hidden()
    finally:
        hold.unlink()
    act(page, recording)
    page.wait_for_selector("#voice-acted:not([hidden])")


def test_a_line_too_short_says_so_in_the_panel(page, tmp_path):
    soundfile.write(tmp_path / "short.wav", np.zeros(1_000), 24_000)
    act(page, tmp_path / "short.wav")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('between 0.2 and 60 s')")


def test_how_an_engines_voice_speaks_is_said_in_words(page, server):
    assert page.inner_text("#voice-description-word") == "Describe the voice"
    page.select_option("#voice-preset", index=1)
    page.wait_for_selector("#voice-description-word:text-is('Delivery')")
    page.fill("#voice-description", "calmly, with a smile")
    page.click("#voice-save")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('Saved.')")
    ida = SpeakerLibrary(server.workspace / "speakers").get("Ida")
    assert (bool(ida.preset), ida.description) == (True, "calmly, with a smile")


def test_how_a_line_is_said_is_written_beside_it(page, write):
    page.keyboard.press("Escape")
    page.wait_for_selector("#voice-panel", state="hidden")
    write("Ida: One.\nIda: Two.", 2)
    page.click("#lines .line-text >> nth=0")
    page.click("#lines .line-number >> nth=1", modifiers=["Shift"])
    page.fill("#field-instruct", "in a low voice")
    page.keyboard.press("Tab")
    page.wait_for_function(
        "() => window.tableread.project.lines.every("
        "(line) => line.params.instruct === 'in a low voice')"
    )
    drawn(page)
    assert page.is_hidden("#strays-part")
    page.fill("#field-instruct", "")
    page.keyboard.press("Tab")
    page.wait_for_function(
        "() => window.tableread.project.lines.every((line) => !('instruct' in line.params))"
    )


def test_voices_of_the_engine_are_suggested_where_a_name_chooses_none(page, write, server):
    write("Kite: Who?\nPlover: Me.", 2)
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")
    page.locator(".voice-suggest[aria-label$='for Kite']").wait_for()
    names = page.locator("#cast .voice-suggest:not([hidden])").all_inner_texts()
    assert len(set(names)) == 2, "each has a voice of its own"
    page.click("#cast-suggested")
    page.wait_for_function("() => !document.querySelector('#cast .voice-suggest:not([hidden])')")
    assert page.is_hidden("#cast-suggested")
    voices = page.evaluate(
        "() => Object.values(window.tableread.project.view.characters)"
        ".map(({ voices }) => Object.values(voices)[0])"
    )
    assert len(set(voices)) == 2
    page.click("#undo")
    page.locator(".voice-suggest[aria-label$='for Kite']").wait_for()
