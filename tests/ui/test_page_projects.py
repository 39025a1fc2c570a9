"""Projects: kept, renamed, copied, sent as files, open twice, cut off from the studio."""

import re

import pytest
from playwright.sync_api import expect
from ui_steps import make, saved, stored, studio_url, texts

pytestmark = pytest.mark.browser

TWO = "Mara: One.\nTomas: Two."


def type_into(page, number, text):
    page.locator("#lines .line-text").nth(number).click()
    page.keyboard.press("End")
    page.keyboard.type(text)


def test_a_project_is_renamed_copied_and_deleted(page, write):
    first = write(TWO, 2)
    page.click("#project-open")
    page.fill("#project-name", "<b>Night</b> ${7*7}")
    page.press("#project-name", "Enter")
    page.wait_for_function(
        "() => document.querySelector('#project-title').textContent === '<b>Night</b> ${7*7}'"
    )
    page.click("#project-copy")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=first)
    assert texts(page) == ["One.", "Two."]
    copy = page.evaluate("() => window.tableread.project.id")
    page.click("#project-open")
    page.click("#project-delete")
    page.click("#project-confirm button[value=delete]")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=copy)
    page.click("#project-open")
    page.wait_for_selector("#projects li, #projects-part[hidden]", state="attached")
    page.keyboard.press("Escape")


def test_a_name_begun_is_left_by_escape_and_kept_by_enter(page, write):
    write(TWO, 2)
    asked = []
    page.on("request", lambda request: request.method == "PATCH" and asked.append(request.url))
    page.click("#project-open")
    page.fill("#project-name", "Not this")
    page.keyboard.press("Escape")
    expect(page.locator("#project-panel")).to_be_hidden()
    page.click("#project-open")
    expect(page.locator("#project-name")).to_have_value("Scene")
    assert asked == []
    page.fill("#project-name", "This one")
    page.keyboard.press("Enter")
    expect(page.locator("#project-title")).to_have_text("This one")
    expect(page.locator("#project-open")).to_be_focused()
    page.keyboard.press("Escape")


def test_a_deleted_project_is_brought_back_at_once_or_from_the_list(page, write):
    write("Ilse: Another.", 1)
    first = write(TWO, 2)
    page.click("#project-open")
    page.click("#project-delete")
    page.click("#project-confirm button[value=delete]")
    page.click(".notice[data-passing]:has-text('Scene deleted') .notice-act:has-text('Undo')")
    page.wait_for_selector("#live:has-text('Project restored.')", state="attached")
    assert page.evaluate("() => window.tableread.project.id") == first
    assert texts(page) == ["One.", "Two."]
    page.evaluate(
        "id => fetch(`studio/projects/${id}`, {method: 'PATCH', body: '{\"name\": \"Put away\"}',"
        " headers: {'Content-Type': 'application/json'}})",
        first,
    )
    page.wait_for_function("() => document.title.startsWith('Put away')")
    page.click("#project-open")
    page.click("#project-delete")
    page.click("#project-confirm button[value=delete]")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=first)
    page.click("#project-open")
    page.click("#removed-part summary")
    page.click("#removed li:has-text('Put away') button")
    page.wait_for_function("id => window.tableread.project.id === id", arg=first)
    assert texts(page) == ["One.", "Two."]


def test_another_project_is_renamed_and_deleted_without_being_opened(page, write):
    other = write("Ilse: Another.", 1)
    first = write(TWO, 2)
    page.click("#project-open")
    row = page.locator(f".project-row:has(a[href*='{other}'])")
    assert ":" in row.locator(".project-item-about").inner_text()
    with page.expect_download() as waiting:
        row.locator(".project-item-export").click()
    assert waiting.value.suggested_filename == "Scene.tableread.zip"
    row.locator(".project-item-rename").click()
    page.keyboard.type("<b>Night</b>")
    page.keyboard.press("Enter")
    row.locator(".project-item-name:has-text('<b>Night</b>')").wait_for()
    row.locator(".project-item-rename").click()
    page.keyboard.type("Not this")
    page.keyboard.press("Escape")
    row.locator(".project-item-name:has-text('<b>Night</b>')").wait_for()
    row.locator(".project-item-delete").click()
    page.click("#project-confirm button[value=delete]")
    page.wait_for_selector(".notice[data-passing]:has-text('<b>Night</b> deleted.')")
    assert page.evaluate("() => window.tableread.project.id") == first
    page.click("#project-open")
    page.wait_for_selector("#removed-part:not([hidden])")
    row.wait_for(state="detached")
    page.keyboard.press("Escape")


