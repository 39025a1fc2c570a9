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
READ = """async text => {
  const { chatOf } = await import(new URL('studio/assets/page/chat.js', document.baseURI));
  return chatOf(text)?.script ?? null;
}"""
SAID = "() => window.tableread.project.lines.map(({ speaker, text }) => [speaker, text])"

PLAIN = "Mara: Are you up?\nTomas: Since five.\n"
CHATS = {
    "a phone's, with seconds": "[3/9/24, 10:02:11\u202fAM] Mara: Are you up?\n"
    "\u200e[3/9/24, 10:02:40\u202fAM] ~\u202fTomas: Since five.",
    "a phone's, with a dash": "03.09.24, 10:01 - Messages are encrypted end to end.\n"
    "03.09.24, 10:02 - Mara: Are\nyou up?\n03.09.24, 10:03 - Tomas: Since five.",
    "with the time first": "00:00:01 Mara: Are you up?\n00:00:05.250 Tomas: Since five.",
    "with the time behind the name": "Mara (0:01): Are you up?\n\nTomas (0:05): Since five.",
    "with a row for the name": "Mara  10:02 AM\nAre you up?\nTomas  10:03 AM\nSince five.",
    "with a row for name and day": "Mara — Today at 10:02\nAre you up?\n"
    "Tomas — Today at 10:03\nSince five.",
    "with angle brackets": "[10:02] <@Mara> Are you up?\n[10:02] <Tomas> Since five.",
    "a list": "- Mara: Are you up?\n- Tomas: Since five.",
    "a list with numbers": "1. Mara: Are you up?\n2. Tomas: Since five.",
    "with dashes": "Mara - Are you up?\nTomas – Since five.",
    "without a space": "Mara:Are you up?\nTomas:Since five.",
    "two columns": "Mara\tAre you up?\nTomas\tSince five.",
}
OTHERS = {
    "a script": PLAIN + "[pause:1s]\n[Mara | lang:de] Um 10:30 - wie immer.",
    "a script in another writing": "安娜：你好\n本：再见",
    "times at the beginning": "10:30 we leave\n11:30 we arrive",
    "a list of things": "Bread - two\nMilk - one\nEggs - ten\nHam - some",
    "addresses": "http://a.example/b\nhttps://c.example/d",
    "prose": "It was late - very late.\nHe said: come in. Then, at 10:30, she came.",
    "a screenplay": "MARA\nAre you up?\n\nTOMAS\nSince five.",
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\nMara: Up?\n\n"
    "2\n00:00:03,000 --> 00:00:04,000\nTomas: Yes.",
    "a table with a head": "speaker\ttext\nMara\tAre you up?\nTomas\tSince five.",
}
PHONE = CHATS["a phone's, with a dash"]
ROWS = [["Mara", "Are you up?"], ["Tomas", "Since five."]]


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_a_chat_is_read_by_its_names(page, chat):
    assert page.evaluate(READ, chat) == PLAIN


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_no_chat_stays_as_it_is(page, text):
    assert page.evaluate(READ, text) is None


def test_a_number_in_place_of_a_name_becomes_a_speaker(page):
    chat = "10:02 +49 170 0000: Up?\n10:03 Mara: Yes.\n10:04 +49 170 0000: Good."
    script = "[+49 170 0000 |] Up?\nMara: Yes.\n[+49 170 0000 |] Good.\n"
    assert page.evaluate(READ, chat) == script


def test_a_chat_pasted_into_the_script_becomes_its_lines_and_undo_leads_back(page, write):
    project = write("", 0)
    page.click("#views [data-view=script]")
    page.focus("#script")
    assert page.evaluate(PASTED, PHONE)
    expect(page.locator("#script")).to_have_value(PLAIN)
    expect(page.locator("[data-passing] .notice-title")).to_have_text(
        "Read as a chat: 2 lines of 2 speakers."
    )
    page.wait_for_function("() => window.tableread.project.lines.length === 2")
    saved(page)
    assert stored(page, project) == ["Are you up?", "Since five."]
    page.locator("[data-passing] .notice-act").click()
    expect(page.locator("#script")).to_have_value(PHONE)
    page.click("#views [data-view=lines]")


def test_a_chat_pasted_behind_a_script_begins_a_row_of_its_own(page, write):
    write("Ilse: Hush.", 1)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value("Ilse: Hush.\n")
    page.locator("#script").fill("Ilse: Hush.")
    page.evaluate(PASTED, PHONE)
    expect(page.locator("#script")).to_have_value(f"Ilse: Hush.\n{PLAIN}")
    page.wait_for_function("() => window.tableread.project.lines.length === 3")
    saved(page)
    page.click("#views [data-view=lines]")


def test_a_chat_pasted_among_the_lines_becomes_lines(page, write):
    write("Ilse: Hush.", 1)
    page.click("#lines .line-grip >> nth=0")
    assert page.evaluate(PASTED, PHONE)
    expect(page.locator("#lines .line")).to_have_count(3)
    assert page.evaluate(SAID) == [["Ilse", "Hush."], *ROWS]
    saved(page)


def test_a_chat_in_a_file_becomes_a_project(page, write, tmp_path):
    former = write("Ilse: Hush.", 1)
    path = tmp_path / "our chat.txt"
    path.write_text(PHONE, encoding="utf-8")
    page.set_input_files("#import-file", path)
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    expect(page.locator("#lines .line")).to_have_count(2)
    assert page.evaluate(SAID) == ROWS
