"""The scene's sound is saved at a level: its way, its end and its refusal are on the page."""

import io
import json
import zipfile

import av
import numpy as np
import pytest
import soundfile
from independent_meter import lufs
from playwright.sync_api import expect
from ui_steps import make, reopened, save_sound, saved, studio_url

pytestmark = pytest.mark.browser

TWO = (
    "Mara: The lamp is still burning, and nobody has climbed the stairs since Tuesday. [pause:1s]\n"
    "Tomas: Did you really think that I would not notice?"
)
HOURS = "[pause:300s]\n" * 96
PATIENCE_MS = 45_000


@pytest.fixture(autouse=True)
def closed(page):
    """The form is as at a first visit, and closed again."""
    yield
    page.evaluate("() => localStorage.removeItem('tableread.sound')")
    if page.is_visible("#sound-form"):
        page.click("#download")


def result(page):
    return page.locator("#sound-result")


def test_a_podcast_is_saved_and_its_level_told(page, write):
    write(TWO, 2)
    make(page)
    with page.expect_download() as got:
        save_sound(page, "flac", "podcast")
    assert got.value.suggested_filename == "Scene.flac"
    samples, rate_hz = soundfile.read(got.value.path())
    assert lufs(samples, rate_hz) == pytest.approx(-16, abs=0.5)
    expect(result(page)).to_contain_text("LUFS, true peak −", timeout=PATIENCE_MS)
    expect(result(page)).to_contain_text("Saved.")
    expect(page.locator("#sound-save")).to_be_visible()
    expect(page.locator("#sound-cancel")).to_be_hidden()
    page.click("#download")
    with page.expect_download():
        page.evaluate("() => document.querySelector('#sound-form').requestSubmit()")
        page.wait_for_selector(".notice[data-passing]:has-text('Audio exported. −1')")  # passes


def test_an_audiobook_has_its_verdict_and_another_level_its_number(page, write):
    write(TWO, 2)
    make(page)
    with page.expect_download():
        save_sound(page, "wav", "audiobook")
    expect(result(page)).to_contain_text("It keeps ACX’s limits", timeout=PATIENCE_MS)
    page.select_option("#sound-loudness", "other")
    page.fill("#sound-lufs", "-40")
    page.click("#sound-save")
    assert page.evaluate("() => !document.querySelector('#sound-lufs').validity.valid")
    page.fill("#sound-lufs", "-21.5")
    with page.expect_download() as got:
        page.press("#sound-lufs", "Enter")
    samples, rate_hz = soundfile.read(got.value.path())
    assert lufs(samples, rate_hz) == pytest.approx(-21.5, abs=0.5)


def test_a_section_is_saved_as_an_audiobook_with_its_name(page, write):
    write("## Act One\nMara: The lamp is still burning.\n## Act Two\nTomas: It was the wind.", 4)
    make(page)
    page.click("#download")
    expect(page.locator("#sound-kbps-part")).to_be_hidden()
    page.select_option("#sound-format", "m4b")
    page.select_option("#sound-kbps", "64")
    page.select_option("#sound-section", label="Act Two")
    with page.expect_download() as got:
        page.click("#sound-save")
    assert got.value.suggested_filename == "Act Two.m4b"
    with av.open(str(got.value.path())) as container:
        tags, chapters = container.metadata, container.chapters()
    assert (tags["title"], tags["artist"]) == ("Act Two", "Tomas")
    assert "Synthetic speech, made with Draft voice" in tags["comment"]
    assert [one["metadata"]["title"] for one in chapters] == ["Act Two"]


def test_files_of_lines_have_the_pages_numbers(page, write):
    write("Mara: One.\n[pause:1s]\nTomas: Two, and more.", 3)
    make(page)
    page.click("#download")
    page.select_option("#sound-format", "zip")
    page.select_option("#sound-names", "{number}-{speaker}-{words}")
    with page.expect_download() as got:
        page.click("#sound-save")
    with zipfile.ZipFile(got.value.path()) as archive:
        names = archive.namelist()
    assert {"0001-Mara-One.wav", "0002-Tomas-Two_and_more.wav", "transcript.json"} <= set(names)