def test_recent_projects_say_when_they_were_edited(page, write):
    ids = [write(f"Ilse: Number {number}.", 1) for number in range(3)]
    page.evaluate(
        "id => fetch(`studio/projects/${id}`, {method: 'PATCH', body: '{\"name\": \"Only one\"}',"
        " headers: {'Content-Type': 'application/json'}})",
        ids[0],
    )
    write(TWO, 2)
    page.click("#project-open")
    about = [page.locator(f".project-row:has(a[href*='{one}']) .project-item-about") for one in ids]
    expect(about[0]).to_have_text(re.compile(r"1 line · (just now|\d+ min ago)$"))
    # One of several that are called Scene.
    expect(about[1]).to_have_text(re.compile(r"1 line · (just now|\d+ min ago), .*\d:\d\d"))
    expect(about[0]).to_have_attribute("title", re.compile(r"^Edited .*20\d\d"))
    page.keyboard.press("Escape")
    told = page.evaluate(
        """async (minutes) => {
          const address = new URL('studio/assets/page/core/format.js', document.baseURI);
          const { formatAgo } = await import(address);
          return minutes.map((n) => formatAgo(new Date(1e12 - 60_000 * n).toISOString(), 1e12));
        }""",
        [0.5, 1, 59, 60, 125, 1_440, 2_880],
    )
    words = ["just now", "1 min ago", "59 min ago", "1 h ago", "2 h ago", "1 day ago", "2 days ago"]
    assert told == words


def test_the_engine_of_a_project_is_shown_whole(page, write):
    write(TWO, 2)
    page.click("#project-open")
    engine = page.locator("#project-engine")
    expect(engine.locator("option:checked")).to_have_text("Default: Draft voice (eSpeak NG)")
    room_px = engine.evaluate(
        """(select) => {
          const look = getComputedStyle(select);
          const pen = document.createElement('canvas').getContext('2d');
          pen.font = look.font;
          const text = pen.measureText(select.selectedOptions[0].text).width;
          const arrow = 20;
          return select.clientWidth - text - arrow
            - parseFloat(look.paddingLeft) - parseFloat(look.paddingRight);
        }"""
    )
    assert room_px >= 0
    page.keyboard.press("Escape")


def test_many_projects_can_be_searched(page, write):
    for number in range(9):
        write(f"Ilse: Number {number}.", 1)
    page.evaluate(
        "id => fetch(`studio/projects/${id}`, {method: 'PATCH', body: '{\"name\": \"Needle\"}',"
        " headers: {'Content-Type': 'application/json'}})",
        write(TWO, 2),
    )
    write(TWO, 2)
    page.click("#project-open")
    page.fill("#projects-search", "needLE")
    page.wait_for_function(
        "() => [...document.querySelectorAll('#projects > li')].filter((row) => !row.hidden)"
        ".map((row) => row.dataset.name).join() === 'Needle'"
    )
    page.fill("#projects-search", "")
    page.wait_for_function("() => !document.querySelector('#projects > li[hidden]')")
    page.keyboard.press("Escape")


