"""The way to lines of one state or one speaker; goto_bar.js counts them, goes there and marks them."""

from __future__ import annotations

from studio.ui.icons import icon

GO_TO = f"""
<button id="goto-next" class="button small quiet" type="button" hidden
  title="Go to the next of them (N); with Shift pressed: mark them all"><span
  class="label"></span> {icon("down")}</button>
<div class="menu">
  <button id="goto-open" class="button small" type="button" aria-expanded="false"
    aria-controls="goto-panel" title="Go to lines of a state or a speaker (G)">Go to</button>
  <div id="goto-panel" class="panel menu-items below" role="group" aria-label="Go to lines" hidden>
    <ul id="goto-states" class="plain" aria-label="By state"></ul>
    <ul id="goto-speakers" class="plain" aria-label="By speaker"></ul>
    <p id="goto-none" class="soft" hidden>No line is here yet.</p>
  </div>
</div>
<template id="goto-template">
  <li class="goto-row"><button class="goto-go" type="button"
    title="Go to the next; with Shift pressed: mark all">
    <span class="swatch" aria-hidden="true"></span><span class="goto-name" dir="auto"></span>
    <span class="goto-count soft"></span></button>
    <button class="button small quiet goto-mark" type="button">Mark all</button></li>
</template>
"""
"""Stands among the tools of the lines."""
