"""Words that a voice reads wrongly are put right where they are met, and the script stays."""

import re

import pytest
from playwright.sync_api import expect
from ui_steps import (
    NAMELESS,
    by_tom,
    fill,
    make,
    open_settings,
    reopened,
    saved,
    states,
    texts,
    violations,
)

pytestmark = pytest.mark.browser

SCRIPT = "Mara: Mr Hoxha is here.\nTomas: Who?\nMara: Hoxha, Hoxha!"
HOSTILE = "<img src=x onerror=alert(1)>"
ROWS = "#pronunciation-rows tr"

expect.set_options(timeout=45_000)


def mark_word(page, number):
    """Mark the second word of a row, as a double click does."""
    page.click(f"#lines .line-text >> nth={number}")
    page.evaluate(
        """n => {
          const row = document.querySelectorAll('#lines .line-text')[n];
          const at = row.textContent.indexOf('Hoxha');
          getSelection().setBaseAndExtent(row.firstChild, at, row.firstChild, at + 5);
        }""",
        number,
    )


def opened(page):
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("F8")
    expect(page.locator("#pronunciations")).to_be_visible()


def add(page, written, spoken):
    page.fill("#pronunciation-written", written)
    page.fill("#pronunciation-spoken", spoken)
    page.press("#pronunciation-spoken", "Enter")
    expect(row_of(page, written)).to_have_count(1)


def row_of(page, written):
    return page.locator(ROWS).filter(has=page.get_by_label(f"Word: {written}", exact=True))


def closed(page):
    page.click("#pronunciations-close")
    expect(page.locator("#pronunciations")).to_be_hidden()


def listed(page):
    """The list as the page has it."""
    return page.evaluate(
        """() => Object.fromEntries(window.tableread.project.view.pronunciations
             .map(({ written, spoken }) => [written, spoken]))"""
    )


@pytest.fixture(autouse=True)
def nothing_open(page):
    yield
    page.evaluate("() => document.querySelector('#pronunciations').close()")


