"""Edits that the studio doesn't take at once: none gets lost, none gets into another project."""

import pytest
from ui_steps import fill, line_ids, reopened, saved, set_text, stored, texts, type_into

pytestmark = pytest.mark.browser

TWO = "Mara: One.\nTomas: Two."
EDITS = "**/edits"
UNSAVED = ".notice[data-notice=unsaved]"


def offline(page):
    page.wait_for_selector("#saved[data-state=offline]", state="attached")


@pytest.fixture
def page(page):
    yield page
    page.unroute_all()
    page.context.unroute(EDITS)


def test_edits_that_wait_stay_with_their_project(page, write):
    first = write(TWO, 2)
    page.route(EDITS, lambda route: route.abort())
    type_into(page, 0, " Of the first.")
    offline(page)
    second = fill(page, "Ilse: Another.", 1)
    left = page.locator(f".notice[data-notice='left:{first}']")
    left.wait_for()
    page.unroute(EDITS)
    type_into(page, 0, " Of the second.")
    saved(page)
    assert stored(page, second) == ["Another. Of the second."]
    assert stored(page, first) == ["One.", "Two."]
    page.click("#project-open")
    page.click(f"#projects li:has(a[href*='{first}']) .project-item")
    page.wait_for_function("id => window.tableread.project.id === id", arg=first)
    saved(page)
    left.wait_for(state="detached")
    assert stored(page, first) == texts(page) == ["One. Of the first.", "Two."]


def test_a_late_answer_stays_with_its_project(page, write):
    first = write(TWO, 2)
    held = []
    page.route(f"**/studio/projects/{first}", lambda route: held.append(route))
    with page.expect_request(f"**/studio/projects/{first}"):
        page.evaluate("() => { window.looked = window.tableread.project.look(); }")
    write("Ilse: Another.", 1)
    assert held
    for route in held:
        route.continue_()
    page.evaluate("() => window.looked")
    assert texts(page) == ["Another."]


def test_an_answer_older_than_an_edit_is_not_shown(page, write):
    project = write(TWO, 2)
    at = f"**/studio/projects/{project}"
    older, asked = [], []

    def hold(route):
        asked.append(route.request.url)
        if older:
            route.continue_()
        else:
            older.append((route, route.fetch()))

    page.route(at, hold)
    with page.expect_request(at):
        page.evaluate("() => { window.looked = window.tableread.project.look(); }")
    while not older:
        page.wait_for_timeout(10)
    type_into(page, 0, " More.")
    saved(page)
    page.evaluate(
        """() => {
          window.shown = [];
          window.tableread.bus.on('project.changed', () =>
            window.shown.push(window.tableread.project.lines[0].text));
        }"""
    )
    route, answer = older[0]
    route.fulfill(response=answer)
    page.evaluate("() => window.looked")
    assert len(asked) >= 2
    assert texts(page) == stored(page, project) == ["One. More.", "Two."]
    assert "One." not in page.evaluate("() => window.shown")


def test_a_full_disk_is_said_to_be_one(page, write):
    project = write(TWO, 2)
    why = {"error": {"message": "The disk is full. Free some space.", "kind": "StorageFailed"}}
    page.route(EDITS, lambda route: route.fulfill(status=507, json=why))
    type_into(page, 0, " More.")
    offline(page)
    page.wait_for_selector(f"{UNSAVED}:has-text('The disk is full.')")
    assert "can’t be reached" not in page.inner_text(UNSAVED)
    page.unroute(EDITS)
    saved(page)
    page.wait_for_selector(UNSAVED, state="detached")
    assert stored(page, project) == ["One. More.", "Two."]


def test_an_edit_on_which_the_studio_fails_lets_the_others_through(page, write):
    project = write(TWO, 2)
    why = {"error": {"message": "Something broke.", "kind": "SpeechFailed"}}

    def fail(route):
        if "Poison" in route.request.post_data:
            route.fulfill(status=500, json=why)
        else:
            route.continue_()

    page.route(EDITS, fail)
    set_text(page, 0, "One. Poison.")
    type_into(page, 1, " Fine.")
    failed = page.locator(".notice[data-notice=failed]")
    failed.wait_for()
    saved(page)
    assert stored(page, project) == texts(page) == ["One.", "Two. Fine."]
    assert "Something broke. What you wrote: “One. Poison.”" in failed.inner_text()
    page.unroute(EDITS)
    reopened(page)
    failed.locator(".notice-act").click()
    failed.wait_for(state="detached")
    saved(page)
    assert stored(page, project) == ["One. Poison.", "Two. Fine."]


def test_two_tabs_of_one_browser_keep_what_each_wrote(page, write):
    project = write(TWO, 2)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector("body[data-tableread=ready]")
    page.context.route(EDITS, lambda route: route.abort())
    type_into(page, 0, " Mine.")
    type_into(other, 1, " Mine too.")
    offline(page)
    offline(other)
    page.wait_for_function(
        """() => ['One. Mine.', 'Two. Mine too.'].every((text) => Object.entries(localStorage)
             .some(([key, kept]) => key.startsWith('tableread.unsent') && kept.includes(text)))"""
    )
    url = page.url
    page.goto("about:blank")
    other.close()
    page.context.unroute(EDITS)
    page.goto(url)
    page.wait_for_selector("body[data-tableread=ready]")
    saved(page)
    assert stored(page, project) == texts(page) == ["One. Mine.", "Two. Mine too."]
    assert not page.evaluate(
        "() => Object.keys(localStorage).some((key) => key.startsWith('tableread.unsent'))"
    )


def test_an_answer_that_was_lost_loses_nothing_typed_after_it(page, write):
    project = write(TWO, 2)
    lost = []

    def lose(route):
        if not lost:
            lost.append(route.fetch().status)
        route.abort()

    page.route(EDITS, lose)
    type_into(page, 0, " Once")
    offline(page)
    page.keyboard.type(" more.")
    page.unroute(EDITS)
    saved(page)
    assert lost == [200]
    assert stored(page, project) == texts(page) == ["One. Once more.", "Two."]


def test_a_browser_that_keeps_nothing_shows_the_page_and_says_so(open_page, server):
    page = open_page()
    page.add_init_script(
        """for (const name of ['setItem', 'getItem', 'removeItem'])
             Storage.prototype[name] = () => { throw new DOMException('denied', 'SecurityError'); };
        """
    )
    reopened(page)
    project = fill(page, TWO, 2)
    page.route(EDITS, lambda route: route.abort())
    type_into(page, 0, " Mine.")
    page.wait_for_selector(f"{UNSAVED}:has-text('keep this page open')")
    page.unroute(EDITS)
    saved(page)
    assert stored(page, project) == ["One. Mine.", "Two."]
    assert len(line_ids(page)) == 2
