"""The script as text: what is written in it is neither lost nor laid over what others wrote."""

import pytest
from playwright.sync_api import expect
from ui_steps import by_tom, line_ids, reopened, saved, stored, studio_url

pytestmark = pytest.mark.browser

TWO = "Mara: One.\nTomas: Two."
SCRIPT = "**/script"
DRAFT = "#script-draft"
NOTICE = ".notice[data-notice=script-draft]"


@pytest.fixture
def script(page, write):
    """A project whose script is shown; its id."""
    project = write(TWO, 2)
    page.click("#views [data-view=script]")
    shows(page, "Two.")
    yield project
    page.unroute_all()
    page.click("#views [data-view=lines]")


def shows(page, text):
    page.wait_for_function(
        "text => document.querySelector('#script').value.includes(text)", arg=text
    )


def value(page):
    return page.input_value("#script")


def changed_by_tom(page, project, number, text):
    line_id = line_ids(page)[number]
    by_tom(page, project, {"op": "set", "line_ids": [line_id], "fields": {"text": text}})


def caret_at_end_of(page, text):
    page.focus("#script")
    page.evaluate(
        """text => {
          const area = document.querySelector('#script');
          const at = area.value.indexOf(text) + text.length;
          area.setSelectionRange(at, at);
        }""",
        text,
    )


def test_what_others_write_comes_in_beside_the_caret(page, script):
    caret_at_end_of(page, "Two.")
    changed_by_tom(page, script, 0, "One, by Tom.")
    shows(page, "One, by Tom.")
    page.keyboard.type(" And mine.")
    page.wait_for_function("() => window.tableread.project.lines[1].text === 'Two. And mine.'")
    saved(page)
    assert stored(page, script) == ["One, by Tom.", "Two. And mine."]


def test_a_script_written_on_an_old_state_is_kept_and_compared(page, script):
    page.route(SCRIPT, lambda route: route.abort())
    caret_at_end_of(page, "Two.")
    page.keyboard.type(" And mine.")
    page.wait_for_selector("#saved[data-state=offline]", state="attached")
    changed_by_tom(page, script, 0, "One, by Tom.")
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'One, by Tom.'")
    page.unroute(SCRIPT)
    page.wait_for_selector(f"{DRAFT}:not([hidden])")
    assert stored(page, script) == ["One, by Tom.", "Two."]
    assert "Two. And mine." in value(page)
    page.click("#draft-compare")
    page.wait_for_selector("#conflicts[open]")
    assert page.inner_text(".conflict-theirs") == "Mara: One, by Tom.\nTomas: Two."
    page.keyboard.press("Escape")
    page.wait_for_selector("#conflicts", state="hidden")
    assert "Two. And mine." in value(page)
    page.click("#draft-compare")
    page.click("#conflicts .keep-mine")
    page.wait_for_selector(DRAFT, state="hidden")
    saved(page)
    assert stored(page, script) == ["One.", "Two. And mine."]


def test_a_refused_script_stays_until_it_is_mended_or_dropped(page, script):
    page.fill("#script", "Mara: One.\n[pause:10h]\nTomas: Rewritten.")
    page.wait_for_selector(f"{DRAFT}:not([hidden])")
    page.locator("#script").blur()
    changed_by_tom(page, script, 0, "One, by Tom.")
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'One, by Tom.'")
    page.click("#views [data-view=lines]")
    page.wait_for_selector(NOTICE)
    reopened(page)
    page.click(f"{NOTICE} .notice-act")
    page.wait_for_selector("#script[aria-invalid=true]")
    assert "Rewritten." in value(page)
    page.click("#draft-drop")
    shows(page, "One, by Tom.")
    assert "Rewritten." not in value(page)
    page.wait_for_selector(DRAFT, state="hidden")
    assert stored(page, script) == ["One, by Tom.", "Two."]
    reopened(page)
    assert "Rewritten." not in value(page)


def test_the_notice_of_a_refused_script_stays_while_the_state_changes(page, script):
    page.fill("#script", "Mara: One.\n[pause:10h]\nTomas: Rewritten.")
    page.wait_for_selector(f"{DRAFT}:not([hidden])")
    page.click("#views [data-view=lines]")
    page.wait_for_selector(NOTICE)
    for segments in (2, 3):
        url = studio_url(page, "model/concurrency")
        assert page.request.post(url, data={"segments": segments}).ok
        shown = "of => document.querySelector('#model-at-once').value === String(of)"
        page.wait_for_function(shown, arg=segments)
    assert page.is_visible(NOTICE)
    page.click(f"{NOTICE} .notice-act")
    page.click("#draft-drop")
    page.wait_for_selector(DRAFT, state="hidden")


def test_a_script_typed_while_the_studio_is_away_arrives(page, script):
    page.route(SCRIPT, lambda route: route.abort())
    page.fill("#script", "Mara: One.\nTomas: Two, written alone.")
    page.wait_for_selector("#saved[data-state=offline]", state="attached")
    page.unroute(SCRIPT)
    reopened(page)
    shows(page, "written alone.")
    saved(page)
    page.wait_for_function("() => window.tableread.project.lines[1].text === 'Two, written alone.'")
    assert stored(page, script) == ["One.", "Two, written alone."]
    # It may have arrived twice, so the page reads it again.
    expect(page.locator("#script")).to_have_value("Mara: One.\nTomas: Two, written alone.\n")
    page.focus("#script")
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.type(" More.")
    page.wait_for_function(
        "() => window.tableread.project.lines[1].text === 'Two, written alone. More.'"
    )


def test_what_is_typed_right_after_a_reload_is_no_conflict_with_what_was_typed_before(page, script):
    def is_sent(request):
        return request.method == "PUT" and request.url.endswith("/script")

    def client(window, text):
        with window.expect_request(is_sent) as sent:
            caret_at_end_of(window, "Two.")
            window.keyboard.type(text)
            window.evaluate("() => void window.tableread.project.flush()")
        return sent.value.post_data_json["client"]

    before = client(page, " Before.")
    reopened(page)
    page.click("#views [data-view=script]")
    shows(page, "Two. Before.")
    assert client(page, " After.") == before, "else the one before is somebody else"
    saved(page)
    assert stored(page, script)[1].startswith("Two. After. Before.")
    assert not page.locator(NOTICE).is_visible()
    with page.context.expect_page() as opened:
        page.evaluate("() => void window.open(location.href)")
    other = opened.value
    other.wait_for_selector("body[data-tableread=ready]")
    other.click("#views [data-view=script]")
    shows(other, "Two. After.")
    assert client(other, " Too.") != before, "a tab with a copy of the storage is another one"
    other.close()
