"""Voices by hand: upload, record, trim, repair, listen, moods, rename, take along, remove."""

import json
import shutil
from contextlib import contextmanager

import numpy as np
import pytest
import soundfile
from playwright.sync_api import expect
from ui_steps import choose_voice, notice_voice, saved, studio_url

from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.browser

ENTRY = "#library .voice:has(.voice-name:text-is('{}'))"
EDITOR = "#sample-editor:not([hidden]):not([aria-busy=true])"
RATE_HZ = 24_000
FOCUSED_ROW = """() => [...document.querySelector('#library').children]
  .indexOf(document.activeElement.closest('.voice'))"""

SEEN = """selector => {
  const one = document.querySelector(selector);
  const { x, y, width, height } = one.getBoundingClientRect();
  return document.elementFromPoint(x + width / 2, y + height / 2) === one;
}"""


@pytest.fixture
def page(page):
    """The module's window with no panel open and nothing searched for."""
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")
    if page.is_visible("#voice-search"):
        page.fill("#voice-search", "")
    return page


def entry(name):
    return ENTRY.format(name)


def choose(page, recording):
    page.set_input_files("#sample-source input[type=file]", recording)
    page.wait_for_selector(EDITOR)


def add(page, name, recording):
    page.click("#voice-new")
    page.fill("#speaker-name", name)
    choose(page, recording)
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(entry(name))


@contextmanager
def choosing(page, path):
    """Answers with a file whenever the page asks for one; listens long before the press."""

    def choose_it(chooser):
        chooser.set_files(path)

    page.on("filechooser", choose_it)
    yield
    page.remove_listener("filechooser", choose_it)


def open_panel(page, name):
    page.click(f"{entry(name)} .voice-open")
    page.wait_for_selector("#voice-panel[open]")


def pressed(page, selector):
    page.wait_for_selector(f"{selector}[aria-pressed=true]:not([aria-busy=true])")


def sample_part(page, selector):
    return page.locator(f"#voice-samples {selector}")


def test_an_uploaded_sample_becomes_a_voice_of_the_cast(page, write, recording):
    write("Wren: One.\nMara: Two.", 2)
    page.click("#cast .voice:has(.voice-name:text-is('Wren')) .voice-add")
    assert page.input_value("#speaker-name") == "Wren"
    choose(page, recording)
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(f"{entry('Wren')} .voice-kind:has-text('6.0 s')")
    page.wait_for_selector("#cast [aria-label='Voice for Wren: Wren']")
    expect(page.locator("#cast [aria-label^='Voice for Wren']")).to_be_focused()
    page.click(f"{entry('Wren')} .voice-listen")
    pressed(page, f"{entry('Wren')} .voice-listen")
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'done'")
    assert page.locator("#lines .line[data-state=ready]").count() == 2


def test_without_the_tick_no_voice_is_added_and_nothing_is_lost(page, recording):
    page.click("#voice-new")
    page.fill("#speaker-name", "Linnet")
    choose(page, recording)
    page.fill("#sample-transcript", "What I said.")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel .sheet-message:has-text('Please confirm')")
    assert page.evaluate(SEEN, "#sample-panel .sheet-message")
    expect(page.locator("#sample-consent")).to_be_focused()
    assert page.input_value("#sample-transcript") == "What I said."
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(entry("Linnet"))
    open_panel(page, "Linnet")
    assert sample_part(page, ".sample-transcript").input_value() == "What I said."
    assert "Confirmed on" in sample_part(page, ".sample-consent-text").inner_text()


def test_a_sample_recorded_by_the_microphone_becomes_a_voice(page):
    page.click("#voice-new")
    page.fill("#speaker-name", "Sparrow")
    page.click("#sample-source .source-record")
    # The microphone runs in real time; the page counts its seconds.
    page.wait_for_function(
        "() => Number(document.querySelector('#sample-source .source').dataset.seconds) >= 2"
    )
    page.click("#sample-source .source-record")
    page.wait_for_selector(EDITOR)
    assert page.locator("#sample-problems .found").count() >= 1
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(entry("Sparrow"))


