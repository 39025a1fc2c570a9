"""The project in the header: its name, what can be done with it, and the recent ones."""

from __future__ import annotations

from studio.ui.icons import icon

SCRIPT_FORMATS = (
    ("txt", "Text"),
    ("fountain", "Fountain"),
    ("srt", "SRT, timed"),
    ("vtt", "WebVTT, timed"),
    ("csv", "CSV"),
    ("tsv", "TSV"),
    ("json", "JSON"),
    ("jsonl", "JSON lines"),
)


def export_links(formats: tuple[tuple[str, str], ...]) -> str:
    """Items of a menu; exports.js points them at the open project."""
    return "".join(
        f'<a data-format="{name}" role="menuitem" download>{label}</a>' for name, label in formats
    )


PROJECT_BAR = f"""
<div class="project-bar">
  <button id="project-open" class="button quiet" type="button" aria-expanded="false"
    aria-controls="project-panel"><span id="project-title" dir="auto">Project</span>
    {icon("down")}</button>
  <span id="saved" class="soft" role="status" data-state="saved">Saved</span>
  <button id="undo" class="icon-button" type="button" aria-label="Undo" title="Undo (Ctrl+Z)"
    disabled>{icon("undo")}</button>
  <button id="redo" class="icon-button" type="button" aria-label="Redo" title="Redo (Ctrl+Y)"
    disabled>{icon("redo")}</button>
</div>
<section id="project-panel" class="panel popover" aria-label="Project" hidden>
  <form id="project-renaming"><label>Name of this project
    <input id="project-name" type="text" maxlength="120" dir="auto" autocomplete="off"></label>
  </form>
  <div class="panel-row">
    <button id="project-new" class="button" type="button">New</button>
    <button id="project-import" class="button" type="button">Import</button>
    <button id="project-copy" class="button" type="button">Duplicate</button>
    <a class="button" data-format="tableread" download>Export</a>
    <button id="project-delete" class="button danger" type="button">Delete</button>
  </div>
  <a id="project-slim" class="button small" data-format="tableread" data-slim download hidden>Export
    without deleted takes</a>
  <div class="project-voice">
    <label>Engine of this project <select id="project-engine"></select></label>
    <label>Seed <input id="project-seed" type="number" min="0" max="4294967295" step="1"
      placeholder="by line"></label>
  </div>
  <div id="projects-part">
    <h3>Recent projects</h3>
    <input id="projects-search" type="text" aria-label="Search projects" placeholder="Search"
      autocomplete="off" hidden>
    <ul id="projects" class="plain" aria-label="Recent projects"></ul>
  </div>
  <details id="removed-part" hidden>
    <summary>Deleted projects</summary>
    <ul id="removed" class="plain" aria-label="Deleted projects"></ul>
  </details>
  <button id="space-free" class="button small" type="button" aria-haspopup="dialog"
    hidden></button>
</section>
<input id="import-file" type="file" multiple hidden
  accept=".zip,.txt,.md,.fountain,.srt,.vtt,.csv,.tsv,.json,.jsonl,.ndjson,text/*">
<template id="project-template">
  <li class="project-row"><button class="project-item" type="button">
    <span class="project-item-name" dir="auto"></span>
    <span class="project-item-about soft"></span></button>
    <button class="icon-button project-item-rename" type="button">{icon("pencil")}</button>
    <a class="icon-button project-item-export" download>{icon("download")}</a>
    <button class="icon-button project-item-delete" type="button">{icon("bin")}</button></li>
</template>
<template id="removed-template">
  <li class="project-row"><span class="project-item-name" dir="auto"></span>
    <span class="project-item-about soft"></span>
    <button class="button small" type="button">Restore</button></li>
</template>
"""
"""A part of the header, so that one row holds what is open and what speaks."""
