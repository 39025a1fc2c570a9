"""Files that come in and go out: what is to be known is told, and each goes where it was let go."""

import base64

import pytest
import soundfile
from playwright.sync_api import expect
from ui_steps import fill, line_ids, saved, stored, texts, type_into, violations
from voice_like import voice_like

pytestmark = pytest.mark.browser

DROP = """([selector, files]) => {
  const carried = new DataTransfer();
  for (const [name, type, data] of files) {
    const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
    carried.items.add(new File([bytes], name, { type }));
  }
  const event = new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true });
  document.querySelector(selector).dispatchEvent(event);
}"""


@pytest.fixture
def sound(tmp_path):
    path = tmp_path / "door.wav"
    soundfile.write(path, voice_like(1.5).samples, 24_000)
    return path.read_bytes()


def drop(page, selector, *files):
    packed = [[name, kind, base64.b64encode(data).decode()] for name, kind, data in files]
    page.evaluate(DROP, [selector, packed])


def test_what_is_to_know_of_an_import_is_seen_among_the_lines(page, write, tmp_path):
    write("Mara: One.", 1)
    broken = tmp_path / "broken.srt"
    broken.write_text("1\nno time at all\nMara: Kept.\n\n2\n00:00:05,000 --> 00:00:06,000\nTwo.\n")
    other = tmp_path / "other.srt"
    other.write_text("1\n00:00:05,000 --> 00:00:01,000\nRobin: Back in time.\n")
    page.set_input_files("#import-file", [broken, other])
    brought = page.locator(".notice[data-notice='brought:broken.srt']")
    brought.wait_for()
    opened = page.locator(".notice[data-notice=opened]")
    assert "warning" in opened.locator(".notice-title").inner_text()
    assert len(opened.locator(".notice-text").inner_text()) > 10
    assert page.is_visible("#lines")
    brought.locator(".notice-close").click()
    opened.get_by_role("button", name="Show me").click()
    marked = page.locator("#lines .line[aria-selected=true]")
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("Back in time.")
    former = page.evaluate("() => window.tableread.project.id")
    page.set_input_files("#import-file", [other])
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    opened.wait_for()
    opened.locator(".notice-close").click()
    opened.wait_for(state="detached")


def test_all_that_is_dropped_finds_its_place(page, write, sound):
    project = write("Mara: One.\nTomas: Two.", 2)
    wav = "audio/wav"
    files = [("a.wav", wav, sound), ("b.wav", wav, sound), ("c.txt", "text/plain", b"Ilse: New.")]
    drop(page, "#lines .line", *files)
    page.click("#bring-confirm button[value=project]")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=project)
    page.wait_for_function("() => document.querySelector('.line-text')?.textContent === 'New.'")
    body = page.request.get(
        page.evaluate("() => location.origin + location.pathname") + f"studio/projects/{project}"
    ).json()
    told = [line["path"] or line["text"] for line in body["lines"]]
    assert [one.split("-")[0].split(".")[0] for one in told] == ["One", "a", "b", "Two"]


def bring(page, *files):
    """Let files fall on the second row; what is asked then."""
    drop(page, "#lines .line:nth-child(2)", *files)
    asked = page.locator("#bring-confirm")
    expect(asked).to_be_visible()
    return asked


def test_a_script_comes_into_the_scene_where_one_is_and_undo_takes_it_back(page, write):
    project = write("Mara: One.\nTomas: Two.", 2)
    page.click("#lines .line-grip >> nth=0")
    hostile = "<img src=x onerror=alert(5)>.srt"
    timed = b"1\nno time at all\nIda: Kept.\n\n2\n00:00:05,000 --> 00:00:06,000\nIda: Two.\n"
    script = b"[Ida | lang:de] Eins.\n[pause:1s]\nIda: Drei."
    asked = bring(page, ("a.txt", "text/plain", script), (hostile, "text/plain", timed))
    expect(asked).to_contain_text("Where should 2 files go?")
    expect(asked).to_contain_text("after line 1")
    assert violations(page, ["#bring-confirm"]) == []
    asked.locator("button[value=here]").click()
    told = page.locator(f'.notice[data-notice="brought:{hostile}"]')
    expect(told).to_contain_text(hostile)
    told.locator(".notice-close").click()
    saved(page)
    assert page.evaluate("() => window.tableread.project.id") == project
    now = stored(page, project)
    assert now[:4] == ["One.", "Eins.", "—", "Drei."]
    assert now[-1] == "Two."
    assert page.evaluate("() => window.tableread.project.lines[1].language") == "de"
    page.click("#undo")
    expect(page.locator("#lines .line")).to_have_count(2)
    saved(page)
    assert stored(page, project) == ["One.", "Two."]


