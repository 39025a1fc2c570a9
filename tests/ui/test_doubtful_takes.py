"""A take that may not be right is marked at its line until somebody hears it and says it is."""

import pytest
from test_directing import PLAYED
from ui_steps import fill, make, open_settings, ready, reopened, saved, set_text, violations

pytestmark = pytest.mark.browser

SHOWN = "#lines .line-hint:not([hidden])"
TAIL = "after the last word."
SCRIPT = "Mara: All is well here.\nTomas: I saw a heron in the marsh.\nMara: Good night."


@pytest.fixture(scope="module")
def server(server_of):
    """A studio whose voice goes on with a hum behind some lines."""
    return server_of("wandering_server.py")


def marks(page, number):
    page.wait_for_function(
        "([shown, n]) => document.querySelectorAll(shown).length === n", arg=[SHOWN, number]
    )


def choose(page, number):
    page.click(f"#lines .line-number >> nth={number}")


def test_a_doubtful_take_is_marked_and_counted_until_it_is_found_right(page, write):
    write(SCRIPT, 3)
    marks(page, 0)
    make(page)
    marks(page, 1)
    assert page.locator("#hints-next").inner_text() == "1 to check"
    page.click("#hints-next")
    assert page.get_attribute("#lines .line >> nth=1", "aria-selected") == "true"
    assert TAIL in page.inner_text("#hints")
    page.wait_for_selector("#takes .take-fine:visible")
    assert TAIL in page.inner_text("#takes .take-text")

    page.focus("#take-fine")
    page.keyboard.press("Enter")
    marks(page, 0)
    page.wait_for_selector("#take-fine", state="hidden")
    page.wait_for_selector("#hints-next", state="hidden")
    page.wait_for_selector("#takes .take-fine[aria-pressed=true]")
    saved(page)
    assert page.evaluate("() => document.activeElement.closest('.line') !== null")

    page.click("#undo")
    marks(page, 1)
    page.wait_for_selector("#takes .take-fine[aria-pressed=false]")
    page.click("#redo")
    marks(page, 0)


def test_what_was_found_right_stays_so_and_can_be_doubted_again(page, write):
    write(SCRIPT, 3)
    make(page)
    marks(page, 1)
    choose(page, 1)
    page.click("#takes .take-fine")
    marks(page, 0)
    saved(page)
    reopened(page)
    marks(page, 0)
    choose(page, 1)
    page.click("#takes .take-fine[aria-pressed=true]")
    marks(page, 1)


def test_other_words_are_not_doubtful_before_they_are_read(page, write):
    write(SCRIPT, 3)
    make(page)
    marks(page, 1)
    set_text(page, 1, "I saw a heron.")
    marks(page, 0)
    saved(page)
    make(page)
    marks(page, 0)
    page.click("#undo")
    marks(page, 1)


def test_a_doubtful_line_is_read_again_where_the_project_says_so(page, write):
    write("Mara: Follow the brook.\nTomas: I will.", 2)
    open_settings(page)
    page.select_option("#tries", "3")
    page.keyboard.press("Escape")
    saved(page)
    make(page)
    page.wait_for_function("() => window.tableread.project.lines[0].n_takes === 2")
    ready(page)
    marks(page, 0)
    choose(page, 0)
    page.wait_for_function("() => document.querySelectorAll('#takes .take').length === 2")
    page.wait_for_function(
        """() => [...document.querySelectorAll('#takes .take')]
          .map((take) => take.dataset.chosen).join() === 'true,false'"""
    )
    used, passed_over = page.locator("#takes .take").all()
    assert "score" not in used.inner_text()
    assert ", score 1" in passed_over.locator(".take-about").inner_text()
    assert "after the last word" in passed_over.locator(".take-text").inner_text()
    page.evaluate(PLAYED)
    passed_over.locator(".take-play").click()
    take = passed_over.get_attribute("data-take")
    page.wait_for_function("take => window.played.includes(take)", arg=take)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_doubts(open_page, look):
    page = open_page(color_scheme=look)
    fill(page, SCRIPT, 3)
    make(page)
    marks(page, 1)
    choose(page, 1)
    page.wait_for_selector("#takes .take-fine:visible")
    assert violations(page, ["#part-lines", "#part-line", "#part-cast"]) == []
    page.click("#takes .take-fine")
    page.wait_for_selector("#takes .take-fine[aria-pressed=true]")
    assert violations(page, ["#part-lines", "#part-line"]) == []


def test_on_a_phone_the_reason_and_its_button_are_in_sight(open_page):
    page = open_page(has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    fill(page, SCRIPT, 3)
    make(page)
    marks(page, 1)
    page.tap(f"{SHOWN} >> nth=0")
    page.wait_for_selector("#hints li >> nth=0")
    page.wait_for_selector("#take-fine:visible")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.wait_for_function(
        """() => {
          const pane = document.querySelector('#part-line').getBoundingClientRect();
          const fine = document.querySelector('#take-fine').getBoundingClientRect();
          return fine.bottom <= pane.bottom && fine.right <= innerWidth;
        }"""
    )
    page.tap("#take-fine")
    marks(page, 0)
