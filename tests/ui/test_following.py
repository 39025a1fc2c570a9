"""The list follows what is heard, but not under the hands of who writes or looks elsewhere."""

import pytest
from ui_steps import make

pytestmark = pytest.mark.browser

IN_VIEW = """() => {
  const { player, lines } = window.tableread;
  return lines.sees(player.line_id);
}"""
TOP = "() => document.querySelector('#lines').scrollTop"
AT_REST = """async () => {
  await new Promise(requestAnimationFrame);
  const { scrollTop: top, clientHeight, scrollHeight } = document.querySelector('#lines');
  const stands = top === window.stood;
  window.stood = top;
  return stands && top + clientHeight >= scrollHeight - 1;
}"""
"""Whether the list is at its end, and was there in the frame before."""
BACK = "#back-to-playing"


@pytest.fixture
def scene(page, write):
    """Sixty short lines with their sound, and a list that stays where it is put."""
    write("\n".join(f"{('Mara', 'Tomas')[n % 2]}: Go {n}." for n in range(60)), 60)
    make(page)
    page.evaluate("() => (window.tableread.playback.autoScroll.rest_ms = 3_600_000)")
    yield page
    page.evaluate("() => window.tableread.player.stop()")
    page.evaluate("() => document.activeElement?.blur()")


def play_from(page, number):
    page.evaluate(
        "n => void window.tableread.playback.playOn(window.tableread.project.view.order[n])", number
    )
    page.wait_for_function("() => window.tableread.player.clock_s > 0.1")


def next_line(page):
    """Wait until another line is heard."""
    page.wait_for_function(
        "id => window.tableread.player.line_id !== id",
        arg=page.evaluate("() => window.tableread.player.line_id"),
    )


def far_down(page):
    """Scroll to the end with the wheel; where the list stands when it has come to rest."""
    page.hover("#lines")
    page.mouse.wheel(0, 20_000)
    while not page.evaluate(AT_REST):
        page.mouse.wheel(0, 20_000)  # rows may be taller than they were taken for out of sight
    return page.evaluate(TOP)


def test_the_list_follows_what_is_heard(scene):
    play_from(scene, 30)
    scene.wait_for_function(IN_VIEW)
    assert scene.is_hidden(BACK)


def test_nothing_moves_under_who_writes_in_another_line(scene):
    far_down(scene)
    scene.click("#lines .line >> nth=58 >> css=.line-text")
    top = scene.evaluate(TOP)
    play_from(scene, 0)
    next_line(scene)
    scene.keyboard.type("Slowly. ")
    next_line(scene)
    assert scene.evaluate(TOP) == top
    assert scene.evaluate("() => document.activeElement.matches('.line-text')")
    scene.wait_for_selector(f"{BACK}:visible")


def test_after_a_scroll_by_hand_one_press_leads_back(scene):
    play_from(scene, 0)
    scene.wait_for_function(IN_VIEW)
    top = far_down(scene)
    next_line(scene)
    assert scene.evaluate(TOP) == top
    scene.click(BACK)
    scene.wait_for_function(IN_VIEW)
    scene.wait_for_selector(BACK, state="hidden")
    assert scene.evaluate("() => document.activeElement.matches('.line')")


def test_some_time_after_a_scroll_the_list_follows_again(scene):
    play_from(scene, 0)
    far_down(scene)
    scene.wait_for_selector(f"{BACK}:visible")
    scene.evaluate("() => (window.tableread.playback.autoScroll.rest_ms = 0)")
    scene.wait_for_function(IN_VIEW)
    scene.wait_for_selector(BACK, state="hidden")


def test_what_is_played_by_hand_comes_into_view(scene):
    play_from(scene, 0)
    far_down(scene)
    scene.evaluate(
        "() => window.tableread.playback.placeAt(window.tableread.project.view.order[20])"
    )
    scene.wait_for_function(IN_VIEW)
