"""States of the page, for tests that look at all of them; each begins from `prepare`."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect
from ui_steps import fill, open_picker, open_settings, saved

SCENE = """## At the weir, an hour before the storm
# Who is she?
Ida: We should have left an hour ago.
[Tom | mood:angry | speed:1.3 | lang:de | seed:7] Und doch sind Sie noch da, mit der Lampe.
[pause:2s]
Mrs. Vale: Is anybody going to tell me what is going on?
#> She sits down.
## Later
Ida: Nothing at all, go back to bed. !!! 🎉
Ben:"""
ROWS = 10
FIRST = "#lines .line[data-kind=speech] >> nth=0"

CALM = """() => {
  document.querySelectorAll('dialog[open]').forEach((one) => one.close());
  document.querySelectorAll('.notice-close').forEach((one) => one.click());
  localStorage.removeItem('tableread.closed');
  if (window.draft) window.draft = null;
  document.querySelector('#lines-view #find-close').click();
  if (!document.getElementById('script-draft').hidden)
    document.getElementById('draft-drop').click();
  document.querySelector('#views [data-view=lines]').click();
  if (!document.getElementById('filter-clear').hidden)
    document.getElementById('filter-clear').click();
  document.getElementById('line-more').open = false;
  window.tableread.selection.go(null);
  document.activeElement.blur();
}"""
"""Closes all that a state opened."""

DRAFT = """text => {
  const { bus } = window.tableread;
  if (window.draft === undefined) {
    const emit = bus.emit.bind(bus);
    bus.emit = (name, parts) =>
      emit(name, name === 'engine.changed' ? { ...parts, ...window.draft } : parts);
  }
  window.draft = { auto_reason: text, first_voices: [], downloads: {} };
  bus.emit('engine.changed', {});
}"""
"""Says that the draft voice speaks, and why; the studio, which knows better, can't take it back."""

BROKEN = {"name": "scene.json", "mimeType": "text/plain", "buffer": b"{ no"}


def prepare(page: Page) -> str:
    """Open the scene: sections, a note, badges, a pause, a failed line, two takes and a comment.

    Returns:
        The project's id.
    """
    page.evaluate("() => localStorage.setItem('tableread.tour', 'seen')")
    project = fill(page, SCENE, ROWS)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector("#lines .line[data-state=failed]")
    page.wait_for_function("() => !window.tableread.project.rendering")
    _choose_line(page)
    page.keyboard.press("r")
    expect(page.locator("#takes .take")).to_have_count(2)
    page.wait_for_function("() => !window.tableread.project.rendering")
    page.fill("#comment-author", "Ruth")
    page.fill("#comment-text", "Slower, I think.")
    page.click("#comment-add")
    page.wait_for_selector("#lines .line-comments")
    saved(page)
    calm(page)
    return project


def calm(page: Page) -> None:
    """Close what is open, so that the next state can begin."""
    for _ in range(2):  # a popover, and the panel below it
        page.keyboard.press("Escape")
    page.evaluate(CALM)


def _view(page: Page, name: str) -> None:
    page.evaluate("name => document.querySelector(`#views [data-view=${name}]`).click()", name)


def _choose_line(page: Page) -> None:
    page.locator(FIRST).locator(".line-grip").click()
    page.wait_for_selector("#takes .take")


def _start(page: Page) -> None:
    fill(page, "", 0)
    if page.is_hidden("#start-examples"):
        page.click("#start-example")


def _lines(page: Page) -> None:
    page.hover(FIRST)


def _line(page: Page) -> None:
    _choose_line(page)
    page.click("#line-more summary")
    page.wait_for_selector("#field-seed")
    _view(page, "line")


def _cast(page: Page) -> None:
    _view(page, "cast")
    page.wait_for_selector("#cast .voice")


def _picker(page: Page) -> None:
    open_picker(page, "Tom")
    page.wait_for_selector("#voice-picker[data-heard]")


