"""Every flow of the speaker manager by keyboard alone, and nothing lost on the way."""

from contextlib import contextmanager

import pytest
from ui_steps import add_voice, tab_to

from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.browser

ENTRY = "#library .voice:has(.voice-name:text-is('{}'))"
EDITOR = "#sample-editor:not([hidden]):not([aria-busy=true])"


@pytest.fixture
def page(page):
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")
    return page


@pytest.fixture
def library(server):
    return SpeakerLibrary(server.workspace / "speakers")


@pytest.fixture
def opened(page, server, recording):
    """Puts a voice into the library and opens its panel by keyboard."""

    def opened_one(name):
        add_voice(server.url, server.workspace, name, sample=recording, transcript="Hello.")
        open_panel(page, name)

    return opened_one


def open_panel(page, name):
    page.wait_for_selector(ENTRY.format(name))
    page.focus(f"{ENTRY.format(name)} .voice-open")
    page.keyboard.press("Enter")
    page.wait_for_selector("#voice-panel[open]")


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def says(page, text, panel="voice"):
    page.wait_for_selector(f"#{panel}-panel .sheet-message:has-text('{text}')")


@contextmanager
def choosing(page, path):
    """Answers with a file whenever the page asks for one."""

    def choose_it(chooser):
        chooser.set_files(path)

    page.on("filechooser", choose_it)
    yield
    page.remove_listener("filechooser", choose_it)


def confirmed(page):
    page.wait_for_selector("#confirm[open]")
    tab_to(page, "#confirm [value=remove]")
    press(page, "Enter")
    page.wait_for_selector("#confirm", state="hidden")


def test_a_sample_is_repaired_and_the_change_undone_after_a_reload(page, opened, library):
    opened("Avocet")
    before = library.get("Avocet").sample.read_bytes()
    tab_to(page, ".sample-mend")
    press(page, "Enter")
    page.wait_for_selector(EDITOR)
    tab_to(page, "#sample-repair")
    press(page, "Space")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    tab_to(page, "#speaker-add")
    press(page, "Enter")
    says(page, "Sample changed")
    assert library.get("Avocet").sample.read_bytes() != before
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    open_panel(page, "Avocet")
    tab_to(page, ".sample-undo")
    press(page, "Enter")
    says(page, "is unchanged again")
    assert library.get("Avocet").sample.read_bytes() == before


def test_a_mood_is_added_renamed_removed_and_restored(page, opened, library, recording):
    opened("Bunting")
    tab_to(page, "#voice-sample-add")
    with choosing(page, recording):
        press(page, "Enter")
        page.wait_for_selector("#sample-panel[open]")
        tab_to(page, "#sample-source .source-choose")
        press(page, "Enter")
        page.wait_for_selector(EDITOR)
    tab_to(page, "#sample-mood")
    page.keyboard.type("angry")
    tab_to(page, "#sample-consent")
    press(page, "Space")
    tab_to(page, "#speaker-add")
    press(page, "Enter")
    page.wait_for_selector("#sample-panel", state="hidden")
    page.wait_for_function("() => document.querySelectorAll('#voice-samples .sample').length === 2")
    tab_to(page, "#voice-samples .sample:nth-child(2) .sample-mood")
    press(page, "Control+a")
    page.keyboard.type("furious")
    press(page, "Tab")
    page.wait_for_selector("[aria-label='Remove the furious sample']")
    tab_to(page, "[aria-label='Remove the furious sample']")
    press(page, "Enter")
    confirmed(page)
    page.wait_for_selector("#voice-gone:not([hidden])")
    assert library.get("Bunting").moods == ()
    tab_to(page, "[aria-label='Restore the furious sample']")
    press(page, "Enter")
    says(page, "The furious sample was restored")
    assert [one.mood for one in library.get("Bunting").moods] == ["furious"]


def test_a_voice_is_renamed_removed_and_restored(page, opened, library):
    opened("Cuckoo")
    tab_to(page, "#voice-name")
    press(page, "Control+a")
    page.keyboard.type("Grey Cuckoo")
    press(page, "Tab")
    page.wait_for_selector("#voice-title:text-is('Grey Cuckoo')")
    tab_to(page, "#voice-remove")
    press(page, "Enter")
    confirmed(page)
    page.wait_for_selector(ENTRY.format("Grey Cuckoo"), state="detached")
    page.wait_for_selector("#library-removed:not([hidden])")
    tab_to(page, "#library-removed summary")
    press(page, "Enter")
    tab_to(page, "[aria-label='Restore Grey Cuckoo']")
    press(page, "Enter")
    page.wait_for_selector(ENTRY.format("Grey Cuckoo"))
    assert library.get("Grey Cuckoo").transcript == "Hello."


