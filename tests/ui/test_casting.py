"""Who speaks for whom belongs to the project, and is seen wherever it is open."""

import pytest
from ui_steps import saved

pytestmark = pytest.mark.browser

CHOICE = "#cast .voice:has(.voice-name:text-is('Finch')) .voice-choice"
SHOWN = "v => document.querySelector('#cast .voice-choice').value === v"


def test_a_voice_of_the_library_speaks_for_a_name(page, write):
    write("Finch: One.\nHeron: Two.", 2)
    voice = page.locator(CHOICE).evaluate("(select) => select.options[1].value")
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
