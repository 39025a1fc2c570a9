"""A character's pan: set in its settings, heard while it plays, in what is laid already too."""

import pytest
from ui_steps import NAMELESS, make, saved, violations

pytestmark = pytest.mark.browser

SCENE = """Ida: We should have left an hour ago, and you know that as well as I do, my dear.
Tom: And yet here you are, with the lamp still lit, the door open and the kettle on.
Ida: One of us has to be."""

# The levels that reach each side, of what plays now.
LISTEN = """() => {
  const { player } = window.tableread;
  const { context } = player.output;
  const split = new ChannelSplitterNode(context, { numberOfOutputs: 2 });
  // As loudspeakers do it: what is mono comes from both.
  const both = new GainNode(context, { channelCount: 2, channelCountMode: 'explicit' });
  player.output.connect(both).connect(split);
  window.sides = [0, 1].map((side) => {
    const analyser = new AnalyserNode(context, { fftSize: 8192 });
    split.connect(analyser, side);
    return analyser;
  });
}"""
# In one turn of the page, so both sides are of the same moment; null while nobody is heard.
SHARES = """(lineId) => {
  if (window.tableread.player.line_id !== lineId) return null;
  const powers = window.sides.map((analyser) => {
    const samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(samples);
    return samples.reduce((sum, one) => sum + one * one, 0);
  });
  const whole = powers[0] + powers[1];
  return whole > 1 ? powers.map((one) => one / whole) : null;
}"""
LEFT = f"""([lineId, least, most]) => {{
  const shares = ({SHARES})(lineId);
  return shares && shares[0] >= least && shares[0] <= most;
}}"""
PANNERS = """() => {
  window.panners = 0;
  window.StereoPannerNode = class extends StereoPannerNode {
    constructor(...given) {
      super(...given);
      window.panners += 1;
    }
  };
}"""
PAN = "#character-pan"


def open_settings(page, name):
    page.focus(f"#cast [aria-label='Settings of {name}']")
    page.keyboard.press("Enter")
    page.wait_for_selector("#character-panel[open]")


def set_pan(page, percent):
    page.evaluate(
        """percent => {
          const slider = document.getElementById('character-pan');
          slider.value = percent;
          for (const type of ['input', 'change']) slider.dispatchEvent(new Event(type));
        }""",
        percent,
    )


def pans(page):
    characters = page.evaluate("() => window.tableread.project.view.characters")
    return {key: one["pan"] for key, one in characters.items()}


def test_the_slider_says_its_value_and_is_undone(page, write):
    write(SCENE, 3)
    open_settings(page, "Ida")
    assert page.inner_text("#character-pan-value") == "Centre"
    assert page.is_hidden("#character-pan-reset")
    page.focus(PAN)
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
    assert page.inner_text("#character-pan-value") == "40 % left"
    assert page.get_attribute(PAN, "aria-valuetext") == "40 % left"
    assert page.evaluate(NAMELESS) == []
    assert violations(page, ["#character-panel"]) == []
    saved(page)
    assert pans(page) == {"ida": -0.4}
    page.click("#character-pan-reset")
    assert page.inner_text("#character-pan-value") == "Centre"
    assert page.evaluate("() => document.activeElement.id") == "character-pan"
    saved(page)
    assert pans(page) in ({}, {"ida": 0})
    page.keyboard.press("Escape")


def test_a_pan_is_one_step_of_undo(page, write):
    write(SCENE, 3)
    open_settings(page, "Tom")
    set_pan(page, 70)
    saved(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("#cast [aria-label='Settings of Tom'][data-set]", state="attached")
    page.click("#undo")
    page.wait_for_function("() => !window.tableread.project.view.characters.tom?.pan")
    page.wait_for_selector("#cast [aria-label='Settings of Tom']:not([data-set])", state="attached")
    page.click("#redo")
    page.wait_for_function("() => window.tableread.project.view.characters.tom?.pan === 0.7")
    open_settings(page, "Tom")
    assert page.inner_text("#character-pan-value") == "70 % right"
    page.keyboard.press("Escape")


def test_a_panned_voice_is_heard_at_its_place_at_once(page, write):
    write(SCENE, 3)
    page.evaluate(PANNERS)
    make(page)
    first, second, _ = page.evaluate("() => window.tableread.project.view.order")
    page.evaluate("() => (window.tableread.player.loop = true)")
    play = "id => window.tableread.player.playFrom(id, id)"
    page.evaluate(play, first)
    page.evaluate(LISTEN)
    page.wait_for_function(LEFT, arg=[first, 0.499, 0.501])
    assert page.evaluate("() => window.panners") == 0
    open_settings(page, "Ida")
    set_pan(page, -40)
    # cos² of 0.3 quarter turns
    page.wait_for_function(LEFT, arg=[first, 0.792, 0.796])
    assert page.evaluate("() => window.panners") > 0
    set_pan(page, 100)
    page.wait_for_function(LEFT, arg=[first, 0.0, 0.001])
    page.evaluate(play, second)
    page.wait_for_function(LEFT, arg=[second, 0.499, 0.501])
    set_pan(page, 0)
    page.wait_for_function("() => !window.tableread.player.panOf({ speaker: 'Ida' })")
    before = page.evaluate("() => window.panners")
    page.evaluate(play, first)
    page.wait_for_function(LEFT, arg=[first, 0.499, 0.501])
    assert page.evaluate("() => window.panners") == before
    page.evaluate("() => (window.tableread.player.loop = false)")
    page.evaluate("() => window.tableread.player.stop()")
