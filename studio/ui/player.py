"""The streaming player along the foot of the page."""

from __future__ import annotations

import gradio as gr

from studio.ui.icons import icon
from studio.ui.sound_form import SOUND_FORM

_SPEEDS = (0.5, 0.75, 1, 1.25, 1.5, 2)
_SPEED_OPTIONS = "".join(
    f'<option value="{speed}"{" selected" if speed == 1 else ""}>{speed} ×</option>'
    for speed in _SPEEDS
)

_PLAYER = f"""
<section id="player" aria-label="Player">
  <div class="timeline-row">
    <div id="timeline" role="slider" tabindex="0" aria-label="Place in the scene"
      aria-valuemin="0" aria-valuemax="0" aria-valuenow="0" aria-valuetext="0:00">
      <canvas id="timeline-blocks" aria-hidden="true"></canvas>
      <div id="play-head" aria-hidden="true"></div>
    </div>
    <div class="zoom">
      <button id="zoom-in" class="icon-button" type="button"
        aria-label="Show less of the timeline">{icon("plus")}</button>
      <button id="zoom-out" class="icon-button" type="button"
        aria-label="Show more of the timeline">{icon("minus")}</button>
    </div>
  </div>
  <div class="transport">
    <div class="transport-left">
      <button id="read" class="button primary" type="button">Read the scene</button>
      <button id="cancel" class="button" type="button" disabled>Cancel</button>
      <span id="progress" class="soft"></span>
    </div>
    <div class="transport-middle">
      <button id="play" class="round" type="button" aria-label="Play" disabled>
        <span class="when-paused">{icon("play")}</span>
        <span class="when-playing">{icon("pause")}</span>
      </button>
      <span id="clock" class="clock"><span id="clock-now">0:00</span>
        <span class="soft">/ <span id="clock-whole">0:00</span></span></span>
      <span id="now-speaking" class="soft" dir="auto"></span>
    </div>
    <div class="transport-right">
      <button id="loop" class="icon-button" type="button" aria-pressed="false"
        aria-label="Repeat a single line" title="Repeat a single line">{icon("loop")}</button>
      <label class="speed"><span class="visually-hidden">Speed</span>
        <select id="speed">{_SPEED_OPTIONS}</select></label>
      <label class="volume" for="volume">{icon("volume")}
        <span class="visually-hidden">Volume</span>
        <input id="volume" type="range" min="0" max="1" step="0.01" value="1"></label>
      <div class="menu">
        <button id="download" class="button" type="button" aria-expanded="false"
          aria-controls="sound-form">{icon("download")} Download</button>
        {SOUND_FORM}
      </div>
    </div>
  </div>
</section>
"""


def build() -> gr.HTML:
    """Place the player; player.js streams into it, transport.js moves its controls."""
    return gr.HTML(
        html_template=_PLAYER, js_on_load=None, apply_default_css=False, elem_id="part-player"
    )
