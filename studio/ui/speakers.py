"""The speaker-sample manager: the cast of the dialog and the library of voices."""

from __future__ import annotations

import gradio as gr

from studio.ui.icons import icon
from studio.ui.pronunciations import OPEN_IN_CAST
from studio.ui.voice_panel import VOICE_PANEL
from studio.ui.voice_sample import SAMPLE_PANEL

_CAST = f"""
<section id="cast-view" class="pane" aria-labelledby="cast-title">
  <div class="pane-head"><h2 id="cast-title">Cast</h2></div>
  <label id="script-language-part" class="cast-language soft" hidden>Language of the script
    <select id="script-language"></select></label>
  <label class="cast-language soft">A doubtful take
    <select id="tries">
      <option value="1">is kept and marked</option>
      <option value="2">is made again once</option>
      <option value="3">is made again up to twice</option>
      <option value="4">is made again up to 3 times</option>
    </select></label>
  {OPEN_IN_CAST}
  <ul id="cast" class="plain" aria-label="Speakers of this dialog"></ul>
  <button id="cast-suggested" class="button small" type="button" hidden>Use the suggested
    voices</button>
  <div class="pane-head"><h2 id="library-title">Voices</h2>
    <span id="library-count" class="soft" role="status"></span></div>
  <div class="library-tools">
    <button id="voice-new" class="button small" type="button"
      aria-haspopup="dialog">{icon("plus")} Add a voice</button>
    <button id="voice-import" class="button small" type="button">Open a voice file</button>
    <input id="voice-file" type="file" accept=".zip,application/zip" hidden
      aria-label="Voice file">
  </div>
  <div id="library-search">
    <input id="voice-search" type="search" aria-label="Search voices" autocomplete="off"
      placeholder="Search names, tags, moods" dir="auto">
    <div id="voice-tags" role="group" aria-label="Show voices with these tags"></div>
  </div>
  <ul id="library" class="plain" aria-labelledby="library-title"></ul>
  <p id="library-none" class="soft" hidden>No voice matches. Change the search or the tags.</p>
  <p id="library-empty" class="soft" hidden>No voices yet. Add a recording of a voice, 5 to 20
    seconds long, and every line of that name is read with it.</p>
  <details id="library-removed" hidden>
    <summary>Removed voices <span id="library-removed-count" class="soft"></span></summary>
    <ul id="library-removed-list" class="plain" aria-label="Removed voices"></ul>
  </details>
  <ul id="library-problems" class="plain" aria-label="Problems of the library"></ul>
</section>
<template id="cast-template">
  <li class="voice">
    <span class="swatch" aria-hidden="true"></span>
    <div class="voice-body">
      <div class="voice-head"><span class="voice-name" dir="auto"></span>
        <input class="voice-rename-field" type="text" maxlength="80" dir="auto" autocomplete="off"
          hidden>
        <button class="icon-button voice-rename" type="button">{icon("pencil")}</button></div>
      <div class="voice-foot"><select class="voice-choice"></select>
        <button class="voice-kind voice-mark soft" type="button"></button></div>
      <button class="voice-suggest" type="button" hidden></button></div>
    <button class="button small voice-add" type="button">{icon("plus")} Sample</button>
  </li>
</template>
<template id="voice-template">
  <li class="voice">
    <span class="swatch" aria-hidden="true"></span>
    <button class="voice-open voice-body" type="button" aria-haspopup="dialog">
      <span class="voice-name" dir="auto"></span>
      <span class="voice-kind soft"></span>
      <span class="voice-labels soft" dir="auto"></span></button>
    <button class="icon-button voice-listen" type="button" aria-pressed="false">
      <span class="when-paused">{icon("play")}</span>
      <span class="when-playing">{icon("pause")}</span></button>
  </li>
</template>
<template id="tag-template">
  <button class="voice-tag" type="button" aria-pressed="false" dir="auto"></button>
</template>
<dialog id="confirm" aria-labelledby="confirm-title">
  <h2 id="confirm-title"></h2>
  <p id="confirm-text"></p>
  <form method="dialog" class="panel-row">
    <button class="button" value="keep">Keep</button>
    <button class="button danger" value="remove">Remove</button>
  </form>
</dialog>
{VOICE_PANEL}
{SAMPLE_PANEL}
"""


def build() -> gr.HTML:
    """Place the manager; the modules in `voices/` fill it."""
    return gr.HTML(
        html_template=_CAST, js_on_load=None, apply_default_css=False, elem_id="part-cast"
    )
