"""What is laid for playing is the take a line has now, whatever happened to it before."""

import base64

import numpy as np
import pytest
from playwright.sync_api import expect
from ui_steps import fill, ready, studio_url

pytestmark = pytest.mark.browser

LINE = "Mara: One and two and three and four and five and six and seven and eight."
SHORT = "Mara: One and two."
OTHER = "Nine and ten and eleven and twelve and thirteen and fourteen."

# What was taken back before it had sounded to its end doesn't count.
RECORD = """() => {
  if (window.sounds) return void (window.sounds = []);
  window.sounds = [];
  const { start, stop } = AudioBufferSourceNode.prototype;
  AudioBufferSourceNode.prototype.start = function (at) {
    window.sounds.push({ node: this, end: at + this.buffer.duration });
    start.call(this, at);
  };
  AudioBufferSourceNode.prototype.stop = function () {
    const { currentTime } = this.context;
    window.sounds = window.sounds.filter(({ node, end }) => node !== this || end <= currentTime);
    stop.call(this);
  };
}"""
ALL_LAID = """() => window.tableread.project.lines.every((line) =>
  line.state === 'ready' && window.tableread.player.laid.get(line.line_id) === line.samples)"""
LAID = """() => {
  const whole = window.sounds.flatMap(({ node }) =>
    Array.from(node.buffer.getChannelData(0), (one) => Math.round(one * 32768)));
  const bytes = new Uint8Array(Int16Array.from(whole).buffer);
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}"""
SET_TEXT = """([id, text]) => window.tableread.project.edit(
  [{ op: 'set', line_ids: [id], fields: { text } }], { group: `text:${id}` })"""
STATE = "state => window.tableread.project.lines[0].state === state"
PASTE = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  document.activeElement?.blur();
  document.body.dispatchEvent(
    new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }));
}"""
HALF_LAID = "() => window.tableread.player.laid.get(window.tableread.player.line_id) > 24000"


@pytest.fixture(scope="module")
def server(server_of):
    """A studio whose voice waits in mid-line when it is told to."""
    return server_of("doled_server.py")


@pytest.fixture
def hold(server):
    """Lines wait in their middle until this is called, with `fail` until then."""
    held, failing = server.workspace / "hold", server.workspace / "fail"
    held.touch()

    def let_go(*, fail=False):
        if fail:
            failing.touch()
        held.unlink()

    yield let_go
    held.unlink(missing_ok=True)
    failing.unlink(missing_ok=True)


def first_id(page):
    return page.evaluate("() => window.tableread.project.view.order[0]")


def play(page):
    page.evaluate(RECORD)
    page.evaluate("id => void window.tableread.playback.playLine(id)", first_id(page))


def heard(page):
    """Play the line and wait until all its present take is laid; what was laid."""
    play(page)
    return laid(page)


def laid(page):
    page.wait_for_function(ALL_LAID, timeout=60_000)
    return np.frombuffer(base64.b64decode(page.evaluate(LAID)), dtype="<i2")


def in_its_middle(page, act, about=None):
    """Act as soon as all of the line is laid, before it has played to its end."""
    page.wait_for_function(
        f"""(about) => {{
          const {{ player, commands }} = window.tableread;
          if (!({ALL_LAID})() || !player.playing || player.clock_s <= 0.3) return false;
          {act};
          return true;
        }}""",
        arg=about,
        timeout=60_000,
    )


def take(page, server, project):
    """The line's present take as the studio has it on its disk."""
    line = page.request.get(f"{server.url}studio/projects/{project}").json()["lines"][0]
    path = f"studio/projects/{project}/takes/{line['line_id']}/{line['take']['take_id']}/audio.wav"
    return np.frombuffer(page.request.get(f"{server.url}{path}").body()[44:], dtype="<i2")


def same(page, server, project, samples):
    np.testing.assert_array_equal(samples, take(page, server, project))
    page.evaluate("() => window.tableread.player.stop()")


def begun_anew(page, server, project, samples):
    """What sounded before it was known that the line changed stays in front."""
    now = take(page, server, project)
    same(page, server, project, samples[-len(now) :])


def set_text(page, text):
    page.evaluate(SET_TEXT, [first_id(page), text])


def test_after_a_change_the_new_words_are_heard(page, write, server):
    project = write(SHORT, 1)
    before = heard(page)
    same(page, server, project, before)
    set_text(page, OTHER)
    after = heard(page)
    same(page, server, project, after)
    assert len(before) != len(after)


def test_pausing_in_a_line_that_is_changed_then_begins_it_anew(page, write, server):
    project = write(LINE, 1)
    play(page)
    in_its_middle(page, "player.stop()")
    set_text(page, OTHER)
    page.evaluate(RECORD)
    page.evaluate("() => void window.tableread.playback.toggle()")
    same(page, server, project, laid(page))


