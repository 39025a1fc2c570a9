"""What tests do on the page again and again, each step waiting for a state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Speaker

RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
    # What passes isn't described, element by element.
    "resultTypes": ["violations"],
}

MOST_TABS = 120
FOCUS = r"""() => {
  const one = document.activeElement;
  if (one === document.body) return { place: 'body' };
  const place = one.id ? `#${one.id}` : one.outerHTML.slice(0, 160);
  const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
  const clear = outlineStyle === 'none' || parseFloat(outlineWidth) < 1;
  const marked = !clear && !/, 0\)$|transparent/.test(outlineColor);
  const { right, bottom, left, top, width, height } = one.getBoundingClientRect();
  const inside = right > 0 && bottom > 0 && left < innerWidth && top < innerHeight;
  const shown = one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  return { place, fault: marked && inside && shown && width > 1 && height > 1 ? '' : place };
}"""
"""Where the keyboard is, and whether that is shown."""

NAMELESS = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, [role=slider], canvas')]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .filter((one) => !one.closest('[aria-hidden=true]') && one.type !== 'file')
  .filter((one) => !(one.ariaLabel || one.title || one.textContent.trim()
    || one.getAttribute('aria-labelledby') || one.labels?.length || one.closest('label')))
  .map((one) => one.outerHTML.slice(0, 200))"""


def fill(page: Page, text: str, lines: int) -> str:
    """Open a new project of this text in a page; its id. Returns when its lines are shown."""
    made = page.request.post(
        page.evaluate("() => new URL('studio/projects', location.origin + location.pathname).href"),
        data={"name": "Scene", "text": text},
        max_retries=2,  # a connection that was kept may have been closed meanwhile
    )
    assert made.ok, made.text()
    body = made.json()
    page.evaluate("body => window.tableread.projects.adopt(body)", body)
    page.wait_for_function(
        "([id, n]) => window.tableread.project.id === id"
        " && document.querySelectorAll('#lines .line').length === n",
        arg=[body["project_id"], lines],
    )
    return body["project_id"]


def reopened(page: Page) -> None:
    """Load the page anew and wait until it is there."""
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")


def studio_url(page: Page, rest: str) -> str:
    """An address of the studio's interface."""
    return page.evaluate("() => location.origin + location.pathname") + f"studio/{rest}"


def by_tom(page: Page, project_id: str, *ops: dict[str, object]) -> None:
    """Somebody else, who sees everything, edits a project."""
    url = studio_url(page, f"projects/{project_id}")
    body = {"base_rev": page.request.get(url).json()["rev"], "client": "tom", "ops": list(ops)}
    answer = page.request.post(f"{url}/edits", data=body)
    assert answer.ok, answer.text()


def stored(page: Page, project_id: str) -> list[str]:
    """The lines as the studio has them; pauses as "—"."""
    body = page.request.get(studio_url(page, f"projects/{project_id}")).json()
    return ["—" if line["kind"] == "silence" else line["text"] for line in body["lines"]]


def add_voice(server_url: str, workspace: Path, name: str, **details: object) -> Speaker:
    """Add a voice on the studio's disk, which open pages show at once."""
    speaker = SpeakerLibrary(workspace / "speakers").add(name, **details)
    notice_voice(server_url, speaker.speaker_id, list(speaker.tags))
    return speaker


def notice_voice(server_url: str, speaker_id: str, tags: list[str]) -> None:
    """Make the studio save a voice as it is, since it sees what others wrote only at intervals."""
    address = f"{server_url}studio/speakers/{speaker_id}"
    httpx.patch(address, json={"tags": tags}).raise_for_status()


def open_picker(page: Page, name: str) -> None:
    """Open the picker of a character's voice and wait until its voices are listed."""
    page.locator(f"#cast .voice-choice[aria-label^='Voice for {name}:']").click()
    page.wait_for_selector("#picker-list .pick")


def choose_voice(page: Page, name: str, key: str) -> None:
    """Give a character a voice in the picker."""
    open_picker(page, name)
    page.click(f".pick[data-key='{key}'] .pick-open")
    page.wait_for_selector(f".pick[data-key='{key}'][data-selected]")
    page.click("#picker-use")
    page.wait_for_selector("#voice-picker", state="hidden")


