"""What a person wrote is shown as typed; the page is usable without a mouse or a colour."""

import re

import pytest
from ui_steps import NAMELESS, fill, make, saved, texts, violations

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "${alert(2)}",
    "{{constructor}}",
    "\\u{",
    "<script>alert(3)</script>",
)


def test_hostile_lines_names_and_titles_are_shown_as_typed(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    for number, text in enumerate(HOSTILE):
        line = f"h{number:011d}"
        page.evaluate(
            """([line, text]) => {
              const { project } = window.tableread;
              const made = { line_id: line, kind: 'speech', speaker: text, text };
              project.edit([{ op: 'insert', after: null, lines: [made] }]);
            }""",
            [line.replace("h", "a"), text],
        )
    saved(page)
    shown = list(reversed(HOSTILE))
    assert texts(page) == [*shown, "One.", "Two."]
    page.wait_for_function("() => document.querySelectorAll('#cast .voice').length === 7")
    assert page.locator("#lines .line-speaker").all_inner_texts()[:5] == shown
    page.click("#lines .line-speaker >> nth=0")
    assert set(HOSTILE) <= set(page.locator("#speaker-menu .item-name").all_inner_texts())
    page.keyboard.press("Escape")
    page.click("#project-open")
    page.fill("#project-name", HOSTILE[0])
    page.press("#project-name", "Enter")
    page.wait_for_function(
        "name => document.querySelector('#project-title').textContent === name", arg=HOSTILE[0]
    )
    page.keyboard.press("Escape")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert texts(page)[:5] == shown
    page.click("#views [data-view=script]")
    page.wait_for_function("() => document.querySelector('#script').value.includes('onerror')")
    page.click("#views [data-view=lines]")


def test_a_hostile_file_name_is_shown_as_typed(page, write, tmp_path):
    write("Mara: One.", 1)
    page.set_input_files(
        "#import-file",
        {"name": "<img src=x onerror=alert(4)>.json", "mimeType": "text/plain", "buffer": b"{ no"},
    )
    refused = page.locator(".notice[data-notice=refused]")
    refused.wait_for()
    assert "<img src=x onerror=alert(4)>" in refused.inner_text()
    refused.locator(".notice-close").click()


def test_every_control_has_a_name(page):
    page.click("#model-chip")
    assert page.evaluate(NAMELESS) == []
    page.keyboard.press("Escape")


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_wrong(open_page, look):
    page = open_page(color_scheme=look)
    fill(page, "Mara: One.\n[pause:0.5s]\nTomas: Two.\nMara: Three.", 4)
    make(page)
    page.click("#lines .line-text >> nth=0")
    page.keyboard.type("x")
    page.wait_for_selector("#lines .line[data-state=stale]")
    page.wait_for_selector("#takes .take")
    page.keyboard.press("Control+f")
    parts = ["#header", "#part-views", "#part-lines", "#part-line", "#part-player"]
    assert violations(page, parts) == []
    page.click("#find-close")
    page.click("#download")
    page.select_option("#sound-loudness", "other")
    assert violations(page, ["#sound-form"]) == []
    page.keyboard.press("Escape")
    page.click("#project-open")
    assert violations(page, ["#header"]) == []
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.click("#keys-open")
    assert violations(page, ["#keys"]) == []
    page.keyboard.press("Escape")
    page.click("#views [data-view=script]")
    assert violations(page, ["#part-script"]) == []


def test_a_phone_shows_one_view_at_a_time_and_nothing_beside_it(open_page):
    page = open_page()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    views = (("lines", "#lines-view"), ("line", "#line-panel"), ("cast", "#cast-view"))
    for view, pane in (*views, ("script", "#script")):
        page.click(f"#views [data-view={view}]")
        assert page.is_visible(pane)
    assert not page.is_visible("#cast-view")
    assert page.locator("#play").bounding_box()["height"] >= 40


def test_the_look_can_be_switched_and_is_kept(page):
    before = page.evaluate("() => document.body.classList.contains('dark')")
    page.click("#theme-toggle")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.evaluate("() => document.body.classList.contains('dark')") is not before


def test_the_page_names_the_project_in_its_title(page, write):
    write("Mara: One.", 1)
    assert re.fullmatch(r"Scene · Tableread", page.title())
