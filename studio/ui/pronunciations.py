"""The dialog of a project's pronunciations, and where the panels lead to it."""

from __future__ import annotations

from studio.ui.icons import icon

PRONUNCIATIONS = f"""
<dialog id="pronunciations" class="sheet" aria-labelledby="pronunciations-title">
  <div class="sheet-head">
    <h2 id="pronunciations-title">Pronunciations</h2>
    <span id="pronunciations-count" class="soft" role="status"></span>
    <button id="pronunciations-close" class="icon-button" type="button"
      aria-label="Close pronunciations">{icon("close")}</button>
  </div>
  <p class="soft">What a voice says in place of a word. The script stays as it is written, and so
    do captions and files of it.</p>
  <form id="pronunciation-new" autocomplete="off">
    <label>Written <input id="pronunciation-written" type="text" maxlength="200" dir="auto"
      spellcheck="false" autocomplete="off"></label>
    <label>Spoken <input id="pronunciation-spoken" type="text" maxlength="200" dir="auto"
      spellcheck="false" autocomplete="off" placeholder="left out"></label>
    <label class="pronunciation-check"><input id="pronunciation-case" type="checkbox"> Match
      case</label>
    <div class="pronunciation-acts">
      <button id="pronunciation-hear" class="icon-button" type="button" aria-pressed="false"
        aria-label="Hear the new one">
        <span class="when-paused">{icon("play")}</span>
        <span class="when-playing">{icon("pause")}</span></button>
      <button id="pronunciation-add" class="button primary" type="submit">Add</button>
    </div>
  </form>
  <p id="pronunciation-reach" class="soft" role="status" dir="auto"></p>
  <p id="pronunciation-problem" role="alert" dir="auto" hidden></p>
  <div class="pronunciation-tools">
    <label>Hear them in the voice of <select id="pronunciation-voice"></select></label>
    <input id="pronunciation-search" type="text" aria-label="Search pronunciations"
      placeholder="Search" autocomplete="off" dir="auto" hidden>
    <span class="pronunciation-files">
      <button id="pronunciation-import" class="button small" type="button">Import</button>
      <a id="pronunciation-csv" class="button small" download>Save as CSV</a>
      <a id="pronunciation-text" class="button small" download>Save as text</a>
    </span>
    <input id="pronunciation-file" type="file" accept=".csv,.tsv,.txt,.json,text/*" hidden
      aria-label="File of pronunciations">
  </div>
  <table id="pronunciation-table" aria-labelledby="pronunciations-title" hidden>
    <thead><tr><th scope="col">On</th><th scope="col">Written</th><th scope="col">Spoken</th>
      <th scope="col">Match case</th><th scope="col">Lines</th>
      <th scope="col"><span class="visually-hidden">Hear or remove</span></th></tr></thead>
    <tbody id="pronunciation-rows"></tbody>
  </table>
  <button id="pronunciation-more" class="button small" type="button" hidden></button>
  <p id="pronunciation-none" class="soft" hidden>No pronunciation matches. Change the search.</p>
</dialog>
<template id="pronunciation-template">
  <tr>
    <td class="cell-on"><input class="entry-on" type="checkbox" title="On"></td>
    <td class="cell-written"><input class="entry-written" type="text" maxlength="200" dir="auto"
      spellcheck="false" autocomplete="off"></td>
    <td class="cell-spoken"><input class="entry-spoken" type="text" maxlength="200" dir="auto"
      spellcheck="false" autocomplete="off" placeholder="left out">
      <span class="entry-hint" dir="auto" hidden></span></td>
    <td class="cell-case"><input class="entry-case" type="checkbox"
      title="Match case"></td>
    <td class="cell-lines"><span class="entry-lines"></span></td>
    <td class="cell-acts">
      <button class="icon-button entry-hear" type="button" aria-pressed="false">
        <span class="when-paused">{icon("play")}</span>
        <span class="when-playing">{icon("pause")}</span></button>
      <button class="icon-button entry-remove" type="button">{icon("bin")}</button></td>
  </tr>
</template>
"""
"""Stands in the header's part, which every width shows; pronunciation_list.js fills it."""

OPEN_IN_CAST = """
<button id="pronunciations-open" class="button small" type="button" aria-haspopup="dialog"
  title="How words are said (F8)">Pronunciations <span id="pronunciations-open-count"
  class="soft"></span></button>
"""

OF_A_LINE = """
<div id="pronounce-part" hidden>
  <p id="line-spoken" hidden><span class="soft">Spoken:</span> <span id="line-spoken-text"
    dir="auto"></span></p>
  <button id="line-pronounce" class="button small" type="button" aria-haspopup="dialog"
    title="Say the marked word otherwise (F8)">Say a word otherwise</button>
</div>
"""