def tab_to(page: Page, selector: str, key: str = "Tab") -> None:
    """Press Tab until the keyboard is there; everything on the way shows that it has the focus."""
    trail = []
    for _ in range(MOST_TABS):
        if page.evaluate("one => document.activeElement.matches(one)", selector):
            return
        page.keyboard.press(key)
        focus = page.evaluate(FOCUS)
        trail.append(focus["place"])
        assert trail[-3:] != ["body"] * 3, trail  # once or twice where the page ends
        assert not focus.get("fault"), trail
    raise AssertionError(f"{MOST_TABS} presses of {key} never came to {selector}: {trail}")


def line_ids(page: Page) -> list[str]:
    """Lines of the open project in order."""
    return page.evaluate("() => window.tableread.project.view.order")


def type_into(page: Page, number: int, text: str) -> None:
    """Write at the end of a row."""
    page.locator("#lines .line-text").nth(number).click()
    page.keyboard.press("End")
    page.keyboard.type(text)


def set_text(page: Page, number: int, text: str) -> None:
    """Change a line's text at one stroke, however slow the machine is."""
    page.evaluate(
        """([n, text]) => {
          const { project } = window.tableread;
          const op = { op: 'set', line_ids: [project.view.order[n]], fields: { text } };
          project.edit([op]);
        }""",
        [number, text],
    )


def drawn(page: Page) -> None:
    """Wait until the page shows what it knows: panels are drawn after the next frame."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def saved(page: Page) -> None:
    """Wait until the studio has every edit, and the page shows it."""
    page.wait_for_selector("#saved[data-state=saved]", state="attached")
    drawn(page)


def texts(page: Page) -> list[str]:
    """What the rows say, top to bottom; pauses as "—"."""
    return page.evaluate(
        """() => [...document.querySelectorAll('#lines .line')].map((row) =>
             row.querySelector('.line-text')?.textContent ?? '—')"""
    )


def states(page: Page) -> dict[str, int]:
    """How many rows are in which state; pauses don't count."""
    return page.evaluate(
        """() => {
          const states = {};
          for (const row of document.querySelectorAll('#lines .line:not([data-kind=silence])'))
            states[row.dataset.state] = (states[row.dataset.state] ?? 0) + 1;
          return states;
        }"""
    )


def ready(page: Page) -> None:
    """Wait until every line has its sound and nothing is being made."""
    page.wait_for_function(
        """() => !window.tableread.project.rendering &&
          window.tableread.project.lines.every((line) => line.state === 'ready')""",
        timeout=400_000,  # beside a load 200 lines take minutes
    )


def make(page: Page) -> None:
    """Generate missing lines without playing."""
    page.evaluate("() => window.tableread.playback.make()")
    ready(page)


def open_settings(page: Page) -> None:
    """Open the project's menu, which has its settings."""
    if page.is_hidden("#project-panel"):
        page.click("#project-open")


def save_sound(page: Page, suffix: str, loudness: str = "rendered") -> None:
    """Open the form that saves the sound, choose, and press; the download comes later."""
    if page.is_hidden("#sound-form"):
        page.click("#download")
    page.select_option("#sound-format", suffix)
    page.select_option("#sound-loudness", loudness)
    page.click("#sound-save")


def violations(page: Page, within: list[str]) -> list[str]:
    """What axe finds wrong in the studio's own parts; Gradio's form answers for itself."""
    return [told for told, _ in findings(page, within)]


def findings(page: Page, within: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """What axe finds wrong, in words and as axe tells it of an element."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    wrong = page.evaluate(
        "async ([within, rules]) => (await axe.run(within, rules)).violations", [within, RULES]
    )
    return [
        (f"{one['id']}: {node['target']} {node['failureSummary'][:300]}", node)
        for one in wrong
        for node in one["nodes"]
    ]


def mark(page: Page, word: str) -> None:
    """Mark a word of the first row by the keyboard."""
    text = page.locator("#lines .line-text").first
    text.click()
    page.keyboard.press("Home")
    at = text.inner_text().index(word)
    for _ in range(at):
        page.keyboard.press("ArrowRight")
    for _ in word:
        page.keyboard.press("Shift+ArrowRight")
    assert page.evaluate("() => String(getSelection())") == word


def first_take(page: Page) -> dict[str, Any]:
    return page.evaluate("() => window.tableread.project.lines[0].take")


def wait_for_other_take(page: Page, take_id: str) -> dict[str, Any]:
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take.take_id !== old", arg=take_id
    )
    ready(page)
    return first_take(page)