def test_one_project_of_the_list_is_in_the_tab_order_and_arrow_keys_lead_to_others(page, write):
    for number in range(4):
        write(f"Ilse: Number {number}.", 1)
    page.click("#project-open")
    others = len(page.request.get(studio_url(page, "projects")).json()) - 1
    expect(page.locator("#projects > li")).to_have_count(others)
    stops = "() => [...document.querySelectorAll('#projects a, #projects button')]"
    stops += ".filter((one) => one.tabIndex === 0).length"
    assert page.evaluate(stops) == 4  # open, rename, export, delete
    page.focus("#projects .project-item")
    page.keyboard.press("ArrowDown")
    second = "#projects > li:nth-child(2)"
    expect(page.locator(f"{second} .project-item")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(f"{second} .project-item-rename")).to_be_focused()
    assert page.evaluate(stops) == 4
    page.keyboard.press("Enter")
    field = page.locator(f"{second} input")
    expect(field).to_be_focused()
    page.keyboard.press("Home")  # the field's own
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(f"{second} .project-item")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.type("Named by keys")
    page.keyboard.press("Enter")
    named = page.locator("#projects .project-row[data-name='Named by keys'] .project-item")
    expect(named).to_be_focused()  # in a list that was read again
    page.keyboard.press("End")
    expect(page.locator("#projects > li:last-child .project-item")).to_be_focused()
    page.keyboard.press("Escape")


def test_a_project_has_a_seed_and_an_engine_of_its_own(page, write):
    write(TWO, 2)
    page.click("#project-open")
    page.fill("#project-seed", "7")
    page.press("#project-seed", "Tab")
    page.select_option("#project-engine", "draft")
    page.wait_for_function(
        "() => { const { settings } = window.tableread.project.view;"
        " return settings.seed === 7 && settings.backend === 'draft'; }"
    )
    saved(page)
    page.keyboard.press("Escape")
    make(page)
    seeds = page.evaluate("() => window.tableread.project.lines.map(({ take }) => take.seed)")
    assert seeds == [7, 7]


def test_a_scene_of_another_engine_is_not_read_anew_without_a_question(page, write):
    """The takes are said to be another engine's, since the tests have but one that speaks."""
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    make(page)
    takes = page.evaluate("() => window.tableread.project.lines.map(({ take }) => take.take_id)")
    # In one breath, as the times of a take's words bring it anew.
    page.evaluate(
        "() => { for (const { take } of window.tableread.project.lines) take.backend = 'former';"
        " void window.tableread.playback.make(); }"
    )
    page.wait_for_selector("#engine-confirm[open]")
    asked = page.inner_text("#engine-confirm")
    assert "These takes were made with former." in asked
    assert "Regenerate 3 lines with" in asked
    assert page.is_hidden("#engine-keep")
    page.click("#engine-confirm [value=cancel]")
    page.wait_for_selector("#engine-confirm", state="hidden")
    assert takes == page.evaluate(
        "() => window.tableread.project.lines.map(({ take }) => take.take_id)"
    )


def test_a_recent_project_is_opened_from_the_list(page, write):
    first = write(TWO, 2)
    page.evaluate(
        "id => fetch(`studio/projects/${id}`, {method: 'PATCH', body: '{\"name\": \"First one\"}',"
        " headers: {'Content-Type': 'application/json'}})",
        first,
    )
    write("Ilse: Another.", 1)
    page.click("#project-open")
    page.click(".project-item:has-text('First one')")
    page.wait_for_function("id => window.tableread.project.id === id", arg=first)
    assert texts(page) == ["One.", "Two."]


def test_another_project_begins_with_its_whole_timeline_in_sight(page, write):
    text = "\n".join(f"Mara: This is line {idx}, and it takes a while to say." for idx in range(30))
    write(text, 30)
    for _ in range(3):
        page.click("#zoom-in")
    assert 0.08 < pressed_share(page) < 0.11, "an eighth of it is in sight"
    write(f"{text}\nMara: End.", 31)
    assert 0.7 < pressed_share(page) < 0.8


def pressed_share(page):
    """How far in the scene three quarters of the timeline's width are."""
    page.evaluate("() => window.tableread.playback.placeAt(window.tableread.project.view.order[0])")
    timeline = page.locator("#timeline")
    box = timeline.bounding_box()
    timeline.click(position={"x": box["width"] * 0.75, "y": box["height"] / 2})
    page.wait_for_function("() => Number(document.getElementById('timeline').ariaValueNow) > 0")
    now, most = (int(timeline.get_attribute(f"aria-value{one}")) for one in ("now", "max"))
    return now / most


def test_the_address_opens_the_project_elsewhere(page, write, open_page):
    write(TWO, 2)
    other = open_page()
    other.goto(page.url)
    other.wait_for_selector("body[data-tableread=ready]")
    assert texts(other) == ["One.", "Two."]


