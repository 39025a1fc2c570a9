"""The panel of one voice: its details, its samples by mood, hearing it, acting for it."""

from __future__ import annotations

from studio.ui.icons import icon

VOICE_PANEL = f"""
<dialog id="voice-panel" class="sheet" aria-labelledby="voice-title">
  <header class="sheet-head">
    <span class="swatch" aria-hidden="true"></span>
    <h2 id="voice-title" dir="auto" tabindex="-1"></h2>
    <button class="icon-button sheet-close" type="button"
      aria-label="Close this voice">{icon("close")}</button>
  </header>
  <p class="sheet-message" role="alert" hidden></p>
  <section aria-labelledby="voice-samples-title">
    <div class="pane-head"><h3 id="voice-samples-title">Samples</h3>
      <button id="voice-sample-add" class="button small" type="button"
        aria-haspopup="dialog">{icon("plus")} Add a sample</button></div>
    <ul id="voice-samples" class="plain" aria-label="Samples of this voice"></ul>
    <p id="voice-own" class="soft"></p>
    <div id="voice-gone" hidden>
      <h4 id="voice-gone-title">Removed samples</h4>
      <ul id="voice-gone-list" class="plain" aria-labelledby="voice-gone-title"></ul>
    </div>
    <p id="voice-mood-hint" class="soft">A line names its mood like this:
      <code id="voice-mood-example" dir="auto"></code></p>
  </section>
  <section aria-labelledby="voice-preview-title">
    <h3 id="voice-preview-title">Hear it</h3>
    <div class="sheet-row">
      <label class="grow" for="voice-sentence">A sentence of your own
        <textarea id="voice-sentence" rows="2" dir="auto"></textarea></label>
      <label for="voice-preview-mood">Mood
        <select id="voice-preview-mood"></select></label>
      <button id="voice-preview" class="button" type="button" aria-pressed="false">
        <span class="when-paused">{icon("play")} Listen</span>
        <span class="when-playing">{icon("pause")} Stop</span></button>
    </div>
  </section>
  <section id="voice-act" aria-labelledby="voice-act-title" hidden>
    <h3 id="voice-act-title">Act a line</h3>
    <p class="soft">Say a line yourself; it is said again in this voice, with your timing.</p>
    <div id="voice-act-source"></div>
    <p id="voice-act-state" class="soft" role="status"></p>
    <div id="voice-acted" class="sheet-row" hidden>
      <button id="voice-act-listen" class="button" type="button" aria-pressed="false">
        <span class="when-paused">{icon("play")} Listen</span>
        <span class="when-playing">{icon("pause")} Stop</span></button>
      <a id="voice-act-save" class="button">{icon("download")} Save the line</a>
    </div>
    <button id="voice-act-stop" class="button" type="button" hidden>Stop</button>
  </section>
  <section aria-labelledby="voice-details-title">
    <h3 id="voice-details-title">Details</h3>
    <form id="voice-details" class="sheet-grid">
      <label for="voice-name">Name in the script
        <input id="voice-name" type="text" maxlength="200" dir="auto" autocomplete="off"></label>
      <label for="voice-language">Language
        <input id="voice-language" type="text" maxlength="100" list="voice-languages"
          placeholder="such as en or pt-BR" autocomplete="off"></label>
      <label class="wide" for="voice-labels">Tags, with commas between them
        <input id="voice-labels" type="text" maxlength="700" dir="auto" autocomplete="off"
          placeholder="old, northern, narrator"></label>
      <label class="wide" for="voice-preset" hidden>Voice of the engine
        <select id="voice-preset"></select></label>
      <label class="wide" for="voice-description" hidden><span
          id="voice-description-word">The voice in words</span>
        <textarea id="voice-description" rows="2" dir="auto"></textarea></label>
      <label for="voice-colour">Colour
        <input id="voice-colour" type="color"></label>
      <div class="sheet-end"><button id="voice-save" class="button primary">Save</button></div>
    </form>
    <datalist id="voice-languages"></datalist>
  </section>
  <footer class="sheet-foot">
    <a id="voice-export" class="button" download>{icon("download")} Save as a voice file</a>
    <button id="voice-remove" class="button danger" type="button">Remove this voice</button>
  </footer>
</dialog>
<template id="gone-template">
  <li class="gone"><span class="gone-name" dir="auto"></span>
    <span class="gone-day soft"></span>
    <button class="button small gone-back" type="button">Restore</button>
    <button class="icon-button gone-away" type="button">{icon("bin")}</button></li>
</template>
<template id="sample-template">
  <li class="sample">
    <div class="sample-head">
      <button class="icon-button sample-listen" type="button" aria-pressed="false">
        <span class="when-paused">{icon("play")}</span>
        <span class="when-playing">{icon("pause")}</span></button>
      <span class="sample-main">main</span>
      <input class="sample-mood" type="text" maxlength="60" dir="auto">
      <span class="sample-length soft"></span>
      <button class="button small sample-undo" type="button" hidden>Undo</button>
      <button class="button small sample-mend" type="button"
        aria-haspopup="dialog">Trim or repair</button>
      <button class="icon-button sample-remove" type="button">{icon("bin")}</button>
    </div>
    <textarea class="sample-transcript" rows="2" dir="auto"
      placeholder="What is said in it, if you know"></textarea>
    <label class="check"><input class="sample-consent" type="checkbox">
      <span class="sample-consent-text"></span></label>
  </li>
</template>
"""
