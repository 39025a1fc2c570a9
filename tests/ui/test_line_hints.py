"""What a voice would make of a line that may not be meant is seen at the line itself."""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, make, saved, violations

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror=alert(1)>"
SHOWN = "#lines .line-hint:not([hidden])"
SCRIPT = f"Mara: One.\nTomas: [gasp] Two {HOSTILE} here.\nMara: Three.\n[Mara | lang:xx] Four."


def marks(page, number):
    page.wait_for_function(
        "([shown, n]) => document.querySelectorAll(shown).length === n", arg=[SHOWN, number]
    )


def tops(page):
    return page.evaluate(
        "() => [...document.querySelectorAll('#lines .line')]"
        ".map((row) => row.getBoundingClientRect().top)"
    )


def test_marks_stand_at_their_lines_and_the_panel_tells_all(page, write):
    write(SCRIPT, 4)
    marks(page, 2)
    assert HOSTILE in page.text_content(f"{SHOWN} >> nth=0 >> .hint-text")
    page.click(f"{SHOWN} >> nth=0")
    told = page.locator("#hints li").all_inner_texts()
    assert f"{HOSTILE} would be read aloud by this voice." in " ".join(told)
    assert any("can't perform [gasp]" in one for one in told)
    assert page.inner_text("#hints-next") == "2 to check"
    page.click("#hints-next")
    assert page.get_attribute("#lines .line >> nth=3", "aria-selected") == "true"
    assert "does not speak “xx”" in page.inner_text("#hints")
    assert violations(page, ["#part-lines", "#part-line"]) == []


def test_a_mark_comes_and_goes_while_one_writes_and_no_row_moves(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    page.click("#lines .line-text >> nth=1")
    page.keyboard.press("End")
    before = tops(page)
    page.keyboard.type(" [gasp]")
    marks(page, 1)
    assert tops(page) == before
    page.wait_for_function(
        "() => /^Line 2: .*\\[gasp\\]/.test(document.querySelector('#live').textContent)"
    )
    for _ in range(len(" [gasp]")):
        page.keyboard.press("Backspace")
    marks(page, 0)
    assert tops(page) == before
    assert page.is_hidden("#hints-next")


def test_what_was_told_of_one_project_is_not_shown_in_the_next(page, write):
    write(SCRIPT, 4)
    marks(page, 2)
    write("Mara: One.", 1)
    marks(page, 0)
    page.wait_for_selector("#hints-next", state="hidden")


def test_a_deleted_line_comes_back_with_its_mark(page, write):
    write("Mara: One.\nTomas: [gasp] Two.", 2)
    marks(page, 1)
    page.click("#lines .line-grip >> nth=1")
    page.keyboard.press("Delete")
    marks(page, 0)
    saved(page)
    page.click("#undo")
    marks(page, 1)


def test_a_failed_line_is_among_those_to_check_and_says_why_once(page, write):
    write("Mara: One.\n[Mara | lang:xx] Two.", 2)
    marks(page, 1)
    page.keyboard.press("Escape")
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector("#lines .line[data-state=failed] .line-reason:not([hidden])")
    assert "does not speak “xx”" in page.inner_text("#lines .line-reason >> nth=1")
    marks(page, 0)
    assert page.inner_text("#hints-next") == "1 to check"


def test_on_a_phone_a_press_on_the_mark_leads_to_the_whole_text(open_page):
    page = open_page(has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    fill(page, SCRIPT, 4)
    marks(page, 2)
    page.tap(f"{SHOWN} >> nth=0")
    page.wait_for_selector("#hints li >> nth=0")
    page.wait_for_function(
        """() => {
          const pane = document.querySelector('#part-line').getBoundingClientRect();
          const last = document.querySelector('#hints li:last-child').getBoundingClientRect();
          return last.bottom <= pane.bottom && last.right <= innerWidth;
        }"""
    )
    assert page.evaluate("() => document.querySelector('#header').getBoundingClientRect().top") == 0


def test_settings_that_the_engine_lacks_are_listed_and_taken_away(page, write):
    write("[Finch | top_k:3] One.\n[Heron | top_k:4 | speed:1.2] Two.\nFinch: Three.", 3)
    page.click("#lines .line-text >> nth=0")
    assert page.locator("#strays .stray-name").all_inner_texts() == ["top_k: 3"]
    page.click("#lines .line-number >> nth=2", modifiers=["Shift"])
    page.wait_for_selector("#strays .stray-name:text-is('top_k: mixed')")
    page.focus("#strays [aria-label='Remove top_k']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#strays-part", state="hidden")
    params = "() => window.tableread.project.lines.map((line) => line.params ?? {})"
    assert page.evaluate(params) == [{}, {"speed": 1.2}, {}]
    page.click("#undo")
    page.wait_for_selector("#strays .stray-name:text-is('top_k: mixed')")


def test_a_direction_that_the_voice_cannot_follow_is_struck_through_and_counted(page, write):
    write("Mara: (whispering) Come here.\nTomas: One.\nMara: (shouting) Go away. (beat) Now.", 3)
    badges = page.locator(".line-badge[data-badge=ignored]")
    expect(badges).to_have_count(2)
    expect(badges.first).to_have_css("text-decoration-line", "line-through")
    assert "this voice can't follow it" in badges.first.get_attribute("title")
    page.locator("#lines .line >> nth=0").focus()
    page.keyboard.press("Escape")
    told = page.locator("#scene-unfollowed")
    expect(told).to_have_text("2 directions can’t be followed by this voice engine.")
    write("Mara: One.", 1)
    expect(told).to_be_hidden()


def test_a_line_without_sound_is_not_marked_as_ready(page, write):
    write("Mara: (gasp)\nTomas: Two.", 2)
    make(page)
    silent = page.locator("#lines .line >> nth=0")
    expect(silent).to_have_attribute("data-state", "silent")
    expect(silent.locator(".line-state")).to_have_text("no sound")
    expect(silent.locator(".line-hint")).to_contain_text("This line has no sound.")
    expect(page.locator("#lines .line >> nth=1")).to_have_attribute("data-state", "ready")


def test_text_of_another_language_is_asked_about_once_and_mended_by_one_press(page, write):
    notice = page.locator(".notice[data-notice=language]")
    write("Mara: Guten Morgen, ich habe gestern den Zug verpasst.\nTomas: Das macht nichts.", 2)
    expect(notice).to_contain_text("This script looks German. It is read as English.")
    marks(page, 0)
    assert page.is_hidden("#hints-next")
    assert violations(page, ["#notices"]) == []
    notice.locator(".notice-act").click()
    expect(notice).to_have_count(0)
    expect(page.locator("#script-language")).to_have_value("de")
    write("Mara: Good morning. Did you miss the train yesterday?\nTomas: I did.", 2)
    marks(page, 0)
    page.wait_for_function("() => window.tableread.project.saving === 'saved'")
    expect(notice).to_have_count(0)