def test_a_voice_file_goes_out_and_comes_in(page, opened, tmp_path):
    opened("Diver")
    tab_to(page, "#voice-export")
    with page.expect_download() as saved:
        press(page, "Enter")
    saved.value.save_as(tmp_path / "Diver.voice.zip")
    press(page, "Escape")
    page.wait_for_selector("#voice-panel", state="hidden")
    with choosing(page, tmp_path / "Diver.voice.zip"):
        page.focus("#voice-new")
        tab_to(page, "#voice-import")
        press(page, "Enter")
        page.wait_for_selector(f"{ENTRY.format('Diver 2')} .voice-kind:has-text('6.0 s')")


def test_details_that_are_typed_outlive_what_saves_itself_and_the_closing(page, opened, library):
    opened("Egret")
    page.fill("#voice-labels", "old, northern")
    page.fill("#voice-samples .sample-transcript", "Hello there.")
    page.check("#voice-samples .sample-consent")
    page.wait_for_selector(".sample-consent-text:has-text('Confirmed on')")
    assert page.input_value("#voice-labels") == "old, northern"
    page.fill("#voice-language", "de")
    press(page, "Escape")
    page.wait_for_selector("#voice-panel", state="hidden")
    page.wait_for_selector(f"{ENTRY.format('Egret')} .voice-labels:has-text('old, northern')")
    open_panel(page, "Egret")
    page.wait_for_function("() => document.querySelector('#voice-language').value === 'de'")
    egret = library.get("Egret")
    assert (egret.tags, egret.transcript) == (("old", "northern"), "Hello there.")


def test_a_name_that_is_refused_says_so_and_stays_to_be_mended(page, opened, library):
    library.add("Fulmar")
    opened("Gannet")
    page.fill("#voice-name", "fulmar")
    press(page, "Tab")
    says(page, "There is a speaker")
    assert page.input_value("#voice-name") == "fulmar"
    press(page, "Escape")
    page.wait_for_selector("#voice-panel", state="hidden")
    assert library.find("Gannet") is not None


def test_a_recording_just_made_is_not_dropped_without_a_question(page, library):
    page.click("#voice-new")
    page.fill("#speaker-name", "Hoopoe")
    page.click("#sample-source .source-record")
    # The microphone runs in real time; the page counts its seconds.
    page.wait_for_function(
        "() => Number(document.querySelector('#sample-source .source').dataset.seconds) >= 2"
    )
    page.click("#sample-source .source-record")
    page.wait_for_selector(EDITOR)
    press(page, "Escape")
    page.wait_for_selector("#confirm[open]")
    press(page, "Escape")
    page.wait_for_selector("#confirm", state="hidden")
    page.click("#sample-panel .sheet-close")
    page.wait_for_selector("#confirm[open]")
    page.click("#confirm [value=keep]")
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(ENTRY.format("Hoopoe"))
    assert library.get("Hoopoe").sample is not None


def test_a_second_file_that_cannot_be_read_leaves_the_first(page, library, recording, tmp_path):
    broken = tmp_path / "broken.wav"
    broken.write_bytes(b"this is no sound")
    page.click("#voice-new")
    page.fill("#speaker-name", "Ibis")
    page.set_input_files("#sample-source input[type=file]", recording)
    page.wait_for_selector(EDITOR)
    page.fill("#sample-transcript", "What I said.")
    page.set_input_files("#sample-source input[type=file]", broken)
    says(page, "is not a recording", "sample")
    assert page.inner_text("#sample-state") == "“voice.wav”, 6.0 s"
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector(ENTRY.format("Ibis"))
    assert library.get("Ibis").transcript == "What I said."


def test_what_was_written_to_a_file_is_asked_about_before_it_is_lost(page, recording):
    page.click("#voice-new")
    page.set_input_files("#sample-source input[type=file]", recording)
    page.wait_for_selector(EDITOR)
    page.fill("#sample-transcript", "What I said.")
    press(page, "Escape")
    page.wait_for_selector("#confirm[open]")
    page.click("#confirm [value=remove]")
    page.wait_for_selector("#sample-panel", state="hidden")
