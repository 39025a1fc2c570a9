"""A phone has every control of the player, targets a finger meets, and lines that can be moved."""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, make, saved, texts, violations

pytestmark = pytest.mark.browser

SCENE = "Mara: One.\n[pause:0.5s]\nTomas: Two.\nMara: [gasp] Three."
LEAST_PX = 40
LONG = "The Narrator of a long and winding tale"

# A label or a row around a control is its target as well.
SMALL = """least => [...document.querySelectorAll(
    'button, a[href], input, select, [role=slider], .line-grip')]
  .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.type !== 'file')
  .filter((one) => one.getBoundingClientRect().width > 1)
  .filter((one) => {
    const boxes = [one, one.closest('label')].filter(Boolean)
      .map((target) => target.getBoundingClientRect());
    return !boxes.some(({ width, height }) => width >= least - 0.5 && height >= least - 0.5);
  })
  .map((one) => `${one.id || one.className} ${JSON.stringify(one.getBoundingClientRect())}`)"""


@pytest.fixture(scope="module")
def phone(open_window):
    page = open_window(has_touch=True)
    page.set_viewport_size({"width": 390, "height": 844})
    return page


@pytest.fixture
def scene(phone):
    project = fill(phone, SCENE, 4)
    phone.click("#views [data-view=lines]")
    phone.wait_for_selector("#hints-next:not([hidden])")
    return project


@pytest.fixture
def touch(phone):
    session = phone.context.new_cdp_session(phone)

    def at(kind, x, y):
        points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    yield at
    session.detach()


def middle(phone, selector):
    box = phone.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_nothing_that_is_typed_into_is_small_enough_to_be_magnified(phone, scene):
    small = phone.evaluate(
        "() => [...document.querySelectorAll('.gradio-container :is(input, select, textarea)')]"
        "  .filter((one) => !['range', 'checkbox', 'radio', 'file', 'color'].includes(one.type))"
        "  .map((one) => [one.id || one.className, parseFloat(getComputedStyle(one).fontSize)])"
        "  .filter(([, size]) => size < 16)"
    )
    assert small == []


def test_a_finger_meets_every_control(phone, scene):
    make(phone)
    phone.evaluate(
        "() => { const { selection, project } = window.tableread;"
        " selection.go(project.view.order[0]); }"
    )
    for view in ("lines", "line", "cast", "script"):
        phone.click(f"#views [data-view={view}]")
        assert phone.evaluate(SMALL, LEAST_PX) == []
    for opens in ("#project-open", "#goto-open", "#find-open"):
        phone.click("#views [data-view=lines]")
        phone.click(opens)
        assert phone.evaluate(SMALL, LEAST_PX) == []
        phone.keyboard.press("Escape")
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_volume_loop_and_speed_are_at_hand(phone, scene):
    for control in ("#volume", "#loop", "#speed", "#download", "#play", "#generate"):
        expect(phone.locator(control)).to_be_visible()
    phone.tap("#loop")
    expect(phone.locator("#loop")).to_have_attribute("aria-pressed", "true")
    phone.tap("#loop")
    expect(phone.locator("#loop")).to_have_attribute("aria-pressed", "false")
    phone.locator("#volume").fill("0.3")
    assert phone.evaluate("() => localStorage.getItem('tableread.volume')") == "0.3"
    phone.locator("#volume").fill("1")
    boxes = [phone.locator(one).bounding_box() for one in ("#loop", "#volume", "#speed")]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes]
    assert ends[0][1] <= ends[1][0]
    assert ends[1][1] <= ends[2][0]
    assert ends[2][1] <= 390
    assert violations(phone, ["#part-player"]) == []


def test_a_line_is_carried_by_its_number(phone, scene, touch):
    x, y = middle(phone, "#lines .line-grip >> nth=0")
    box = phone.locator("#lines .line >> nth=2").bounding_box()
    below = box["y"] + box["height"] - 3
    touch("touchStart", x, y)
    for step in range(1, 6):
        touch("touchMove", x, y + (below - y) * step / 5)
    expect(phone.locator("#lines .line >> nth=2")).to_have_attribute("data-drop", "below")
    touch("touchEnd", x, below)
    expect(phone.locator("#lines .line-text").first).to_have_text("Two.")
    assert texts(phone) == ["—", "Two.", "One.", "[gasp] Three."]
    saved(phone)


def test_the_words_of_a_line_have_the_width_of_the_page(phone, scene):
    make(phone)
    words = phone.locator("#lines .line-text").first.bounding_box()
    length = phone.locator("#lines .line-length").first.bounding_box()
    name = phone.locator("#lines .line-speaker").first.bounding_box()
    assert words["x"] + words["width"] >= length["x"] + length["width"] - 1
    assert length["y"] + length["height"] <= words["y"] + 1
    assert name["x"] + name["width"] <= length["x"]


@pytest.fixture
def named(phone):
    """A scene with a name as long as a page."""
    project = fill(phone, f"Mara: One.\n[{LONG}] Two.", 2)
    phone.click("#views [data-view=lines]")
    return project


def within(phone, selector):
    box = phone.locator(selector).bounding_box()
    return box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_a_long_name_pushes_nothing_off_the_page(phone, named):
    phone.click("#goto-open")
    marks = phone.locator("#goto-speakers .goto-mark")
    expect(marks).to_have_count(2)
    assert within(phone, "#goto-panel")
    assert within(phone, "#goto-speakers .goto-mark >> nth=1")
    phone.keyboard.press("Escape")
    phone.click("#lines .line-speaker >> nth=0")
    expect(phone.locator("#speaker-menu [data-speaker]")).to_have_count(2)
    assert within(phone, "#speaker-menu")
    phone.keyboard.press("Escape")
    phone.click("#views [data-view=cast]")
    adds = phone.locator("#cast .voice-add")
    expect(adds).to_have_count(2)
    widths = [adds.nth(number).bounding_box()["width"] for number in range(2)]
    assert widths[0] == pytest.approx(widths[1], abs=1)
    phone.click("#views [data-view=lines]")


def test_what_is_told_of_a_project_stays_beside_its_buttons(phone, scene):
    fill(phone, SCENE, 4)
    phone.click("#project-open")
    phone.wait_for_function(
        """() => {
          const row = document.querySelector('#projects .project-row');
          const right = row?.querySelector('.project-item-about').getBoundingClientRect().right;
          return right <= row?.querySelector('.project-item-rename').getBoundingClientRect().left;
        }"""
    )
    phone.keyboard.press("Escape")


def test_a_notice_of_seven_lines_is_read_without_scrolling(phone, scene):
    hidden_px = phone.evaluate(
        """() => {
          const template = document.getElementById('notice-template');
          const row = template.content.firstElementChild.cloneNode(true);
          const text = row.querySelector('.notice-text');
          text.textContent = Array.from({ length: 7 }, (_, idx) => `Line ${idx}.`).join('\\n');
          document.getElementById('notices').append(row);
          const cut = text.scrollHeight - text.clientHeight;
          row.remove();
          return cut;
        }"""
    )
    assert hidden_px == 0
