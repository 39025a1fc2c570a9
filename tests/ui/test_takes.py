"""Takes: one word changed makes one line; nothing is made twice; every take can be had back."""

import pytest
from playwright.sync_api import expect
from ui_steps import make, ready, saved, states

pytestmark = pytest.mark.browser


def forty():
    names = ("Mara", "Tomas", "Ilse")
    return "\n".join(f"{names[n % 3]}: This is line number {n + 1}." for n in range(40))


def take_ids(page):
    return page.evaluate("() => window.tableread.project.lines.map((line) => line.take?.take_id)")


def watch_generation(page):
    page.evaluate(
        """() => {
          window.generated = new Set();
          const { bus, project } = window.tableread;
          bus.on('project.changed', ({ ids }) => {
            for (const id of ids)
              if (project.line(id)?.state === 'generating') window.generated.add(id);
          });
        }"""
    )


def changed(before, after):
    return [at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other]


def choose(page, number):
    page.locator("#lines .line").nth(number).locator(".line-text").click()


def test_one_changed_word_makes_one_line_and_undo_makes_none(page, write):
    write(forty(), 40)
    make(page)
    before = take_ids(page)
    choose(page, 6)
    page.keyboard.press("End")
    page.keyboard.type(" Indeed.")
    page.wait_for_selector("#lines .line[data-state=stale]")
    saved(page)
    assert states(page) == {"ready": 39, "stale": 1}
    make(page)
    after = take_ids(page)
    assert changed(before, after) == [6]
    page.keyboard.press("Escape")
    page.keyboard.press("Space")
    page.wait_for_function(
        "() => [...window.tableread.player.laid.values()].some((samples) => samples > 0)"
    )
    page.evaluate("() => window.tableread.player.stop()")
    watch_generation(page)
    page.click("#undo")
    page.wait_for_function(
        "old => window.tableread.project.lines[6].take?.take_id === old", arg=before[6]
    )
    ready(page)
    assert take_ids(page) == before
    assert page.evaluate("() => window.generated.size") == 0


def test_one_key_makes_another_take_and_both_can_be_compared(page, write):
    # Long enough to be still playing when somebody looks.
    write(f"Mara: {', '.join(['One and two'] * 12)}.\nTomas: Three.", 2)
    make(page)
    first = take_ids(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take?.take_id !== old", arg=first[0]
    )
    ready(page)
    page.wait_for_selector("#player[data-playing=true]")  # which ends what is heard of a take
    assert changed(first, take_ids(page)) == [0]
    page.wait_for_function("() => document.querySelectorAll('#takes .take').length === 2")
    old = page.locator(f"#takes .take[data-take='{first[0]}']")
    assert old.locator(".take-choose").inner_text() == "Use"
    old.locator(".take-play").click()
    expect(old.locator(".take-play")).to_have_attribute("aria-pressed", "true")
    old.locator(".take-choose").click()
    page.wait_for_function(
        "old => window.tableread.project.lines[0].take?.take_id === old", arg=first[0]
    )
    other = page.locator("#takes .take[data-chosen=false]")
    other.locator(".take-lock").click()
    page.wait_for_selector("#takes .take[data-chosen=false] .take-lock[aria-pressed=true]")
    assert other.locator(".take-delete").is_disabled()
    other.locator(".take-lock").click()
    page.wait_for_selector("#takes .take[data-chosen=false] .take-delete:enabled")
    other.locator(".take-delete").click()
    page.wait_for_function("() => document.querySelectorAll('#takes .take').length === 1")
    saved(page)


