"""The panel of a sample, new or kept: record or choose it, trim and repair it, and keep it."""

from __future__ import annotations

from studio.ui.icons import icon

SAMPLE_PANEL = f"""
<dialog id="sample-panel" class="sheet" aria-labelledby="sample-title">
  <header class="sheet-head">
    <h2 id="sample-title"></h2>
    <button class="icon-button sheet-close" type="button"
      aria-label="Close without adding">{icon("close")}</button>
  </header>
  <p class="sheet-message" role="alert" hidden></p>
  <form id="sample-form" novalidate>
    <div id="sample-new">
      <label for="speaker-name">Name in the script
        <input id="speaker-name" type="text" maxlength="200" dir="auto"
          autocomplete="off"></label>
      <fieldset id="sample-kinds" class="choices">
        <legend>Where the voice comes from</legend>
        <label><input type="radio" name="voice-kind" value="sample" checked> a recording</label>
        <label><input type="radio" name="voice-kind" value="preset"> the voice engine's own</label>
        <label><input type="radio" name="voice-kind" value="described"> a description</label>
        <label><input type="radio" name="voice-kind" value="built-in"> left to the engine</label>
      </fieldset>
      <label for="sample-preset" data-kind="preset">Voice of the engine
        <select id="sample-preset"></select></label>
      <label for="sample-manner" data-kind="preset" hidden>How it speaks
        <textarea id="sample-manner" rows="2" dir="auto"
          placeholder="calmly, with a smile"></textarea></label>
      <label for="sample-description" data-kind="described">The voice in words
        <textarea id="sample-description" rows="3" dir="auto"
          placeholder="An old sailor, hoarse and slow"></textarea></label>
    </div>
    <div id="sample-recording" data-kind="sample">
      <div id="sample-source"></div>
      <p id="sample-state" class="soft" role="status"></p>
      <div id="sample-editor" hidden>
        <div id="sample-wave" class="wave" role="group" aria-label="Waveform">
          <canvas aria-hidden="true"></canvas>
          <div class="wave-handle wave-start" role="slider" tabindex="0"
            aria-label="Start of the sample"></div>
          <div class="wave-handle wave-end" role="slider" tabindex="0"
            aria-label="End of the sample"></div>
        </div>
        <div class="sheet-row">
          <button id="sample-listen" class="button small" type="button" aria-pressed="false">
            <span class="when-paused">{icon("play")} Listen</span>
            <span class="when-playing">{icon("pause")} Stop</span></button>
          <button id="sample-repair" class="button small" type="button"
            aria-pressed="false">Repair</button>
          <span id="sample-range" class="soft"></span>
        </div>
        <div id="sample-repaired" hidden>
          <div id="sample-wave-after" class="wave" role="img"
            aria-label="Waveform after the repair">
            <canvas aria-hidden="true"></canvas></div>
          <p id="sample-steps" class="soft"></p>
        </div>
        <table id="sample-figures">
          <caption class="visually-hidden">The recording in figures</caption>
          <thead><tr><th scope="col"></th><th scope="col">as it is</th>
            <th scope="col" class="after">repaired</th></tr></thead>
          <tbody></tbody>
        </table>
        <ul id="sample-problems" class="plain" aria-label="What was found" aria-live="polite"></ul>
        <div class="sheet-grid">
          <label id="sample-mood-label" for="sample-mood">Mood
            <input id="sample-mood" type="text" maxlength="60" dir="auto" autocomplete="off"
              placeholder="such as angry or whispering"></label>
          <label id="sample-language-label" for="sample-language">Language
            <input id="sample-language" type="text" maxlength="100" list="voice-languages"
              placeholder="such as en or pt-BR" autocomplete="off"></label>
          <label class="wide" for="sample-transcript">What is said in it, if you know
            <textarea id="sample-transcript" rows="2" dir="auto"></textarea></label>
          <label class="wide" for="sample-sentence">Try it with a sentence of your own
            <textarea id="sample-sentence" rows="2" dir="auto"></textarea></label>
        </div>
        <div class="sheet-row">
          <button id="sample-preview" class="button small" type="button" aria-pressed="false">
            <span class="when-paused">{icon("play")} Hear the voice</span>
            <span class="when-playing">{icon("pause")} Stop</span></button>
        </div>
        <label id="sample-consent-label" class="check" for="sample-consent">
          <input id="sample-consent" type="checkbox">
          <span>I may use this voice: it is mine, or its owner agreed to have it cloned.</span>
        </label>
      </div>
    </div>
    <div class="sheet-end">
      <button id="speaker-add" class="button primary">Add this voice</button>
    </div>
  </form>
</dialog>
<template id="source-template">
  <div class="source">
    <button class="button source-choose" type="button">Choose a file</button>
    <input class="source-file" type="file" accept="audio/*,video/webm,.m4a" hidden>
    <button class="button source-record" type="button" aria-pressed="false">
      <span class="source-dot" aria-hidden="true"></span>
      <span class="source-word">Record</span></button>
    <span class="source-live" hidden><span class="source-time"></span>
      <meter class="source-meter" min="0" max="1" low="0.3" high="0.95" optimum="0.6"
        aria-label="Loudness"></meter></span>
    <span class="source-hint soft">or drop a file here</span>
  </div>
</template>
<template id="found-template">
  <li class="found"><span class="found-sign" aria-hidden="true"></span>
    <span class="found-text"></span></li>
</template>
"""
