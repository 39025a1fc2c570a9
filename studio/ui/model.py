"""The header: name, project, history, voice engine with its idle countdown, notices, keys."""

from __future__ import annotations

import gradio as gr

from studio.ui.dialogs import DIALOGS
from studio.ui.icons import ICONS, icon
from studio.ui.projects import PROJECT_BAR
from studio.ui.pronunciations import PRONUNCIATIONS

_ENGINE = """
<section id="model-panel" class="panel popover" aria-label="Voice engine" hidden>
  <h2 id="model-name"></h2>
  <p id="model-message" class="soft"></p>
  <progress id="model-progress" max="1" aria-label="Model loading" hidden></progress>
  <dl id="model-facts" class="facts"></dl>
  <div class="panel-row">
    <button id="model-load" class="button" type="button">Load now</button>
    <button id="model-stop" class="button" type="button" hidden>Stop loading</button>
    <button id="model-unload" class="button" type="button">Unload now</button>
    <label class="grow">Unload when idle
      <select id="model-timeout">
        <option value="0">never</option>
        <option value="60">after 1 minute</option>
        <option value="300">after 5 minutes</option>
        <option value="900">after 15 minutes</option>
        <option value="3600">after 1 hour</option>
      </select>
    </label>
  </div>
  <label for="model-at-once">Lines read at once
    <input id="model-at-once" type="number" min="1" max="256" step="1"></label>
  <p id="model-slots" class="soft"></p>
  <h3>Voices on this machine</h3>
  <fieldset id="backends" aria-label="Who speaks"></fieldset>
</section>
"""

_HEADER = f"""
{ICONS}
<header id="header">
  <h1 class="wordmark">Tableread</h1>
  {PROJECT_BAR}
  <div id="setup" class="setup" hidden>
    <span id="setup-message"></span>
    <progress id="setup-progress" max="1" aria-labelledby="setup-message"></progress>
  </div>
  <div class="header-tools">
    <button id="model-chip" class="chip" type="button" aria-expanded="false"
      aria-controls="model-panel">
      <span class="dot" aria-hidden="true"></span>
      <span id="model-title">Voice engine</span>
      <span id="model-state" class="soft">connecting</span>
    </button>
    <button id="theme-toggle" class="icon-button" type="button"
      aria-label="Switch between light and dark">{icon("contrast")}</button>
    <button id="keys-open" class="icon-button" type="button"
      aria-label="Keyboard shortcuts">{icon("keyboard")}</button>
  </div>
  {_ENGINE}
</header>
<section id="notices" role="status" aria-label="Notices"></section>
<template id="notice-template">
  <div class="notice">
    <strong class="notice-title"></strong>
    <span class="notice-text"></span>
    <button class="button small notice-act" type="button" hidden></button>
    <button class="icon-button notice-close" type="button"
      aria-label="Dismiss this notice">{icon("close")}</button>
  </div>
</template>
<template id="backend-template">
  <label class="backend">
    <input type="radio" name="backend">
    <span><span class="backend-title"></span> <span class="backend-note soft"></span></span>
  </label>
</template>
<div id="live" class="visually-hidden" role="status" aria-live="polite"></div>
{DIALOGS}
{PRONUNCIATIONS}
"""


def build() -> gr.HTML:
    """Place the header; engine_panel.js and project_menu.js fill it from the studio's state."""
    return gr.HTML(
        html_template=_HEADER, js_on_load=None, apply_default_css=False, elem_id="part-model"
    )
