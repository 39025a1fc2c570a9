"""How long a render still takes stands with its progress, and goes at its end."""

import re

import pytest
from ui_steps import fill, ready, studio_url

pytestmark = pytest.mark.browser

LEFT = r"(\d+) of 300 lines, (a few seconds|about \d+ (s|min)) left"

WATCH = """() => {
  window.said = [];
  const shown = document.getElementById('progress');
  new MutationObserver(() => window.said.push(shown.textContent))
    .observe(shown, { childList: true, characterData: true, subtree: true });
}"""


def wait_for_progress(page, text):
    page.wait_for_function(
        "text => document.getElementById('progress').textContent === text", arg=text
    )


def test_from_the_tenth_line_on_it_is_shown_and_at_the_end_it_goes(page, write):
    write("\n".join(f"Mara: This is line {idx} of the scene." for idx in range(300)), 300)
    page.evaluate(WATCH)
    page.evaluate("() => window.tableread.playback.make()")
    ready(page)
    wait_for_progress(page, "All 300 ready")
    said = page.evaluate("() => window.said")
    timed = [re.fullmatch(LEFT, one) for one in said]
    counts = [int(match[1]) for match in timed if match]
    assert counts, said
    assert counts[0] >= 10, "of fewer lines nothing is known"
    assert not any("left" in one for one in said if not re.match(r"\d+ of 300 lines", one))


def test_the_page_counts_down_by_itself(page, write):
    project = write("Mara: One.\nMara: Two.\nMara: Three.", 3)
    address = studio_url(page, f"projects/{project}")
    body = page.request.get(address).json()
    body["job"] = {"state": "running", "summary": {"remaining_s": 11.5}}
    # The studio knows nothing of this render, and from here on tells nothing of the project.
    unanswered = []
    page.route(
        re.compile(re.escape(address) + r"(/events.*)?$"), lambda route: unanswered.append(route)
    )
    page.evaluate(WATCH)
    page.evaluate("body => window.tableread.projects.adopt(body)", body)
    page.wait_for_function("() => window.said.at(-1) === '0 of 3 lines, a few seconds left'")
    assert "0 of 3 lines, about 10 s left" in page.evaluate("() => window.said")
    page.evaluate("() => void window.tableread.project.look()")  # as when something else comes in
    fill(page, "Mara: Another scene.", 1)
    wait_for_progress(page, "1 line to generate")
