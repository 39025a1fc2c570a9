"""The layout: low and narrow windows, the notice that moves nothing, lanes, waveforms."""

import pytest
from page_states import DRAFT
from playwright.sync_api import expect
from test_directing import IN_SIGHT, scene
from ui_steps import drawn, fill, make, reopened

pytestmark = pytest.mark.browser

SHIFTS = """() => {
  window.shifts = [];
  const moved = ({ node }) => node?.id || node?.className;
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries())
      window.shifts.push({ value, moved: sources.map(moved) });
  }).observe({ type: 'layout-shift' });
}"""
LAST_WAVE = """() => {
  const row = document.querySelector('#lines .line:last-child');
  row.scrollIntoView();
  return row.querySelector('.line-wave').dataset.drawn;
}"""
"""Whether the last row's waveform is drawn; it is brought into sight for that."""
WAVES = """() => [...document.querySelectorAll('#lines .line-wave')]
  .filter((one) => !one.hidden && one.width > 0 && one.height > 0 && one.dataset.drawn).length"""

WHOLE_PICKS = """() => {
  const { top, bottom } = document.getElementById('picker-body').getBoundingClientRect();
  return [...document.querySelectorAll('.pick')].filter((one) => {
    const pick = one.getBoundingClientRect();
    return pick.top >= top - 1 && pick.bottom <= bottom + 1;
  }).length;
}"""
"""How many voices of the picker can be seen whole."""
WIDER = """place => [document.querySelector(place)]
  .flatMap((panel) => [panel, ...panel.querySelectorAll('button')])
  .filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.id || one.outerHTML)"""
"""What of a panel holds more than it shows, from side to side."""


def test_the_notice_of_the_draft_voice_moves_nothing_and_is_closed_for_good(open_page):
    page = open_page()
    fill(page, scene(6), 6)
    notice = page.locator(".notice[data-notice=draft]")
    page.evaluate(SHIFTS)
    for width in (1440, 1000, 390):
        page.set_viewport_size({"width": width, "height": 844})
        drawn(page)
        page.evaluate("() => { window.shifts.length = 0; }")
        before = page.locator("#lines").bounding_box()
        page.evaluate(DRAFT, "No natural voice is here.")
        expect(notice).to_be_visible()
        drawn(page)
        assert page.locator("#lines").bounding_box() == before
        page.evaluate(DRAFT, None)
        expect(notice).to_have_count(0)
        drawn(page)
        assert [one for one in page.evaluate("() => window.shifts") if one["value"] > 0.001] == []
    page.evaluate(DRAFT, "No natural voice is here.")
    notice.locator(".notice-close").hover()
    page.mouse.down()
    page.evaluate(DRAFT, "No natural voice is here yet.")  # the button stays the same
    page.mouse.up()
    expect(notice).to_have_count(0)
    reopened(page)
    page.evaluate(DRAFT, "No natural voice is here either.")
    expect(notice).to_have_count(0)


@pytest.mark.parametrize(
    ("width", "height", "touch", "least"),
    [(720, 450, False, 6), (844, 390, True, 4), (1440, 720, False, 4), (390, 844, True, 3)],
)
def test_lines_are_in_sight_in_every_window(open_page, width, height, touch, least):
    page = open_page(has_touch=touch)
    page.set_viewport_size({"width": width, "height": height})
    fill(page, scene(30), 30)
    page.click("#views [data-view=lines]")
    page.wait_for_selector("#lines .line >> nth=0")
    page.wait_for_function(f"least => ({IN_SIGHT})() >= least", arg=least)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    player = page.locator("#player").bounding_box()
    assert player["y"] + player["height"] <= height + 1
    if height < 600:
        boxes = [page.locator(one).bounding_box() for one in ("#timeline", "#play", "#clock")]
        assert player["height"] <= 56
        assert all(box["y"] >= player["y"] for box in boxes)
    for control in ("#play", "#generate", "#download"):
        box = page.locator(control).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width


