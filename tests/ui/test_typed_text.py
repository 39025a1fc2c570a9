"""What is typed into a row, where the row and the studio hold it differently for a while."""

import pytest
from ui_steps import saved, texts

pytestmark = pytest.mark.browser


def type_into(page, text):
    page.click("#lines .line-text >> nth=0")
    page.keyboard.press("End")
    page.keyboard.type(text)


def test_a_line_with_two_spaces_is_cut_where_the_caret_stands(page, write):
    write("Mara: One.", 1)
    type_into(page, "  Two  three")
    saved(page)
    for _ in "three":
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert texts(page) == ["One. Two", "three"]


def test_a_row_emptied_by_hand_asks_again_what_is_said(page, write):
    write("Mara: One.", 1)
    page.click("#lines .line-text >> nth=0")
    page.keyboard.press("Shift+Enter")
    hint = "() => getComputedStyle(document.activeElement, '::before').content"
    asked = page.evaluate(hint)
    assert asked != "none"
    page.keyboard.type("q")
    assert page.evaluate(hint) == "none"
    page.keyboard.press("Backspace")
    assert page.evaluate(hint) == asked
    page.keyboard.type("Two.")
    assert texts(page) == ["One.", "Two."]
