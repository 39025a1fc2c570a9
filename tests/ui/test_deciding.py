"""Two people change the same lines: nothing is decided by accident, both versions can be had."""

import pytest
from playwright.sync_api import expect
from ui_steps import by_tom, line_ids, reopened, saved, set_text, stored, texts, type_into

pytestmark = pytest.mark.browser

THREE = "Mara: One.\nTomas: Two.\nMara: Three."
EDITS = "**/edits"
OPEN = "#conflicts[open]"
REMINDER = ".notice[data-notice=conflict]"


@pytest.fixture
def clash(page, write):
    """Lets somebody else edit before the studio hears of the page's edit; the project's id."""
    project = write(THREE, 3)

    def meet(mine, *theirs):
        page.route(EDITS, lambda route: route.abort())
        ids = line_ids(page)
        mine()
        page.wait_for_selector("#saved[data-state=offline]", state="attached")
        by_tom(page, project, *(their(ids) for their in theirs))
        page.unroute(EDITS)
        page.wait_for_selector(OPEN)
        return project

    yield meet
    page.unroute_all()


def said(number, text):
    return lambda ids: {"op": "set", "line_ids": [ids[number]], "fields": {"text": text}}


def delete(number):
    return lambda ids: {"op": "delete", "line_ids": [ids[number]]}


def at(page, number):
    page.evaluate(
        """n => {
          const { selection, project } = window.tableread;
          selection.go(project.view.order[n]);
          selection.focus();
        }""",
        number,
    )


def mark_all_and_delete(page):
    at(page, 0)
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")


def join_second(page):
    page.locator("#lines .line-text").nth(1).click()
    page.keyboard.press("Home")
    page.keyboard.press("Backspace")


def cut_second(page):
    page.locator("#lines .line-text").nth(1).click()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")


def test_keeping_a_deletion_deletes_and_keeping_theirs_spares_that_line_alone(page, clash):
    project = clash(
        lambda: mark_all_and_delete(page),
        said(0, "One, by Tom."),
        said(2, "Three, by Tom."),
    )
    rows = page.locator(".conflict")
    assert rows.locator(".conflict-mine").all_inner_texts() == ["Deleted", "Deleted"]
    assert rows.locator(".conflict-theirs").all_inner_texts() == ["One, by Tom.", "Three, by Tom."]
    rows.nth(0).locator(".keep-mine").click()
    rows.nth(0).locator(".keep-theirs").click()
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert stored(page, project) == texts(page) == ["Three, by Tom."]


@pytest.mark.parametrize(
    ("act", "word", "result"),
    [
        (join_second, "Joined", ["One. Two, by Tom.", "Three."]),
        (cut_second, "Split", ["One.", "T", "wo, by Tom.", "Three."]),
    ],
)
def test_keeping_mine_repeats_what_was_done(page, clash, act, word, result):
    project = clash(lambda: act(page), said(1, "Two, by Tom."))
    assert page.locator(".conflict").count() == 1
    assert page.inner_text(".conflict-mine") == word
    page.click(".keep-mine")
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert stored(page, project) == texts(page) == result


def test_words_for_a_line_that_somebody_deleted_become_a_new_line(page, clash):
    project = clash(lambda: type_into(page, 1, " And more."), delete(1))
    assert page.inner_text(".conflict-mine") == "Two. And more."
    assert page.inner_text(".conflict-theirs") == "The line was deleted"
    page.click(".keep-mine:has-text('as a new line')")
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert stored(page, project) == ["One.", "Two. And more.", "Three."]
    assert page.locator("#lines .line-speaker").all_inner_texts()[1] == "Tomas"


def test_keys_of_a_sentence_decide_nothing_and_esc_only_puts_off(page, clash):
    project = clash(lambda: type_into(page, 0, " Mine."), said(0, "One, by Tom."))
    for key in ("Space", "Enter", "n"):
        page.keyboard.press(key)
    assert page.is_visible(OPEN)
    page.keyboard.press("Escape")
    page.wait_for_selector(OPEN, state="hidden")
    page.wait_for_selector(REMINDER)
    assert stored(page, project)[0] == "One, by Tom."
    reopened(page)
    page.click(f"{REMINDER} .notice-act")
    page.wait_for_selector(OPEN)
    assert page.inner_text(".conflict-mine") == "One. Mine."
    page.click(".keep-mine")
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert stored(page, project)[0] == "One. Mine."
    assert page.locator(REMINDER).count() == 0


def test_what_was_not_in_dispute_is_made_as_it_was_meant(page, clash):
    def rename_all():
        page.evaluate(
            """() => {
              const { project } = window.tableread;
              const op = { op: 'set', line_ids: project.view.order, fields: { speaker: 'Ilse' } };
              project.edit([op]);
            }"""
        )

    tom = "Robin"
    clash(
        rename_all,
        lambda ids: {"op": "set", "line_ids": [ids[1]], "fields": {"speaker": tom}},
    )
    page.click(".keep-theirs")
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert page.locator("#lines .line-speaker").all_inner_texts() == ["Ilse", tom, "Ilse"]


def test_a_line_added_after_one_that_was_deleted_is_had_back(page, clash):
    def add():
        at(page, 1)
        page.keyboard.press("Shift+Enter")

    project = clash(add, delete(1))
    page.click(".keep-mine")
    page.wait_for_selector(OPEN, state="hidden")
    saved(page)
    assert stored(page, project) == ["One.", "", "Three."]


def test_ctrl_z_takes_back_ones_own_and_asks_before_anybody_elses(page, write):
    project = write(THREE, 3)
    ids = line_ids(page)
    set_text(page, 0, "One. Mine.")
    saved(page)
    by_tom(page, project, said(1, "Two, by Tom.")(ids))
    page.wait_for_function("() => window.tableread.project.lines[1].text === 'Two, by Tom.'")
    at(page, 0)
    page.keyboard.press("Control+z")
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'One.'")
    assert stored(page, project) == ["One.", "Two, by Tom.", "Three."]
    page.keyboard.press("Control+z")
    ask = page.locator(".notice[data-notice=undo]")
    ask.wait_for()
    assert stored(page, project) == ["One.", "Two, by Tom.", "Three."]
    ask.locator(".notice-act").click()
    page.wait_for_function("() => window.tableread.project.lines[1].text === 'Two.'")
    ask.wait_for(state="detached")


def test_a_conflict_is_told_at_once_and_at_its_line(page, write):
    project = write(THREE, 3)
    held = []
    page.route(EDITS, lambda route: route.abort())
    type_into(page, 0, " Mine.")
    page.wait_for_selector("#saved[data-state=offline]", state="attached")
    by_tom(page, project, said(0, "One, by Tom.")(line_ids(page)))
    page.unroute(EDITS)
    page.route(
        f"**/studio/projects/{project}", lambda route: held.append(route)
    )  # the state comes late
    page.wait_for_selector(OPEN)
    assert page.inner_text(".conflict-theirs") == "One, by Tom."
    page.click("#conflicts-later")
    for route in held:
        route.continue_()
    page.unroute_all()
    hint = page.locator("#lines .line >> nth=0 >> .line-hint")
    expect(hint).to_contain_text("Edited in two places.")
    expect(page.locator("#hints-next")).to_have_text("1 to check")
    page.click(f"{REMINDER} .notice-act")
    page.click(".keep-theirs")
    expect(hint).to_be_hidden()
    expect(page.locator("#hints-next")).to_be_hidden()
