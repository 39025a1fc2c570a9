"""What a program proposes, on the page: shown line by line, accepted as one step, or rejected."""

import json

import pytest
from playwright.sync_api import expect
from ui_steps import by_tom, studio_url, violations

pytest.importorskip("mcp", reason="the package mcp isn't installed")

pytestmark = pytest.mark.browser

NOTICE = ".notice[data-notice=proposal]"
TEXTS = "() => window.tableread.project.lines.map(({ text }) => text)"


def propose(page, project, *changes, note=""):
    """What an MCP client sends, without its handshake."""
    arguments = {"project_id": project, "changes": list(changes), "note": note}
    params = {"name": "propose_edits", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = page.request.post(
        studio_url(page, "").removesuffix("studio/") + "gradio_api/mcp/",
        data=message,
        headers={"Accept": "application/json, text/event-stream"},
    )
    event = next(row for row in answer.text().splitlines() if row.startswith("data:"))
    result = json.loads(event.removeprefix("data:"))["result"]
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])["proposal_id"]


def review(page):
    page.click(f"{NOTICE} .notice-act")
    expect(page.locator("#proposal")).to_be_visible()


def test_changes_are_shown_as_a_difference_and_accepted_as_one_step(page, write):
    project = write("Ida: One.\nTom: Two.\nIda: Three.", 3)
    first, second, third = page.evaluate("() => window.tableread.project.view.order")
    propose(
        page,
        project,
        {"kind": "change", "line_id": first, "text": "One, then."},
        {"kind": "insert", "line_id": second, "speaker": "Tom", "text": "Two and a half."},
        {"kind": "delete", "line_id": third},
        note="Tighter.",
    )
    expect(page.locator(NOTICE)).to_contain_text("A program suggests 3 changes.")
    expect(page.locator(NOTICE)).to_contain_text("Tighter.")
    review(page)
    shown = page.locator(".proposal-change").all_inner_texts()
    assert [" ".join(text.split()) for text in shown] == [
        "Line 1 Now: Ida: One. Proposed: Ida: One, then.",
        "New, after line 2 Proposed: Tom: Two and a half.",
        "Line 3 Now: Ida: Three.",
    ]
    assert page.evaluate(TEXTS) == ["One.", "Two.", "Three."]
    assert violations(page, ["#proposal"]) == []
    page.click("#proposal-accept")
    accepted = ["One, then.", "Two.", "Two and a half."]
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'One, then.'")
    assert page.evaluate(TEXTS) == accepted
    expect(page.locator(NOTICE)).to_have_count(0)
    page.keyboard.press("Control+z")
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'One.'")
    assert page.evaluate(TEXTS) == ["One.", "Two.", "Three."]


def test_a_rejected_one_changes_nothing(page, write):
    project = write("Ida: One.\nTom: Two.", 2)
    first, _ = page.evaluate("() => window.tableread.project.view.order")
    propose(page, project, {"kind": "change", "line_id": first, "text": "Uno."})
    review(page)
    page.click("#proposal [value=reject]")
    expect(page.locator(NOTICE)).to_have_count(0)
    assert page.evaluate(TEXTS) == ["One.", "Two."]
    answer = page.request.get(studio_url(page, f"projects/{project}/proposal")).json()
    assert answer["state"] == "rejected"


def test_a_newer_one_takes_the_place_of_the_one_in_sight(page, write):
    project = write("Ida: One.\nTom: Two.", 2)
    first, _ = page.evaluate("() => window.tableread.project.view.order")
    propose(page, project, {"kind": "change", "line_id": first, "text": "Uno."}, note="Older.")
    review(page)
    propose(page, project, {"kind": "change", "line_id": first, "text": "Eins."}, note="Newer.")
    expect(page.locator("#proposal")).to_be_hidden()
    expect(page.locator(NOTICE)).to_contain_text("Newer.")
    review(page)
    page.click("#proposal-accept")
    page.wait_for_function("() => window.tableread.project.lines[0].text === 'Eins.'")


def test_one_whose_lines_have_changed_cannot_be_accepted(page, write):
    project = write("Ida: One.\nTom: Two.", 2)
    first, _ = page.evaluate("() => window.tableread.project.view.order")
    propose(page, project, {"kind": "change", "line_id": first, "text": "Uno."})
    expect(page.locator(NOTICE)).to_be_visible()
    by_tom(page, project, {"op": "set", "line_ids": [first], "fields": {"text": "Eins."}})
    review(page)
    expect(page.locator("#proposal-title")).to_have_text("This proposal is out of date")
    expect(page.locator("#proposal-accept")).to_be_disabled()
    page.click("#proposal [value=later]")
    assert page.evaluate(TEXTS) == ["Eins.", "Two."]


def test_another_project_shows_nothing_of_it(page, write):
    project = write("Ida: One.", 1)
    (first,) = page.evaluate("() => window.tableread.project.view.order")
    write("Tom: Two.", 1)
    propose(page, project, {"kind": "delete", "line_id": first})
    body = page.request.get(studio_url(page, f"projects/{project}")).json()
    page.evaluate("body => window.tableread.projects.adopt(body)", body)
    expect(page.locator(NOTICE)).to_be_visible()
    write("Tom: Two.", 1)
    expect(page.locator(NOTICE)).to_have_count(0)