def test_a_refused_recording_says_why_and_keeps_the_form(page, tmp_path):
    broken = tmp_path / "voice.wav"
    broken.write_bytes(b"this is no sound")
    page.click("#voice-new")
    page.fill("#speaker-name", "Magpie")
    page.set_input_files("#sample-source input[type=file]", broken)
    page.wait_for_selector(
        "#sample-panel .sheet-message:has-text('“voice.wav” is not a recording')"
    )
    assert page.input_value("#speaker-name") == "Magpie"
    page.keyboard.press("Escape")
    page.wait_for_selector("#sample-panel", state="hidden")
    assert page.locator(entry("Magpie")).count() == 0


@pytest.fixture
def poor(tmp_path, recording):
    """A quiet recording with two seconds of silence before, between and behind."""
    voice, _ = soundfile.read(recording)
    silence = np.zeros(2 * RATE_HZ)
    path = tmp_path / "poor.wav"
    soundfile.write(path, 0.05 * np.concatenate([silence, voice, silence, voice, silence]), RATE_HZ)
    return path


def test_a_poor_recording_is_repaired_by_one_press(page, poor):
    page.click("#voice-new")
    page.fill("#speaker-name", "Dunnock")
    choose(page, poor)
    found = page.locator("#sample-problems .found")
    codes = {found.nth(idx).get_attribute("data-code") for idx in range(found.count())}
    assert {"quiet", "silences"} <= codes
    page.click("#sample-repair")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    assert "trimmed 5.4 s of silence" in page.inner_text("#sample-steps")
    assert page.inner_text("#sample-figures thead .after") == "after"
    row = page.locator("#sample-figures tr", has_text="Speech level").locator("td")
    before, after = row.all_inner_texts()
    assert int(before.removesuffix(" dB")) < -38
    assert after == "-20 dB"
    page.wait_for_function(
        "() => ![...document.querySelectorAll('#sample-problems .found')]"
        ".some((one) => ['quiet', 'silences'].includes(one.dataset.code))"
    )
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(f"{entry('Dunnock')} .voice-kind:has-text('12.6 s')")


def handle(page, which):
    return page.locator(f"#sample-wave .wave-{which}")


def seconds(slider):
    return float(slider.get_attribute("aria-valuenow"))


def test_handles_trim_a_sample_by_keys(page, recording):
    page.click("#voice-new")
    page.fill("#speaker-name", "Pipit")
    choose(page, recording)
    start, end = handle(page, "start"), handle(page, "end")
    assert (seconds(start), seconds(end)) == (0, 6)
    start.focus()
    page.keyboard.press("PageUp")
    page.keyboard.press("ArrowRight")
    assert seconds(start) == 1.05
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+ArrowLeft")
    assert seconds(end) == 5.5
    assert start.get_attribute("aria-valuetext") == "1.1 s"
    page.wait_for_selector(EDITOR)
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(f"{entry('Pipit')} .voice-kind:has-text('4.5 s')")


def test_handles_trim_a_sample_by_pointer_and_stop_at_each_other(page, recording):
    page.click("#voice-new")
    choose(page, recording)
    page.locator("#sample-wave").scroll_into_view_if_needed()
    box = page.locator("#sample-wave").bounding_box()
    middle = box["y"] + box["height"] / 2

    def drag(from_share, to_share):
        page.mouse.move(box["x"] + from_share * box["width"], middle)
        page.mouse.down()
        page.mouse.move(box["x"] + to_share * box["width"], middle, steps=4)
        page.mouse.up()

    drag(0.0, 0.5)
    assert seconds(handle(page, "start")) == pytest.approx(3, abs=0.1)
    drag(0.99, 0.1)
    assert seconds(handle(page, "end")) == pytest.approx(seconds(handle(page, "start")) + 0.1)
    page.wait_for_selector("#sample-problems .found[data-code=too_short]")
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel .sheet-message:has-text('a voice needs')")


def test_the_part_and_the_voice_are_heard_before_it_is_kept(page, recording):
    page.click("#voice-new")
    choose(page, recording)
    page.click("#sample-listen")
    pressed(page, "#sample-listen")
    page.fill("#sample-sentence", "This sentence is long enough to be heard for a good while. " * 3)
    page.click("#sample-preview")
    pressed(page, "#sample-preview")
    assert page.get_attribute("#sample-listen", "aria-pressed") == "false"


