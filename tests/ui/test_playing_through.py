"""What leaves the loudspeaker is what was rendered, sample after sample, nothing between."""

import base64
import urllib.request

import numpy as np
import pytest
from ui_steps import ready

pytestmark = pytest.mark.browser

RATE_HZ = 24_000
RECORD = """async () => {
  const { player } = window.tableread;
  await player.unlock();
  const code = `registerProcessor('tape', class extends AudioWorkletProcessor {
    process(inputs) {
      const [channel] = inputs[0];
      this.port.postMessage(channel ? channel.slice() : new Float32Array(128));
      return true;
    }
  })`;
  const { context } = player.output;
  const url = URL.createObjectURL(new Blob([code], { type: 'text/javascript' }));
  await context.audioWorklet.addModule(url);
  window.tape = [];
  const tape = new AudioWorkletNode(context, 'tape', { channelCount: 1 });
  tape.port.onmessage = ({ data }) => window.tape.push(data);
  player.output.connect(tape);
  window.ended = false;
  window.tableread.bus.on('player.ended', () => (window.ended = true));
}"""
ALL_LAID = """() => window.ended || window.tableread.project.lines.every((line) =>
  line.kind === 'silence' || window.tableread.player.laid.get(line.line_id) === line.samples)"""
PLAYED = """() => {
  const whole = new Int16Array(window.tape.length * 128);
  window.tape.forEach((part, at) =>
    part.forEach((one, n) => (whole[at * 128 + n] = Math.round(one * 32768))));
  const bytes = new Uint8Array(whole.buffer);
  let text = '';
  for (let at = 0; at < bytes.length; at += 32768)
    text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return btoa(text);
}"""


def rendered(page, server, project):
    """The dialog's lines as the studio has them, int16."""
    order = page.evaluate("() => window.tableread.project.view.order")
    base = f"{server.url}studio/projects/{project}/lines"
    takes = [urllib.request.urlopen(f"{base}/{line}/audio").read() for line in order]
    return [np.frombuffer(take, dtype="<i2") for take in takes]


def play_through(page, server, project, timeout_s):
    page.evaluate(RECORD)
    page.click("#play")
    page.wait_for_function(ALL_LAID, timeout=1000 * timeout_s)
    # What changes in the project from here on is not heard again.
    page.evaluate("() => window.tableread.player.refresh(window.tableread.project.lines)")
    page.wait_for_function("() => window.ended", timeout=1000 * timeout_s)
    ready(page)
    played = np.frombuffer(base64.b64decode(page.evaluate(PLAYED)), dtype="<i2")
    waits = page.evaluate("() => window.tableread.player.waits")
    lines = rendered(page, server, project)
    whole = np.concatenate(lines)
    return played, whole, waits


def starts_of(played, whole):
    """Where the rendered samples begin in what was played: the first sample that isn't zero."""
    return np.flatnonzero(played)[0] - np.flatnonzero(whole)[0]


def unwritten_s(played, whole):
    """How much longer what was played is than what was rendered."""
    end = np.flatnonzero(played)[-1] + 1
    written = np.flatnonzero(whole)[-1] + 1
    return (end - starts_of(played, whole) - written) / RATE_HZ


def short_scene(lines):
    names = ("Mara", "Tomas")
    return "\n".join(
        f"[{names[n % 2]} | speed:2] Go." + ("\n[pause:50ms]" if n % 20 == 9 else "")
        for n in range(lines)
    )


def check(page, server, project, timeout_s):
    played, whole, waits = play_through(page, server, project, timeout_s)
    gap_s = max([0.0, *(wait["wait_s"] for wait in waits)])
    print(f"{len(whole) / RATE_HZ:.1f} s played, longest gap {1000 * gap_s:.1f} ms")
    first = starts_of(played, whole)
    same = played[first : first + len(whole)][: len(whole)]
    # Whatever the machine's speed, no gap but those the player itself knows of.
    assert abs(unwritten_s(played, whole) - sum(wait["wait_s"] for wait in waits)) <= 0.010
    if not waits:
        assert np.abs(same.astype(int) - whole[: len(same)]).max() <= 1
    return gap_s


def test_what_is_heard_is_what_was_rendered(page, write, server):
    project = write(short_scene(20), 21)
    check(page, server, project, 120)


@pytest.mark.campaign
def test_two_hundred_lines_play_through_while_they_are_made(page, write, server):
    project = write(short_scene(200), 210)
    assert check(page, server, project, 280) <= 0.010
