"""The one function that programs call by Gradio's own client: a text, spoken."""

from __future__ import annotations

import base64
from dataclasses import dataclass

import gradio as gr

from studio.audio.encode import AudioFormat, encode
from studio.dialog.line_text import paragraph
from studio.dialog.model import Dialog, Speech
from studio.dialog.names import clean_name
from studio.errors import BadInput, StudioError
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio

MAX_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class SpeakHandler:
    """A text in, a WAV out; nothing of it stays on the server."""

    studio: Studio

    def speak(self, text: str, voice: str = "Narrator", seed: int | None = None) -> str:
        """Speak a text with a speaker of the library, or with a built-in voice of any name.

        Args:
            text: What is said, at most 5,000 characters.
            voice: A speaker's name.
            seed: Same seed, same sound.

        Returns:
            A WAV as a data URL.
        """
        try:
            return self._spoken(text, voice, seed)
        except StudioError as error:
            raise gr.Error(str(error)) from error

    def _spoken(self, text: str, voice: str, seed: int | None) -> str:
        if len(text) > MAX_CHARS:
            raise BadInput(f"The text has {len(text):,} characters; {MAX_CHARS:,} are the most.")
        name = clean_name(voice)
        dialog = Dialog((Speech(name, paragraph(text), line_number=1),))
        reading = SpeechStream(self.studio, dialog, SpeechOptions(seed=seed))
        try:
            data = encode(reading.clip(), AudioFormat.WAV)
        finally:
            reading.close()
        return f"data:audio/wav;base64,{base64.b64encode(data).decode()}"


def offer(studio: Studio) -> None:
    """Offer it as `/speak`; inside the page's Blocks."""
    gr.api(SpeakHandler(studio).speak, api_name="speak", concurrency_limit=16)
