"""Press the button, hear the scene, keep it; in a real browser."""

import json

import pytest
import soundfile

pytestmark = pytest.mark.browser

CLOCK_S = "() => window.tableread.player.clock_s"
STATES = """() => {
  const states = {};
  for (const row of document.querySelectorAll('#lines .line'))
    states[row.dataset.state] = (states[row.dataset.state] ?? 0) + 1;
  return states;
}"""
DONE = "() => document.querySelector('#player').dataset.job === 'done'"


def long_script(lines):
    names = ("Mara", "Tomas", "Ilse")
    return "\n".join(
        f"{names[n % 3]}: Line number {n} of a long scene, with words enough to take a while."
        for n in range(lines)
    )


def endless_script(lines):
    """A scene that takes the draft voice minutes, so that a test need not hurry to be in time."""
    names = ("Mara", "Tomas", "Ilse")
    words = "with words enough to keep the voice busy for a good while, " * 16
    return "\n".join(f"{names[n % 3]}: Line {n} of a long scene, {words}." for n in range(lines))


def press_and_finish(page):
    page.click("#read")
    page.wait_for_function(DONE)


def test_the_page_opens_with_a_scene_that_can_be_read(page):
    assert page.locator("#lines .line").count() >= 3
    assert page.locator("#cast .voice").count() >= 2
    assert page.locator("#library .voice").count() >= 2
    assert page.locator("#problems li").count() == 0
    assert page.is_enabled("#read")


def test_sound_begins_within_a_second_while_later_lines_are_pending(page, write):
    write(endless_script(500), 500)
    page.click("#read")
    page.wait_for_function("() => window.tableread.player.first_sound_ms !== null")
    states = page.evaluate(STATES)
    assert page.evaluate("() => window.tableread.player.first_sound_ms") < 1000
    assert states.get("waiting", 0) + states.get("queued", 0) > 0
    page.wait_for_function("() => window.tableread.player.clock_s > 0.5")
    page.click("#cancel")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'cancelled'")
    assert "Cancelled" in page.inner_text("#progress")
    assert page.is_disabled("#cancel")


def test_seeking_ahead_asks_for_that_line_first(page, write):
    write(endless_script(500), 500)
    page.click("#read")
    page.wait_for_selector("#lines .line[data-state=ready]")
    with page.expect_request("**/focus") as asked:
        page.click("#lines .line >> nth=499 >> css=.line-text")
    assert asked.value.post_data_json == {"segment_idx": 499}
    page.wait_for_selector("#lines .line[data-line='499'][data-state=ready]")
    assert page.evaluate(STATES)["ready"] < 400
    page.wait_for_function(
        "() => window.tableread.player.place > 0 && "
        "window.tableread.player.segment_idx === 499 && "
        "window.tableread.player.playing"
    )
    page.evaluate("() => window.tableread.player.stop()")
    page.click("#cancel")


def test_lines_are_heard_in_order_without_gaps(page, write):
    write("Mara: One.\nTomas: Two.\n[pause:300ms]\nMara: Three.", 4)
    page.evaluate(
        """() => {
          window.heard = [];
          window.ended = false;
          const player = window.tableread.player;
          player.addEventListener('change', () =>
            player.playing && window.heard.at(-1) !== player.segment_idx
              && window.heard.push(player.segment_idx));
          player.addEventListener('end', () => (window.ended = true));
        }"""
    )
    page.click("#read")
    page.wait_for_function("() => window.ended")
    assert page.evaluate("() => window.heard") == [0, 1, 2, 3]
    assert page.evaluate("() => window.tableread.player.waits") == []
    assert page.get_attribute("#player", "data-playing") == "false"


def test_the_download_is_the_scene_to_the_sample(page, write, server, tmp_path):
    write("Mara: One.\n[pause:0.5s]\nTomas: Two and three.", 3)
    press_and_finish(page)
    page.click("#download")
    with page.expect_download() as waiting:
        page.click("#download-menu a[data-format=wav]")
    scene = tmp_path / "scene.wav"
    waiting.value.save_as(scene)
    samples, rate_hz = soundfile.read(scene, dtype="int16")
    job_id = json.loads(page.evaluate("() => localStorage.getItem('tableread.job')"))["id"]
    segments = page.request.get(f"{server.url}studio/jobs/{job_id}").json()["segments"]
    joined = b"".join(
        page.request.get(f"{server.url}studio/jobs/{job_id}/segments/{n}/audio").body()
        for n in range(len(segments))
    )
    assert rate_hz == 24_000
    assert segments[1]["samples"] == 12_000
    assert len(samples) == sum(segment["samples"] for segment in segments)
    assert samples.tobytes() == joined


