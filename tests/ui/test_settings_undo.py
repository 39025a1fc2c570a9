"""What one control changes in one go is one step of undo, like typing in a line."""

import pytest
from ui_steps import open_settings, saved

pytestmark = pytest.mark.browser

# Arrow keys on a slider or a number change it with each press.
STEPPED = """([selector, times]) => {
  const input = document.querySelector(selector);
  for (let n = 0; n < times; n += 1) {
    input.stepUp();
    for (const type of ['input', 'change']) input.dispatchEvent(new Event(type, { bubbles: true }));
  }
}"""
CHARACTER = "() => window.tableread.project.view.characters.ivo ?? null"
SETTINGS = "() => window.tableread.project.view.settings"


def step(page, selector, times=3):
    page.evaluate(STEPPED, [selector, times])
    saved(page)


def undo(page):
    page.click("#undo")
    saved(page)


def open_character(page):
    page.click("#cast .voice-settings >> nth=0")
    page.wait_for_selector("#character-params .setting-range")


def test_a_characters_slider_is_one_step_and_the_next_slider_another(page, write):
    write("Ivo: How long?", 1)
    open_character(page)
    step(page, ["#character-params .setting-range", "nth=0"][0])
    step(page, "#character-level")
    both = page.evaluate(CHARACTER)
    assert both["level_db"] > 0
    assert len(both["params"]) == 1
    page.keyboard.press("Escape")
    undo(page)
    page.wait_for_function("() => !window.tableread.project.view.characters.ivo.level_db")
    assert page.evaluate(CHARACTER)["params"] == both["params"]
    undo(page)
    page.wait_for_function("() => !window.tableread.project.view.characters.ivo")


def test_resetting_all_is_a_step_of_its_own(page, write):
    write("Ivo: How long?", 1)
    open_character(page)
    step(page, "#character-params .setting-range")
    set_to = page.evaluate(CHARACTER)["params"]
    page.click("#character-reset")
    saved(page)
    assert not page.evaluate(CHARACTER)
    page.keyboard.press("Escape")
    undo(page)
    page.wait_for_function("() => window.tableread.project.view.characters.ivo")
    assert page.evaluate(CHARACTER)["params"] == set_to


def test_a_projects_setting_is_one_step(page, write):
    write("Ivo: How long?", 1)
    before = page.evaluate(SETTINGS)
    open_settings(page)
    step(page, "#usual-gap")
    step(page, "#project-seed")
    after = page.evaluate(SETTINGS)
    assert after["gap_s"] > (before.get("gap_s") or 0)
    page.keyboard.press("Escape")
    undo(page)
    page.wait_for_function("() => window.tableread.project.view.settings.seed == null")
    assert page.evaluate(SETTINGS)["gap_s"] == after["gap_s"]
    undo(page)
    page.wait_for_function(
        "gap => window.tableread.project.view.settings.gap_s === gap", arg=before["gap_s"]
    )
    assert page.evaluate(SETTINGS) == before


def test_a_lines_slider_is_one_step(page, write):
    write("Ivo: How long?\nAnna: Long.", 2)
    page.click("#lines .line-number >> nth=0")
    step(page, "#params .param-range")
    assert page.evaluate("() => Object.keys(window.tableread.project.lines[0].params).length") == 1
    undo(page)
    page.wait_for_function(
        "() => Object.keys(window.tableread.project.lines[0].params ?? {}).length === 0"
    )
    page.wait_for_selector("#undo:disabled")
