"""Who speaks for whom belongs to the project, and is seen wherever it is open."""

import pytest
from ui_steps import saved

pytestmark = pytest.mark.browser

CHOICE = "#cast .voice:has(.voice-name:text-is('Finch')) .voice-choice"
SHOWN = "v => document.querySelector('#cast .voice-choice').value === v"


def test_a_voice_of_the_library_speaks_for_a_name(page, write):
    write("Finch: One.\nHeron: Two.", 2)
    voice = page.locator(f"{CHOICE} option >> nth=1").get_attribute("value")
    page.locator(CHOICE).select_option(voice)
    page.wait_for_function("v => window.tableread.project.view.cast.Finch === v", arg=voice)
    saved(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    page.wait_for_function(SHOWN, arg=voice)
    page.locator(CHOICE).select_option("")
    page.wait_for_function("() => !window.tableread.project.view.cast.Finch")
    page.click("#undo")
    page.wait_for_function(SHOWN, arg=voice)


def test_a_speaker_is_renamed_in_all_lines_by_keyboard_and_undo_brings_the_name_back(page, write):
    hostile = "<img src=x onerror=alert(1)>"
    write("Finch: One.\nHeron: Two.\nfinch: Three.", 3)
    page.focus("#cast [aria-label='Rename Finch in the script']")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "New name of Finch"
    page.keyboard.type(hostile)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "name => [...document.querySelectorAll('#cast .voice-name')]"
        ".some((one) => one.textContent === name)",
        arg=hostile,
    )
    speakers = page.locator("#lines .line-speaker").all_inner_texts()
    assert speakers == [hostile, "Heron", hostile]
    page.wait_for_function(
        "label => document.activeElement.ariaLabel === label",
        arg=f"Rename {hostile} in the script",
    )
    page.keyboard.press("Enter")
    page.keyboard.type("Nobody")
    page.keyboard.press("Escape")
    saved(page)
    page.click("#undo")
    page.wait_for_selector("#cast .voice-name:text-is('Finch')")
