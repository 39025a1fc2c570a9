"""A file that leaves things out says so, and one that can't be written says why."""

import pytest
from playwright.sync_api import expect
from ui_steps import make, save_sound, saved, set_text, states

pytestmark = pytest.mark.browser

NOTICE = ".notice[data-notice=export]"
ASKED = "#export-confirm[open]"


@pytest.fixture
def page(page):
    yield page
    page.keyboard.press("Escape")  # closes the form of the audio
    page.click("#views [data-view=lines]")


def export(page, suffix):
    page.click("#views [data-view=script]")
    page.click("#export")
    with page.expect_download() as got:
        page.click(f"#export-menu a[data-format={suffix}]")
    return got.value


@pytest.mark.parametrize("suffix", ["srt", "vtt"])
def test_subtitles_say_what_they_leave_out(page, write, suffix):
    write("[Mara | seed:7 | speed:1.2] One.\n[audio: door.wav]\nTomas: Two.", 3)
    file = export(page, suffix)
    assert file.suggested_filename == f"Scene.{suffix}"
    assert "One." in file.path().read_text(encoding="utf-8")
    page.wait_for_selector(f"{NOTICE}:has-text('the seed')")
    told = page.inner_text(NOTICE)
    assert "the voice's settings" in told
    assert "reused audio" in told
    assert page.is_hidden("#export-menu")
    page.click(f"{NOTICE} .notice-close")


def test_a_format_that_holds_everything_says_no_more_than_that_it_is_saved(page, write):
    write("[Mara | seed:7] One.", 1)
    assert export(page, "json").suggested_filename == "Scene.json"
    page.wait_for_selector(".notice[data-passing]:has-text('Exported as JSON.')")
    assert page.locator(NOTICE).count() == 0


def test_a_hostile_project_name_names_the_file_and_does_nothing_else(page, write):
    write("Mara: One.", 1)
    page.evaluate("() => document.querySelector('#project-open').click()")
    page.fill("#project-name", "<img src=x onerror=alert(1)>")
    page.press("#project-name", "Enter")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.title.startsWith('<img')")
    assert "onerror" in export(page, "txt").suggested_filename


def test_an_empty_project_says_why_there_is_no_file(page, write):
    write("", 0)
    page.click("#views [data-view=script]")
    page.click("#export")
    page.click("#export-menu a[data-format=csv]")
    refused = page.locator(".notice[data-notice=refused]:has-text('Couldn’t export CSV')")
    refused.wait_for()
    assert "no lines yet" in refused.inner_text()
    refused.locator(".notice-close").click()


def change_the_first_and_add_a_line(page):
    page.evaluate(
        """() => {
          const { project } = window.tableread;
          const [first] = project.view.order;
          project.edit([{ op: 'set', line_ids: [first], fields: { text: 'Uno.' } }]);
          const line = { line_id: 'abcabcabcabc', speaker: 'Mara', text: 'Four.' };
          project.edit([{ op: 'insert', after: project.view.order.at(-1), lines: [line] }]);
          return project.flush();
        }"""
    )


@pytest.fixture
def exports_begun(page):
    """The exports that the page asks for, as they are begun."""
    begun = []

    def note(request):
        if request.method == "POST" and request.url.endswith("/exports"):
            begun.append(request.url)

    page.on("request", note)
    yield begun
    page.remove_listener("request", note)


def test_sound_that_is_not_the_whole_scene_is_told_before_it_is_written(page, write, exports_begun):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    make(page)
    change_the_first_and_add_a_line(page)
    save_sound(page, "wav")
    page.wait_for_selector(ASKED)
    told = page.inner_text("#export-confirm-lines").splitlines()
    assert told == [
        "1 line has no audio and is left out.",
        "1 line plays as before its last change.",
    ]
    page.click("#export-confirm button[value=cancel]")
    page.wait_for_selector(ASKED, state="hidden")
    expect(page.locator("#sound-save")).to_be_visible()
    assert exports_begun == []
    page.click("#sound-save")
    with page.expect_download() as got:
        page.click("#export-as-is")
    assert got.value.suggested_filename == "Scene.wav"
    assert states(page) == {"ready": 2, "stale": 1, "none": 1}


