"""Samples that are in the library already: opened as a recording, trimmed, repaired, put back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studio.errors import NotFound, SampleRejected
from studio.speakers.speaker import Speaker
from studio.voices import Cut, Examined, Voices


@dataclass(frozen=True, slots=True)
class Mended:
    """What takes a sample's place.

    Attributes:
        cut: A part of the recording that `Mending.open` made of it, or all of that, unrepaired,
            which brings the sample back as it was.
        transcript: What is said in that part, when known.
    """

    cut: Cut
    transcript: str | None = None


class Mending:
    """Use cases of kept samples; methods may be called from any thread.

    Args of all: a speaker's id, and a sample's; None for the main one.
    """

    def __init__(self, voices: Voices) -> None:
        """Work on a library."""
        self._voices = voices

    def open(self, speaker_id: str, sample_id: str | None) -> Examined:
        """Make a recording of a sample, to look at, cut and hear; the sample stays as it is.

        Raises:
            NotFound: There is no such speaker or sample.
            SampleRejected: Its file is missing.
            AudioRejected: Its file can't be decoded.
        """
        speaker = self._voices.library.by_id(speaker_id)
        path = _sample_of(speaker, sample_id)
        if not path.is_file():
            raise SampleRejected(
                f"This sample of {speaker.name} can't be found. Choose a recording again."
            )
        upload = self._voices.take_in(path, speaker.name)
        return self._voices.examine(Cut(upload.upload_id))

    def put_back(self, speaker_id: str, sample_id: str | None, mended: Mended) -> Speaker:
        """Let a part of a recording take a sample's place; its mood and its consent stay.

        The library keeps the former recording, so that the sample can be brought back.

        Raises:
            NotFound: The speaker, the sample or the recording isn't there any more.
            SampleRejected: The part can't serve as a voice.
            StorageFailed: The library can't be written.
        """
        library = self._voices.library
        speaker = library.by_id(speaker_id)
        _sample_of(speaker, sample_id)
        report = self._voices.examine(mended.cut).report
        if report.fatal:
            raise SampleRejected(report.fatal.message)
        return library.replace_sample(
            speaker.name, sample_id, report.clip, transcript=mended.transcript
        )


def _sample_of(speaker: Speaker, sample_id: str | None) -> Path:
    paths = {one.sample_id: one.path for one in speaker.moods}
    path = speaker.sample if sample_id is None else paths.get(sample_id)
    if path is None:
        raise NotFound(f"This sample of {speaker.name} isn't there any more.")
    return path
