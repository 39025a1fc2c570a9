"""The dialog editor: the script as text, and the same dialog as lines."""

from __future__ import annotations

from dataclasses import dataclass

import gradio as gr

from studio.ui.icons import icon

_VIEWS = """
<nav id="views" aria-label="Views">
  <button type="button" data-view="script" aria-pressed="true">Script</button>
  <button type="button" data-view="lines" aria-pressed="false">Lines</button>
  <button type="button" data-view="cast" aria-pressed="false">Cast</button>
</nav>
"""

_SCRIPT = """
<section id="script-view" class="pane" aria-labelledby="script-title">
  <div class="pane-head">
    <h2 id="script-title">Script</h2>
    <span id="script-count" class="soft"></span>
  </div>
  <textarea id="script" spellcheck="true" autocomplete="off" aria-label="Script"
    aria-describedby="script-hint problems"
    placeholder="Mara: The lamp is still burning."></textarea>
  <ul id="problems" class="plain" aria-label="Problems in the script" aria-live="polite"></ul>
  <p id="script-hint" class="soft hint">
    One line each: <code>Name: text</code>. A pause: <code>[pause:1.5s]</code>.
    A comment: <code># note</code>.
  </p>
</section>
"""

_LINES = f"""
<section id="lines-view" class="pane" aria-labelledby="lines-title">
  <div class="pane-head"><h2 id="lines-title">Lines</h2></div>
  <ol id="lines" class="plain" aria-label="Lines of the dialog"></ol>
  <div id="lines-empty" class="empty" hidden>
    <p class="empty-title">Nothing to read yet</p>
    <p class="soft">Write a name, a colon and what is said. Every line appears here with its
      speaker, and its sound as soon as it is read.</p>
  </div>
</section>
<template id="line-template">
  <li class="line">
    <button class="icon-button line-play" type="button" aria-pressed="false">
      <span class="when-paused">{icon("play")}</span>
      <span class="when-playing">{icon("pause")}</span></button>
    <div class="line-body">
      <span class="line-speaker" dir="auto"></span>
      <span class="line-text" dir="auto"></span>
      <span class="line-reason" hidden></span>
    </div>
    <span class="line-state"></span>
    <span class="line-length"></span>
  </li>
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
    """The three pieces of the editor, in page order."""

    views: gr.HTML
    script: gr.HTML
    lines: gr.HTML


def build(opening_script: str) -> EditorPart:
    """Place the editor; `opening_script` stands in it until the person has written something."""
    return EditorPart(
        views=gr.HTML(
            html_template=_VIEWS, js_on_load=None, apply_default_css=False, elem_id="part-views"
        ),
        script=gr.HTML(
            html_template=_SCRIPT,
            js_on_load=_HAND_OVER,
            apply_default_css=False,
            elem_id="part-script",
            opening_script=opening_script,
        ),
        lines=gr.HTML(
            html_template=_LINES, js_on_load=None, apply_default_css=False, elem_id="part-lines"
        ),
    )
