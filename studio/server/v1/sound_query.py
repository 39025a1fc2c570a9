"""What `/v1/dialogs/{id}/audio` can be asked for, as `render` and the page can."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from studio.audio.export import FILE_NAMES
from studio.audio.formats import AudioFormat
from studio.audio.mastering import Mastering
from studio.audio.scene_file import ExportOptions


class SoundQuery(BaseModel):
    """A file of the finished dialog."""

    model_config = ConfigDict(populate_by_name=True)

    audio_format: AudioFormat = Field(AudioFormat.WAV, alias="format")
    zipped: Literal["lines", "tracks"] | None = Field(
        None,
        alias="zip",
        description="A zip in the place of one file: `lines` has a WAV for each line, `tracks` one "
        "for each speaker and a project for Reaper.",
    )
    title: str = Field(
        "", max_length=200, description="In the file's tags; empty for the script's own."
    )
    bitrate: int | None = Field(
        None, description="Of MP3, M4A, M4B and Opus: 64, 96, 128 or 192 kbit/s."
    )
    names: str = Field(
        FILE_NAMES,
        max_length=100,
        description="Of a zip's files, from `{number}`, `{segment}`, `{id}`, `{file}`, `{speaker}` "
        "and `{words}`; `/` makes folders.",
    )
    podcast: bool = Field(
        False, description="Whether a zip has chapters and transcript as podcasts have them."
    )
    captions: bool = Field(False, description="Whether a zip has `scene.srt` and `scene.vtt`.")

    @property
    def streamed(self) -> AudioFormat | None:
        """The format of audio that is sent while it is encoded; None for a file."""
        is_file = self.zipped is not None or self.audio_format.encoding.is_file
        return None if is_file else self.audio_format

    @property
    def suffix(self) -> str:
        return "zip" if self.zipped else self.audio_format.value

    @property
    def media_type(self) -> str:
        return "application/zip" if self.zipped else self.audio_format.encoding.media_type

    def to_options(self, mastering: Mastering) -> ExportOptions:
        """The same as export options."""
        return ExportOptions(
            mastering,
            tracks=self.zipped == "tracks",
            kbps=self.bitrate,
            names=self.names,
            podcast=self.podcast,
            captions=self.captions,
        )
