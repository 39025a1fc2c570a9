"""The page comes back to where it was: after a reload, and after the studio was killed."""

import pytest
from ui_steps import fill, line_ids, reopened, states, texts

pytestmark = pytest.mark.browser

WORDS = "with words enough to keep the voice busy for a good while, " * 16


def slow_scene(lines):
    return "\n".join(f"Mara: Line {n} of a long scene, {WORDS}." for n in range(lines))


@pytest.fixture
def own_server(mortal):
    """A studio that the test may kill."""
    return mortal()


@pytest.fixture
def own_page(own_server, browser):
    """A window on it."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.goto(own_server.url)
    page.wait_for_selector("body[data-tableread=ready]")
    yield page
    context.close()


def test_a_new_workspace_offers_a_scene_that_can_be_read(own_page):
    page = own_page
    page.click("#start-example")
    page.click("[data-example=the-lift]")
    page.locator("#lines .line").nth(2).wait_for()
    page.keyboard.press("Escape")  # the tour
    page.locator("#cast .voice").nth(1).wait_for()  # who speaks comes with the studio's answer
    page.locator("#library .voice").nth(1).wait_for()
    page.click("#play")
    page.wait_for_function("() => window.tableread.player.first_sound_ms !== null")
    first_sound_ms = page.evaluate("() => window.tableread.player.first_sound_ms")
    print(f"from press to sound, the voice not loaded yet: {first_sound_ms:.0f} ms")


def test_a_reload_comes_back_to_the_same_line_and_place(page, write):
    write("\n".join(f"Mara: Line {n}." for n in range(80)), 80)
    page.evaluate(
        """() => {
          const { selection, playback, project } = window.tableread;
          selection.go(project.view.order[60]);
          playback.placeAt(project.view.order[61]);
        }"""
    )
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    where = "() => [window.tableread.selection.current, window.tableread.player.line_id]"
    order = page.evaluate("() => window.tableread.project.view.order")
    assert page.evaluate(where) == [order[60], order[61]]
    page.wait_for_function(
        """() => {
          const row = document.querySelectorAll('#lines .line')[60].getBoundingClientRect();
          const list = document.querySelector('#lines').getBoundingClientRect();
          return row.top >= list.top && row.bottom <= list.bottom;
        }"""
    )


def test_another_device_comes_to_the_same_line(open_page):
    desk, phone = open_page(), open_page()
    project = fill(desk, "\n".join(f"Mara: Line {n}." for n in range(80)), 80)
    go = """async n => {
      const { selection, playback, project } = window.tableread;
      selection.go(project.view.order[n]);
      await playback.placeAt(project.view.order[n + 1]);
    }"""
    where = """() => {
      const { selection, player, project } = window.tableread;
      return [selection.current, player.line_id].map((id) => project.view.order.indexOf(id));
    }"""
    order = line_ids(desk)

    def left(page, number):
        """Go to a line and lay the page aside; the studio knows it then."""

        def is_told(answer):
            if not answer.url.endswith(f"projects/{project}/place"):
                return False
            told = answer.request.post_data_json
            return answer.ok and [told["line_id"], told["heard"]] == order[number : number + 2]

        with page.expect_response(is_told):
            page.evaluate(go, number)
            page.evaluate("() => dispatchEvent(new Event('pagehide'))")

    come = """async id => {
      const answer = await fetch(`studio/projects/${id}`);
      await window.tableread.projects.adopt(await answer.json());
    }"""
    left(desk, 60)
    phone.evaluate(come, project)
    assert phone.evaluate(where) == [60, 61]
    left(phone, 20)
    desk.evaluate(come, project)
    assert desk.evaluate(where) == [20, 21]
    # What the studio couldn't be told, this browser still knows.
    desk.route("**/place", lambda route: route.abort())
    desk.evaluate(go, 40)
    reopened(desk)
    assert desk.evaluate(where) == [40, 41]


def test_an_open_page_follows_a_studio_that_was_killed(own_page, mortal):
    page = own_page
    fill(page, slow_scene(200), 200)
    page.evaluate("() => { window.tableread.playback.make(); }")
    page.wait_for_selector("#lines .line[data-state=ready]")
    made = states(page)["ready"]
    mortal()
    # What was made stays made, and the render goes on where it stopped.
    page.wait_for_function(
        """n => window.tableread.project.rendering &&
          document.querySelectorAll('#lines .line[data-state=ready]').length > n""",
        arg=made,
        timeout=60_000,
    )
    page.evaluate("() => window.tableread.playback.cancel()")
    page.wait_for_function("() => !window.tableread.project.rendering")


def test_what_is_typed_while_the_studio_is_away_arrives(own_page, own_server, mortal):
    page = own_page
    fill(page, "Mara: One.\nTomas: Two.", 2)
    page.click("#lines .line-text >> nth=0")
    own_server.process.kill()
    own_server.process.wait()
    page.keyboard.press("End")
    page.keyboard.type(" Written alone.")
    page.wait_for_selector("#saved[data-state=offline]", state="attached")
    mortal()
    page.wait_for_selector("#saved[data-state=saved]", state="attached", timeout=60_000)
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert texts(page) == ["One. Written alone.", "Two."]