def test_a_voice_is_renamed_described_and_removed(page, recording):
    add(page, "Heron", recording)
    open_panel(page, "Heron")
    page.fill("#voice-name", "Grey Heron")
    page.fill("#voice-language", "de")
    page.fill("#voice-labels", "old, northern")
    page.click("#voice-save")
    page.wait_for_selector("#voice-panel .sheet-message[data-kind=done]")
    page.fill("#voice-language", "no language!")
    page.click("#voice-save")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('Write a code such as en')")
    page.keyboard.press("Escape")
    page.wait_for_selector(entry("Grey Heron"))
    expect(page.locator(f"{entry('Grey Heron')} .voice-labels")).to_have_text("old, northern")
    assert page.locator(entry("Heron")).count() == 0
    open_panel(page, "Grey Heron")
    expect(page.locator("#voice-language")).to_have_value("de")
    page.click("#voice-remove")
    page.click("#confirm button[value=keep]")
    page.wait_for_selector("#confirm", state="hidden")
    page.click("#voice-remove")
    page.click("#confirm button[value=remove]")
    page.wait_for_selector(entry("Grey Heron"), state="detached")


def test_samples_by_mood_are_added_chosen_in_the_script_and_removed(page, write, recording):
    add(page, "Kestrel", recording)
    open_panel(page, "Kestrel")
    page.click("#voice-sample-add")
    choose(page, recording)
    page.fill("#sample-mood", "angry")
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel", state="hidden")
    page.wait_for_function("() => document.querySelectorAll('#voice-samples .sample').length === 2")
    assert page.inner_text("#voice-mood-example") == "[Kestrel | mood:angry] …"
    page.select_option("#voice-preview-mood", "angry")
    page.fill("#voice-sentence", "This sentence is long enough to be heard for a good while. " * 3)
    page.click("#voice-preview")
    pressed(page, "#voice-preview")
    page.keyboard.press("Escape")
    page.wait_for_selector(f"{entry('Kestrel')} .voice-kind:has-text('angry')")
    write("[Kestrel | mood:angry] Go.\n[Kestrel | mood:sad] Stay.\nKestrel: Well.", 3)
    page.click("#play")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'done'")
    assert page.locator("#lines .line[data-state=ready]").count() == 3
    page.click("#views [data-view=script]")
    page.wait_for_selector("#problems .problem:has-text('no sample for the mood “sad”')")
    page.click("#views [data-view=lines]")
    open_panel(page, "Kestrel")
    page.click("#voice-samples .sample:nth-child(2) .sample-remove")
    page.click("#confirm button[value=remove]")
    page.wait_for_function("() => document.querySelectorAll('#voice-samples .sample').length === 1")


def test_a_preset_of_the_engine_becomes_a_voice(page):
    page.click("#voice-new")
    page.fill("#speaker-name", "Teal")
    page.check("#sample-kinds input[value=preset]")
    preset = page.locator("#sample-preset option").nth(3)
    page.select_option("#sample-preset", preset.get_attribute("value"))
    page.click("#speaker-add")
    page.wait_for_selector(f"{entry('Teal')} .voice-kind:has-text('engine')")
    assert page.locator("#sample-kinds label:has([value=described])").is_hidden()
    open_panel(page, "Teal")
    assert page.input_value("#voice-preset") == preset.get_attribute("value")
    assert page.locator("#voice-act").is_hidden()


def test_a_voice_is_taken_along_as_a_file_and_brought_in_again(page, recording, tmp_path):
    add(page, "Swift", recording)
    open_panel(page, "Swift")
    with page.expect_download() as saved:
        page.click("#voice-export")
    assert saved.value.suggested_filename == "Swift.voice.zip"
    saved.value.save_as(tmp_path / "Swift.voice.zip")
    page.keyboard.press("Escape")
    with choosing(page, tmp_path / "Swift.voice.zip"):
        page.click("#voice-import")
        page.wait_for_selector(f"{entry('Swift 2')} .voice-kind:has-text('6.0 s')")
    (tmp_path / "broken.zip").write_bytes(b"PK nothing")
    page.set_input_files("#voice-file", tmp_path / "broken.zip")
    page.wait_for_selector(".notice[data-notice=refused]:has-text('This is no voice file')")


def test_the_mood_of_a_line_is_chosen_among_its_voices_samples(page, write, server, recording):
    add(page, "Robin", recording)
    library = SpeakerLibrary(server.workspace / "speakers")
    library.add_mood("Robin", "furious", recording)
    write("Robin: One.\nFinch: Two.", 2)
    page.click("#lines .line-text >> nth=0")
    page.wait_for_selector("#mood-part:not([hidden])")
    page.select_option("#field-mood", "furious")
    page.wait_for_function("() => window.tableread.project.lines[0].params.mood === 'furious'")
    page.select_option("#field-mood", "")
    page.wait_for_function("() => !('mood' in window.tableread.project.lines[0].params)")
    page.click("#lines .line-text >> nth=1")
    page.wait_for_selector("#mood-part", state="hidden")