def test_two_windows_see_each_others_edits_and_lose_none(page, write, open_page):
    project = write(TWO, 2)
    other = open_page()
    other.goto(page.url)
    other.wait_for_selector("body[data-tableread=ready]")
    type_into(page, 0, " Mine.")
    type_into(other, 1, " Theirs.")
    for window in (page, other):
        window.wait_for_function(
            """() => [...document.querySelectorAll('.line-text')].map((one) => one.textContent)
              .join('|') === 'One. Mine.|Two. Theirs.'"""
        )
        saved(window)
    assert page.evaluate("() => window.tableread.project.id") == project


def test_the_same_line_changed_twice_is_shown_and_decided(page, write, open_page):
    write(TWO, 2)
    other = open_page()
    other.goto(page.url)
    other.wait_for_selector("body[data-tableread=ready]")
    # The other window's studio is out of reach while the line changes under it.
    other.context.set_offline(True)
    type_into(other, 0, " Theirs.")
    other.wait_for_selector("#saved[data-state=offline]", state="attached")
    type_into(page, 0, " Mine.")
    saved(page)
    other.context.set_offline(False)
    other.wait_for_selector("#conflicts[open]")
    assert other.inner_text(".conflict-mine") == "One. Theirs."
    assert other.inner_text(".conflict-theirs") == "One. Mine."
    other.click(".keep-mine")
    saved(other)
    page.wait_for_function(
        "() => document.querySelector('.line-text').textContent === 'One. Theirs.'"
    )