def test_a_script_may_stay_away_and_what_is_none_is_refused(page, write):
    project = write("Mara: One.\nTomas: Two.", 2)
    asked = bring(page, ("a.txt", "text/plain", b"Ida: New."))
    expect(asked).to_contain_text("Where should a.txt go?")
    page.keyboard.press("Escape")
    expect(asked).to_be_hidden()
    bring(page, ("b.txt", "text/plain", b"# no line")).locator("button[value=here]").click()
    refused = page.locator(".notice[data-notice=refused]")
    expect(refused).to_contain_text("Couldn’t import b.txt")
    refused.locator(".notice-close").click()
    assert page.evaluate("() => window.tableread.project.id") == project
    assert texts(page) == ["One.", "Two."]


def test_a_question_asked_again_at_once_gets_its_own_answer(page, write):
    """A dialog's `close` event comes a task after it closed: here it is open again by then."""
    write("Mara: One.\nTomas: Two.", 2)
    asked = bring(page, ("a.txt", "text/plain", b"Ida: New."))
    again = f"(asked) => {{ document.querySelector('#bring-confirm').close(); ({DROP})(asked); }}"
    script = base64.b64encode(b"Ida: Other.").decode()
    page.evaluate(again, ["#lines .line:nth-child(2)", [["b.txt", "text/plain", script]]])
    expect(asked).to_contain_text("Where should b.txt go?")
    asked.locator("button[value=here]").click()
    expect(page.locator("#lines .line")).to_have_count(3)
    assert texts(page) == ["One.", "Two.", "Other."]


def test_the_import_of_the_script_view_asks_and_that_of_the_project_makes_one(page, write):
    project = write("Mara: One.", 1)
    script = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"Ida: New."}
    page.click("#views [data-view=script]")
    with page.expect_file_chooser() as chooser:
        page.click("#import")
    chooser.value.set_files([script])
    page.click("#bring-confirm button[value=here]")
    page.click("#views [data-view=lines]")
    expect(page.locator("#lines .line")).to_have_count(2)
    page.click("#project-open")
    with page.expect_file_chooser() as chooser:
        page.click("#project-import")
    chooser.value.set_files([script])
    page.wait_for_function("id => window.tableread.project.id !== id", arg=project)
    expect(page.locator("#lines .line")).to_have_count(1)
    page.keyboard.press("Escape")


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_5000_lines_come_into_a_scene(page, write):
    write("Mara: One.", 1)
    script = "\n".join(f"Mara: Line {n} of many." for n in range(5_000)).encode()
    drop(page, "#lines .line", ("long.txt", "text/plain", script))
    began_ms = page.evaluate("() => performance.now()")
    page.click("#bring-confirm button[value=here]")
    expect(page.locator("#lines .line")).to_have_count(5_001, timeout=120_000)
    print(f"5,000 lines in after {page.evaluate('() => performance.now()') - began_ms:.0f} ms")
    saved(page)
    page.click("#undo")
    expect(page.locator("#lines .line")).to_have_count(1, timeout=120_000)


def test_a_recording_stays_in_the_project_it_was_let_go_in(page, write, sound):
    first = write("Mara: One.", 1)
    held = []
    page.route("**/audio", lambda route: held.append(route))
    with page.expect_request("**/audio"):
        drop(page, "#lines .line", ("door.wav", "audio/wav", sound))
    fill(page, "Ilse: Another.", 1)
    held[0].continue_()
    page.wait_for_selector(".notice[data-passing]:has-text('door.wav is in “Scene”.')")
    page.unroute("**/audio")
    assert texts(page) == ["Another."]
    assert len(stored(page, first)) == 2


def test_an_exported_project_holds_what_was_typed_last(page, write, tmp_path):
    first = write("Mara: One.", 1)
    held = []
    # Letters that are typed after the first edit was sent come in another one.
    page.route("**/edits", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/edits"):
        type_into(page, 0, " And this.")
    page.click("#project-open")
    with page.expect_download() as waiting:
        page.click("#project-panel a[data-format=tableread]")
        assert page.locator(".notice[data-passing]:has-text('Preparing')").count() == 0
        held[0].continue_()
        page.wait_for_selector(".notice[data-passing]:has-text('Preparing')")
    page.unroute("**/edits")
    file = tmp_path / "scene.tableread.zip"
    waiting.value.save_as(file)
    page.keyboard.press("Escape")
    page.set_input_files("#import-file", file)
    page.wait_for_function("id => window.tableread.project.id !== id", arg=first)
    assert texts(page) == ["One. And this."]


def test_undo_reaches_a_slider_that_was_just_moved(page, write):
    write("Mara: One.", 1)
    page.click("#lines .line-grip")
    number = page.locator("#params .param-number").first
    slider = page.locator("#params .param-range").first
    before = slider.input_value()
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => Object.keys(window.tableread.project.lines[0].params).length === 1"
    )
    saved(page)
    page.keyboard.press("Control+z")
    page.wait_for_function(
        "() => Object.keys(window.tableread.project.lines[0].params).length === 0"
    )
    expect(slider).to_have_value(before)
    expect(number).to_have_value(before)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    number.fill("1.3")
    number.press("Control+z")
    expect(number).to_have_value(before)  # the field's own
    assert not any(url.endswith("/undo") for url in asked)
    assert len(line_ids(page)) == 1
    assert page.evaluate("() => Object.keys(window.tableread.project.lines[0].params).length") == 0


