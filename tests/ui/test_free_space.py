"""What was deleted is told, freed on demand, and a freed take can be made again."""

import zipfile

import pytest
from ui_steps import make, saved

pytestmark = pytest.mark.browser


def test_a_deleted_take_is_freed_comes_back_without_sound_and_is_made_again(page, write):
    write("Mara: One.", 1)
    make(page)
    page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
    page.click("#lines .line-grip")
    page.wait_for_selector("#takes .take >> nth=1")
    page.click("#takes .take >> nth=1 >> .take-delete")
    page.wait_for_function("() => document.querySelectorAll('#takes .take').length === 1")
    saved(page)
    page.click("#project-open")
    page.wait_for_selector("#space-free:not([hidden])")
    page.click("#space-free")
    assert "deleted take" in page.inner_text("#space-confirm")
    page.click("#space-confirm [value=keep]")
    page.wait_for_selector("#space-confirm", state="hidden")
    page.click("#project-open")
    page.click("#space-free")
    page.click("#space-confirm [value=free]")
    page.wait_for_selector(".notice[data-passing]:has-text('freed')")
    page.click("#undo")
    page.wait_for_selector("#takes .take:has-text('Its audio was cleaned up')")
    page.click("#takes .take >> text=Regenerate")
    page.wait_for_function(
        "() => document.querySelectorAll('#takes .take-play:not(:disabled)').length === 2"
    )


def test_a_take_that_was_deleted_and_comes_back_is_listed_by_itself(page, write):
    """Nothing else asks for the list anew: each step is told with its line."""
    write("Mara: One.", 1)
    make(page)
    page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
    page.click("#lines .line-grip")
    page.wait_for_selector("#takes .take >> nth=1")
    page.click("#takes .take >> nth=1 >> .take-delete")
    for button, takes in (("#undo", 1), ("#redo", 2), ("#undo", 1)):
        page.wait_for_function(
            "n => document.querySelectorAll('#takes .take').length === n", arg=takes
        )
        saved(page)
        page.click(button)
    page.wait_for_function("() => document.querySelectorAll('#takes .take').length === 2")


def test_a_project_with_deleted_takes_can_be_exported_without_them(page, write):
    write("Mara: One.", 1)
    make(page)
    page.click("#project-open")
    page.wait_for_selector("#project-panel:not([hidden])")
    page.wait_for_selector("#project-slim", state="hidden")
    page.keyboard.press("Escape")
    page.evaluate(
        "() => window.tableread.project.edit("
        "[{ op: 'delete', line_ids: [...window.tableread.project.view.order] }])"
    )
    page.wait_for_function("() => window.tableread.project.lines.length === 0")
    saved(page)
    page.click("#project-open")
    page.wait_for_selector("#project-slim:not([hidden])")
    with page.expect_download() as waiting:
        page.click("#project-slim")
    names = zipfile.ZipFile(waiting.value.path()).namelist()
    assert [name for name in names if name.endswith(".wav")] == []
    page.keyboard.press("Escape")
