"""The functions that programs call through Gradio's own client.

A file that a function returns has a key in place of a path of this machine, and Gradio leaves it
where it is. A file that a program sends doesn't get here: the server stores it, and puts the
recording's id in its place.
"""
# Gradio reads the annotations, as types: so no `from __future__ import annotations` here.

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import gradio as gr
from gradio.context import get_blocks_context

from studio.audio.formats import FileSuffix
from studio.errors import BadInput, StudioError
from studio.server.program_calls import ProgramCalls
from studio.services.spoken_files import SpokenFile

CONCURRENCY = 16


class GradioFunctions:
    """The functions; a refusal of the studio reaches the caller in its words."""

    def __init__(self, calls_of_caller: Callable[[], ProgramCalls]) -> None:
        """Find the calls of each caller anew; that raises `NotAllowed` if there are none."""
        self._calls = calls_of_caller

    async def speak(
        self, text: str, voice: str = "Narrator", seed: int | None = None
    ) -> gr.FileData:
        """Speak a text as a WAV.

        Args:
            text: At most 5,000 characters.
            voice: One of /voices, or any name where the engine has a built-in voice.
            seed: The same seed gives the same audio.

        Returns:
            The audio.
        """
        with _refusals():
            _check_texts(text=text, voice=voice)
            return _file_data(await self._calls().speak(text, voice, _read_seed(seed)))

    async def dialog(
        self,
        script: str,
        voices: str = "",
        seed: int | None = None,
        loudness: str = "rendered",
        audio_format: FileSuffix = "wav",
    ) -> tuple[gr.FileData, dict]:
        """Read a script as the studio does and render it as one audio file.

        Args:
            script: A line each as "Name: text", or any text that the studio imports.
            voices: A line each as "Name = Voice"; other names find their own voice.
            seed: For lines without a seed. The same seed gives the same audio.
            loudness: "rendered", "podcast", "audiobook", "broadcast", or a number of LUFS.
            audio_format: The file's.

        Returns:
            The audio, and how it went: `lines`, `audio_s`, `failed`, `notices`.
        """
        with _refusals():
            _check_texts(script=script, voices=voices, loudness=loudness, audio_format=audio_format)
            made = await self._calls().render(
                script,
                voices=_read_voices(voices),
                seed=_read_seed(seed),
                loudness=loudness,
                audio_format=audio_format,
            )
            about = {
                "lines": made.lines,
                "audio_s": round(made.audio_s, 3),
                "failed": list(made.failed),
                "notices": list(made.notices),
            }
            return _file_data(made.file), about

    def voices(self) -> list[dict]:
        """List the voices: the library's speakers, and those of the voice engine.

        Returns:
            `id`, `name`, `kind` ("speaker" or "preset") and `languages` of each.
        """
        with _refusals():
            return self._calls().list_voices()

    def add_voice(
        self, recording: gr.FileData, name: str, consent: bool = False, transcript: str = ""
    ) -> str:
        """Add a voice to the library from a recording.

        Args:
            recording: Some seconds of one person speaking, in any usual format.
            name: The voice's name.
            consent: Whether the voice is yours, or its owner agreed.
            transcript: What the recording says, if you know.

        Returns:
            The voice's name.
        """
        with _refusals():
            _check_texts(name=name, transcript=transcript)
            return self._calls().add_voice(
                _id_of(recording), name, consent=consent, transcript=transcript
            )

    def loudness(
        self, recording: gr.FileData, target: str = "podcast", audio_format: FileSuffix = "wav"
    ) -> tuple[gr.FileData, dict]:
        """Measure a recording's loudness and bring it to another.

        Args:
            recording: In any usual format.
            target: "podcast", "audiobook", "broadcast", "rendered", or a number of LUFS.
            audio_format: The file's.

        Returns:
            The audio, in mono; and `before` and `after`: `lufs`, `true_peak_db`, `rms_db` and more.
        """
        with _refusals():
            _check_texts(target=target, audio_format=audio_format)
            made, before, after = self._calls().change_loudness(
                _id_of(recording), target, audio_format
            )
            return _file_data(made), {"before": asdict(before), "after": asdict(after)}


def offer_functions(calls_of_caller: Callable[[], ProgramCalls]) -> None:
    """Register them under their names; to be called inside the page's Blocks."""
    functions = GradioFunctions(calls_of_caller)
    for function in (
        functions.speak,
        functions.dialog,
        functions.voices,
        functions.add_voice,
        functions.loudness,
    ):
        gr.api(function, api_name=function.__name__, concurrency_limit=CONCURRENCY)
    page = get_blocks_context()
    for registered in page.fns.values():
        for block in registered.outputs:
            # Gradio would copy a file that the function names, and answer with the copy's path.
            block.async_move_resource_to_block_cache = _leave_in_place


async def _leave_in_place(path: str) -> str:
    return path


def _file_data(made: SpokenFile) -> dict[str, Any]:
    """A file as Gradio's client and `gr.Audio` take it."""
    return {
        "path": made.address,
        "orig_name": made.path.name,
        "size": made.path.stat().st_size,
        "mime_type": made.media_type,
        "meta": {"_type": "gradio.FileData"},
    }


def _id_of(recording: Any) -> str:
    if not isinstance(recording, str):
        raise BadInput("Send the recording as a file, such as handle_file('voice.wav').")
    return recording


def _check_texts(**given: object) -> None:
    """Check arguments that are texts, as Gradio passes on whatever is sent."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise BadInput(f"The argument {name} is a text; {value!r:.40} can't be used.")


def _read_seed(seed: object) -> int | None:
    if isinstance(seed, float) and seed.is_integer():  # as JavaScript may write it
        seed = int(seed)
    if seed is not None and not isinstance(seed, int):
        raise BadInput(f"The seed {seed!s:.40} can't be used: write a whole number from 0 up.")
    return seed


def _read_voices(written: str) -> Mapping[str, str]:
    voices = {}
    for row in filter(None, map(str.strip, written.splitlines())):
        name, sign, voice = row.partition("=")
        if not (sign and name.strip() and voice.strip()):
            raise BadInput(f"“{row[:60]}” names no voice. Write a line each as Name = Voice.")
        voices[name.strip()] = voice.strip()
    return voices


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except StudioError as error:
        raise gr.Error(str(error), print_exception=False) from error
