"""Who speaks for whom belongs to the project, and is seen wherever it is open."""

import pytest
from playwright.sync_api import expect
from ui_steps import add_voice, choose_voice, make, open_settings, saved, set_text, studio_url

pytestmark = pytest.mark.browser

SHOWN = "name => document.querySelector('#cast .voice-choice').textContent === name"


def test_a_voice_of_the_library_speaks_for_a_name(page, write, server):
    voice = add_voice(server.url, server.workspace, "Wren", preset="linda").speaker_id
    write("Finch: One.\nHeron: Two.", 2)
    choose_voice(page, "Finch", f"library/{voice}")
    page.wait_for_function("v => window.tableread.project.view.cast.Finch === v", arg=voice)
    saved(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    page.wait_for_function(SHOWN, arg="Wren")
    choose_voice(page, "Finch", "automatic")
    page.wait_for_function("() => !window.tableread.project.view.cast.Finch")
    page.wait_for_selector("#cast .voice-choice:has-text('Auto: ') >> nth=1")
    page.click("#undo")
    page.wait_for_function(SHOWN, arg="Wren")


def test_another_voice_outdates_the_lines_of_its_name_and_undo_makes_them_right_again(
    page, write, server
):
    voice = add_voice(server.url, server.workspace, "Merle", preset="linda").speaker_id
    write("Finch: One.\nHeron: Two.", 2)
    make(page)
    choose_voice(page, "Finch", f"library/{voice}")
    states = "() => window.tableread.project.lines.map(({ state }) => state).join()"
    page.wait_for_function(f"() => ({states})() === 'stale,ready'")
    page.click("#lines .line-play >> nth=0")
    page.wait_for_function(f"() => ({states})() === 'ready,ready'")
    page.click("#undo")
    page.wait_for_function("() => !window.tableread.project.view.cast.Finch")
    page.wait_for_function(f"() => ({states})() === 'ready,ready'")


def test_another_language_of_the_script_outdates_its_lines(page, write):
    write("Finch: One.\nHeron: Two.", 2)
    make(page)
    open_settings(page)
    page.select_option("#script-language", "de")
    page.keyboard.press("Escape")
    page.wait_for_selector("#lines .line[data-state=stale] >> nth=1")
    page.click("#undo")
    page.wait_for_selector("#lines .line[data-state=ready] >> nth=1")
    saved(page)


def test_a_speaker_is_renamed_in_all_lines_by_keyboard_and_undo_brings_the_name_back(page, write):
    hostile = "<img src=x onerror=alert(1)>"
    write("Finch: One.\nHeron: Two.\nfinch: Three.", 3)
    page.focus("#cast [aria-label='Rename Finch in the script']")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.ariaLabel") == "New name of Finch"
    page.keyboard.type(hostile)
    page.keyboard.press("Enter")
    page.wait_for_function(
        "name => [...document.querySelectorAll('#cast .voice-name')]"
        ".some((one) => one.textContent === name)",
        arg=hostile,
    )
    speakers = page.locator("#lines .line-speaker").all_inner_texts()
    assert speakers == [hostile, "Heron", hostile]
    page.wait_for_function(
        "label => document.activeElement.ariaLabel === label",
        arg=f"Rename {hostile} in the script",
    )
    page.keyboard.press("Enter")
    page.keyboard.type("Nobody")
    page.keyboard.press("Escape")
    saved(page)
    page.click("#undo")
    page.wait_for_selector("#cast .voice-name:text-is('Finch')")


def suggestion(page, name):
    return page.locator(f"#cast [aria-label$='for {name}'].voice-suggest")


def test_voices_of_the_library_are_suggested_for_the_speakers_of_a_new_script(page, write, server):
    studio = (server.url, server.workspace)
    tagged = add_voice(*studio, "Gull", preset="linda", tags=["sailor", "narrator"]).speaker_id
    other = add_voice(*studio, "Old Plover", preset="hugo").speaker_id
    write("Narrator: Night.\nKite: Who?\nPlover: Me.", 3)
    suggestion(page, "Plover").get_by_text("Use Old Plover").wait_for()
    assert suggestion(page, "Kite").count() == 0, "the draft voice has one for each name"
    suggestion(page, "Narrator").get_by_text("Use Gull").wait_for()
    suggestion(page, "Narrator").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("v => window.tableread.project.view.cast.Narrator === v", arg=tagged)
    suggestion(page, "Plover").click()
    page.wait_for_function("v => window.tableread.project.view.cast.Plover === v", arg=other)
    page.wait_for_function("() => !document.querySelector('#cast .voice-suggest:not([hidden])')")
    assert page.is_hidden("#cast-suggested")


def test_the_language_of_the_script_is_chosen_and_undone(page, write):
    write("Finch: Eins.\nHeron: Zwei.", 2)
    open_settings(page)
    page.select_option("#script-language", "de")
    page.keyboard.press("Escape")
    page.wait_for_function("() => window.tableread.project.view.settings.language === 'de'")
    saved(page)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    page.wait_for_function("() => document.querySelector('#script-language').value === 'de'")
    page.click("#undo")
    page.wait_for_function("() => document.querySelector('#script-language').value === ''")


def test_a_new_voice_recolours_no_line(page, write, server):
    write("Finch: One.\nHeron: Two.\nStork: Three.\nMara: Four.", 4)
    colours = """() => [...document.querySelectorAll('#lines .line')].map((row) =>
      row.style.getPropertyValue('--colour'))"""
    before = page.evaluate(colours)
    assert len(set(before)) == 4
    for name in ("Egret", "Ibis", "Stork"):
        body = {"name": name, "preset": "linda"}
        answer = page.request.post(studio_url(page, "speakers"), data=body)
        assert answer.ok, answer.text()
        page.wait_for_selector(f"#library .voice-name:text-is('{name}')")
        # The next edit brings what the studio thinks of the speakers now.
        set_text(page, 0, f"One, and {name}.")
        saved(page)
        page.evaluate("() => window.tableread.project.look()")
        assert page.evaluate(colours) == before
    page.wait_for_function("() => window.tableread.project.view.speakers[2].voice !== 'built-in'")
    assert page.evaluate(colours) == before


def test_a_rename_onto_another_character_asks_first(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)

    def rename():
        page.click("#cast [aria-label='Rename Mara in the script']")
        page.fill("#cast .voice-rename-field:visible", "tomas")
        page.keyboard.press("Enter")
        page.wait_for_selector("#merge-confirm[open]")

    rename()
    assert "2 lines will be said by tomas." in page.inner_text("#merge-confirm")
    page.click("#merge-confirm button[value=keep]")
    expect(page.locator("#cast > li")).to_have_count(2)
    rename()
    page.click("#merge-confirm button[value=merge]")
    expect(page.locator("#cast > li")).to_have_count(1)
