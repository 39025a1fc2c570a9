"""An empty project: three ways to begin, two presses from a script to its sound, a name, a tour."""

import pytest
from playwright.sync_api import expect
from test_pasting_scripts import PASTED
from ui_steps import fill, saved, violations

pytestmark = pytest.mark.browser

SCRIPT = "# The Weir\n\nIvo: How long?\n\nAnna: Long enough.\n"
NAME = "() => window.tableread.project.view.name"
UNDO = "() => window.tableread.project.travel('undo')"
HEARD = "() => window.tableread.player.first_sound_ms !== null"
COUNT_PRESSES = """() => {
  window.presses = [];
  const held = ["Control", "Shift"];
  const count = (event) => event.isTrusted && window.presses.push(event.key ?? event.type);
  addEventListener("click", count, true);
  addEventListener("keydown", (event) => held.includes(event.key) || count(event), true);
}"""
"""From now on `window.presses` lists what a person pressed; a click by a key counts once."""


def empty(page):
    """A new project as the button makes it."""
    before = page.evaluate("() => window.tableread.project.id")
    page.evaluate("() => document.getElementById('project-new').click()")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=before)
    expect(page.locator("#lines-empty")).to_be_visible()


def clip(page, text):
    """Put text onto the clipboard."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate("text => navigator.clipboard.writeText(text)", text)


def named(page, name):
    page.wait_for_function("name => window.tableread.project.view.name === name", arg=name)


def untoured(page):
    """As somebody who has seen the tour."""
    page.evaluate("() => localStorage.setItem('tableread.tour', 'seen')")


def test_paste_and_hear_in_two_presses(open_page):
    page = open_page()
    empty(page)
    clip(page, SCRIPT)
    page.evaluate(COUNT_PRESSES)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("Control+v")
    expect(page.locator("#lines .line .line-text")).to_have_count(3)
    page.click("#play")
    page.wait_for_function(HEARD)
    assert len(page.evaluate("() => window.presses")) == 2
    assert page.evaluate(NAME) == "The Weir"


def test_a_script_pasted_by_its_button_is_one_step_with_its_name(page):
    untoured(page)
    empty(page)
    clip(page, SCRIPT)
    page.click("#start-paste")
    expect(page.locator("#paste-text")).to_be_focused()
    page.keyboard.press("Control+v")
    expect(page.locator("#lines .line .line-text")).to_have_count(3)
    named(page, "The Weir")
    expect(page.locator("#project-title")).to_have_text("The Weir")
    saved(page)
    page.keyboard.press("Control+z")
    named(page, "Untitled")
    expect(page.locator("#lines-empty")).to_be_visible()
    page.keyboard.press("Control+y")
    named(page, "The Weir")


def test_typed_text_is_added_by_the_dialogs_button_and_escape_adds_nothing(page):
    untoured(page)
    empty(page)
    page.click("#start-paste")
    page.keyboard.type("Ivo: Hello.")
    page.keyboard.press("Escape")
    expect(page.locator("#lines-empty")).to_be_visible()
    page.click("#start-paste")
    expect(page.locator("#paste-text")).to_have_value("")
    page.keyboard.type("Ivo: Hello.")
    page.click("#paste-dialog [value=add]")
    expect(page.locator("#lines .line")).to_have_count(1)
    assert page.evaluate(NAME) == "Untitled"


def test_a_file_is_opened_into_the_empty_project_and_names_it(page, tmp_path):
    untoured(page)
    empty(page)
    path = tmp_path / "the_old_weir.v2.txt"
    path.write_text("Ivo: How long?\nAnna: Long.\n", encoding="utf-8")
    project = page.evaluate("() => window.tableread.project.id")
    with page.expect_file_chooser() as chooser:
        page.click("#start-open")
    chooser.value.set_files(path)
    expect(page.locator("#lines .line")).to_have_count(2)
    assert page.evaluate("() => window.tableread.project.id") == project
    named(page, "the old weir.v2")


def test_a_heading_names_it_and_a_given_name_stays(page):
    untoured(page)
    empty(page)
    page.evaluate("() => document.activeElement.blur()")
    page.evaluate(PASTED, "## Act One\nIvo: How long?\nAnna: Long.\n")
    named(page, "Act One")
    fill(page, "", 0)  # is called “Scene”
    page.evaluate("() => document.activeElement.blur()")
    page.evaluate(PASTED, SCRIPT)
    expect(page.locator("#lines .line .line-text")).to_have_count(3)
    saved(page)
    assert page.evaluate(NAME) == "Scene"


def test_a_script_pasted_into_the_script_view_names_it_too(page):
    untoured(page)
    empty(page)
    page.click("#views [data-view=script]")
    page.wait_for_function("() => !document.getElementById('script').readOnly")
    page.focus("#script")
    page.evaluate(PASTED, SCRIPT)
    named(page, "The Weir")
    page.wait_for_function("() => window.tableread.project.lines.length === 3")
    saved(page)
    page.evaluate(UNDO)
    page.wait_for_function("() => window.tableread.project.lines.length === 0")
    if page.evaluate(NAME) == "The Weir":  # the name is a step of its own when a pause follows it
        page.evaluate(UNDO)
    named(page, "Untitled")
    page.click("#views [data-view=lines]")


@pytest.mark.parametrize(
    ("example", "name", "voices"),
    [
        ("the-lift", "The Lift", 3),
        ("two-hosts", "Small Machines: The Kettle", 2),
        ("at-the-bakery", "Spanish in Five Minutes: At the Bakery", 2),
    ],
)
def test_an_example_is_there_with_its_name_and_cast(page, example, name, voices):
    untoured(page)
    empty(page)
    page.focus("#start-example")
    page.keyboard.press("Enter")
    expect(page.locator("#start-examples button").first).to_be_focused()
    page.focus(f"[data-example={example}]")
    page.keyboard.press("Enter")
    named(page, name)
    page.wait_for_function("n => window.tableread.project.view.speakers.length === n", arg=voices)
    expect(page.locator("#notices .notice[data-kind=warning]")).to_have_count(0)


def test_the_tour_comes_once_goes_by_keys_and_can_be_left(open_page):
    page = open_page()
    empty(page)
    page.click("#start-example")
    page.click("[data-example=the-lift]")
    tour = page.locator("#tour")
    expect(tour).to_be_visible()
    expect(page.locator("#tour-title")).to_be_focused()
    titles = []
    for step in range(1, 6):
        expect(page.locator("#tour-step")).to_have_text(f"Step {step} of 5")
        titles.append(page.inner_text("#tour-title"))
        expect(page.locator("[data-toured]")).to_have_count(1)
        page.focus("#tour-next")
        page.keyboard.press("Enter")
    assert len(set(titles)) == 5
    expect(tour).to_be_hidden()
    expect(page.locator("[data-toured]")).to_have_count(0)
    empty(page)
    page.click("#start-example")
    page.click("[data-example=two-hosts]")
    named(page, "Small Machines: The Kettle")
    expect(tour).to_be_hidden()  # it came already
    page.click("#keys-open")
    page.click("#keys [data-tour]")
    expect(tour).to_be_visible()
    page.click("#tour-next")
    page.keyboard.press("Escape")
    expect(tour).to_be_hidden()
    assert page.evaluate("() => window.tableread.project.lines.length") > 0


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_start_and_tour_fit_and_pass_axe(open_page, look, width):
    page = open_page(color_scheme=look)
    page.set_viewport_size({"width": width, "height": 844})
    empty(page)
    page.click("#start-example")
    assert violations(page, ["#lines-empty"]) == []
    page.click("[data-example=the-lift]")
    expect(page.locator("#tour")).to_be_visible()
    assert violations(page, ["#tour"]) == []
    for _ in range(5):
        box = page.locator("#tour").bounding_box()
        assert box["x"] >= 0
        assert box["y"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 844
        page.click("#tour-next")
    expect(page.locator("#tour")).to_be_hidden()
