"""What is to be seen can be seen, and stays where it is."""

from itertools import pairwise

import pytest
from ui_steps import fill, make

pytestmark = pytest.mark.browser

CONTRAST = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const light = (colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ground = getComputedStyle(document.querySelector('#part-lines')).backgroundColor;
  const name = document.querySelector('#lines .line-speaker');
  const row = name.closest('.line');
  const chosen = ['#046bd0', '#ffff00', '#000000', '#ffffff', '#00ff00', '#0000ff', '#888888'];
  return chosen.map((one) => {
    row.style.setProperty('--colour', one);
    const [less, more] = [light(getComputedStyle(name).color), light(ground)].sort((a, b) => a - b);
    return (more + 0.05) / (less + 0.05);
  });
}"""
RULED = """async () => {
  const base = location.origin + location.pathname;
  const { drawRuler } = await import(`${base}studio/assets/page/playback/timeline.js`);
  const drawn = [];
  for (const span_s of [0.5, 3, 45, 600, 7200, 90000]) {
    for (const left_s of [0, 12.3]) {
      const texts = [], ticks = [];
      const pen = {
        fillText: (text, x) => texts.push([text, x]),
        fillRect: (x) => ticks.push(x),
      };
      drawRuler(pen, { left_s, px_per_s: 1200 / span_s, width: 1200, top: 44 });
      drawn.push({ texts, ticks });
    }
  }
  return drawn;
}"""

BARS = """async () => {
  const base = location.origin + location.pathname;
  const { barHeights } = await import(`${base}studio/assets/page/playback/waveform.js`);
  const peak = (at) => at < 2 ? [0, 0] : [-at, at === 20 ? 120 : at];
  const peaks = Array.from({ length: 48 }, (_, at) => peak(at));
  return [1, 5, 48, 300].map((bars) => barHeights(peaks.flat(), bars));
}"""


@pytest.mark.parametrize("look", ["light", "dark"])
def test_names_can_be_read_in_any_colour(open_page, look):
    page = open_page(color_scheme=look)
    fill(page, "Mara: One.\nTomas: Two.", 2)
    assert min(page.evaluate(CONTRAST)) >= 4.5


def test_behind_the_page_it_is_as_light_or_dark(open_page):
    page = open_page(color_scheme="dark")
    # A browser shows the root's ground where a page is pulled past its end.
    grounds = """() => [document.documentElement, document.body].map((one) => {
      const { backgroundColor, colorScheme } = getComputedStyle(one);
      return `${backgroundColor} ${colorScheme}`;
    })"""
    assert page.evaluate(grounds) == ["rgb(20, 22, 26) dark"] * 2
    page.click("#theme-toggle")
    assert page.evaluate(grounds) == ["rgb(247, 245, 240) light"] * 2


def test_what_can_be_chosen_from_looks_so(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    plain = page.evaluate(
        """() => [...document.querySelectorAll('select')]
          .filter((one) => !getComputedStyle(one).backgroundImage.startsWith('url'))
          .map((one) => one.outerHTML.slice(0, 120))"""
    )
    assert plain == []


def test_what_cannot_be_pressed_does_not_look_as_if(page, write):
    write("", 0)
    page.wait_for_selector("#play:disabled")
    ground = "() => getComputedStyle(document.querySelector('#play')).backgroundColor"
    dull = page.evaluate(ground)
    write("Mara: One.", 1)
    page.wait_for_selector("#play:enabled")
    assert page.evaluate(ground) != dull


def test_the_times_of_the_timeline_never_run_into_each_other(page):
    for drawn in page.evaluate(RULED):
        places = [x for _, x in drawn["texts"]]
        assert all(after - x >= 89 for x, after in pairwise(places))
        assert len(drawn["ticks"]) <= 1200 / 89
        assert len({text for text, _ in drawn["texts"]}) == len(places)


def test_a_waveform_keeps_its_loudest_moment_however_wide_it_is(page):
    heights = page.evaluate(BARS)
    assert [len(one) for one in heights] == [1, 5, 48, 300]
    for shown in heights:
        assert 0 <= min(shown) <= max(shown) <= 1
        assert max(shown) > 0.9
    assert heights[2][:2] == [0, 0]
    wide = heights[3]
    assert max(abs(after - before) for before, after in pairwise(wide)) < 0.5


def test_nothing_moves_while_lines_are_made(page, write):
    write("\n".join(f"Mara: Line {n} of the scene.\nTomas: And its answer." for n in range(8)), 16)
    page.evaluate(
        """() => {
          window.shifts = [];
          const moved = ({ node }) => node?.id || node?.className;
          new PerformanceObserver((list) => {
            for (const { value, sources } of list.getEntries())
              window.shifts.push({ value, moved: sources.map(moved) });
          }).observe({ type: 'layout-shift' });
        }"""
    )
    make(page)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
    shifts = page.evaluate("() => window.shifts")
    assert sum(one["value"] for one in shifts) < 0.01, shifts