def _character(page: Page) -> None:
    page.locator("#cast [aria-label='Settings of Tom']").evaluate("one => one.click()")
    page.wait_for_selector("#character-panel[open]")
    page.fill("#character-level", "-3")
    page.keyboard.press("Tab")


def _menu(page: Page) -> None:
    open_settings(page)
    page.wait_for_selector("#projects .project-row")


def _export(page: Page) -> None:
    page.click("#download")
    page.select_option("#sound-format", "m4b")
    page.select_option("#sound-loudness", "other")


def _player(page: Page) -> None:
    page.evaluate("() => document.getElementById('extras-open').click()")  # where there is one


def _recorder(page: Page) -> None:
    _choose_line(page)
    page.click("#act-record")
    page.wait_for_selector("#record-panel[open]")


def _comments(page: Page) -> None:
    page.click("#comments-open")
    page.wait_for_selector("#comments-list .comment")


def _script(page: Page) -> None:
    _view(page, "script")
    page.wait_for_function("() => document.querySelector('#script').value.includes('weir')")
    page.fill("#script", f"{SCENE}\n[pause:never]\n[Ida | speed:quick] Words.")
    page.wait_for_selector("#problems .problem:has-text('never')")


def _pronunciations(page: Page) -> None:
    page.click("#pronunciations-open")
    if page.is_hidden("#pronunciation-table"):
        page.fill("#pronunciation-written", "Vale")
        page.fill("#pronunciation-spoken", "vayl")
        page.click("#pronunciation-add")
    page.wait_for_selector("#pronunciation-rows tr")


def _notices(page: Page) -> None:
    page.set_input_files("#import-file", BROKEN)
    page.wait_for_selector(".notice[data-notice=refused]")
    page.evaluate(DRAFT, "No natural voice is here.")
    page.wait_for_selector(".notice[data-notice=draft]")


def _find(page: Page) -> None:
    page.keyboard.press("Control+f")
    page.fill("#find", "go")
    page.keyboard.press("Enter")


def _goto(page: Page) -> None:
    page.click("#goto-open")
    page.wait_for_selector("#goto-states .goto-row")


def _keys(page: Page) -> None:
    page.click("#keys-open")
    page.wait_for_selector("#keys[open]")


def _paste(page: Page) -> None:
    _start(page)
    page.click("#start-paste")
    page.wait_for_selector("#paste-dialog[open]")


def _conflict(page: Page) -> None:
    page.evaluate(
        """() => {
          const row = document.getElementById('conflict-template').content.cloneNode(true);
          row.querySelector('.conflict-field').textContent = 'Text of line 1';
          row.querySelector('.conflict-mine').textContent = 'We should have left an hour ago.';
          row.querySelector('.conflict-theirs').textContent = 'We should have gone by now.';
          document.getElementById('conflict-list').replaceChildren(row);
          document.getElementById('conflicts').showModal();
        }"""
    )


def _proposal(page: Page) -> None:
    page.evaluate(
        """() => {
          const row = document.getElementById('proposal-template').content.cloneNode(true);
          row.querySelector('.proposal-place').textContent = 'Line 1';
          row.querySelector('del .proposal-text').textContent = 'Ida: We should have left.';
          row.querySelector('ins .proposal-text').textContent = 'Ida: We should have gone.';
          document.getElementById('proposal-changes').replaceChildren(row);
          document.getElementById('proposal-title').textContent = '1 proposed change';
          document.getElementById('proposal-note').textContent = 'Tighter.';
          document.getElementById('proposal').showModal();
        }"""
    )


STATES: dict[str, Callable[[Page], None]] = {
    "lines": _lines,
    "line": _line,
    "cast": _cast,
    "picker": _picker,
    "character": _character,
    "menu": _menu,
    "export": _export,
    "player": _player,
    "recorder": _recorder,
    "comments": _comments,
    "script": _script,
    "pronunciations": _pronunciations,
    "notices": _notices,
    "find": _find,
    "goto": _goto,
    "keys": _keys,
    "conflict": _conflict,
    "proposal": _proposal,
    "start": _start,
    "paste": _paste,
}
"""By name; the last two open an empty project of their own."""
