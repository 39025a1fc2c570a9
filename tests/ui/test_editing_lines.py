"""The dialog as lines: written, cut, joined, moved, marked; by mouse and by keyboard alone."""

import pytest
from playwright.sync_api import expect
from ui_steps import drawn, fill, line_ids, saved, texts

pytestmark = pytest.mark.browser

THREE = "Mara: One.\nTomas: Two and more.\nMara: Three."


def row(page, number):
    return page.locator("#lines .line").nth(number)


def at(page, number):
    """Put the keyboard on a row."""
    page.evaluate(
        """n => {
          const { selection, project } = window.tableread;
          selection.go(project.view.order[n]);
          selection.focus();
        }""",
        number,
    )


def speakers(page):
    return page.locator("#lines .line-speaker").all_inner_texts()


def reads(page, *wanted):
    """Wait until the rows say this; pauses as "—"."""
    page.wait_for_function(
        """wanted => [...document.querySelectorAll('#lines .line')]
          .map((row) => row.querySelector('.line-text')?.textContent ?? '—')
          .join('|') === wanted""",
        arg="|".join(wanted),
    )


def stored(page, project_id):
    """The dialog as the studio has it."""
    saved(page)
    base = page.evaluate("() => location.origin + location.pathname")
    body = page.request.get(f"{base}studio/projects/{project_id}").json()
    return [line["text"] if line["kind"] != "silence" else "—" for line in body["lines"]]


