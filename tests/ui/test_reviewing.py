"""A review link from the press that makes it to its end, with a reviewer in another browser."""

from __future__ import annotations

import re
from itertools import groupby

import pytest
from serving import serving
from ui_steps import fill, make, violations

pytestmark = pytest.mark.browser

NO_TUNNEL = {"GRADIO_SHARE_SERVER_ADDRESS": "127.0.0.1:9"}
HOSTILE = "<img src=x onerror=alert(1)>"
# A short line may be over before somebody looks.
PRESSES = """() => {
  [window.pressed, window.begun, window.ended] = [[], [], []];
  const { play } = Audio.prototype;
  Audio.prototype.play = function () {
    window.begun.push(performance.now());
    this.onended = () => window.ended.push(performance.now());
    return play.call(this);
  };
  const said = (button) => button.closest('.row').querySelector('.row-text').textContent;
  const note = ({ target }) => target.matches('.row-play')
    && window.pressed.push([said(target), target.ariaPressed]);
  new MutationObserver((changes) => changes.forEach(note))
    .observe(document.body, { subtree: true, attributeFilter: ['aria-pressed'] });
}"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A shared studio, and the path by which its owner comes in."""
    workspace = tmp_path_factory.mktemp("review") / "workspace"
    options = ("--share", "--auth", "ida:the right one")
    with serving(workspace, *options, environ=NO_TUNNEL, fresh=True) as (client, process):
        key = re.search(r"/studio/enter\?key=\S+", process.said())[0]
        yield str(client.base_url).rstrip("/"), key


def window(browser, faults):
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(45_000)
    page = context.new_page()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    return page


def test_somebody_without_a_password_listens_comments_and_is_shut_out_again(shared, browser):
    address, key = shared
    faults = []
    owner, reviewer = window(browser, faults), window(browser, faults)
    try:
        owner.goto(f"{address}{key}")
        owner.wait_for_selector("body[data-tableread=ready]")
        fill(owner, "## One\nIda: How long?\n[pause:2s]\nTom: Not long.", 4)
        make(owner)
        owner.click("#project-open")
        owner.click("#reviews-open")
        owner.click("#reviews-make")
        owner.wait_for_selector("#reviews-made:not([hidden])")
        owner.wait_for_selector("#reviews-list .review-used:text-is('not opened yet')")
        assert violations(owner, ["#reviews"]) == []

        reviewer.goto(owner.input_value("#reviews-url"))
        reviewer.wait_for_selector(".row >> nth=2")
        for look, width in (("dark", 390), ("dark", 195), ("light", 720), ("light", 1440)):
            reviewer.emulate_media(color_scheme=look)
            reviewer.set_viewport_size({"width": width, "height": 844})
            assert violations(reviewer, ["body"]) == []
            assert reviewer.evaluate("() => document.documentElement.scrollWidth") <= width
        reviewer.evaluate(PRESSES)
        reviewer.click(".row-play >> nth=1")
        reviewer.wait_for_function("() => window.pressed.some(([, on]) => on === 'true')")
        reviewer.wait_for_selector(".row-play[aria-pressed=true]", state="detached")  # to its end
        on, off = reviewer.evaluate("() => window.pressed")
        assert (on, off) == (["How long?", "true"], ["How long?", "false"])
        reviewer.evaluate("() => { window.begun.length = window.ended.length = 0; }")
        reviewer.click("#play")
        reviewer.wait_for_function("() => window.ended.length === 2")
        silent_ms = reviewer.evaluate("() => window.begun[1] - window.ended[0]")
        assert silent_ms >= 1_900, "the pause is heard"
        reviewer.click(".row:has-text('Not long.') .row-comment")
        reviewer.fill("textarea[name=text]", HOSTILE)
        reviewer.fill("input[name=author]", "Ruth")
        reviewer.click(".comment-form .primary")
        reviewer.wait_for_selector(f".row:has-text('Not long.') .comment-text:text-is('{HOSTILE}')")
        reviewer.click(".row:has-text('How long?') .row-comment")
        assert reviewer.is_hidden(".your-name"), "the name is asked once"
        assert reviewer.input_value("input[name=author]") == "Ruth"
        owner.wait_for_selector("#lines .line-comments")

        owner.click("#reviews-list button")
        owner.wait_for_selector("#reviews .sheet-message[data-kind=done]")
        reviewer.wait_for_selector("#message:has-text('has ended')")
        assert reviewer.locator(".row").count() == 0
        assert faults == []
    finally:
        owner.context.close()
        reviewer.context.close()


@pytest.mark.parametrize("when", ["it is heard", "its sound is asked for"])
def test_a_line_that_is_deleted_while_it_is_reviewed_ends_neither_sound_nor_comment(
    shared, browser, when
):
    address, key = shared
    faults = []
    owner, reviewer = window(browser, faults), window(browser, faults)
    try:
        owner.goto(f"{address}{key}")
        owner.wait_for_selector("body[data-tableread=ready]")
        long = "This one takes so long to say that somebody may delete it on the way."
        project = fill(owner, f"Ida: One.\nIda: {long}\nIda: Three.\nIda: Four.", 4)
        make(owner)
        made = owner.request.post(f"{address}/studio/projects/{project}/reviews", data={})
        reviewer.goto(f"{address}/{made.json()['path']}")
        reviewer.wait_for_selector(".row >> nth=3")
        reviewer.evaluate(PRESSES)
        row = reviewer.locator(".row").nth(1)
        row.locator(".row-comment").click()
        row.locator("textarea").fill("Slower.")
        row.locator("input[name=author]").fill("Ruth")
        deleted = owner.evaluate("() => window.tableread.project.view.order")[1]
        held = []
        if when == "its sound is asked for":
            reviewer.route(f"**/takes/{deleted}/*", lambda route: held.append(route))
        reviewer.click("#play")
        reviewer.wait_for_function(
            "() => window.pressed.some(([text, on]) => on === 'true' && text.startsWith('This'))"
        )
        while when == "its sound is asked for" and not held:
            reviewer.wait_for_timeout(20)
        owner.evaluate(
            "(id) => window.tableread.project.edit([{ op: 'delete', line_ids: [id] }])", deleted
        )
        for route in held:
            route.continue_()
        reviewer.wait_for_function(
            "() => window.pressed.some(([text, on]) => on === 'true' && text === 'Four.')"
        )
        pressed = reviewer.evaluate("() => window.pressed")
        begun = [text for text, _ in groupby(text for text, on in pressed if on == "true")]
        assert begun == ["One.", long, "Three.", "Four."]
        assert reviewer.locator("textarea").input_value() == "Slower."
        texts = reviewer.locator(".row-text").all_inner_texts()
        assert texts == ["One.", long, "Three.", "Four."], "it stays where it was"
        reviewer.click(".comment-form .primary")
        reviewer.wait_for_selector(".form-fault:has-text('somebody deleted it')")
        assert faults == []
    finally:
        owner.context.close()
        reviewer.context.close()