def test_the_keyboard_stays_at_the_take_it_is_at(page, write):
    write("Mara: One and two.", 1)
    make(page)
    [first] = take_ids(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    expect(page.locator("#takes .take")).to_have_count(2)
    ready(page)
    old = page.locator(f"#takes .take[data-take='{first}']")
    old.locator(".take-choose").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#takes .take[data-take='{first}'][data-chosen=true]")
    expect(old.locator(".take-choose")).to_be_focused()
    old.locator(".take-lock").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#takes .take[data-take='{first}'] .take-lock[aria-pressed=true]")
    expect(old.locator(".take-lock")).to_be_focused()
    page.locator("#takes .take[data-chosen=false] .take-delete").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#takes .take")).to_have_count(1)
    expect(page.locator("#takes .take button:focus")).to_have_count(1)
    saved(page)


def test_many_lines_are_made_again_only_after_a_question_and_one_undo_brings_all_back(page, write):
    write("\n".join(f"Mara: Go {n}." for n in range(21)), 21)
    make(page)
    first = take_ids(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    page.keyboard.press("Control+a")
    page.keyboard.press("r")
    page.wait_for_selector("#again-confirm[open]")
    assert page.inner_text("#again-confirm-title") == "Regenerate 21 lines?"
    page.click("#again-confirm button[value=keep]")
    assert take_ids(page) == first
    page.evaluate("() => document.querySelector('#lines .line').focus()")
    page.keyboard.press("r")
    page.click("#again-confirm button[value=make]")
    page.wait_for_function(
        """old => window.tableread.project.lines.every(
             ({ take, state }, at) => state === 'ready' && take.take_id !== old[at])""",
        arg=first,
        timeout=60_000,
    )
    ready(page)
    made = page.evaluate("() => window.tableread.project.lines.map(({ n_takes }) => n_takes)")
    assert set(made) == {2}, "none was made without the answer"
    page.click("#undo")
    page.wait_for_function(
        "old => window.tableread.project.lines.every(({ take }, at) => take?.take_id === old[at])",
        arg=first,
    )


def test_a_take_is_as_loud_as_the_slider_says(page, write):
    write("Mara: One and two.", 1)
    make(page)
    page.evaluate(
        """() => {
          const { play } = HTMLMediaElement.prototype;
          HTMLMediaElement.prototype.play = function () {
            window.sounding = this;
            return play.call(this);
          };
        }"""
    )
    choose(page, 0)
    page.fill("#volume", "0.25")
    page.click("#takes .take-play")
    page.wait_for_function("() => window.sounding?.volume === 0.25")
    page.fill("#volume", "1")
    assert page.evaluate("() => window.sounding.volume") == 1


def test_waveforms_come_once_the_studio_answers_again(page, write):
    write("Mara: One and two.", 1)
    page.route("**/peaks?**", lambda route: route.abort())
    make(page)
    with page.expect_event("requestfailed", lambda request: "/peaks?" in request.url):
        page.evaluate("() => window.tableread.playback.show()")
    page.unroute("**/peaks?**")
    page.wait_for_function(
        "() => window.tableread.timeline.drawn(window.tableread.project.lines[0].take)"
    )


def test_a_locked_line_is_left_alone(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    make(page)
    before = take_ids(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    page.keyboard.press("l")
    page.wait_for_selector("#lines .line[data-locked=true]")
    saved(page)
    page.keyboard.press("r")
    page.wait_for_function("() => document.querySelector('#live').textContent.includes('locked')")
    assert take_ids(page) == before


def test_a_failed_line_shows_its_reason_and_the_others_are_read(page, write):
    write("Mara: One.\nTomas:\nIlse: Three.", 3)
    page.evaluate("() => window.tableread.playback.make()")
    page.wait_for_function(
        """() => !window.tableread.project.rendering &&
          document.querySelectorAll('#lines .line[data-state=ready]').length === 2 &&
          document.querySelectorAll('#lines .line[data-state=failed]').length === 1"""
    )
    reason = page.locator("#lines .line[data-state=failed] .line-reason")
    assert reason.is_visible()
    assert reason.inner_text()
    assert "1 failed" in page.inner_text("#progress")


def test_the_last_of_many_takes_is_within_reach_in_a_low_window(page, write):
    write("Mara: One.", 1)
    make(page)
    for number in (2, 3, 4):
        page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
        page.wait_for_selector(f"#lines .line-takes:has-text('{number} takes')")
    page.set_viewport_size({"width": 1440, "height": 640})
    page.click("#lines .line-grip")
    page.click("#takes .take >> nth=3 >> .take-choose")
    page.wait_for_selector("#takes .take >> nth=3 >> .take-choose[aria-pressed=true]")
    assert page.evaluate("() => document.querySelector('#header').getBoundingClientRect().top") == 0
    page.set_viewport_size({"width": 1440, "height": 900})


def test_the_button_says_where_a_new_take_has_no_seed(page, write):
    write("Mara: Is it still raining?", 1)
    choose(page, 0)
    button = page.locator("#act-again")
    expect(button).to_have_attribute("title", "New take with another seed (R)")
    # What a voice that draws by itself, such as Kokoro, says of itself.
    said = page.evaluate(
        """() => {
          const { bus } = window.tableread;
          const state = bus.latest('engine.state');
          bus.emit('engine.state', { ...state, backend: { ...state.backend, seeded: false } });
          return document.querySelector('#act-again').title; // the studio's own state may come next
        }"""
    )
    assert said == "New take, slightly different; this voice engine takes no seed (R)"


def names(page):
    return page.locator("#takes .take-name").all_inner_texts()


def test_takes_keep_their_numbers_when_one_is_deleted_and_undo_is_at_hand(page, write):
    write("Mara: One.\nMara: Two.", 2)
    make(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    for number in (2, 3):
        page.keyboard.press("r")
        expect(page.locator("#takes .take")).to_have_count(number)
        ready(page)
    assert names(page) == ["Take 3", "Take 2", "Take 1"]
    page.click("#takes [aria-label='Delete take 1']")
    expect(page.locator("#takes .take")).to_have_count(2)
    assert names(page) == ["Take 3", "Take 2"]
    page.click(".notice[data-passing]:has-text('Take 1 deleted.') .notice-act")
    expect(page.locator("#takes .take")).to_have_count(3)
    page.click("#takes [aria-label='Use take 1']")
    page.click("#takes [aria-label='Delete take 3']")
    expect(page.locator("#takes .take")).to_have_count(2)
    page.locator("#lines .line >> nth=0").focus()
    page.keyboard.press("r")
    expect(page.locator("#takes .take")).to_have_count(3)
    ready(page)
    assert names(page) == ["Take 4", "Take 2", "Take 1"]


def test_a_double_click_deletes_one_take(page, write):
    write("Mara: One.", 1)
    make(page)
    choose(page, 0)
    page.keyboard.press("Escape")
    for number in (2, 3):
        page.keyboard.press("r")
        expect(page.locator("#takes .take")).to_have_count(number)
        ready(page)
    page.dblclick("#takes [aria-label='Delete take 2']")
    expect(page.locator("#takes .take")).to_have_count(2)
    saved(page)
    assert names(page) == ["Take 3", "Take 1"]