SIZES = ((720, 450), (844, 390), (180, 370), (195, 422), (422, 195))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_small_windows_have_every_control(open_page, width, height):
    page = open_page()
    fill(page, scene(3), 3)
    make(page)
    page.set_viewport_size({"width": width, "height": height})
    page.click("#extras-open")
    for control in ("#loop", "#speed", "#volume"):
        box = page.locator(control).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    page.select_option("#speed", "1.5")
    page.keyboard.press("Escape")
    expect(page.locator("#speed")).to_be_hidden()
    expect(page.locator("#clock-now")).to_be_visible()
    expect(page.locator("#clock-whole")).to_be_visible()
    page.click("#views [data-view=lines]")
    page.locator("#lines .line-length").first.scroll_into_view_if_needed()
    expect(page.locator("#lines .line-length").first).to_be_visible()
    look = "() => document.body.classList.contains('dark')"
    before = page.evaluate(look)
    if page.is_hidden("#theme-toggle"):
        page.click("#project-open")
        page.click("#project-panel [data-presses=theme-toggle]")
    else:
        page.click("#theme-toggle")
    assert page.evaluate(look) is not before


@pytest.mark.parametrize(("width", "height", "least"), [(844, 390, 3), (422, 195, 2)])
def test_the_picker_shows_voices_in_low_windows(open_page, width, height, least):
    page = open_page()
    page.set_viewport_size({"width": width, "height": height})
    fill(page, scene(3), 3)
    page.click("#views [data-view=cast]")
    page.locator("#cast .voice-choice").first.click()
    page.locator("#picker-list .pick >> nth=3").wait_for()
    page.locator("#picker-list").evaluate("list => list.scrollIntoView()")
    assert page.evaluate(WHOLE_PICKS) >= least


@pytest.mark.parametrize("locale", ["de-DE", "es-ES", "fr-FR", "ja-JP"])
def test_longer_words_fit_a_phone_at_200_percent(open_page, locale):
    page = open_page(locale=locale)
    page.set_viewport_size({"width": 180, "height": 422})
    fill(page, scene(3), 3)
    for view in ("lines", "script", "line", "cast"):
        box = page.locator(f"#views [data-view={view}]").bounding_box()
        assert box["x"] + box["width"] <= 180
    assert page.locator("#player").bounding_box()["height"] <= 100
    page.click("#project-open")
    assert page.evaluate(WIDER, "#project-panel") == []
    page.keyboard.press("Escape")
    page.click("#views [data-view=cast]")
    page.locator("#cast .voice-choice").first.click()
    page.locator("#picker-list .pick >> nth=3").wait_for()
    assert page.evaluate(WIDER, "#picker-foot") == []


def test_each_speaker_has_a_lane_and_a_line_is_told_under_the_pointer(page, write):
    write("Mara: One and two.\nTomas: Three and four.\nMara: Five.\nIlse:", 4)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_selector("#lines .line[data-state=failed]")
    expect(page.locator("#timeline-names > span")).to_have_text(["Mara", "Tomas", "Ilse"])
    page.wait_for_function("() => !window.tableread.project.rendering")
    box = page.locator("#timeline").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 10)
    expect(page.locator("#timeline-card-name")).to_have_text("Mara")
    expect(page.locator("#timeline-card-text")).to_have_text("One and two.")
    page.mouse.move(box["x"] + 20, box["y"] - 200)
    expect(page.locator("#timeline-card")).to_be_hidden()
    write("", 0)
    expect(page.locator("#timeline-names > span")).to_have_count(0)


def test_waveforms_are_drawn_for_rows_in_sight_only(page, write):
    write(scene(60), 60)
    make(page)
    page.wait_for_function(f"({WAVES})() >= 3")
    assert page.evaluate(WAVES) < 30
    page.wait_for_function(LAST_WAVE)


def test_one_button_plays_and_another_stops_all(page, write):
    write(scene(300), 300)
    assert page.is_hidden("#stop")
    page.click("#play")  # makes what is missing, and plays it
    page.wait_for_function("() => window.tableread.player.clock_s > 0")
    page.click("#stop")
    page.wait_for_function(
        "() => !window.tableread.project.rendering && !window.tableread.player.playing"
    )
    expect(page.locator("#stop")).to_be_hidden()
    page.click("#generate")
    page.wait_for_function("() => window.tableread.project.rendering")
    assert page.evaluate("() => window.tableread.player.playing") is False
    page.click("#stop")
    page.wait_for_function("() => !window.tableread.project.rendering")


def test_who_wants_no_motion_sees_none(open_page):
    page = open_page(reduced_motion="reduce")
    fill(page, "Mara: One.\nTomas: Two.", 2)
    make(page)
    page.wait_for_function(f"({WAVES})() === 2")
    moving = "() => document.getAnimations().filter((one) => one.playState === 'running').length"
    assert page.evaluate(moving) == 0