@pytest.fixture
def many(page, server):
    """200 voices in the library, as if they had been made long ago."""
    folders = [server.workspace / "speakers" / f"many{idx:03}" for idx in range(200)]
    for idx, folder in enumerate(folders):
        folder.mkdir(parents=True)
        tags = ["low" if idx % 2 else "high", f"shelf {idx // 50}"]
        record = {"name": f"Bird {idx:03}", "colour": "#046bd0", "tags": tags, "language": "en"}
        (folder / "speaker.json").write_text(json.dumps(record), encoding="utf-8")
    notice_voice(server.url, folders[-1].name, tags)
    yield
    for folder in folders:
        shutil.rmtree(folder)
    # The studio sees that they are gone after a while; the next test's list would change under it.
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length < 200")


def test_two_hundred_voices_are_searched_and_filtered(page, many):
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length >= 200")
    page.fill("#voice-search", "bird 19")
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length === 12")
    page.click("#voice-tags [data-tag=low]")
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length === 7")
    assert page.inner_text("#library-count").startswith("7 of 2")
    page.fill("#voice-search", "nobody at all")
    page.wait_for_selector("#library-none:not([hidden])")
    page.fill("#voice-search", "199 LOW")
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length === 1")
    page.click("#voice-tags [data-tag=low]")


def test_the_library_is_walked_and_a_voice_added_by_keyboard_alone(page, recording):
    def press(*keys):
        for key in keys:
            page.keyboard.press(key)

    with choosing(page, recording):
        page.focus("#voice-new")
        press("Enter")
        page.wait_for_selector("#sample-panel[open]")
        assert page.evaluate("() => document.activeElement.id") == "speaker-name"
        page.keyboard.type("Aardvark")
        press("Tab", "Tab")
        assert "source-choose" in page.evaluate("() => document.activeElement.className")
        press("Enter")
        page.wait_for_selector(EDITOR)
    for _ in range(30):
        press("Tab")
        if page.evaluate("() => document.activeElement.id") == "sample-consent":
            break
    press("Space", "Tab", "Enter")
    page.wait_for_selector(entry("Aardvark"))
    page.wait_for_selector("#sample-panel", state="hidden")
    page.focus("#voice-search")
    page.keyboard.type("aardvark")
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length === 1")
    page.focus("#library .voice-open")
    press("Enter")
    page.wait_for_selector("#voice-panel[open]")
    assert page.evaluate("() => document.activeElement.id") == "voice-title"
    press("Escape")
    page.wait_for_selector("#voice-panel", state="hidden")
    assert "voice-open" in page.evaluate("() => document.activeElement.className")
    page.focus("#voice-search")
    press("Control+a", "Delete")
    page.wait_for_function("() => document.querySelectorAll('#library .voice').length > 1")
    page.focus("#library .voice:first-child .voice-open")
    press("ArrowDown")
    assert page.evaluate(FOCUSED_ROW) == 1
    press("End")
    assert page.evaluate(FOCUSED_ROW) == page.locator("#library .voice").count() - 1


def test_the_question_says_where_a_voice_is_used_and_undo_brings_it_back(page, write, recording):
    add(page, "Vera", recording)
    write("Mara: One.\nTomas: Two.", 2)
    library = page.request.get(studio_url(page, "speakers")).json()["speakers"]
    [voice] = [one["speaker_id"] for one in library if one["name"] == "Vera"]
    choose_voice(page, "Mara", f"library/{voice}")
    saved(page)
    write("Vera: One.\nTomas: Two.\nVera: Three.", 3)
    open_panel(page, "Vera")
    page.click("#voice-remove")
    page.wait_for_selector("#confirm[open]")
    assert "Used in 2 lines here and in 1 other project." in page.inner_text("#confirm-text")
    page.click("#confirm button[value=remove]")
    page.wait_for_selector(entry("Vera"), state="detached")
    page.click(".notice[data-passing]:has-text('Vera removed.') .notice-act")
    page.wait_for_selector(entry("Vera"))