def test_what_is_missing_is_generated_and_exported_by_one_press(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    make(page)
    change_the_first_and_add_a_line(page)
    save_sound(page, "wav")
    with page.expect_download() as got:
        page.click("#export-make")
    assert got.value.suggested_filename == "Scene.wav"
    assert states(page) == {"ready": 4}
    write("Mara: One.", 1)
    save_sound(page, "wav")
    page.wait_for_selector(ASKED)
    expect(page.locator("#export-as-is")).to_be_hidden()  # nothing would be heard
    with page.expect_download():
        page.click("#export-make")


def test_an_empty_line_has_an_advice_that_helps(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    make(page)
    set_text(page, 1, "")
    page.evaluate(
        """() => window.tableread.project.edit([{ op: 'insert', after: null,
             lines: [{ line_id: 'abcabcabcabc', speaker: 'Mara', text: '' }] }])"""
    )
    saved(page)
    save_sound(page, "wav")
    page.wait_for_selector(ASKED)
    [told] = page.inner_text("#export-confirm-lines").splitlines()
    assert told == "2 lines are empty: write what they say, or delete them."
    expect(page.locator("#export-make")).to_be_hidden()
    page.click("#export-confirm button[value=cancel]")


def test_only_the_part_that_is_exported_is_asked_about(page, write):
    write("## Act one\nMara: One.\n## Act two\nTomas: Two.", 4)
    make(page)
    set_text(page, 1, "Uno.")
    saved(page)
    page.click("#download")
    page.select_option("#sound-section", label="Act two")
    with page.expect_download() as got:
        save_sound(page, "wav")
    assert "Act two" in got.value.suggested_filename
    page.select_option("#sound-section", "")


def test_a_double_click_on_save_saves_once(page, write, exports_begun):
    write("Mara: One.", 1)
    make(page)
    page.click("#download")
    page.select_option("#sound-format", "wav")
    with page.expect_download() as got:
        page.dblclick("#sound-save")
    assert got.value.suggested_filename == "Scene.wav"
    expect(page.locator("#sound-result")).to_contain_text("Saved.")
    assert len(exports_begun) == 1


def test_esc_at_the_question_exports_nothing(page, write, exports_begun):
    write("Mara: One.\nTomas: Two.", 2)
    make(page)
    change_the_first_and_add_a_line(page)
    save_sound(page, "wav")
    page.wait_for_selector(ASKED)
    page.keyboard.press("Escape")
    page.wait_for_selector(ASKED, state="hidden")
    expect(page.locator("#sound-save")).to_be_visible()
    save_sound(page, "wav")
    page.wait_for_selector(ASKED)
    page.click("#export-confirm button[value=cancel]")
    page.wait_for_selector(ASKED, state="hidden")
    assert exports_begun == []


@pytest.mark.parametrize("size", [(1440, 720), (720, 450), (844, 390), (390, 844)])
def test_every_format_of_the_menu_is_in_sight_above_the_player(page, write, size):
    write("Mara: One.", 1)
    before = page.viewport_size
    page.set_viewport_size({"width": size[0], "height": size[1]})
    try:
        page.click("#views [data-view=script]")
        page.click("#export")
        page.wait_for_selector("#export-menu:visible")
        menu, player = (page.locator(one).bounding_box() for one in ("#export-menu", "#player"))
        assert menu["y"] + menu["height"] <= player["y"]
        assert 0 <= menu["x"] <= menu["x"] + menu["width"] <= size[0]
        last = page.locator("#export-menu a").last
        last.scroll_into_view_if_needed()
        box = last.bounding_box()
        assert box["y"] + box["height"] <= menu["y"] + menu["height"]
        page.keyboard.press("Escape")
    finally:
        page.set_viewport_size(before)
