"""Lines of a speaker or of a state: counted, gone to one by one, and marked all at once."""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, make, saved, set_text, violations

pytestmark = pytest.mark.browser

SCENE = "Mara: One.\n[pause:0.5s]\nTomas: Two.\nMara: Three.\nIlse: Four.\nmara: Five."
MARKED = "#lines .line[aria-selected=true]"
AT = "n => window.tableread.selection.current === window.tableread.project.view.order[n]"


def marked(page):
    return page.evaluate(
        "() => window.tableread.selection.ids.map((id) =>"
        " window.tableread.project.view.order.indexOf(id))"
    )


def go(page, number):
    page.evaluate(
        "n => { const { selection, project } = window.tableread;"
        " selection.go(project.view.order[n]); selection.focus(); }",
        number,
    )


def speakers(page):
    return page.locator("#lines .line-speaker").all_inner_texts()


def group(page, label):
    return page.locator(f".goto-row:has(.goto-name:text-is('{label}'))")


def test_the_lines_of_a_speaker_are_marked_from_the_cast_and_set_together(page, write):
    write(SCENE, 6)
    page.click("#cast .voice:has(.voice-name:text-is('Mara')) .voice-mark")
    assert marked(page) == [0, 3, 5]
    assert page.evaluate(AT, 0)
    expect(page.locator("#line-title")).to_have_text("3 lines")
    page.fill("#field-seed", "7")
    page.press("#field-seed", "Enter")
    speed = page.locator(".param", has_text="Speed").locator(".param-number")
    speed.fill("1.2")
    speed.press("Enter")
    saved(page)
    said = page.evaluate("() => window.tableread.project.lines.map((one) => one.seed)")
    assert said == [7, None, None, 7, None, 7]
    told = page.evaluate("() => window.tableread.project.lines.map((one) => one.params.speed)")
    assert told == [1.2, None, None, 1.2, None, 1.2]


def test_lines_that_need_something_are_gone_to_in_turn(page, write):
    write(SCENE, 6)
    make(page)
    page.click("#goto-open")
    expect(group(page, "Changed")).to_be_hidden()
    for number in (0, 3):
        set_text(page, number, "Other words.")
    expect(group(page, "Changed").locator(".goto-count")).to_have_text("2")
    go(page, 2)
    group(page, "Changed").locator(".goto-go").click()
    assert page.evaluate(AT, 3)
    expect(page.locator("#goto-panel")).to_be_hidden()
    expect(page.locator("#goto-next")).to_contain_text("Changed 2")
    page.keyboard.press("n")
    assert page.evaluate(AT, 0)
    page.keyboard.press("Shift+N")
    assert page.evaluate(AT, 3)
    page.click("#goto-next")
    assert page.evaluate(AT, 0)
    page.click("#goto-next", modifiers=["Shift"])
    assert marked(page) == [0, 3]
    make(page)
    expect(page.locator("#goto-next")).to_be_hidden()


def test_by_keyboard_alone_a_speaker_is_found_and_marked(page, write):
    write(SCENE, 6)
    go(page, 0)
    page.keyboard.press("g")
    expect(page.locator("#goto-panel")).to_be_visible()
    rows = page.locator(".goto-row:visible .goto-name").all_inner_texts()
    assert rows == ["No audio", "Mara", "Tomas", "Ilse"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate(AT, 2)
    assert page.evaluate("() => document.activeElement.matches('.line[aria-selected=true]')")
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert marked(page) == [0, 3, 5]
    go(page, 4)
    page.keyboard.press("s")
    assert marked(page) == [4]
    page.keyboard.press("g")
    page.keyboard.press("Escape")
    expect(page.locator("#goto-panel")).to_be_hidden()
    assert page.evaluate("() => document.activeElement.matches('.line')")


def test_a_number_gives_marked_lines_to_the_cast_and_is_a_digit_while_one_writes(page, write):
    write(SCENE, 6)
    go(page, 0)
    page.keyboard.press("Control+2")
    assert speakers(page)[0] == "Tomas"
    saved(page)
    go(page, 4)
    # Tomas speaks first now, and is the second of the cast all the same.
    page.keyboard.press("Alt+2")
    assert speakers(page)[3] == "Tomas"
    expect(page.locator("#cast .voice-name").first).to_have_text("Mara")
    page.keyboard.press("Control+9")
    assert speakers(page) == ["Tomas", "Tomas", "Mara", "Tomas", "mara"]
    page.click("#lines .line-text >> nth=0")
    before = speakers(page)
    page.keyboard.press("Control+1")
    page.keyboard.press("Control+e")
    page.keyboard.type("n")
    assert speakers(page) == before
    assert page.is_hidden("#sound-form")


def test_the_sound_and_saving_have_their_keys(page, write):
    write("Mara: One.", 1)
    go(page, 0)
    page.keyboard.press("Control+e")
    refused = page.locator(".notice[data-notice=refused]")
    expect(refused).to_contain_text("no audio to export")
    refused.locator(".notice-close").click()
    make(page)
    go(page, 0)
    page.keyboard.press("Control+e")
    expect(page.locator("#sound-form")).to_be_visible()
    assert page.evaluate("() => document.activeElement.closest('#sound-form') !== null")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+s")
    expect(page.locator(".notice[data-passing]")).to_contain_text("Saved.")
    page.keyboard.press("?")
    keys = page.inner_text("#keys")
    for meaning in ("Assign the selected lines", "Copy, cut or paste", "Export audio", "Save now"):
        assert meaning in keys
    page.keyboard.press("Escape")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_the_way_to_lines(open_page, look):
    page = open_page(color_scheme=look)
    fill(page, SCENE, 6)
    page.click("#goto-open")
    group(page, "Mara").locator(".goto-go").click()
    page.click("#goto-open")
    assert violations(page, ["#part-lines", "#cast"]) == []


def test_500_lines_are_marked_and_gone_to_at_once(page):
    names = ("Mara", "Tomas", "<img src=x onerror=alert(1)>")
    script = "\n".join(f"[{names[n % 3]} |] Line {n}." for n in range(500))
    fill(page, script, 500)
    page.click("#goto-open")
    expect(group(page, names[2]).locator(".goto-count")).to_have_text("166")
    group(page, "Tomas").locator(".goto-mark").click()
    assert page.locator(MARKED).count() == 167
    # One edit, one step of undo, however many lines.
    page.keyboard.press("Control+3")
    assert page.locator("#lines .line-speaker").nth(1).inner_text() == names[2]
    saved(page)
    page.keyboard.press("Control+z")
    expect(page.locator("#lines .line-speaker").nth(499)).to_have_text("Tomas")
