"""What a person wrote is shown as typed; the page is usable without a mouse or a colour."""

import pytest

pytestmark = pytest.mark.browser

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "${alert(2)}",
    "{{constructor}}",
    "\\u{",
    "<script>alert(3)</script>",
)

NAMELESS = """() => [...document.querySelectorAll(
    'button, a[href], input, textarea, select, [role=slider], canvas')]
  .filter((one) => one.checkVisibility({visibilityProperty: true}))
  .filter((one) => !one.closest('[aria-hidden=true]') && one.type !== 'file')
  .filter((one) => !(one.ariaLabel || one.title || one.textContent.trim()
    || one.getAttribute('aria-labelledby') || one.labels?.length || one.closest('label')))
  .map((one) => one.outerHTML.slice(0, 200))"""

POOR_CONTRAST = """() => {
  const number = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (one) => {
    for (; one; one = one.parentElement) {
      const colour = number(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const one of document.querySelectorAll('#header *, .pane *, #player *, .notice *')) {
    const text = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!text || !one.checkVisibility({visibilityProperty: true})) continue;
    const [a, b] = [light(number(getComputedStyle(one).color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${one.id || one.className}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
}"""


def test_hostile_lines_and_names_are_shown_as_typed(page, write):
    write("\n".join(f"Mara: {text}" for text in HOSTILE), len(HOSTILE))
    assert page.locator("#lines .line-text").all_inner_texts() == list(HOSTILE)
    page.click("#read")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'done'")
    assert page.locator("#lines .line").count() == len(HOSTILE)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.locator("#lines .line-text").all_inner_texts() == list(HOSTILE)


def test_every_control_has_a_name(page):
    page.click("#model-chip")
    assert page.evaluate(NAMELESS) == []


@pytest.mark.parametrize("look", ["light", "dark"])
def test_text_stands_out_from_its_ground(open_page, look):
    page = open_page(color_scheme=look)
    page.click("#model-chip")
    page.click("#lines .line >> nth=1 >> css=.line-text")
    assert page.evaluate(POOR_CONTRAST) == []


def test_a_phone_shows_one_view_at_a_time_and_nothing_beside_it(open_page):
    page = open_page()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    for view, pane in (("lines", "#lines-view"), ("cast", "#cast-view"), ("script", "#script")):
        page.click(f"#views [data-view={view}]")
        assert page.is_visible(pane)
    assert not page.is_visible("#cast-view")
    assert page.locator("#read").bounding_box()["height"] >= 40


def test_the_look_can_be_switched_and_is_kept(page):
    before = page.evaluate("() => document.body.classList.contains('dark')")
    page.click("#theme-toggle")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.evaluate("() => document.body.classList.contains('dark')") is not before
