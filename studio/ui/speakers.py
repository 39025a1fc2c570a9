"""The speaker-sample manager: the cast of the dialog, the library, and adding a sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from studio.errors import StudioError
from studio.service import Studio
from studio.ui.icons import icon
from studio.ui.notify import Message, message_for

_CAST = f"""
<section id="cast-view" class="pane" aria-labelledby="cast-title">
  <div class="pane-head"><h2 id="cast-title">Cast</h2></div>
  <ul id="cast" class="plain" aria-label="Speakers of this dialog"></ul>
  <div class="pane-head"><h2 id="library-title">Voices</h2></div>
  <ul id="library" class="plain" aria-labelledby="library-title"></ul>
  <p id="library-empty" class="soft" hidden>No samples yet. Add a recording of a voice, 5 to 20
    seconds long, and every line of that name is read with it.</p>
  <div class="pane-head"><h2>Add a voice</h2></div>
</section>
<template id="cast-template">
  <li class="voice">
    <span class="swatch" aria-hidden="true"></span>
    <div class="voice-body">
      <div class="voice-head"><span class="voice-name" dir="auto"></span>
        <span class="voice-kind soft"></span></div>
      <select class="voice-choice"></select></div>
    <button class="button small voice-add" type="button">Add a sample</button>
  </li>
</template>
<template id="voice-template">
  <li class="voice">
    <span class="swatch" aria-hidden="true"></span>
    <div class="voice-body"><span class="voice-name" dir="auto"></span>
      <span class="voice-kind soft"></span></div>
    <form class="voice-rename" hidden><input type="text" maxlength="80" dir="auto">
      <button class="button small">Save</button></form>
    <button class="icon-button voice-listen" type="button" aria-pressed="false">
      <span class="when-paused">{icon("play")}</span>
      <span class="when-playing">{icon("pause")}</span></button>
    <button class="icon-button voice-edit" type="button">{icon("pencil")}</button>
    <button class="icon-button voice-remove" type="button">{icon("bin")}</button>
  </li>
</template>
<dialog id="confirm" aria-labelledby="confirm-title">
  <h2 id="confirm-title"></h2>
  <p id="confirm-text"></p>
  <form method="dialog" class="panel-row">
    <button class="button" value="keep">Keep</button>
    <button class="button danger" value="remove">Remove</button>
  </form>
</dialog>
"""

# Shows the message and answers what the form holds from here on.
_TELL = "(outcome, ...form) => window.tableread.speakerOutcome(outcome, form)"


@dataclass(frozen=True, slots=True)
class SpeakersPart:
    """The form for a new speaker; the lists are filled by speakers.js."""

    name: gr.Textbox
    recording: gr.Audio
    transcript: gr.Textbox
    add: gr.Button
    outcome: gr.JSON


@dataclass(frozen=True, slots=True)
class SpeakerHandlers:
    """Values in, call the studio, a message out."""

    studio: Studio

    def add_speaker(self, *, name: str, recording: str | None, transcript: str) -> dict[str, Any]:
        """Add a speaker from the form; a rejection comes back as a message, the form stays."""
        try:
            _, report = self.studio.add_speaker(
                name, Path(recording) if recording else None, transcript.strip() or None
            )
        except StudioError as error:
            return asdict(message_for(error))
        doubts = [problem.message for problem in report.problems] if report else []
        return asdict(Message("done", f"{name.strip()} has a voice.", " ".join(doubts)))


def build(studio: Studio) -> SpeakersPart:
    """Place the manager and wire its form."""
    gr.HTML(html_template=_CAST, js_on_load=None, apply_default_css=False, elem_id="part-cast")
    part = _form()
    form = {
        "name": part.name,
        "recording": part.recording,
        "transcript": part.transcript,
    }
    part.add.click(
        SpeakerHandlers(studio).add_speaker,
        inputs_kwargs=form,
        outputs=part.outcome,
        api_visibility="private",
        show_progress="minimal",
    ).then(
        None,
        inputs=[part.outcome, *form.values()],
        outputs=[*form.values()],
        js=_TELL,
        api_visibility="private",
    )
    return part


def _form() -> SpeakersPart:
    with gr.Column(elem_id="add-speaker"):
        return SpeakersPart(
            name=gr.Textbox(label="Name in the script", max_lines=1, elem_id="speaker-name"),
            recording=gr.Audio(
                label="Recording",
                sources=["upload", "microphone"],
                type="filepath",
                buttons=[],
                elem_id="speaker-recording",
            ),
            transcript=gr.Textbox(
                label="What is said in it, if you know",
                lines=2,
                max_lines=4,
                elem_id="speaker-transcript",
            ),
            add=gr.Button("Add this voice", variant="primary", elem_id="speaker-add"),
            outcome=gr.JSON(visible="hidden", elem_id="speaker-outcome"),
        )
