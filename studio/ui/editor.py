"""The dialog editor: the dialog as lines, and the same dialog as one text."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from studio.ui.icons import icon
from studio.ui.marks import GO_TO
from studio.ui.projects import SCRIPT_FORMATS, export_links

_VIEWS = """
<nav id="views" aria-label="Views">
  <button type="button" data-view="lines" aria-pressed="true">Lines</button>
  <button type="button" data-view="script" aria-pressed="false">Script</button>
  <button type="button" data-view="line" aria-pressed="false">Line</button>
  <button type="button" data-view="cast" aria-pressed="false">Cast</button>
</nav>
"""

_SCRIPT = f"""
<section id="script-view" class="pane" aria-labelledby="script-title">
  <div class="pane-head">
    <h2 id="script-title" class="visually-hidden">Script</h2>
    <span id="script-count" class="soft"></span>
    <div class="pane-tools">
      <button id="import" class="button small" type="button">Import</button>
      <div class="menu">
        <button id="export" class="button small" type="button" aria-haspopup="menu"
          aria-expanded="false" aria-controls="export-menu">{icon("download")} Export</button>
        <div id="export-menu" class="panel menu-items below" role="menu"
          hidden>{export_links(SCRIPT_FORMATS)}</div>
      </div>
    </div>
  </div>
  <textarea id="script" spellcheck="true" autocomplete="off" aria-label="Script"
    aria-describedby="script-hint problems"
    placeholder="Mara: The lamp is still burning."></textarea>
  <div id="script-draft" role="status" hidden>
    <span>Your text is kept here and isn't taken over yet; the lines are as they were.</span>
    <button id="draft-compare" class="button small" type="button">Compare</button>
    <button id="draft-drop" class="button small quiet" type="button">Drop my text</button>
  </div>
  <ul id="problems" class="plain" aria-label="Problems in the script" aria-live="polite"></ul>
  <p id="script-hint" class="soft hint">
    One line each: <code>Name: text</code>. A pause: <code>[pause:1.5s]</code>.
    A comment: <code># note</code>. Lines you leave as they are keep their sound.
  </p>
</section>
"""

_FIND = f"""
<div id="find-bar" role="search" aria-label="Find and replace" hidden>
  <div class="find-row">
  <input id="find" type="text" aria-label="Find" placeholder="Find" autocomplete="off">
  <button id="find-previous" class="icon-button" type="button"
    aria-label="Previous">{icon("up")}</button>
  <button id="find-next" class="icon-button" type="button" aria-label="Next">{icon("down")}</button>
  <span id="find-count" class="soft" role="status"></span>
  <label><input id="find-case" type="checkbox"> Match case</label>
  <label><input id="find-word" type="checkbox"> Whole words</label>
  <button id="find-close" class="icon-button" type="button"
    aria-label="Close find">{icon("close")}</button>
  </div>
  <div class="find-row">
  <input id="replace" type="text" aria-label="Replace with" placeholder="Replace with"
    autocomplete="off">
  <button id="replace-one" class="button small" type="button">Replace</button>
  <button id="replace-all" class="button small" type="button">Replace all</button>
  </div>
</div>
"""

_LINES = f"""
<section id="lines-view" class="pane" aria-labelledby="lines-title">
  <div class="pane-head">
    <h2 id="lines-title" class="visually-hidden">Lines</h2>
    <span id="lines-count" class="soft"></span>
    <div class="pane-tools">
      <button id="hints-next" class="button small quiet" type="button" hidden
        title="Go to the next line with something to know"></button>
      {GO_TO}
      <button id="find-open" class="button small" type="button"
        title="Find and replace (Ctrl+F)" aria-label="Find">{icon("find")}
        <span class="label">Find</span></button>
      <button id="add-recording" class="button small" type="button"
        title="Add a recording as a line of its own">{icon("plus")} Recording</button>
      <button id="add-pause" class="button small" type="button"
        title="Add a pause (P)">{icon("plus")} Pause</button>
      <button id="add-line" class="button small" type="button"
        title="Add a line (Shift+Enter)">{icon("plus")}
        <span class="label">Line</span></button>
    </div>
  </div>
  {_FIND}
  <div id="lines" role="grid" aria-label="Lines of the dialog" aria-multiselectable="true"></div>
  <button id="back-to-playing" class="button small" type="button"
    hidden>Back to what is heard</button>
  <div id="lines-empty" class="empty" hidden>
    <p class="empty-title">A scene begins with a line</p>
    <p class="soft">Press <span class="by-keys"><kbd>Shift</kbd> <kbd>Enter</kbd> or</span>
      <b>Line</b> above and write. Or paste
      a whole script under <b>Script</b>, or let a file fall anywhere on this page: text, Fountain,
      subtitles, a table, JSON. A sound file becomes a line that plays it.</p>
  </div>
