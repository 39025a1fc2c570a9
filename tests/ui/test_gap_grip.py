"""Gaps between lines are dragged on the timeline, stepped by keys, and set by number."""

import io

import pytest
import soundfile
from playwright.sync_api import expect
from ui_steps import make, open_settings, saved, studio_url, violations

pytestmark = pytest.mark.browser

THREE = "Mara: The lamp is burning.\nTomas: Is it? Still?\nMara: Look."
GAP = """(n) => {
  const { project } = window.tableread;
  return project.line(project.view.order[n]).params.gap_s ?? null;
}"""
SPACE = """(n) => {
  const { player: { playlist }, timeline } = window.tableread;
  const box = document.querySelector('#timeline').getBoundingClientRect();
  const before = playlist.starts[n - 1] + playlist.lengths[n - 1];
  return {
    from: box.left + timeline.xOf(before), to: box.left + timeline.xOf(playlist.starts[n]),
    y: box.top + 20, px_per_s: timeline.px_per_sample * 24000,
  };
}"""


@pytest.fixture
def page(page):
    yield page
    page.click("#views [data-view=lines]")


def gap_of(page, number, wanted):
    page.wait_for_function(f"([n, wanted]) => ({GAP})(n) === wanted", arg=[number, wanted])


def lasts(page, samples):
    total = "window.tableread.player.playlist.total"
    page.wait_for_function(f"(samples) => {total} === samples", arg=samples)


def drag(page, number, seconds, *, drop=True):
    """Hold the space before a line and move it; its value is shown meanwhile."""
    at = page.evaluate(SPACE, number)
    x = (at["from"] + at["to"]) / 2
    page.mouse.move(x, at["y"])
    expect(page.locator("#gap-grip")).to_be_visible()
    page.mouse.down()
    page.mouse.move(x + seconds * at["px_per_s"], at["y"], steps=4)
    shown = page.inner_text("#gap-value")
    if drop:
        page.mouse.up()
    return shown


def test_a_drag_makes_a_gap_in_one_step_of_undo(page, write):
    write(THREE, 3)
    make(page)
    before = page.evaluate("() => window.tableread.player.playlist.total")
    assert drag(page, 1, 0.6) == "Gap 0.60 s"
    gap_of(page, 1, 0.6)
    lasts(page, before + 0.6 * 24_000)
    saved(page)
    assert page.evaluate("() => window.tableread.project.lines.every((l) => l.state === 'ready')")
    page.click("#undo")
    gap_of(page, 1, None)
    lasts(page, before)


def test_escape_leaves_the_gap_and_a_press_that_does_not_move_only_seeks(page, write):
    write(THREE, 3)
    make(page)
    page.focus("#timeline")
    drag(page, 2, 0.5, drop=False)
    page.keyboard.press("Escape")
    expect(page.locator("#gap-grip")).to_be_hidden()
    page.mouse.up()
    assert page.evaluate(GAP, 2) is None
    at = page.evaluate(SPACE, 2)
    page.mouse.click((at["from"] + at["to"]) / 2, at["y"])
    page.wait_for_function("() => window.tableread.player.place > 0")
    assert page.evaluate(GAP, 2) is None


def test_a_pause_is_dragged_alike(page, write):
    write("Mara: The lamp is burning.\n[pause:0.5s]\nTomas: Is it?", 3)
    make(page)
    at = page.evaluate(
        """() => {
          const { player: { playlist }, timeline } = window.tableread;
          const box = document.querySelector('#timeline').getBoundingClientRect();
          return { x: box.left + timeline.xOf(playlist.starts[1] + 6000), y: box.top + 20,
            px_per_s: timeline.px_per_sample * 24000 };
        }"""
    )
    page.mouse.move(at["x"], at["y"])
    page.mouse.down()
    page.mouse.move(at["x"] + at["px_per_s"], at["y"], steps=4)
    assert page.inner_text("#gap-value") == "Pause 1.50 s"
    page.mouse.up()
    page.wait_for_function("() => window.tableread.project.lines[1].duration_s === 1.5")


def test_keys_and_numbers_do_the_same(page, write):
    project_id = write(THREE, 3)
    make(page)
    page.evaluate("() => window.tableread.playback.placeAt(window.tableread.project.view.order[1])")
    page.focus("#timeline")
    for _ in range(3):
        page.keyboard.press("Alt+ArrowRight")
    gap_of(page, 1, 0.15)
    page.keyboard.press("Alt+ArrowLeft")
    gap_of(page, 1, 0.1)
    page.locator("#lines .line-text").nth(2).click()
    page.click("#line-more > summary")
    page.fill("#field-gap", "1.2")
    page.press("#field-gap", "Enter")
    gap_of(page, 2, 1.2)
    page.fill("#field-gap", "")
    page.press("#field-gap", "Enter")
    gap_of(page, 2, None)
    open_settings(page)
    page.fill("#usual-gap", "0.37")
    page.press("#usual-gap", "Enter")
    page.wait_for_function("() => window.tableread.project.view.settings.gap_s === 0.37")
    saved(page)
    wav = page.request.get(studio_url(page, f"projects/{project_id}/export?format=wav"))
    sound, _ = soundfile.read(io.BytesIO(wav.body()))
    lasts(page, len(sound))


def test_a_scene_is_as_long_at_a_glance_as_on_the_timeline(page, write):
    write(THREE, 3)
    make(page)
    page.evaluate("() => window.tableread.project.editSettings({ gap_s: 20 })")
    expect(page.locator("#clock-whole")).to_have_text("0:38")
    expect(page.locator("#scene-length")).to_have_text("0:38")


def test_an_audio_line_has_a_gap_by_number_and_none_of_a_lines_other_settings(page, write):
    write("Mara: One.\n[audio: door.wav]\nTomas: Two.", 3)
    page.click("#lines .line[data-kind=audio] .line-grip")
    expect(page.locator("#line-more")).to_be_hidden()
    page.fill("#field-recording-gap", "0.9")
    page.press("#field-recording-gap", "Enter")
    gap_of(page, 1, 0.9)
    saved(page)
    page.click("#undo")
    gap_of(page, 1, None)
    expect(page.locator("#field-recording-gap")).to_have_value("")
    assert violations(page, ["#recording-part"]) == []


def test_a_new_project_of_the_page_breathes_between_lines(page):
    before = page.evaluate("() => window.tableread.project.id")
    page.click("#project-open")
    page.click("#project-new")
    page.wait_for_function("(id) => window.tableread.project.id !== id", arg=before)
    assert page.evaluate("() => window.tableread.project.view.settings.gap_s") == 0.35