def test_seeking_and_pausing_move_the_play_head(page, write):
    write(long_script(12), 12)
    press_and_finish(page)
    page.click("#play")
    assert page.get_attribute("#player", "data-playing") == "false"
    box = page.locator("#timeline").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    whole_s = page.evaluate("() => window.tableread.player.layout.total / 24000")
    assert page.evaluate(CLOCK_S) == pytest.approx(whole_s / 2, abs=0.2)
    page.keyboard.press("Home")
    assert page.evaluate(CLOCK_S) == 0
    page.click("#lines .line >> nth=5 >> css=.line-text")
    assert page.get_attribute("#lines .line >> nth=5", "aria-current") == "true"


def test_a_line_is_played_alone_by_its_own_button(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    press_and_finish(page)
    page.evaluate(
        """() => {
          window.ended = false;
          window.tableread.player.addEventListener('end', () => (window.ended = true));
        }"""
    )
    page.click("#play")
    page.click("#lines .line >> nth=1 >> css=.line-play")
    page.wait_for_function("() => window.tableread.player.segment_idx === 1")
    page.wait_for_function("() => window.ended && !window.tableread.player.playing")
    assert page.evaluate("() => window.tableread.player.segment_idx") == 2


def test_a_failed_line_shows_its_reason_and_the_others_are_read(page, write):
    write("Mara: One.\nTomas:\nIlse: Three.", 3)
    press_and_finish(page)
    assert page.evaluate(STATES) == {"ready": 2, "failed": 1}
    reason = page.locator("#lines .line[data-state=failed] .line-reason")
    assert reason.is_visible()
    assert reason.inner_text()
    assert "1 failed" in page.inner_text("#progress")


def test_an_error_in_the_script_is_shown_at_its_line(page):
    page.fill("#script", "Mara: One.\n[pause:10h]\nTomas: Two.")
    problem = page.locator("#problems li")
    problem.wait_for()
    assert problem.locator(".problem-place").inner_text() == "Line 2"
    problem.locator("button").click()
    selected = "() => document.getSelection().toString()"
    assert page.evaluate(selected) == "[pause:10h]"
    page.click("#read")
    page.wait_for_selector("#read:enabled")
    assert page.get_attribute("#script", "aria-invalid") == "true"
    assert page.locator("#lines .line").count() > 0


def test_an_edited_line_alone_loses_its_sound(page, write):
    write("Mara: One.\nTomas: Two.\nMara: Three.", 3)
    press_and_finish(page)
    page.fill("#script", "Mara: One.\nTomas: Two, rather.\nMara: Three.")
    page.wait_for_function("() => document.querySelector('#progress').textContent.includes('1 ')")
    assert page.evaluate(STATES) == {"ready": 2, "waiting": 1}


def test_text_and_reading_survive_a_reload(page, write):
    write(endless_script(400), 400)
    page.click("#read")
    page.wait_for_selector("#lines .line[data-state=ready]")
    page.reload()
    page.wait_for_selector("body[data-tableread=ready]")
    assert page.locator("#lines .line").count() == 400
    page.wait_for_selector("#lines .line[data-state=ready]")
    made = page.locator("#lines .line[data-state=ready]").count()
    page.wait_for_function(
        "n => document.querySelectorAll('#lines .line[data-state=ready]').length > n", arg=made
    )
    page.click("#play")
    page.wait_for_function("() => window.tableread.player.clock_s > 0.2")
    page.click("#cancel")
    page.wait_for_function("() => document.querySelector('#player').dataset.job === 'cancelled'")


def test_keys_read_play_and_leave_the_text(page, write):
    write("Mara: One and two and three and four.", 1)
    page.focus("#script")
    page.keyboard.press("Control+Enter")
    page.wait_for_function(DONE)
    page.focus("#script")
    page.keyboard.type(" ?")
    assert page.input_value("#script").endswith(" ?")
    page.keyboard.press("Escape")
    assert page.evaluate("() => document.activeElement === document.body")
    page.evaluate("() => window.tableread.player.stop()")
    page.keyboard.press("Space")
    assert page.get_attribute("#player", "data-playing") == "true"
    page.keyboard.press("?")
    assert page.is_visible("#keys")
    page.keyboard.press("Escape")
    assert not page.is_visible("#keys")


def test_typing_stays_quick_with_500_lines(page, write):
    write(long_script(500), 500)
    page.focus("#script")
    page.evaluate(
        """() => {
          window.delays_ms = [];
          document.querySelector('#script').addEventListener('keydown', () => {
            const pressed = performance.now();
            requestAnimationFrame(() => setTimeout(() =>
              window.delays_ms.push(performance.now() - pressed)));
          });
        }"""
    )
    page.keyboard.type(" and some more words of it", delay=40)
    delays_ms = sorted(page.evaluate("() => window.delays_ms"))
    print(f"key to paint at 500 lines: median {delays_ms[len(delays_ms) // 2]:.0f} ms")
    assert delays_ms[len(delays_ms) // 2] < 100