def test_a_marked_word_is_said_otherwise_and_the_script_stays(page, write):
    write(SCRIPT, 3)
    make(page)
    mark_word(page, 0)
    page.keyboard.press("F8")
    expect(page.locator("#pronunciation-written")).to_have_value("Hoxha")
    expect(page.locator("#pronunciation-spoken")).to_be_focused()
    expect(page.locator("#pronunciation-reach")).to_contain_text("In 2 lines.")
    page.keyboard.type("hodja")
    becomes = "“Mr Hoxha is here.” becomes “Mr hodja is here.”"
    expect(page.locator("#pronunciation-reach")).to_contain_text(becomes)
    page.keyboard.press("Enter")
    expect(row_of(page, "Hoxha").locator(".entry-lines")).to_have_text("2 lines")
    expect(page.locator("#pronunciation-written")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#lines .line[data-state=stale]")).to_have_count(2)
    assert texts(page) == ["Mr Hoxha is here.", "Who?", "Hoxha, Hoxha!"]
    expect(page.locator("#line-spoken")).to_have_text("Spoken: Mister hodja is here.")
    page.click("#lines .line-text >> nth=1")
    expect(page.locator("#line-spoken")).to_be_hidden()


def test_numbers_are_said_in_words_or_as_they_are_written(page, write):
    write("Mara: It cost $4.50.\nTomas: Why?", 2)
    spoken = page.locator("#line-spoken")
    page.click("#lines .line-text >> nth=1")
    expect(spoken).to_be_hidden()
    page.click("#lines .line-text >> nth=0")
    expect(spoken).to_have_text("Spoken: It cost four dollars fifty.")
    page.check("#as-written")
    expect(spoken).to_be_hidden()
    page.uncheck("#as-written")
    expect(spoken).to_be_visible()
    open_settings(page)
    page.uncheck("#says-words")
    saved(page)
    page.keyboard.press("Escape")
    page.click("#lines .line-text >> nth=0")
    expect(spoken).to_be_hidden()
    expect(page.locator("#as-written-part")).to_be_hidden()
    assert texts(page) == ["It cost $4.50.", "Why?"]


def test_the_panel_of_a_line_leads_there_too(page, write):
    write(SCRIPT, 3)
    mark_word(page, 2)
    page.click("#line-pronounce")
    expect(page.locator("#pronunciation-written")).to_have_value("Hoxha")
    add(page, "Hoxha", "hodja")
    closed(page)
    mark_word(page, 0)
    page.click("#line-pronounce")
    expect(page.get_by_label("Say Hoxha as")).to_be_focused()


def test_a_word_that_is_marked_in_the_script_is_filled_in_too(page, write):
    write(SCRIPT, 3)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value(re.compile("Hoxha"))
    page.focus("#script")
    page.evaluate(
        """() => {
          const script = document.querySelector('#script');
          const at = script.value.indexOf('Who');
          script.setSelectionRange(at, at + 3);
        }"""
    )
    page.keyboard.press("F8")
    expect(page.locator("#pronunciation-written")).to_have_value("Who")
    expect(page.locator("#pronunciation-reach")).to_contain_text("In 1 line.")
    page.keyboard.press("Escape")
    page.click("#views [data-view=lines]")


def test_undo_brings_the_former_takes_back_unmade(page, write):
    write(SCRIPT, 3)
    make(page)
    takes = "() => window.tableread.project.lines.map(({ chosen }) => chosen)"
    before = page.evaluate(takes)
    opened(page)
    add(page, "Hoxha", "hodja")
    page.keyboard.press("Escape")
    expect(page.locator("#lines .line[data-state=stale]")).to_have_count(2)
    make(page)
    assert [a == b for a, b in zip(before, page.evaluate(takes), strict=True)] == [
        False,
        True,
        False,
    ]
    opened(page)
    page.keyboard.press("Control+z")
    expect(page.locator(ROWS)).to_have_count(0)
    expect(page.locator("#lines .line[data-state=ready]")).to_have_count(3)
    assert page.evaluate(takes) == before


def test_hostile_words_are_shown_as_typed(page, write):
    write(f"Mara: One {HOSTILE} here.\nTomas: Two.", 2)
    opened(page)
    add(page, HOSTILE, HOSTILE)
    add(page, "Two", HOSTILE)
    row = row_of(page, HOSTILE)
    expect(row.locator(".entry-spoken")).to_have_value(HOSTILE)
    expect(row.locator(".entry-lines")).to_have_text("no line")
    expect(row).to_have_attribute("data-unused", "true")
    expect(row_of(page, "Two").locator(".entry-hint")).to_contain_text("would be read aloud")
    closed(page)
    page.click("#lines .line-text >> nth=1")
    expect(page.locator("#line-spoken-text")).to_have_text(f"{HOSTILE}.")
    saved(page)
    reopened(page)
    assert listed(page) == {HOSTILE: HOSTILE, "Two": HOSTILE}


def test_the_list_is_quick_by_keyboard_alone(page, write):
    write(SCRIPT, 3)
    opened(page)
    for word in ("bee", "cat", "ant"):
        page.keyboard.type(word)
        page.keyboard.press("Enter")
        page.keyboard.type(f"{word}s")
        page.keyboard.press("Enter")
    expect(page.locator(ROWS)).to_have_count(3)
    page.keyboard.press("Escape")
    opened(page)
    assert [one.input_value() for one in page.locator(".entry-written").all()] == [
        "ant",
        "bee",
        "cat",
    ]
    page.get_by_label("Say ant as").select_text()
    page.keyboard.type("emmet")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Say bee as")).to_be_focused()
    page.keyboard.type("nothing of this")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Say bee as")).to_have_value("bees")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Say cat as")).to_be_focused()
    page.get_by_label("Word: bee").fill("ant")
    page.keyboard.press("Enter")
    expect(page.locator("#pronunciation-problem")).to_have_text("“ant” is in the list already.")
    page.get_by_label("Word: bee").fill("wasp")
    page.keyboard.press("Enter")
    page.get_by_label("Remove cat").press("Enter")
    expect(page.locator(ROWS)).to_have_count(2)
    saved(page)
    assert listed(page) == {"ant": "emmet", "wasp": "bees"}


def test_what_others_add_comes_in_while_one_writes(page, write):
    project = write(SCRIPT, 3)
    opened(page)
    add(page, "Hoxha", "hodja")
    saved(page)
    page.get_by_label("Say Hoxha as").select_text()
    page.keyboard.type("half of")
    by_tom(page, project, {"op": "pronounce", "put": [{"written": "Who", "spoken": "hoo"}]})
    expect(row_of(page, "Who").locator(".entry-lines")).to_have_text("1 line")
    expect(page.get_by_label("Say Hoxha as")).to_be_focused()
    expect(page.get_by_label("Say Hoxha as")).to_have_value("half of")
    page.keyboard.press("Tab")
    saved(page)
    assert listed(page) == {"Hoxha": "half of", "Who": "hoo"}


