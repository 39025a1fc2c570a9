"""Directing: takes in view and compared by keys, stars, badges on rows, a filter, compact rows."""

import re

import pytest
from playwright.sync_api import expect
from ui_steps import drawn, make, open_settings, ready, reopened, saved, violations

pytestmark = pytest.mark.browser

COUNT = """() => {
  window.presses = 0;
  window.counting?.abort();
  window.counting = new AbortController();
  const { signal } = window.counting;
  const count = ({ isTrusted, repeat }) => (window.presses += isTrusted && !repeat ? 1 : 0);
  for (const kind of ['keydown', 'pointerdown'])
    addEventListener(kind, count, { capture: true, signal });
}"""
"""From now on `window.presses` is how often somebody pressed a key or a button."""

IN_SIGHT = """() => {
  const view = document.getElementById('lines').getBoundingClientRect();
  return [...document.querySelectorAll('#lines .line')].filter((row) => {
    const { top, bottom, height } = row.getBoundingClientRect();
    return height > 0 && top >= view.top && bottom <= view.bottom;
  }).length;
}"""

PLAYED = """() => {
  window.played = [];
  const note = (changes) => window.played.push(...changes.map(({ target }) => target)
    .filter((one) => one.matches('.take-play[aria-pressed=true]'))
    .map((one) => one.closest('.take').dataset.take));
  new MutationObserver(note).observe(document.getElementById('takes'), {
    subtree: true, attributeFilter: ['aria-pressed'] });
}"""
"""From now on `window.played` lists the takes that were played, however short they are."""

NAMES = ("Mara", "Tomas", "Ilse")


def scene(lines):
    words = "and so she went up the stairs, slowly, to see who had lit the lamp"
    return "\n".join(f"{NAMES[n % 3]}: Line {n + 1}, {words}." for n in range(lines))


def choose(page, number=0):
    page.locator("#lines .line").nth(number).locator(".line-grip").click()


def take_id(page, number=0):
    return page.evaluate("n => window.tableread.project.lines[n].take.take_id", number)


def another(page, takes):
    """Make another take of the chosen line, and wait until all are listed."""
    page.keyboard.press("r")
    expect(page.locator("#takes .take")).to_have_count(takes)
    ready(page)
    expect(page.locator("#takes .take").first).to_have_attribute("data-chosen", "true")


@pytest.fixture
def two_takes(page, write):
    write("Mara: One and two.\nTomas: Three.", 2)
    make(page)
    choose(page)
    another(page, 2)
    return page


def test_a_take_is_made_compared_and_chosen_in_three_presses(page, write):
    write("Mara: One and two.\nTomas: Three.", 2)
    make(page)
    first = take_id(page)
    choose(page)
    page.evaluate(COUNT)
    another(page, 2)
    second = take_id(page)
    assert second != first
    page.evaluate(PLAYED)
    page.keyboard.press("a")
    page.wait_for_function("take => window.played.includes(take)", arg=first)
    page.keyboard.press("u")
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take?.take_id === old", arg=first
    )
    assert page.evaluate("() => window.presses") == 3
    page.keyboard.press("a")  # and back to the other one
    expect(page.locator("#takes .take-tag", has_text="B")).to_have_count(1)
    saved(page)


def test_a_take_that_plays_goes_on_when_it_is_chosen(page, write):
    write("Mara: " + "One and two and three. " * 40, 1)
    make(page)
    first = take_id(page)
    choose(page)
    another(page, 2)
    page.evaluate(PLAYED)
    page.locator("#takes .take-play").last.click()
    page.wait_for_function("take => window.played.includes(take)", arg=first)
    page.evaluate("""() => {
      window.pauses = 0;
      const pause = HTMLMediaElement.prototype.pause;
      HTMLMediaElement.prototype.pause = function () {
        window.pauses += !this.paused;
        return pause.call(this);
      };
    }""")
    page.locator("#takes .take-choose").last.click()
    expect(page.locator("#takes .take").last).to_have_attribute("data-chosen", "true")
    saved(page)
    playing = page.locator("#takes .take-play[aria-pressed=true]")
    expect(playing).to_have_count(1)
    assert page.evaluate("() => window.pauses") == 0
    playing.click()
    assert page.evaluate("() => window.pauses") == 1


@pytest.mark.parametrize("begin", ["key", "button"])
def test_a_pause_of_three_seconds_takes_two_presses(page, write, begin):
    write("Mara: One.\nTomas: Two.", 2)
    choose(page)
    page.evaluate(COUNT)
    if begin == "key":
        page.keyboard.press("p")
    else:
        page.click("#add-pause")
    page.wait_for_selector("#lines .line[data-kind=silence]:focus")
    page.keyboard.press("3")
    page.wait_for_function("() => window.tableread.project.lines[1].duration_s === 3")
    assert page.evaluate("() => window.presses") == 2
    page.keyboard.type(".5")  # what follows belongs to the same number
    page.wait_for_function("() => window.tableread.project.lines[1].duration_s === 3.5")
    saved(page)