def test_a_further_take_is_what_is_heard(page, write, server):
    project = write(SHORT, 1)
    first = heard(page)
    page.evaluate(RECORD)
    page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
    page.wait_for_function("() => window.tableread.project.lines[0].n_takes === 2")
    second = laid(page)
    same(page, server, project, second)
    assert not np.array_equal(first, second)
    former = page.evaluate(
        """async () => {
          const { project, commands } = window.tableread;
          const [{ line_id: id, take }] = project.lines;
          await project.travel('undo');
          return take.take_id;
        }"""
    )
    page.wait_for_function(
        "id => window.tableread.project.lines[0].take.take_id !== id", arg=former
    )
    same(page, server, project, heard(page))


def test_a_take_chosen_while_another_is_heard_begins_at_once(page, write, server):
    project = write(LINE, 1)
    page.evaluate("() => window.tableread.playback.make()")
    ready(page)
    first = page.evaluate("() => window.tableread.project.lines[0].take.take_id")
    page.evaluate("() => window.tableread.playback.again(window.tableread.project.view.order)")
    page.wait_for_function("() => window.tableread.project.lines[0].n_takes === 2")
    ready(page)
    page.evaluate("() => window.tableread.player.stop()")
    play(page)
    in_its_middle(page, "commands.choose(player.line_id, about)", first)
    page.wait_for_function("id => window.tableread.project.lines[0].take.take_id === id", arg=first)
    begun_anew(page, server, project, laid(page))


def test_after_a_cancel_in_its_middle_the_whole_line_is_heard(page, write, server, hold):
    project = write(LINE, 1)
    play(page)
    page.wait_for_function(HALF_LAID)
    page.evaluate("() => window.tableread.playback.cancel()")
    page.wait_for_function(STATE, arg="none")
    page.wait_for_function("() => !window.tableread.player.playing")
    hold()
    same(page, server, project, heard(page))


def test_a_state_asked_for_before_the_press_and_come_after_it_silences_nothing(
    page, write, server, hold
):
    project = write(LINE, 1)
    address = f"**/studio/projects/{project}"
    asked, following = [], []

    def hold_first(route):
        if asked or route.request.method != "GET":
            return route.continue_()
        return asked.append((route, route.fetch()))

    def answer_first(route):
        begun = route.fetch()
        [(former, answer)] = asked
        former.fulfill(response=answer)
        route.fulfill(response=begun)

    page.route(address, hold_first)
    page.route(f"{address}/events*", lambda route: following.append(route))
    page.route(f"{address}/render", answer_first)
    page.evaluate("() => void window.tableread.project.look()")
    while not asked:
        page.wait_for_timeout(10)
    play(page)
    page.wait_for_function(HALF_LAID)
    page.unroute(f"{address}/events*")
    for route in following:
        route.continue_()
    hold()
    same(page, server, project, laid(page))


def test_an_edit_while_a_line_is_spoken_begins_it_anew(page, write, server, hold):
    project = write(LINE, 1)
    play(page)
    page.wait_for_function(HALF_LAID)
    set_text(page, OTHER)
    page.evaluate("() => window.tableread.project.flush()")
    hold()
    begun_anew(page, server, project, laid(page))


def test_an_edit_while_a_line_is_spoken_takes_the_old_words_back(page, write, server, hold):
    write(LINE, 1)
    play(page)
    page.wait_for_function(HALF_LAID)
    # In one breath, as the studio soon begins to speak the new words.
    over, playing, state = page.evaluate(
        f"""([id, text]) => {{
          ({SET_TEXT})([id, text]);
          const over = window.sounds.every(({{ node, end }}) => end <= node.context.currentTime);
          const {{ player, project }} = window.tableread;
          return [over, player.playing, project.lines[0].state];
        }}""",
        [first_id(page), OTHER],
    )
    assert (over, playing, state) == (True, True, "queued")
    page.evaluate("() => window.tableread.playback.cancel()")
    page.wait_for_function(STATE, arg="none")


def test_after_a_failure_in_its_middle_the_whole_line_is_heard(page, write, server, hold):
    project = write(LINE, 1)
    play(page)
    page.wait_for_function(HALF_LAID)
    hold(fail=True)
    page.wait_for_function(STATE, arg="failed")
    page.wait_for_function("() => !window.tableread.player.playing")
    (server.workspace / "fail").unlink()
    same(page, server, project, heard(page))