def test_a_line_is_typed_in_its_row_and_kept(page, write):
    project = write(THREE, 3)
    row(page, 1).locator(".line-text").click()
    page.keyboard.press("End")
    page.keyboard.type(" And this.")
    assert texts(page) == ["One.", "Two and more. And this.", "Three."]
    assert stored(page, project) == texts(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert texts(page) == ["One.", "Two and more. And this.", "Three."]


def test_enter_cuts_a_line_and_backspace_joins_it(page, write):
    project = write(THREE, 3)
    row(page, 1).locator(".line-text").click()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert texts(page) == ["One.", "Two", "and more.", "Three."]
    assert speakers(page)[2] == "Tomas"
    assert stored(page, project) == texts(page)
    page.keyboard.press("Backspace")
    assert texts(page) == ["One.", "Two and more.", "Three."]
    page.keyboard.type("so ")
    assert texts(page)[1] == "Two so and more."
    assert stored(page, project) == texts(page)


def test_by_keyboard_alone_a_scene_is_written_and_put_in_order(page, write):
    project = write(THREE, 3)
    at(page, 0)
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("New.")
    page.keyboard.press("Escape")
    assert texts(page) == ["One.", "New.", "Two and more.", "Three."]
    page.keyboard.press("Alt+ArrowDown")
    assert texts(page) == ["One.", "Two and more.", "New.", "Three."]
    page.keyboard.press("p")
    assert texts(page) == ["One.", "Two and more.", "New.", "—", "Three."]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Control+d")
    assert texts(page) == ["One.", "Two and more.", "New.", "New.", "—", "Three."]
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Delete")
    assert texts(page) == ["One.", "Two and more.", "New.", "Three."]
    assert stored(page, project) == texts(page)
    for before in (
        ("One.", "Two and more.", "New.", "New.", "—", "Three."),
        ("One.", "Two and more.", "New.", "—", "Three."),
        ("One.", "Two and more.", "New.", "Three."),
        ("One.", "New.", "Two and more.", "Three."),
        ("One.", "", "Two and more.", "Three."),
    ):
        page.keyboard.press("Control+z")
        reads(page, *before)
    page.keyboard.press("Control+a")
    assert page.inner_text("#line-title").endswith("lines")
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")


def test_single_keys_are_letters_while_typing(page, write):
    write(THREE, 3)
    row(page, 0).locator(".line-text").click()
    page.keyboard.press("End")
    page.keyboard.type(" rlp?")
    assert texts(page)[0] == "One. rlp?"
    assert not page.is_visible("#keys")
    assert page.locator("#lines .line").count() == 3


def test_undo_and_redo_reach_back_over_a_reload(page, write):
    project = write(THREE, 3)
    at(page, 2)
    page.keyboard.press("Delete")
    saved(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    page.click("#undo")
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length === 3")
    assert stored(page, project) == ["One.", "Two and more.", "Three."]
    page.click("#redo")
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length === 2")


def test_lines_are_dragged_by_their_grip(page, write):
    project = write(THREE, 3)
    row(page, 0).locator(".line-grip").drag_to(row(page, 2), target_position={"x": 300, "y": 50})
    reads(page, "Two and more.", "Three.", "One.")
    assert stored(page, project) == texts(page)


def test_the_chip_gives_a_line_to_another_speaker(page, write):
    write(THREE, 3)
    row(page, 0).locator(".line-speaker").click()
    page.click("#speaker-menu [data-speaker=Tomas]")
    assert speakers(page)[0] == "Tomas"
    assert not page.is_visible("#speaker-menu")


def test_many_lines_change_speaker_and_voice_together(page, write):
    write(THREE, 3)
    row(page, 0).locator(".line-info").click()
    row(page, 2).locator(".line-info").click(modifiers=["Shift"])
    assert page.inner_text("#line-title") == "3 lines"
    page.fill("#field-speaker", "Ilse")
    page.keyboard.press("Enter")
    assert speakers(page) == ["Ilse", "Ilse", "Ilse"]
    speed = page.locator(".param", has_text="Speed").locator(".param-number")
    speed.fill("1.2")
    speed.press("Enter")
    saved(page)
    params = page.evaluate("() => window.tableread.project.lines.map((line) => line.params)")
    assert [one["speed"] for one in params] == [1.2, 1.2, 1.2]


def test_pauses_are_changed_in_their_row_and_from_the_panel(page, write):
    project = write("Mara: One.\n[pause:0.5s]\nTomas: Two.", 3)
    seconds = page.locator("#lines .line-seconds")
    seconds.fill("1.25")
    seconds.press("Enter")
    at(page, 2)
    drawn(page)
    assert page.input_value("#field-before") == "1.25"
    page.fill("#field-after", "0.3")
    page.press("#field-after", "Enter")
    assert texts(page) == ["One.", "—", "Two.", "—"]
    page.fill("#field-before", "0")
    page.press("#field-before", "Enter")
    assert texts(page) == ["One.", "Two.", "—"]
    assert stored(page, project) == texts(page)


def test_a_pause_is_added_and_set_by_keys_alone(page, write):
    project = write(THREE, 3)
    at(page, 0)
    for key in ("p", "Enter", "3", "Enter"):
        page.keyboard.press(key)
    assert texts(page) == ["One.", "—", "Two and more.", "Three."]
    seconds = "() => window.tableread.project.lines[1].duration_s"
    assert page.evaluate(seconds) == 3
    for key in ("Enter", "1", ".", "5", "Escape", "ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate(seconds) == 1.5
    assert stored(page, project) == texts(page)
    assert page.evaluate("() => window.tableread.selection.current") == line_ids(page)[2]


def test_words_are_found_and_replaced(page, write):
    project = write("Mara: A lamp.\nTomas: The Lamp, the lamplight.\nMara: Nothing.", 3)
    at(page, 2)
    page.keyboard.press("Control+f")
    page.keyboard.type("lamp")
    assert page.inner_text("#find-count") == "3 in 2 lines"
    page.check("#find-word")
    assert page.inner_text("#find-count") == "2 in 2 lines"
    page.fill("#replace", "light")
    page.click("#replace-all")
    page.wait_for_function(
        "() => document.querySelector('#lines .line-text').textContent === 'A light.'"
    )
    saved(page)
    assert stored(page, project)[1].count("lamplight") == 1
    page.keyboard.press("Escape")
    page.click("#find-close")
    assert not page.is_visible("#find-bar")


def test_replace_all_says_what_it_did(page, write):
    project = write("Mara: A lamp, a lamp.\nTomas: The Lamp.\nMara: Nothing.", 3)
    at(page, 2)
    page.keyboard.press("Control+f")
    page.fill("#find", "lamp")
    page.fill("#replace", "light")
    for done in ("Replaced 3 times in 2 lines.", "No matches, nothing replaced."):
        page.click("#replace-all")
        page.wait_for_function(
            """text => {
              const said = document.querySelector('[data-passing] .notice-title');
              return said?.textContent === text && said.checkVisibility()
                && document.getElementById('live').textContent === text;
            }""",
            arg=done,
        )
        assert stored(page, project)[0] == "A light, a light."
    page.fill("#find", "Nothing")
    page.fill("#replace", "Nothing")
    page.click("#replace-all")
    page.wait_for_function(
        "() => document.getElementById('live').textContent === 'No lines changed.'"
    )
    page.fill("#find", "")
    assert page.is_disabled("#replace-all")
    page.click("#find-close")


def test_pasted_paragraphs_stay_one_line(page, write):
    write(THREE, 3)
    row(page, 0).locator(".line-text").click()
    page.keyboard.press("End")
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.setData('text/plain', ' a\\n b\\n\\nc');
          const about = { inputType: 'insertFromPaste', dataTransfer: data,
            bubbles: true, cancelable: true };
          document.activeElement.dispatchEvent(new InputEvent('beforeinput', about));
        }"""
    )
    assert texts(page)[0] == "One. a b c"
    assert page.locator("#lines .line").count() == 3


def test_an_empty_project_says_how_to_begin(page):
    fill(page, "", 0)
    assert "Paste" in page.inner_text("#lines-empty") or "paste" in page.inner_text("#lines-empty")
    page.click("#add-line")
    page.keyboard.type("Hello.")
    assert texts(page) == ["Hello."]
    assert not page.is_visible("#lines-empty")


def test_what_is_being_typed_is_not_tidied_under_the_hand(page, write):
    project = write(THREE, 3)
    row(page, 0).locator(".line-text").click()
    page.keyboard.press("End")
    page.keyboard.type(" a ")
    saved(page)
    page.keyboard.type("b")
    assert texts(page)[0] == "One. a b"
    page.keyboard.type("  ")
    page.keyboard.press("Escape")
    assert stored(page, project)[0] == "One. a b"
    page.wait_for_function("() => document.querySelector('.line-text').textContent === 'One. a b'")


def test_fields_of_several_lines_say_where_they_differ(page, write):
    write("[Mara | lang:de | speed:1.2] Eins.\nTomas: Two.", 2)
    page.click("#lines .line-grip >> nth=0")
    page.keyboard.press("Control+a")
    language = page.locator("#field-language")
    drawn(page)
    assert language.locator("option:checked").inner_text() == "Mixed"
    assert page.get_attribute("#field-speaker", "placeholder") == "Mixed"
    assert page.locator("#params .param-number").first.get_attribute("placeholder") == "Mixed"
    assert page.get_attribute("#field-before", "placeholder") == "select a single line"
    language.select_option(index=2)
    page.wait_for_function(
        "code => window.tableread.project.lines.every(({ language }) => language === code)",
        arg=language.input_value(),
    )
    drawn(page)
    assert language.locator("option:text-is('Mixed')").count() == 0


def test_a_language_that_the_voice_has_not_is_seen_and_can_be_changed(page, write):
    write("[Mara | lang:xx] One.", 1)
    page.click("#lines .line-grip")
    language = page.locator("#field-language")
    drawn(page)
    assert language.locator("option:checked").inner_text() == "xx (not supported by this voice)"
    language.select_option("")
    page.wait_for_function("() => window.tableread.project.lines[0].language === null")


def test_a_language_with_several_codes_stands_in_the_lists_once(page, write):
    write("[Mara | lang:en-US] One.\n[Mara | lang:en] Two.", 2)
    page.click("#lines .line-grip >> nth=0")
    language = page.locator("#field-language")
    for idx, code in enumerate(["en-US", "en"]):
        page.click(f"#lines .line-grip >> nth={idx}")
        page.wait_for_function(
            "code => document.getElementById('field-language').value === code", arg=code
        )
        assert language.locator("option:checked").inner_text() == "English (America)"
        for shown in ("#field-language", "#script-language"):
            names = page.locator(f"{shown} option").evaluate_all("all => all.map((o) => o.text)")
            assert len(names) > 100
            assert len(names) == len(set(names)), shown


def test_touched_numbers_mark_several_lines(open_page):
    page = open_page(has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    fill(page, "Mara: One.\nTomas: Two.\nMara: Three.", 3)
    page.tap("#lines .line-grip >> nth=0")
    page.tap("#lines .line-grip >> nth=2")
    marked = page.locator("#lines .line[aria-selected=true]")
    expect(marked).to_have_count(2)  # a tap is a click only a moment after the finger is lifted
    page.tap("#views [data-view=line]")
    expect(page.locator("#line-title")).to_have_text("2 lines")
    page.tap("#views [data-view=lines]")
    page.tap("#lines .line-grip >> nth=0")
    expect(marked).to_have_count(1)


def test_no_control_of_the_page_is_cut_off_on_a_phone(open_page):
    page = open_page()
    page.set_viewport_size({"width": 390, "height": 844})
    fill(page, "Mara: [gasp] One.\n[audio: door.wav]\n[Mara | lang:xx] Two.", 3)
    page.wait_for_selector("#hints-next:not([hidden])")
    for view in ("lines", "script", "line", "cast"):
        page.click(f"#views [data-view={view}]")
        cut = page.evaluate(
            """() => [...document.querySelectorAll('button, input, select, textarea, h2, p')]
              .filter((one) => one.checkVisibility({ visibilityProperty: true }))
              .filter((one) => one.getBoundingClientRect().right > innerWidth + 0.5)
              .map((one) => one.outerHTML.slice(0, 120))"""
        )
        assert cut == []


def test_a_click_on_a_number_selects_that_line_alone_and_a_drag_moves_them_all(page, write):
    write("Mara: One.\nTomas: Two.\nIlse: Three.\nMara: Four.", 4)
    row(page, 0).locator(".line-grip").click()
    row(page, 1).locator(".line-grip").click(modifiers=["Shift"])
    assert len(page.evaluate("() => window.tableread.selection.ids")) == 2
    row(page, 1).locator(".line-grip").drag_to(row(page, 3), target_position={"x": 300, "y": 50})
    expect(row(page, 0).locator(".line-text")).to_have_text("Three.")
    assert texts(page) == ["Three.", "Four.", "One.", "Two."]
    row(page, 2).locator(".line-grip").click()
    expect(page.locator("#lines .line[aria-selected=true]")).to_have_count(1)
    expect(row(page, 2)).to_have_attribute("aria-selected", "true")


def test_a_double_click_on_a_rows_cross_takes_that_row_alone(page, write):
    write("Mara: One.\n[pause:1s]\n[pause:2s]\nTomas: Two.", 4)
    page.locator("#lines .line-remove >> nth=0").dblclick()
    expect(page.locator("#lines .line")).to_have_count(3)
    saved(page)
    assert page.locator("#lines .line-seconds").input_value() == "2"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("#field-gap", "-0.6", "Gap before (s) needs a number from 0 to 30."),
        ("#field-after", "301", "Pause after (s) needs a number from 0 to 300."),
        ("#field-seed", "1.5", "Seed goes in steps of 1."),
        ("#lines .line-seconds", "999", "seconds needs a number from 0 to 300."),
        ("#params .param-number >> nth=0", "-7", "needs a number from"),
    ],
)
def test_a_number_that_is_not_taken_is_told(page, write, field, value, said):
    write("Mara: One.\n[pause:1s]\nTomas: Two.", 3)
    row(page, 0).locator(".line-grip").click()
    page.evaluate("() => (document.querySelector('#line-more').open = true)")
    before = page.input_value(field)
    page.fill(field, value)
    page.press(field, "Tab")
    told = page.locator(".notice[data-passing] .notice-title")
    expect(told).to_contain_text(said)
    expect(page.locator(field)).to_have_value(before)
    page.locator(".notice[data-passing] .notice-close").click()
    page.fill("#lines .line-seconds", "0.25")  # between the steps of its arrows, and taken
    page.press("#lines .line-seconds", "Tab")
    saved(page)
    expect(told).to_have_count(0)
    assert page.evaluate("() => window.tableread.project.lines[1].duration_s") == 0.25