def test_a_spoken_form_is_heard_in_a_voice_of_the_cast(page, write):
    write(SCRIPT, 3)
    opened(page)
    add(page, "Hoxha", "hodja")
    page.select_option("#pronunciation-voice", "Tomas")
    with page.expect_response("**/pronunciations/hear") as told:
        page.click("[aria-label='Listen to Hoxha']")
    assert told.value.ok
    assert told.value.request.post_data_json == {"speaker": "Tomas", "text": "hodja"}
    expect(page.locator("#pronunciation-problem")).to_be_hidden()


def test_a_list_comes_from_a_file_and_goes_into_one(page, write, tmp_path):
    write(SCRIPT, 3)
    opened(page)
    content = b"Hoxha = hodja\nWho = hoo\n"
    page.set_input_files(
        "#pronunciation-file", {"name": "list.txt", "mimeType": "text/plain", "buffer": content}
    )
    expect(page.locator(ROWS)).to_have_count(2)
    expect(row_of(page, "Hoxha").locator(".entry-lines")).to_have_text("2 lines")
    saved(page)
    with page.expect_download() as download:
        page.click("#pronunciation-csv")
    path = tmp_path / "list.csv"
    download.value.save_as(path)
    assert "Hoxha,hodja,no,yes" in path.read_text(encoding="utf-8-sig")
    page.set_input_files(
        "#pronunciation-file", {"name": "bad.txt", "mimeType": "text/plain", "buffer": b"no sign"}
    )
    expect(page.locator("#pronunciation-problem")).to_contain_text("Line 1: “no sign” has no “=”")
    assert states(page) == {"none": 3}


def test_a_long_list_is_searched(page, write):
    project = write(SCRIPT, 3)
    entries = [{"written": f"word{n:04}", "spoken": f"said {n}"} for n in range(1_999)]
    by_tom(page, project, {"op": "pronounce", "put": [*entries, {"written": "Hoxha"}]})
    expect(page.locator("#pronunciations-open-count")).to_have_text("2000")
    opened(page)
    expect(page.locator(ROWS)).to_have_count(100)
    page.click("#pronunciation-more")
    expect(page.locator(ROWS)).to_have_count(300)
    page.fill("#pronunciation-written", "one more")
    page.press("#pronunciation-spoken", "Enter")
    expect(page.locator("#pronunciation-problem")).to_contain_text("at most 2,000 pronunciations")
    expect(page.locator("#pronunciations-count")).to_have_text("2000")
    page.fill("#pronunciation-search", "said 1998")
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator("#pronunciations-count")).to_have_text("1 of 2000")
    page.fill("#pronunciation-search", "nobody says this")
    expect(page.locator("#pronunciation-none")).to_be_visible()
    closed(page)
    mark_word(page, 0)
    page.keyboard.press("F8")
    expect(page.get_by_label("Say Hoxha as")).to_be_focused()


def test_axe_finds_nothing_wrong_with_it_and_a_phone_shows_all_of_it(open_page):
    page = open_page(color_scheme="light")
    fill(page, SCRIPT, 3)
    opened(page)
    add(page, "Hoxha", "[wobble] hodja")
    add(page, "nowhere", "")
    expect(row_of(page, "Hoxha").locator(".entry-hint")).to_be_visible()
    page.fill("#pronunciation-written", "Who")
    expect(page.locator("#pronunciation-reach")).to_contain_text("In 1 line.")
    assert violations(page, ["#pronunciations"]) == []
    page.evaluate("() => document.body.classList.add('dark')")
    assert violations(page, ["#pronunciations"]) == []
    page.set_viewport_size({"width": 390, "height": 844})
    beyond = page.evaluate(
        """() => [...document.querySelectorAll('#pronunciations *')]
             .filter((one) => one.checkVisibility() && !one.closest('.visually-hidden, thead'))
             .filter((one) => one.getBoundingClientRect().right > innerWidth)
             .map((one) => one.outerHTML.slice(0, 100))"""
    )
    assert beyond == []
    assert page.evaluate(NAMELESS) == []
    closed(page)
    page.click("#views [data-view=cast]")
    page.click("#pronunciations-open")
    expect(page.locator(ROWS)).to_have_count(2)
    closed(page)
    page.click("#views [data-view=lines]")
    page.click("#lines .line-text >> nth=0")
    page.click("#views [data-view=line]")
    expect(page.locator("#line-spoken")).to_be_visible()
    assert violations(page, ["#pronounce-part"]) == []