def test_a_line_made_again_by_others_is_heard_as_it_is_now(page, write, server, hold):
    """Another page reads a changed line while this one has it laid ahead."""
    hold()
    project = write(f"{LINE}\nTomas: Well.", 2)
    page.evaluate("() => window.tableread.playback.make()")
    ready(page)
    page.evaluate(RECORD)
    page.evaluate("() => void window.tableread.playback.playOn(window.tableread.player.line_id)")
    page.wait_for_function(HALF_LAID)
    line_id = first_id(page)
    address = f"{server.url}studio/projects/{project}"
    ops = [{"op": "set", "line_ids": [line_id], "fields": {"text": OTHER}}]
    edit = {"base_rev": 0, "client": "another", "edit_id": "one", "ops": ops}
    assert page.request.post(f"{address}/edits", data=edit).ok
    assert page.request.post(f"{address}/render", data={"line_ids": [line_id]}).ok
    page.wait_for_function(
        "text => window.tableread.project.lines[0].take?.text === text", arg=OTHER
    )
    page.wait_for_function(ALL_LAID, timeout=60_000)
    scene = take(page, server, project)
    after = page.evaluate("() => window.tableread.project.lines[1].samples")
    whole = np.frombuffer(base64.b64decode(page.evaluate(LAID)), dtype="<i2")
    np.testing.assert_array_equal(whole[:-after][-len(scene) :], scene)


def test_at_another_speed_every_word_is_heard_to_its_end(page, write):
    """A line takes exactly its share of time, and its last sounds come before what follows."""
    write(LINE, 1)
    lengths = page.evaluate(
        """async () => {
          const { TimeStretch } = await import('./studio/assets/page/playback/time_stretch.js');
          const tone = (at) => Math.sin(at / 9) * (at < 23_000 ? 0.2 : 0.9);
          return [0.5, 0.75, 1.25, 1.5, 2].map((rate) => {
            const stretch = new TimeStretch(rate);
            const spoken = Float32Array.from({ length: 24_000 }, (_, at) => tone(at));
            const halves = [spoken.slice(0, 12_000), spoken.slice(12_000)];
            const parts = halves.map((half) => stretch.push(half));
            const whole = [...parts, stretch.flush()].flatMap((part) => [...part]);
            const loud = whole.filter((one) => Math.abs(one) > 0.3).length;
            return { rate, length: whole.length, loud: loud / whole.length };
          });
        }"""
    )
    for told in lengths:
        assert told["length"] == round(24_000 / told["rate"])
        assert told["loud"] > 0.02, "the loud end of the line"
    page.select_option("#speed", "2")
    heard(page)
    samples = page.evaluate("() => window.tableread.project.lines[0].samples")
    page.wait_for_function(
        "n => window.sounds.reduce((sum, { node }) => sum + node.buffer.length, 0) === n",
        arg=(samples + 1) // 2,
    )
    page.evaluate("() => window.tableread.player.stop()")
    page.select_option("#speed", "1")


STILL = """() => {
  const { place, waiting } = window.tableread.player;
  if (!waiting || place !== window.lastPlace) window.stillSince = performance.now();
  window.lastPlace = place;
  return performance.now() - window.stillSince > 1000;
}"""


def test_while_a_line_is_waited_for_the_clock_stands_still(page, write, hold):
    write("\n".join([LINE] * 3), 3)
    first, second = page.evaluate("() => window.tableread.project.view.order.slice(0, 2)")
    page.evaluate("id => void window.tableread.playback.playOn(id)", second)
    page.wait_for_function(STILL)  # behind the half that the line gives out
    clock = page.locator("#clock-now")
    before, place = clock.text_content(), page.evaluate("() => window.tableread.player.place")
    delete = "id => window.tableread.project.edit([{ op: 'delete', line_ids: [id] }])"
    page.evaluate(delete, first)
    page.wait_for_function("place => window.tableread.player.place < place - 48000", arg=place)
    assert clock.text_content() == before
    hold()
    page.wait_for_function("() => !window.tableread.player.waiting")
    page.evaluate("() => window.tableread.player.stop()")


def test_undoing_a_paste_that_is_being_rendered_ends_the_render(page, write, hold):
    write("", 0)
    # Else a model that unloads makes the page ask for the whole state, whatever it was told.
    assert page.request.post(studio_url(page, "model/timeout"), data={"seconds": 0}).ok
    text = "\n".join([LINE] * 12)
    page.evaluate(PASTE, text)
    generate = page.locator("#generate")
    expect(page.locator("#lines .line")).to_have_count(12)
    generate.click()
    page.wait_for_function(STATE, arg="generating")
    page.keyboard.press("Control+z")
    expect(page.locator("#lines .line")).to_have_count(0)
    page.wait_for_function("() => !window.tableread.project.rendering")
    hold()
    page.evaluate(PASTE, text)
    expect(page.locator("#lines .line")).to_have_count(12)
    generate.click()
    ready(page)


def test_a_voice_that_is_here_is_loaded_before_anybody_presses_play(browser, server_of):
    page = browser.new_page()
    page.goto(server_of("doled_server.py").url)
    page.wait_for_selector("body[data-tableread=ready]")
    fill(page, SHORT, 1)
    page.wait_for_selector("#model-chip[data-state=loaded]")
    assert page.evaluate("() => window.tableread.project.lines[0].take") is None
    page.close()
