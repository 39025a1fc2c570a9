"""Chats and transcripts, pasted or brought as files, become lines of those who wrote them."""

import pytest
from playwright.sync_api import expect
from ui_steps import saved, stored

pytestmark = pytest.mark.browser

PASTED = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  return event.defaultPrevented;
}"""
SAID = "() => window.tableread.project.lines.map(({ speaker, text }) => [speaker, text])"

PLAIN = "Mara: Are you up?\nTomas: Since five.\n"
PHONE = (
    "03.09.24, 10:01 - Messages are encrypted end to end.\n"
    "03.09.24, 10:02 - Mara: Are\nyou up?\n03.09.24, 10:03 - Tomas: Since five."
)
TOLD = "03.09.24, 10:01 - Messages are encrypted end to end."
READ = f"# {TOLD}\n{PLAIN}"
ROWS = [[None, TOLD], ["Mara", "Are you up?"], ["Tomas", "Since five."]]


def test_a_chat_pasted_into_the_script_becomes_its_lines_and_undo_leads_back(page, write):
    project = write("", 0)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_be_editable()  # its text has come
    page.focus("#script")
    assert page.evaluate(PASTED, PHONE)
    expect(page.locator("#script")).to_have_value(READ)
    page.hover("[data-passing]")  # it stays while somebody points at it
    expect(page.locator("[data-passing] .notice-title")).to_have_text(
        "Read as a chat: 2 lines of 2 speakers."
    )
    page.wait_for_function("() => window.tableread.project.lines.length === 3")
    saved(page)
    assert stored(page, project) == ["—", "Are you up?", "Since five."]
    page.locator("[data-passing] .notice-act").click()
    expect(page.locator("#script")).to_have_value(PHONE)
    page.click("#views [data-view=lines]")


def test_a_chat_pasted_behind_a_script_begins_a_row_of_its_own(page, write):
    write("Ilse: Hush.", 1)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value("Ilse: Hush.\n")
    page.locator("#script").fill("Ilse: Hush.")
    page.evaluate(PASTED, PHONE)
    expect(page.locator("#script")).to_have_value(f"Ilse: Hush.\n{READ}")
    page.wait_for_function("() => window.tableread.project.lines.length === 4")
    saved(page)
    page.click("#views [data-view=lines]")


def test_a_chat_pasted_among_the_lines_becomes_lines(page, write):
    write("Ilse: Hush.", 1)
    page.click("#lines .line-grip >> nth=0")
    assert page.evaluate(PASTED, PHONE)
    expect(page.locator("#lines .line")).to_have_count(4)
    assert page.evaluate(SAID) == [["Ilse", "Hush."], *ROWS]
    saved(page)


def test_a_chat_in_a_file_becomes_a_project(page, write, tmp_path):
    former = write("Ilse: Hush.", 1)
    path = tmp_path / "our chat.txt"
    path.write_text(PHONE, encoding="utf-8")
    page.set_input_files("#import-file", path)
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    expect(page.locator("#lines .line")).to_have_count(3)
    assert page.evaluate(SAID) == ROWS