def test_what_was_chosen_is_remembered(page, write):
    write(TWO, 2)
    make(page)
    page.click("#download")
    page.check("#sound-even")
    with page.expect_download() as got:
        save_sound(page, "tracks", "broadcast")
    assert got.value.suggested_filename == "Scene tracks.zip"
    reopened(page)
    page.click("#download")
    assert page.input_value("#sound-format") == "tracks"
    assert page.input_value("#sound-loudness") == "broadcast"
    assert page.is_checked("#sound-even")
    page.uncheck("#sound-even")


def test_the_progress_comes_without_a_question(page, write):
    write(f"Mara: One.\n{HOURS}", 97)
    make(page)
    saved(page)
    asked = []

    def note(request):
        if request.method == "GET" and "/exports/" in request.url:
            asked.append(request.url)

    page.on("request", note)
    save_sound(page, "mp3", "podcast")
    page.wait_for_function("() => document.querySelector('#sound-share').value > 0.02")
    page.click("#sound-cancel")
    expect(result(page)).to_have_text("Stopped. Nothing was exported.", timeout=PATIENCE_MS)
    page.remove_listener("request", note)
    assert asked == []


def test_a_long_export_is_stopped_by_its_button(page, write):
    write(f"Mara: One.\n{HOURS}", 97)
    make(page)
    saved(page)
    save_sound(page, "mp3", "podcast")
    cancel = page.locator("#sound-cancel")
    expect(cancel).to_be_visible(timeout=PATIENCE_MS)
    expect(cancel).to_be_focused()
    expect(page.locator("#sound-share")).to_be_visible()
    page.keyboard.press("Enter")
    expect(result(page)).to_have_text("Stopped. Nothing was exported.", timeout=PATIENCE_MS)
    expect(page.locator("#sound-save")).to_be_focused()


def test_pressing_again_begins_no_second_file(page, write):
    write(f"Mara: One.\n{HOURS}", 97)
    make(page)
    saved(page)
    begun = []

    def note(request):
        if request.method == "POST" and request.url.endswith("/exports"):
            begun.append(request.url)

    page.on("request", note)
    save_sound(page, "mp3", "podcast")
    expect(page.locator("#sound-cancel")).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("() => document.querySelector('#sound-form').requestSubmit()")
    page.evaluate("() => document.querySelector('#sound-form').requestSubmit()")
    while not begun:
        page.wait_for_timeout(10)
    page.click("#sound-cancel")
    expect(result(page)).to_have_text("Stopped. Nothing was exported.", timeout=PATIENCE_MS)
    page.remove_listener("request", note)
    assert len(begun) == 1


def silent_recording():
    file = io.BytesIO()
    soundfile.write(file, np.zeros(24_000), 24_000, format="WAV")
    return {"name": "hush.wav", "mimeType": "audio/wav", "buffer": file.getvalue()}


def test_a_refusal_is_read_on_the_page(page, write):
    project_id = write("[audio: hush.wav]", 1)
    url = studio_url(page, f"projects/{project_id}")
    brought = page.request.post(f"{url}/audio", multipart={"file": silent_recording()})
    path = json.loads(brought.text())["path"]
    page.evaluate(
        """(path) => {
          const { project } = window.tableread;
          const ids = [project.view.order[0]];
          project.edit([{ op: 'set', line_ids: ids, fields: { path } }]);
          return project.flush();
        }""",
        path,
    )
    make(page)
    save_sound(page, "wav", "podcast")
    refused = page.locator(".notice[data-notice=refused]")
    expect(refused).to_contain_text("Save it at the original level", timeout=PATIENCE_MS)
    expect(result(page)).to_contain_text("Save it at the original level")
    expect(page.locator("#sound-save")).to_be_visible()
    refused.locator(".notice-close").click()


def test_a_phone_holds_the_form(open_page):
    page = open_page()
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("#download")
    page.select_option("#sound-loudness", "other")
    box = page.locator("#sound-form").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert box["y"] >= 0
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Escape")
    expect(page.locator("#sound-form")).to_be_hidden()
    expect(page.locator("#download")).to_be_focused()
