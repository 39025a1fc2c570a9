"""Every job of a producer by keyboard alone; the focus is always in sight."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from test_start import HEARD, clip, empty
from ui_steps import line_ids, make, saved, studio_url, tab_to

pytestmark = pytest.mark.browser

SCENE = "## One\nIda: We should have left.\nTom: And yet here you are.\n## Two\nIda: Good night."
SHOWN = "#lines .line:visible"
FOCUSED = "one => document.activeElement.matches(one)"
PRESSED = """() => {
  window.pointed = 0;
  addEventListener('pointerdown', ({ isTrusted }) => (window.pointed += Number(isTrusted)), true);
}"""


@pytest.fixture
def page(page):
    """A page that nobody points at; nothing has the focus at first."""
    page.evaluate("() => localStorage.setItem('tableread.tour', 'seen')")
    page.evaluate(PRESSED)
    yield page
    assert page.evaluate("() => window.pointed ?? 0") == 0
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")


@pytest.fixture
def scene(page, write):
    """A scene of three lines in two sections; the keyboard is at the top of the page."""
    write(SCENE, 5)
    page.evaluate("() => document.activeElement.blur()")
    return page


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def at(page, selector):
    """Wait until the focus is somewhere, whatever it came through."""
    page.wait_for_function(FOCUSED, arg=selector)


def row(number):
    return f"#lines .line:nth-child({number})"


def to_row(page, number):
    """Go to a row from wherever the keyboard is."""
    tab_to(page, "#lines .line")
    press(page, "Home", *["ArrowDown"] * (number - 1))
    at(page, row(number))


def to_option(page, selector, label):
    """Choose in a closed list, by arrow keys."""
    tab_to(page, selector)
    chosen = f"() => document.querySelector('{selector}').selectedOptions[0].textContent"
    press(page, "Home")
    for _ in range(page.locator(f"{selector} option").count()):
        if page.evaluate(chosen).startswith(label):
            return
        press(page, "ArrowDown")
    pytest.fail(f"{selector} has no {label}")


def test_a_script_is_pasted_and_heard_and_the_tour_is_left(open_page):
    page = open_page()
    empty(page)
    clip(page, SCENE)
    page.evaluate("() => document.activeElement.blur()")
    tab_to(page, "#start-paste")
    press(page, "Enter")
    at(page, "#paste-text")
    press(page, "Control+v")
    expect(page.locator("#tour")).to_be_visible()
    at(page, "#tour-title")
    tab_to(page, "#tour-next")
    press(page, "Enter")
    expect(page.locator("#tour-step")).to_have_text("Step 2 of 5")
    press(page, "Escape")
    expect(page.locator("#tour")).to_be_hidden()
    at(page, "#lines .line-text")
    press(page, "Control+Enter")
    page.wait_for_function(HEARD)
    page.evaluate("() => window.tableread.player.stop()")


def test_a_character_is_cast_by_ear(scene):
    page = scene
    tab_to(page, "#cast .voice-choice[aria-label^='Voice for Tom']")
    press(page, "Enter")
    page.wait_for_selector("#voice-picker[data-heard]")
    heard = page.get_attribute("#voice-picker", "data-heard")
    at(page, "#picker-list .pick-open")
    press(page, "ArrowDown")
    page.wait_for_function(
        "old => ![old, undefined].includes(document.getElementById('voice-picker').dataset.heard)",
        arg=heard,
    )
    chosen = page.get_attribute("#voice-picker", "data-heard")
    tab_to(page, "#picker-search")
    tab_to(page, "#picker-use")
    press(page, "Enter")
    page.wait_for_selector("#voice-picker", state="hidden")
    at(page, "#cast .voice-choice[aria-label^='Voice for Tom']")
    voices = "() => window.tableread.project.view.characters.tom.voices.draft"
    assert chosen == f"engine/draft/{page.evaluate(voices)}"
    tab_to(page, "#cast [aria-label='Settings of Tom']", "Shift+Tab")
    press(page, "Enter")
    at(page, "#character-params input")
    tab_to(page, "#character-gap")
    page.keyboard.type("1.2")
    tab_to(page, "#character-level", "Shift+Tab")
    page.keyboard.type("-3")
    press(page, "Escape")
    at(page, "#cast [aria-label='Settings of Tom']")
    kept = page.evaluate("() => window.tableread.project.view.characters.tom")
    assert (kept["gap_s"], kept["level_db"]) == (1.2, -3)


def test_takes_are_made_compared_starred_and_chosen(scene):
    page = scene
    make(page)
    to_row(page, 2)
    press(page, "r")
    expect(page.locator("#takes .take")).to_have_count(2)
    page.wait_for_function("() => !window.tableread.project.rendering")
    # The list may come before the line's own news of its take.
    expect(page.locator("#takes .take").first).to_have_attribute("data-chosen", "true")
    first = page.get_attribute("#takes .take[data-chosen=false]", "data-take")
    press(page, "a", "u")
    page.wait_for_function(
        "old => window.tableread.project.lines[1].take?.take_id === old", arg=first
    )
    at(page, row(2))
    star = f"#takes .take[data-take='{first}'] .take-star"
    tab_to(page, star)
    press(page, "Space")
    page.wait_for_selector(f"{star}[aria-pressed=true]")
    at(page, star)
    tab_to(page, "#takes .take[data-chosen=false] .take-choose", "Shift+Tab")
    press(page, "Enter")
    page.wait_for_function(
        "old => window.tableread.project.lines[1].take?.take_id !== old", arg=first
    )
    at(page, "#takes .take[data-chosen=true] .take-choose")


def test_gaps_and_pauses_are_set(scene):
    page = scene
    make(page)
    to_row(page, 3)
    tab_to(page, "#line-more summary")
    press(page, "Enter")
    tab_to(page, "#field-gap")
    press(page, "Control+a")
    page.keyboard.type("0.8")
    tab_to(page, "#field-before")
    saved(page)
    gap = "() => window.tableread.project.lines[2].params.gap_s"
    assert page.evaluate(gap) == 0.8
    to_row(page, 3)
    press(page, "ArrowRight")  # the playhead is there now
    page.evaluate("([id]) => window.tableread.playback.placeAt(id)", [line_ids(page)[2]])
    tab_to(page, "#timeline")
    press(page, "Alt+ArrowRight")
    page.wait_for_function(f"() => ({gap})() > 0.8")
    at(page, "#timeline")
    to_row(page, 3)
    press(page, "p")
    at(page, "#lines .line[data-kind=silence]")
    press(page, "3")
    page.wait_for_function("() => window.tableread.project.lines[3].duration_s === 3")
    press(page, "Enter")
    at(page, "#lines .line[data-kind=silence]")
    page.evaluate("() => { document.getElementById('line-more').open = false; }")


def test_sections_are_folded_and_played_and_rows_have_their_controls(scene):
    page = scene
    to_row(page, 1)
    tab_to(page, f"{row(1)} .line-fold")
    press(page, "Enter")
    expect(page.locator("#lines .line:visible")).to_have_count(3)
    at(page, f"{row(1)} .line-fold")
    press(page, "Space")
    expect(page.locator(SHOWN)).to_have_count(5)
    press(page, "Escape")
    at(page, row(1))
    press(page, "Space")
    page.wait_for_function("() => window.tableread.player.playing")
    press(page, "Space")
    page.wait_for_function("() => !window.tableread.player.playing")
    to_row(page, 2)
    tab_to(page, f"{row(2)} .line-speaker")
    press(page, "Enter")
    at(page, "#speaker-menu [role=menuitemradio]")
    press(page, "ArrowDown", "Enter")
    at(page, row(2))
    page.wait_for_function("() => window.tableread.project.lines[1].speaker === 'Tom'")
    press(page, "m")
    at(page, "#record-go")
    press(page, "ArrowDown")
    page.wait_for_selector("#record-text:text-is('And yet here you are.')")
    press(page, "Escape")
    page.wait_for_selector("#record-panel", state="hidden")
    at(page, row(3))


def test_a_line_is_commented_on_and_the_comment_resolved(scene):
    page = scene
    to_row(page, 3)
    tab_to(page, "#comment-text")
    page.keyboard.type("Slower, I think.")
    tab_to(page, "#comment-author")
    press(page, "Control+a")
    page.keyboard.type("Ruth")
    tab_to(page, "#comment-add")
    press(page, "Enter")
    page.wait_for_selector("#lines .line-comments")
    at(page, "#comment-add")
    tab_to(page, "#comments .comment-resolve", "Shift+Tab")
    press(page, "Enter")
    page.wait_for_selector("#comments .comment[data-resolved=true]")
    at(page, "#comments .comment-resolve")
    tab_to(page, "#comments-open")
    press(page, "Enter")
    at(page, "#comments-panel *")
    tab_to(page, "#comments-resolved")
    press(page, "Space")
    tab_to(page, "#comments-list .comment-place")
    press(page, "Escape")
    page.wait_for_selector("#comments-panel", state="hidden")
    at(page, "#comments-open")
    press(page, "Enter")
    tab_to(page, "#comments-list .comment-place")
    press(page, "Enter")
    at(page, row(3))


def test_the_sound_is_exported_at_the_loudness_of_a_podcast(scene):
    page = scene
    make(page)
    to_row(page, 3)
    press(page, "Control+e")
    at(page, "#sound-format")
    to_option(page, "#sound-format", "MP3")
    to_option(page, "#sound-loudness", "Podcast, −16 LUFS")
    tab_to(page, "#sound-save")
    with page.expect_download() as download:
        press(page, "Enter")
    assert download.value.suggested_filename.endswith(".mp3")
    at(page, "#sound-form *")
    press(page, "Escape")
    page.wait_for_selector("#sound-form", state="hidden")
    at(page, row(3))


def test_lines_are_filtered_and_all_shown_again(scene):
    page = scene
    page.wait_for_selector("#filter-speakers option >> nth=1", state="attached")
    to_option(page, "#filter", "Tom")
    expect(page.locator(f"{SHOWN}:has-text('And yet here you are.')")).to_have_count(1)
    # The row that is worked on stays, whoever says it.
    expect(
        page.locator(f"{SHOWN}:not([aria-selected=true]):has-text('Good night.')")
    ).to_have_count(0)
    tab_to(page, "#filter-clear")
    press(page, "Enter")
    expect(page.locator("#lines .line:visible")).to_have_count(5)
    at(page, "#filter")


def test_panels_give_the_focus_back(scene):
    page = scene
    make(page)
    to_row(page, 2)
    for opens, panel in (("Control+f", "#find-bar"), ("g", "#goto-panel"), ("?", "#keys")):
        press(page, opens)
        at(page, f"{panel}, {panel} *")
        press(page, "Escape")
        page.wait_for_selector(panel, state="hidden")
        at(page, row(2))
    press(page, "F8")
    at(page, "#pronunciation-written")
    press(page, "Escape")
    at(page, row(2))
    for button, panel in (
        ("#model-chip", "#model-panel"),
        ("#keys-open", "#keys"),
        ("#pronunciations-open", "#pronunciations"),
        ("#voice-new", "#sample-panel"),
        ("#goto-open", "#goto-panel"),
        ("#download", "#sound-form"),
    ):
        tab_to(page, button)
        press(page, "Enter")
        page.wait_for_selector(f"{panel}:visible")
        press(page, "Escape")
        page.wait_for_selector(panel, state="hidden")
        at(page, f"{button}, {row(2)}" if button == "#goto-open" else button)


def test_the_table_read_is_opened_and_the_page_speaks_another_language(open_page):
    page = open_page()
    page.evaluate("() => document.activeElement.blur()")
    tab_to(page, "#project-open")
    press(page, "Enter")
    tab_to(page, "#table-read")
    with page.context.expect_page() as opened:
        press(page, "Enter")
    opened.value.wait_for_selector("#text")
    opened.value.close()
    page.bring_to_front()
    others = len(page.request.get(studio_url(page, "projects")).json()) - 1
    expect(page.locator("#projects > *")).to_have_count(others)
    to_option(page, "#page-language", "Français")
    assert page.evaluate("() => document.documentElement.lang") == "en"
    press(page, "Enter")
    page.wait_for_function("() => document.documentElement.lang === 'fr'")
    page.wait_for_selector("body[data-tableread=ready]")