</section>
<template id="line-template">
  <div class="line" role="row" tabindex="-1" aria-selected="false">
    <div class="line-lead" role="gridcell">
      <span class="line-grip" draggable="true" aria-hidden="true"><span
        class="line-number"></span></span>
      <button class="icon-button line-play" type="button" tabindex="-1" aria-pressed="false">
        <span class="when-paused">{icon("play")}</span>
        <span class="when-playing">{icon("pause")}</span></button>
    </div>
    <div class="line-body" role="gridcell">
      <div class="line-head">
        <button class="line-speaker" type="button" tabindex="-1" dir="auto" aria-haspopup="menu"
          aria-expanded="false"></button>
      </div>
      <div class="line-text" role="textbox" aria-multiline="true" tabindex="-1" dir="auto"
        contenteditable="plaintext-only" spellcheck="true" data-empty="What is said?"></div>
      <span class="line-reason" hidden></span>
    </div>
    <div class="line-info" role="gridcell">
      <span class="line-state"></span><span class="line-lock" title="Locked">{icon("lock")}</span>
    </div>
    <div class="line-measure" role="gridcell">
      <span class="line-length"></span>
      <button class="line-takes" type="button" tabindex="-1" hidden></button>
    </div>
  </div>
</template>
<template id="file-template">
  <button class="button small line-file" type="button" tabindex="-1"></button>
</template>
<template id="hint-template">
  <button class="line-hint" type="button" tabindex="-1" hidden><span class="hint-sign"
    aria-hidden="true">!</span><span class="visually-hidden">To know:</span>
    <span class="hint-text" dir="auto"></span></button>
</template>
<template id="pause-template">
  <div class="line" role="row" tabindex="-1" aria-selected="false">
    <div class="line-lead" role="gridcell"><span class="line-grip" draggable="true"
      aria-hidden="true">{icon("grip")}</span></div>
    <div class="line-body" role="gridcell"><span class="pause-word">Pause</span>
      <input class="line-seconds" type="number" min="0" max="300" step="0.1" tabindex="-1"> s</div>
    <div class="line-info" role="gridcell"></div>
    <div class="line-measure" role="gridcell"><button class="icon-button line-remove" type="button"
      tabindex="-1" aria-label="Delete this pause">{icon("close")}</button></div>
  </div>
</template>
<template id="problem-template">
  <li><button class="problem" type="button"><span class="problem-place"></span>
    <span class="problem-text"></span></button></li>
</template>
"""

# The opening script travels as a prop, never inside the template: Gradio executes templates.
_HAND_OVER = "element.dataset.openingScript = props.opening_script;"


@dataclass(frozen=True, slots=True)
class EditorPart:
    """The pieces of the editor, in page order."""

    views: gr.HTML
    lines: gr.HTML
    script: gr.HTML


def build(opening_script: str) -> EditorPart:
    """Place the editor; `opening_script` becomes the first project of a new workspace."""
    return EditorPart(
        views=_part(_VIEWS, "part-views"),
        lines=_part(_LINES, "part-lines"),
        script=gr.HTML(
            html_template=_SCRIPT,
            js_on_load=_HAND_OVER,
            apply_default_css=False,
            elem_id="part-script",
            opening_script=opening_script,
        ),
    )


def _part(html: str, elem_id: str) -> gr.HTML:
    return gr.HTML(html_template=html, js_on_load=None, apply_default_css=False, elem_id=elem_id)
