"""The panel of the marked lines: who says them, how, their takes."""

from __future__ import annotations

import gradio as gr

from studio.ui.icons import icon
from studio.ui.pronunciations import OF_A_LINE

_ACTS = f"""
<div id="line-acts" class="acts" role="toolbar" aria-label="What to do with marked lines" hidden>
  <button id="act-play" class="button small" type="button"
    title="Play (Space)">{icon("play")} Play</button>
  <button id="act-again" class="button small" type="button"
    title="Another take with a seed of its own (R)">{icon("again")} New take</button>
  <button id="act-lock" class="button small" type="button" aria-pressed="false"
    title="Lock (L)">{icon("lock")} <span class="label">Lock</span></button>
  <span class="acts-small">
    <button id="act-up" class="icon-button" type="button" aria-label="Move up"
      title="Move up (Alt+↑)">{icon("up")}</button>
    <button id="act-down" class="icon-button" type="button" aria-label="Move down"
      title="Move down (Alt+↓)">{icon("down")}</button>
    <button id="act-duplicate" class="icon-button" type="button" aria-label="Duplicate"
      title="Duplicate (Ctrl+D)">{icon("copy")}</button>
    <button id="act-delete" class="icon-button" type="button" aria-label="Delete"
      title="Delete">{icon("bin")}</button>
  </span>
</div>
"""

_FIELDS = """
<div id="line-fields" hidden>
  <div class="field-grid">
    <label class="whole">Speaker
      <input id="field-speaker" type="text" list="speaker-names" maxlength="80" dir="auto"
        autocomplete="off"></label>
    <label id="instruct-part" class="whole" hidden>How it is said
      <input id="field-instruct" type="text" maxlength="500" dir="auto" autocomplete="off"
        data-empty="such as: angrily, in a low voice"></label>
    <label id="mood-part" class="whole" hidden>Mood <select id="field-mood"></select></label>
    <label>Language <select id="field-language"></select></label>
    <label>Seed <input id="field-seed" type="number" min="0" max="9007199254740991" step="1"
      data-empty="its own"></label>
    <label>Pause before, s <input id="field-before" type="number" min="0" max="300"
      step="any"></label>
    <label>Pause after, s <input id="field-after" type="number" min="0" max="300"
      step="any"></label>
  </div>
  <datalist id="speaker-names"></datalist>
  <div id="params" role="group" aria-label="Voice settings of this line"></div>
  <div id="strays-part" hidden>
    <p id="strays-title" class="soft">This voice engine doesn’t know these settings:</p>
    <ul id="strays" class="plain" aria-labelledby="strays-title"></ul>
  </div>
</div>
"""

_PANEL = f"""
<section id="line-panel" class="pane" aria-labelledby="line-title">
  <div class="pane-head"><h2 id="line-title">Line</h2></div>
  <p id="line-empty" class="soft">Choose a line to change how it is said, and to compare its takes.
    <span class="by-keys">Hold <kbd>Shift</kbd> or <kbd>Ctrl</kbd> to choose several.
    <kbd>?</kbd> lists the keys.</span>
    <span class="by-touch">Touch the numbers of lines to choose several.</span></p>
  {_ACTS}
  {_FIELDS}
  {OF_A_LINE}
  <div id="recording-part" hidden>
    <dl class="facts">
      <dt>File</dt><dd id="recording-name" dir="auto"></dd>
      <dt>Length</dt><dd id="recording-length"></dd>
    </dl>
    <button id="recording-choose" class="button small" type="button"></button>
    <p class="soft">Or drop a file on its line.</p>
  </div>
  <input id="recording-file" type="file" accept="audio/*,video/webm,.m4a" hidden
    aria-label="File of this recording">
  <div id="hints-part" hidden>
    <h3 id="hints-title">To know</h3>
    <ul id="hints" class="plain" aria-labelledby="hints-title"></ul>
    <button id="take-fine" class="button small" type="button" hidden
      title="Don’t mark this take any more">This take is fine</button>
  </div>
  <div id="takes-part" hidden>
    <h3 id="takes-title">Takes</h3>
    <ul id="takes" class="plain" aria-labelledby="takes-title"></ul>
  </div>
</section>
<template id="param-template">
  <div class="param">
    <span class="param-label"></span>
    <button class="icon-button param-reset" type="button" hidden>{icon("undo")}</button>
    <input class="param-number" type="number">
    <input class="param-range" type="range">
  </div>
</template>
<template id="stray-template">
  <li class="stray"><span class="stray-name" dir="auto"></span>
    <button class="button small" type="button">Remove</button></li>
</template>
<template id="take-again-template">
  <button class="button small" type="button">Make again</button>
</template>
<template id="take-template">
  <li class="take">
    <button class="icon-button take-play" type="button" aria-pressed="false">
      <span class="when-paused">{icon("play")}</span>
      <span class="when-playing">{icon("pause")}</span></button>
    <div class="take-body"><span class="take-name"></span>
      <span class="take-about soft" dir="auto"></span><span class="take-text soft"
      dir="auto"></span>
      <button class="button small take-fine" type="button" aria-pressed="false"
        hidden>It’s fine</button></div>
    <button class="button small take-choose" type="button">Use</button>
    <button class="icon-button take-lock" type="button"
      aria-pressed="false">{icon("lock")}</button>
    <button class="icon-button take-delete" type="button">{icon("bin")}</button>
  </li>
</template>
"""


def build() -> gr.HTML:
    """Place the panel; line_panel.js and takes_panel.js fill it for the marked lines."""
    return gr.HTML(
        html_template=_PANEL, js_on_load=None, apply_default_css=False, elem_id="part-line"
    )
