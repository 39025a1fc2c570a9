"""Saving remembers its choice, counted in presses; captions and cover come with the sound."""

import io
import re

import av
import pytest
from PIL import Image
from playwright.sync_api import expect
from ui_steps import make, reopened, save_sound

pytestmark = pytest.mark.browser

TWO = (
    "Mara: The lamp is still burning, and nobody has climbed the stairs since then. Who was it?\n"
    "Tomas: Did you really think that I would not notice?"
)
COUNT = """() => {
  window.presses = 0;
  document.addEventListener('click', ({ isTrusted }) => (window.presses += isTrusted), true);
}"""


def named(file_name):
    return lambda file: file.suggested_filename == file_name


@pytest.fixture(autouse=True)
def closed(page):
    """The form is as at a first visit, and closed again."""
    yield
    page.evaluate("""() => {
      localStorage.removeItem('tableread.sound');
      document.getElementById('sound-captions').checked = false;
    }""")
    if page.is_visible("#sound-form"):
        page.click("#download")


def test_an_mp3_at_podcast_loudness_takes_two_presses_the_second_time(page, write):
    write(TWO, 2)
    make(page)
    with page.expect_download() as got:
        save_sound(page, "mp3", "podcast")
    first = got.value.path().read_bytes()
    told = page.locator("#sound-result")
    expect(told).to_contain_text("Saved.")
    level = told.inner_text()
    reopened(page)
    page.evaluate(COUNT)
    page.click("#download")
    with page.expect_download() as again:
        page.click("#sound-save")
    assert page.evaluate("() => window.presses") == 2
    assert again.value.suggested_filename == "Scene.mp3"
    assert again.value.path().read_bytes() == first
    expect(told).to_have_text(level)


def test_captions_lie_beside_the_sound(page, write):
    write(TWO, 2)
    make(page)
    page.click("#download")
    page.check("#sound-captions")
    srt, mp3 = named("Scene.srt"), named("Scene.mp3")
    with page.expect_download(srt) as captions, page.expect_download(mp3):
        save_sound(page, "mp3")
    cues = captions.value.path().read_text("utf-8").strip().split("\n\n")
    texts = [cue.split("\n")[2:] for cue in cues]
    assert texts[1] == ["Who was it?"]
    assert max(len(row) for rows in texts for row in rows) <= 42
    assert max(map(len, texts)) == 2
    assert re.match(r"\d\d:\d\d:\d\d,\d{3} --> ", cues[0].split("\n")[1])
    reopened(page)
    page.click("#download")
    assert page.is_checked("#sound-captions")


def test_a_cover_is_chosen_once_and_goes_into_the_file(page, write):
    write(TWO, 2)
    make(page)
    image = io.BytesIO()
    Image.new("RGB", (64, 64), (200, 20, 20)).save(image, "PNG")
    page.click("#download")
    page.select_option("#sound-format", "mp3")
    with page.expect_file_chooser() as choosing:
        page.click("#cover-choose")
    choosing.value.set_files({"name": "a.png", "mimeType": "image/png", "buffer": image.getvalue()})
    expect(page.locator("#cover-image")).to_be_visible()
    expect(page.locator("#cover-choose")).to_have_text("Replace")
    with page.expect_download(named("Scene.mp3")) as got:
        page.click("#sound-save")
    with av.open(got.value.path()) as file:
        assert [one.codec_context.name for one in file.streams.video] == ["png"]
    reopened(page)
    page.click("#download")
    page.select_option("#sound-format", "mp3")
    expect(page.locator("#cover-image")).to_be_visible()
    page.click("#cover-remove")
    expect(page.locator("#cover-image")).to_be_hidden()
    with page.expect_file_chooser() as choosing:
        page.click("#cover-choose")
    choosing.value.set_files({"name": "a.png", "mimeType": "image/png", "buffer": b"no image"})
    page.wait_for_selector(".notice:has-text('JPEG or PNG')")
    page.locator(".notice:has-text('JPEG or PNG') .notice-close").click()
