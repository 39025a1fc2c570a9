"""Words of a row, marked and said again: by the button and by its key."""

import pytest
from playwright.sync_api import expect
from ui_steps import first_take, make, mark, saved, wait_for_other_take

pytestmark = pytest.mark.browser

TEXT = "Mara: I never said that you could take the boat out.\nTomas: Well, you did."
PLAYED = """() => {
  const { bus, player } = window.tableread;
  bus.on('player.changed', () => { window.played ||= player.playing; });
}"""
"""From now on `window.played` is whether anything was played, be it over by now."""


def test_the_marked_words_are_said_again_and_one_undo_takes_that_back(page, write):
    write(TEXT, 2)
    button = page.locator("#line-patch")
    expect(button).to_be_hidden()
    make(page)
    old = first_take(page)
    mark(page, "could take")
    expect(button).to_have_text("Say this again")
    page.evaluate(PLAYED)
    button.click()
    new = wait_for_other_take(page, old["take_id"])
    assert new["patch"]["take_id"] == old["take_id"]
    assert 0 < new["patch"]["start"] < new["patch"]["end"] < new["samples"]
    rows = page.locator("#takes .take-text")
    expect(rows.first).to_contain_text("the rest is take 1.")
    expect(rows.last).to_have_text("")
    page.wait_for_function("() => window.played")
    page.evaluate("() => window.tableread.player.stop()")
    page.click("#undo")
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take.take_id === old", arg=old["take_id"]
    )
    saved(page)


def test_a_key_says_them_again_while_the_caret_is_in_the_text(page, write):
    write(TEXT, 2)
    make(page)
    old = first_take(page)
    mark(page, "boat")
    page.keyboard.press("F9")
    new = wait_for_other_take(page, old["take_id"])
    # "boat" is one of the last words.
    assert new["patch"]["start"] > new["samples"] / 2


def test_without_marked_words_it_says_what_to_do(page, write):
    write(TEXT, 2)
    make(page)
    page.locator("#lines .line").nth(1).locator(".line-number").click()
    page.keyboard.press("F9")
    expect(page.locator("#live")).to_contain_text("Select words")


def test_what_cant_be_said_again_is_shown_and_the_line_stays(page, write):
    write(TEXT, 2)
    make(page)
    old = first_take(page)
    page.route(
        "**/patch",
        lambda route: route.fulfill(
            status=422, json={"error": {"kind": "SpeechFailed", "message": "It said nothing."}}
        ),
    )
    mark(page, "boat")
    page.click("#line-patch")
    expect(page.get_by_text("It said nothing.")).to_be_visible()
    page.unroute("**/patch")
    assert first_take(page)["take_id"] == old["take_id"]
    expect(page.locator("#line-patch")).to_have_text("Say this again")


def test_it_can_be_stopped_and_a_locked_line_offers_nothing(page, write):
    write(TEXT, 2)
    make(page)
    old = first_take(page)
    page.route("**/patch", lambda route: None)  # it takes long
    mark(page, "boat")
    page.click("#line-patch")
    expect(page.locator("#line-patch")).to_have_text("Stop")
    page.click("#line-patch")
    expect(page.locator("#live")).to_contain_text("Stopped.")
    page.unroute("**/patch")
    assert first_take(page)["take_id"] == old["take_id"]
    page.keyboard.press("Escape")
    page.click("#act-lock")
    expect(page.locator("#line-patch")).to_be_hidden()
    saved(page)