def test_edits_made_without_the_studio_are_sent_when_it_is_back(page, write):
    write(TWO, 2)
    page.context.set_offline(True)
    type_into(page, 1, " Later.")
    page.wait_for_selector("#saved[data-state=offline]", state="attached")
    assert page.locator(".notice[data-notice=unsaved]").is_visible()
    assert "Later" in page.evaluate(
        """() => {
          const drawer = `tableread.unsent.${window.tableread.project.id}.`;
          return Object.entries(localStorage).find(([key]) => key.startsWith(drawer))[1];
        }"""
    )
    page.context.set_offline(False)
    saved(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert texts(page) == ["One.", "Two. Later."]


def test_a_script_is_laid_onto_the_lines_and_keeps_their_sound(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    make(page)
    page.click("#views [data-view=script]")
    page.wait_for_function("() => document.querySelector('#script').value.includes('Two.')")
    page.fill("#script", "Mara: One.\nTomas: Two, rather.\nMara: Three.\nIlse: Four.")
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length === 4")
    page.click("#views [data-view=lines]")
    now = page.evaluate("() => window.tableread.project.lines.map((line) => line.state)")
    assert (now[0], now[2], now[3]) == ("ready", "ready", "none")
    assert now[1] in ("stale", "none")
    assert page.locator("#cast .voice").count() == 3


def test_an_error_in_the_script_is_shown_at_its_line(page, write):
    write(TWO, 2)
    page.click("#views [data-view=script]")
    page.wait_for_function("() => document.querySelector('#script').value.includes('Two.')")
    page.fill("#script", "Mara: One.\n[pause:10h]\nTomas: Two.")
    problem = page.locator("#problems li")
    problem.wait_for()
    assert problem.locator(".problem-place").inner_text() == "Line 2"
    problem.locator("button").click()
    assert page.evaluate("() => document.getSelection().toString()") == "[pause:10h]"
    assert page.get_attribute("#script", "aria-invalid") == "true"
    page.fill("#script", "Mara: One.")
    page.wait_for_selector("#script[aria-invalid=false]")
    page.click("#views [data-view=lines]")


def test_a_script_file_becomes_a_project_by_button_and_by_dropping(page, write, tmp_path):
    write(TWO, 2)
    script = tmp_path / "scene.txt"
    script.write_text("Robin: From a file.", encoding="utf-8")
    page.set_input_files("#import-file", script)
    page.wait_for_function(
        "() => document.querySelector('.line-text')?.textContent === 'From a file.'"
    )
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(['Robin: Let go.'], 'drop.txt', { type: 'text/plain' }));
          const target = document.querySelector('#lines-view');
          target.dispatchEvent(new DragEvent('drop',
            { dataTransfer: data, bubbles: true, cancelable: true }));
        }"""
    )
    page.click("#bring-confirm button[value=project]")
    page.wait_for_function("() => document.querySelector('.line-text')?.textContent === 'Let go.'")


def test_a_project_travels_as_one_file_with_its_takes(page, write, tmp_path):
    first = write(TWO, 2)
    make(page)
    page.click("#project-open")
    with page.expect_download() as waiting:
        page.click("#project-panel a[data-format=tableread]")
    file = tmp_path / "scene.tableread.zip"
    waiting.value.save_as(file)
    page.keyboard.press("Escape")
    page.set_input_files("#import-file", file)
    page.wait_for_function("id => window.tableread.project.id !== id", arg=first)
    page.wait_for_function(
        "() => document.querySelectorAll('#lines .line[data-state=ready]').length === 2"
    )


def test_a_file_that_is_no_script_is_refused_with_words(page, write, tmp_path):
    first = write(TWO, 2)
    broken = tmp_path / "scene.json"
    broken.write_text("{ this is no json", encoding="utf-8")
    page.set_input_files("#import-file", broken)
    refused = page.locator(".notice[data-notice=refused]")
    refused.wait_for()
    assert "scene.json" in refused.inner_text()
    assert page.evaluate("() => window.tableread.project.id") == first
    refused.locator(".notice-close").click()


def test_the_text_of_the_former_page_becomes_the_first_project(open_page, server):
    page = open_page()
    page.route(
        "**/studio/projects",
        lambda route: (
            route.fulfill(json=[]) if route.request.method == "GET" else route.continue_()
        ),
    )
    page.evaluate(
        """() => {
          localStorage.removeItem('tableread.project');
          localStorage.setItem('tableread.script', 'Wren: From before.');
        }"""
    )
    page.goto(server.url)
    page.wait_for_selector("body[data-tableread=ready]")
    assert texts(page) == ["From before."]
    assert page.evaluate("() => localStorage.getItem('tableread.script')") is None


def test_news_that_name_a_line_before_it_is_told_are_no_fault(page):
    orders = page.evaluate(
        """async () => {
          const address = './studio/assets/page/document/document.js';
          const { documentOf, withChanges } = await import(address);
          const line = (line_id) => ({ line_id, kind: 'speech' });
          const body = { rev: 1, lines: [line('a')], cast: {}, settings: {}, speakers: [] };
          const order = ['a', 'b', 'c'];
          const one = withChanges(documentOf(body), 2, { lines: { b: line('b') }, order });
          const two = withChanges(one, 3, { lines: { c: line('c') }, order });
          return [one.order, two.order];
        }"""
    )
    assert orders == [["a", "b"], ["a", "b", "c"]]


def shown(page, project):
    page.wait_for_function("id => window.tableread.project.id === id", arg=project)
    page.wait_for_function("id => location.search.includes(id)", arg=project)


def test_back_goes_to_the_project_before_and_leaves_no_edit_behind(page, write):
    first = write(TWO, 2)
    page.click("#project-open")
    page.click("#project-new")
    page.wait_for_function("id => window.tableread.project.id !== id", arg=first)
    second = page.evaluate("() => window.tableread.project.id")
    shown(page, second)
    page.click("#add-line")
    page.keyboard.type("Typed a moment ago.")
    page.go_back()
    shown(page, first)
    assert texts(page) == ["One.", "Two."]
    assert stored(page, second) == ["Typed a moment ago."]
    page.go_forward()
    shown(page, second)
    assert texts(page) == ["Typed a moment ago."]


def test_back_to_a_project_that_is_gone_stays_where_one_is(page, write):
    first = write(TWO, 2)
    second = write(TWO, 2)
    page.request.delete(studio_url(page, f"projects/{first}"))
    page.go_back()
    refused = page.locator(".notice[data-notice=refused]")
    refused.wait_for()
    shown(page, second)
    refused.locator(".notice-close").click()
