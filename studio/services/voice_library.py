"""The library of voices: record, check, clean up, keep, edit, import and export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Unpack

from studio.audio.clip import Clip
from studio.audio.repair import RepairedClip, repair
from studio.dialog.names import name_key
from studio.errors import BadInput, NotFound, SampleRejected
from studio.voices.library import SpeakerLibrary
from studio.voices.sample_checks import SampleReport, check_clip
from studio.voices.sample_uploads import SampleUpload, SampleUploads
from studio.voices.speaker import NEUTRAL, Speaker
from studio.voices.speaker_record import SpeakerDetails
from studio.voices.voice_pack import read_pack, write_pack


@dataclass(frozen=True, slots=True)
class TrimSpec:
    """The part of an upload that is meant; `end_s` None is the upload's end."""

    upload_id: str
    start_s: float = 0.0
    end_s: float | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class NewSample:
    """An upload's part that becomes a sample.

    Attributes:
        cut: What of which upload.
        consent: The person ticked that this voice may be cloned.
        mood: None or `NEUTRAL` for the speaker's main sample.
        transcript: What is said in it, when known.
    """

    cut: TrimSpec
    consent: bool
    mood: str | None = None
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class SampleCheck:
    """What stands against a part as a sample, and what a repair made of it, if one was asked.

    `clip` is all of the part, after the repair; `report.clip` is what a sample takes of it.
    """

    upload: SampleUpload
    clip: Clip
    report: SampleReport
    repair: RepairedClip | None


class VoiceLibrary:
    """Use cases of the speaker library; methods may be called from any thread."""

    def __init__(
        self,
        library: SpeakerLibrary,
        uploads: SampleUploads,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Serve a library; `now` dates the consent that is given."""
        self.library = library
        self.uploads = uploads
        self._now = now

    def take_in(self, path: Path, name: str) -> SampleUpload:
        """Decode a recording that arrived, see `SampleUploads.take_in`."""
        return self.uploads.take_in(path, name)

    def examine(self, cut: TrimSpec) -> SampleCheck:
        """Check a part of an upload, after a repair where the cut says so.

        Raises:
            NotFound: The upload isn't there any more.
            BadInput: The part is empty.
        """
        upload = self.uploads.get(cut.upload_id)
        part = self.uploads.part(cut.upload_id, cut.start_s, cut.end_s)
        if not cut.repaired:
            return SampleCheck(upload, part, check_clip(part, upload.info), None)
        mended = repair(part)
        return SampleCheck(upload, mended.clip, check_clip(mended.clip), mended)

    def sound(self, cut: TrimSpec) -> Clip:
        """What a cut sounds like.

        Raises:
            NotFound: The upload isn't there any more.
            BadInput: The part is empty.
        """
        part = self.uploads.part(cut.upload_id, cut.start_s, cut.end_s)
        return repair(part).clip if cut.repaired else part

    def add(self, name: str, take: NewSample | None, **details: Unpack[SpeakerDetails]) -> Speaker:
        """Put a speaker into the library, with a first sample or without one.

        A speaker who is there already without any voice of its own gets the sample.

        Raises:
            NameRejected: The name can't be used.
            SpeakerExists: The library has the name.
            BadInput: A detail can't be used, or the consent is missing.
            SampleRejected: The recording can't serve as a voice.
            NotFound: The upload isn't there any more.
        """
        known = self.library.find(name)
        if take is None:
            return self.library.add(name, **details)
        clip = self._checked(take)
        if known is not None and known.sample is None and not known.moods:
            speaker = self.library.set_sample(
                known.name, clip, transcript=take.transcript, consent_at=self._stamp()
            )
            changes = SpeakerDetails(**{key: one for key, one in details.items() if one})  # type: ignore[typeddict-item]
            speaker = self.library.update(known.name, **changes) if changes else speaker
        else:
            details["transcript"] = take.transcript
            details["consent_at"] = self._stamp()
            speaker = self.library.add(name, sample=clip, **details)
        self.uploads.drop(take.cut.upload_id)
        return speaker

    def add_sample(self, speaker_id: str, take: NewSample) -> Speaker:
        """Give a speaker a sample: its main one, or the one of a mood.

        The main one takes the place of an earlier one; the sample of a mood doesn't.

        Raises:
            NotFound: The speaker or the upload isn't there any more.
            BadInput: The consent is missing, or the mood can't be used.
            Conflict: The speaker has a sample of that mood.
            SampleRejected: The recording can't serve as a voice.
        """
        name = self.library.by_id(speaker_id).name
        clip = self._checked(take)
        given = {"transcript": take.transcript, "consent_at": self._stamp()}
        if take.mood is None or name_key(take.mood.strip()) == NEUTRAL:
            speaker = self.library.set_sample(name, clip, **given)
        else:
            speaker = self.library.add_mood(name, take.mood, clip, **given)
        self.uploads.drop(take.cut.upload_id)
        return speaker

    def save(self, speaker_id: str, file: BinaryIO) -> str:
        """Write a voice as one file; returns the speaker's name.

        Raises:
            NotFound: The speaker isn't there any more.
            SampleRejected: A recording of it is missing.
        """
        speaker = self.library.by_id(speaker_id)
        write_pack(self.library, speaker, file)
        return speaker.name

    def bring_in(self, file: BinaryIO) -> Speaker:
        """Put a voice from such a file into the library, see `read_pack`."""
        return read_pack(self.library, file)

    def consent_stamp(self, *, given: bool) -> str | None:
        """The time of a consent that is given now; None for one that is taken back."""
        return self._stamp() if given else None

    def _checked(self, take: NewSample) -> Clip:
        if not take.consent:
            raise BadInput("Tick that you may use this voice: it is yours, or its owner agreed.")
        report = self.examine(take.cut).report
        if report.fatal:
            raise SampleRejected(report.fatal.message)
        return report.clip

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True)
class SampleEdit:
    """What takes a sample's place.

    Attributes:
        cut: A part of the recording that `SampleEditor.open` made, or all of that, unrepaired,
            which brings the sample back as it was.
        transcript: What is said in that part, when known.
    """

    cut: TrimSpec
    transcript: str | None = None


class SampleEditor:
    """Use cases of kept samples; methods may be called from any thread.

    Args of all: a speaker's id, and a sample's; None for the main one.
    """

    def __init__(self, voices: VoiceLibrary) -> None:
        """Work on a library."""
        self._voices = voices

    def open(self, speaker_id: str, sample_id: str | None) -> SampleCheck:
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
        return self._voices.examine(TrimSpec(upload.upload_id))

    def put_back(self, speaker_id: str, sample_id: str | None, mended: SampleEdit) -> Speaker:
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