PASTE = """text => {
  const carried = new DataTransfer();
  carried.setData('text/plain', text);
  const about = { inputType: 'insertFromPaste', dataTransfer: carried };
  document.activeElement.dispatchEvent(
    new InputEvent('beforeinput', { ...about, bubbles: true, cancelable: true }));
}"""


def test_a_piece_of_a_script_pasted_into_a_row_becomes_lines(page, write):
    project = write("Mara: One.\nTomas: Two.", 2)
    page.locator("#lines .line-text").first.click()
    page.evaluate(PASTE, "mara: And this.\n[pause:0.5s]\n\nIda: New here: listen.")
    page.wait_for_function("() => window.tableread.project.lines.length === 5")  # it was read
    saved(page)
    assert stored(page, project) == ["One.", "And this.", "—", "New here: listen.", "Two."]
    speakers = page.locator("#lines .line-speaker").all_inner_texts()
    assert speakers == ["Mara", "Mara", "Ida", "Tomas"]
    page.keyboard.press("Control+z")
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length === 2")
    page.locator("#lines .line-text").first.click()
    page.keyboard.press("End")
    page.evaluate(PASTE, "He said: no.\nAnd left.")
    assert texts(page)[0] == "One.He said: no. And left."


def test_a_long_import_says_that_it_is_at_work(page, write, tmp_path):
    former = write("Mara: One.", 1)
    path = tmp_path / "slow.txt"
    path.write_text("Ilse: New.", encoding="utf-8")
    waiting = []
    page.mouse.move(0, 0)  # a notice under the pointer would stay
    page.route("**/projects/import*", lambda route: waiting.append(route))
    page.set_input_files("#import-file", path)
    told = page.locator("[data-passing=held]")
    expect(told).to_contain_text("Importing slow.txt…")
    while not waiting:
        page.wait_for_timeout(50)
    waiting[0].continue_()
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    expect(told).to_have_count(0)
    page.unroute("**/projects/import*")


SHEET = """Ort,Figur,Fassung A,Fassung B
Hof,Mara,Not this one here.,Come in out of the rain.
Hof,Tom,Nor this one here.,I am wet through.
Tor,Mara,And not this one.,Sit by the fire.
"""


def test_the_columns_of_a_table_are_chosen_over_its_rows_and_remembered(page, write):
    write("Robin: Before.", 1)
    sheet = ("sheet.csv", "text/csv", SHEET.encode())
    drop(page, "#lines", sheet)
    page.click("#bring-confirm [value=here]")
    notice = page.locator(".notice[data-notice=narrator]")
    notice.get_by_role("button", name="Choose columns").click()
    menus = page.locator("#columns-head select")
    assert [menu.input_value() for menu in menus.all()] == ["note", "speaker", "note", "text"]
    rows = page.locator("#columns-rows tr")
    assert rows.count() == 3
    assert rows.nth(1).inner_text() == "Hof\tTom\tNor this one here.\tI am wet through."
    assert violations(page, ["#columns"]) == []
    menus.nth(2).select_option("text")
    assert menus.nth(3).input_value() == "", "one column is the text"
    menus.nth(0).select_option("direction")
    page.click("#columns [value=read]")
    read = [
        "Before.",
        "[direction: Hof] Not this one here.",
        "[direction: Hof] Nor this one here.",
        "[direction: Tor] And not this one.",
    ]
    expect(page.locator("#lines .line-text")).to_have_text(read)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    expect(page.locator("#lines .line-text")).to_have_text(["Before."])
    drop(page, "#lines", sheet)
    page.click("#bring-confirm [value=here]")
    expect(page.locator("#lines .line-text")).to_have_text(read)
    former = page.evaluate("() => window.tableread.project.id")
    page.set_input_files(
        "#import-file",
        {"name": "sheet.csv", "mimeType": "text/csv", "buffer": SHEET.encode()},
    )
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    expect(page.locator("#lines .line-text")).to_have_text(read[1:])