def test_the_takes_come_first_and_the_settings_are_folded_below(two_takes):
    page = two_takes
    parts = ("#takes-part", "#line-acts", "#line-more")
    tops = [page.locator(one).bounding_box()["y"] for one in parts]
    assert tops == sorted(tops)
    assert page.is_hidden("#field-speaker")
    wave = page.locator("#takes .take-wave").first
    expect(wave).to_have_attribute("data-drawn", re.compile("[1-9]"))
    assert page.inner_text("#takes .take-length >> nth=0").endswith(" s")
    page.click("#line-more summary")
    assert page.is_visible("#field-speaker")
    reopened(page)
    choose(page)
    expect(page.locator("#field-speaker")).to_be_visible()  # as it was left
    page.click("#line-more summary")
    assert violations(page, ["#part-line"]) == []


def test_the_best_take_is_kept_and_one_undo_brings_the_others_back(two_takes):
    page = two_takes
    first = page.get_attribute("#takes .take[data-chosen=false]", "data-take")
    page.click(f"#takes .take[data-take='{first}'] .take-star")
    page.wait_for_selector(f"#takes .take[data-take='{first}'] .take-star[aria-pressed=true]")
    saved(page)
    reopened(page)
    choose(page)
    page.wait_for_selector(f"#takes .take[data-take='{first}'] .take-star[aria-pressed=true]")
    choose(page)
    page.keyboard.press("k")
    expect(page.locator("#takes .take")).to_have_count(1)
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take?.take_id === old", arg=first
    )
    expect(page.locator("#lines .line-badge[data-badge=star]")).to_have_count(1)
    saved(page)
    page.click("#undo")
    expect(page.locator("#takes .take")).to_have_count(2)
    assert take_id(page) != first


def test_rows_show_how_their_lines_are_said(page, write):
    write("[Mara | mood:angry | speed:1.3 | lang:de | seed:7] Eins.\n[pause:2s]\nTomas: Two.", 3)
    badges = page.locator("#lines .line >> nth=0 >> .line-badge")
    expect(badges).to_have_text(["angry", "1.3 ×", "de", "seed 7", "pause 2 s"])
    assert page.locator("#lines .line >> nth=2 >> .line-badge").count() == 0
    page.click("#lines .line-remove")
    expect(badges).to_have_text(["angry", "1.3 ×", "de", "seed 7"])
    page.click("#lines .line-badges")
    page.locator("#line-more[open] #field-seed").fill("")
    page.keyboard.press("Enter")
    expect(badges).to_have_text(["angry", "1.3 ×", "de"])


def test_a_filter_shows_some_rows_and_has_a_way_out(page, write):
    write("Mara: One.\nTomas:\nMara: Three.\nIlse: Four.", 4)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector("#lines .line[data-state=failed]")
    page.wait_for_function("() => !window.tableread.project.rendering")
    shown = page.locator("#lines .line:not([hidden])")
    page.select_option("#filter", label="Failed")
    expect(shown).to_have_count(1)
    drawn(page)
    assert page.locator("#filter option:checked").inner_text() == "Failed: 1"
    page.select_option("#filter", label="Mara")
    expect(shown).to_have_count(2)
    page.click("#hints-next")  # leads to a line that the filter leaves out
    expect(page.locator("#lines .line >> nth=1")).to_be_focused()
    page.locator("#lines .line >> nth=0 >> .line-grip").click()
    expect(shown).to_have_count(2)
    shown.first.locator(".line-grip").click()
    page.keyboard.press("ArrowDown")  # to the next one that is shown
    expect(shown.last).to_be_focused()
    page.keyboard.press("Control+a")
    assert len(page.evaluate("() => window.tableread.selection.ids")) == 2
    assert violations(page, ["#lines-view"]) == []
    page.click("#filter-clear")
    expect(shown).to_have_count(4)
    page.select_option("#filter", label="Ilse")
    write("Ida: Another scene.\nTom: Yes.", 2)
    expect(shown).to_have_count(2)
    expect(page.locator("#filter option:checked")).to_have_text("All 2 lines")


def test_compact_rows_show_eighteen_lines_and_are_remembered(page, write):
    write(scene(40), 40)
    assert page.evaluate(IN_SIGHT) < 18
    # A row has its own height from the first frame on in which it is seen.
    dense = f"() => ({IN_SIGHT})() >= 18"
    page.click("#density")
    page.wait_for_function(dense)
    reopened(page)
    page.wait_for_selector("body[data-density=compact]")
    page.wait_for_function(dense)
    assert violations(page, ["#lines-view"]) == []
    page.click("#density")
    page.wait_for_selector("body[data-density=roomy]")


def test_settings_of_the_project_are_in_its_menu_and_the_cast_is_first(page, write):
    write("Mara: One.", 1)
    assert page.is_hidden("#tries")
    first = page.locator("#cast-view > *:visible").nth(1)
    assert first.get_attribute("id") == "cast"
    open_settings(page)
    assert page.is_visible("#tries")
    page.keyboard.press("Escape")


def test_while_no_line_is_chosen_the_scene_is_shown(page, write):
    write("Mara: One.\nTomas:\nMara: Three.", 3)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector("#lines .line[data-state=failed]")
    page.wait_for_selector("#scene-made:text-is('2 of 3, 1 failed')")
    assert page.inner_text("#scene-speakers") == "2"
    page.click("#scene-check button")
    expect(page.locator("#lines .line >> nth=1")).to_be_focused()
    assert page.is_hidden("#line-empty")
