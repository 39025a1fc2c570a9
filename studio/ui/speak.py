"""The function that programs call through Gradio's own client: it speaks a text."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

import gradio as gr

from studio.audio.encode import AudioFormat, encode
from studio.dialog.model import Dialog, Speech, clean_name, paragraph
from studio.errors import BadInput, StudioError
from studio.services.speech_requests import SpeechOptions, SpeechStream
from studio.services.studio import Studio

MAX_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class SpeakHandler:
    """Speaks a text as a WAV; the server stores nothing of it.

    Attributes:
        studio_of_caller: Finds the caller's studio; raises `NotAllowed` if there is none.
    """

    studio_of_caller: Callable[[], Studio]

    def speak(self, text: str, voice: str = "Narrator", seed: int | None = None) -> str:
        """Speak a text with a speaker of the library, or with a built-in voice of any name.

        Args:
            text: At most 5,000 characters.
            voice: A speaker's name.
            seed: The same seed gives the same audio.

        Returns:
            A WAV as a data URL.
        """
        try:
            return self._render_data_url(text, voice, seed)
        except StudioError as error:
            raise gr.Error(str(error)) from error

    def _render_data_url(self, text: str, voice: str, seed: int | None) -> str:
        if len(text) > MAX_CHARS:
            raise BadInput(f"The text has {len(text):,} characters; {MAX_CHARS:,} are the most.")
        name = clean_name(voice)
        dialog = Dialog((Speech(name, paragraph(text), line_number=1),))
        reading = SpeechStream(
            self.studio_of_caller(), dialog, SpeechOptions(seed=seed), needs_files=False
        )
        try:
            data = encode(reading.clip(), AudioFormat.WAV)
        finally:
            reading.render.close()
        return f"data:audio/wav;base64,{base64.b64encode(data).decode()}"


def offer_speak(studio_of_caller: Callable[[], Studio]) -> None:
    """Register it as `/speak`; to be called inside the page's Blocks."""
    gr.api(SpeakHandler(studio_of_caller).speak, api_name="speak", concurrency_limit=16)
