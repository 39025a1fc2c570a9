"""Use cases of the speaker library: check a recording, repair it, save it as a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from studio.audio.analysis import measure_levels
from studio.audio.clip import Clip
from studio.audio.repair import RepairedClip, repair
from studio.dialog.model import name_key
from studio.errors import BadInput, NotFound, SampleRejected
from studio.hearing.voice_turns import Embed, measure_voices
from studio.voices.library import SpeakerLibrary
from studio.voices.samples import SampleReport, SampleUpload, SampleUploads, check_clip
from studio.voices.speaker import NEUTRAL, Speaker
from studio.voices.speaker_record import SpeakerDetails
from studio.voices.speaker_store import Clock, get_utc_now

_DENOISED = "noise taken out, and with it what lay above 8 kHz"


@dataclass(frozen=True, slots=True)
class TrimSpec:
    """A part of an upload; `end_s` None is the upload's end. Noise is taken out before a repair."""

    upload_id: str
    start_s: float = 0.0
    end_s: float | None = None
    repaired: bool = False
    denoised: bool = False


@dataclass(frozen=True, slots=True)
class NewSample:
    """A part of an upload that becomes a sample.

    Attributes:
        cut: The part.
        consent: Whether the user ticked that this voice may be cloned.
        mood: None or `NEUTRAL` for the speaker's main sample.
        transcript: The words in it, if known.
    """

    cut: TrimSpec
    consent: bool
    mood: str | None = None
    transcript: str | None = None


@dataclass(frozen=True, slots=True)
class SampleCheck:
    """The check of a part as a sample, and what was done to it if that was asked for.

    `clip` is the whole part after the repair; `report.clip` is what a sample uses of it. Denoising
    counts as a step of the repair.
    """

    upload: SampleUpload
    clip: Clip
    report: SampleReport
    repair: RepairedClip | None


class VoiceLibrary:
    """Use cases of the speaker library; safe from any thread."""

    def __init__(
        self,
        library: SpeakerLibrary,
        uploads: SampleUploads,
        *,
        now: Clock = get_utc_now,
        find_colour: Callable[[str], str | None] = lambda _name: None,
        denoise: Callable[[Clip], Clip] | None = None,
        embed: Embed | None = None,
    ) -> None:
        """Serve a library.

        Args:
            library: The voices.
            uploads: Recordings that were sent.
            now: The clock for the date of a consent.
            find_colour: The colour that a name has in a scene already, which its voice gets.
            denoise: Takes the noise out of a recording; None where that isn't offered.
            embed: A recording's voiceprint, by which several people in one are told apart;
                where it knows none, pitch tells.
        """
        self.library = library
        self.uploads = uploads
        self._now = now
        self._find_colour = find_colour
        self._denoise = denoise
        self._embed: Embed = embed or (lambda _clip: None)

    @property
    def denoises(self) -> bool:
        return self._denoise is not None

    def examine(self, cut: TrimSpec) -> SampleCheck:
        """Check a part of an upload, after what the cut asks to be done to it.

        Raises:
            BadInput: The part is empty, or can't be denoised here.
        """
        upload = self.uploads.get(cut.upload_id)
        part = self._read_original(cut)
        mended = self._mend(part, cut)
        clip = mended.clip if mended else part
        # A repair takes away what the recording's form says of it.
        info = None if cut.repaired else upload.info
        report = check_clip(clip, info, count_voices=lambda one: measure_voices(one, self._embed))
        return SampleCheck(upload, clip, report, mended)

    def cut_clip(self, cut: TrimSpec) -> Clip:
        """The audio of a part of an upload."""
        part = self._read_original(cut)
        mended = self._mend(part, cut)
        return mended.clip if mended else part

    def _read_original(self, cut: TrimSpec) -> Clip:
        return self.uploads.read_part(cut.upload_id, cut.start_s, cut.end_s)

    def _mend(self, part: Clip, cut: TrimSpec) -> RepairedClip | None:
        """Denoise and repair a part; None if neither is asked for."""
        if not cut.denoised:
            return repair(part) if cut.repaired else None
        if self._denoise is None:
            raise BadInput("Noise can't be taken out here. Record again in a quieter place.")
        before = measure_levels(part)
        clean = self._denoise(part)
        steps: tuple[str, ...] = (_DENOISED,)
        if cut.repaired:
            mended = repair(clean)
            clean, steps = mended.clip, (*steps, *mended.steps)
        return RepairedClip(clean, steps, before, measure_levels(clean))

    def add(self, name: str, take: NewSample | None, **details: Unpack[SpeakerDetails]) -> Speaker:
        """Add a speaker to the library, with or without a first sample.

        A speaker of that name who has no voice yet gets the sample.

        Raises:
            BadInput: A detail is invalid, or the consent is missing.
        """
        known = self.library.find(name)
        if known is None and not details.get("colour") and (colour := self._find_colour(name)):
            details["colour"] = colour
        if take is None:
            return self.library.add(name, **details)
        clip = self._check_sample(take)
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
        return self._keep_original(speaker, None, take.cut)

    def _keep_original(self, speaker: Speaker, sample_id: str | None, cut: TrimSpec) -> Speaker:
        """Keep the recording beside its denoised part for good, and drop the upload."""
        if cut.denoised:
            original = self._read_original(cut)
            speaker = self.library.keep_original(speaker.name, sample_id, original)
        self.uploads.drop(cut.upload_id)
        return speaker

    def add_sample(self, speaker_id: str, take: NewSample) -> Speaker:
        """Add a sample to a speaker: the main one, or that of a mood.

        A main sample replaces the earlier one; the sample of a mood doesn't.

        Raises:
            BadInput: The consent is missing, or the mood is invalid.
        """
        name, sample_id = self.library.get_by_id(speaker_id).name, None
        clip = self._check_sample(take)
        given = {"transcript": take.transcript, "consent_at": self._stamp()}
        if take.mood is None or name_key(take.mood.strip()) == NEUTRAL:
            speaker = self.library.set_sample(name, clip, **given)
        else:
            speaker = self.library.add_mood(name, take.mood, clip, **given)
            sample_id = speaker.moods[-1].sample_id
        return self._keep_original(speaker, sample_id, take.cut)

    def open_sample(self, speaker_id: str, sample_id: str | None) -> SampleCheck:
        """Open a sample as an upload that can be trimmed and played; the sample doesn't change.

        Args:
            speaker_id: The speaker.
            sample_id: None for the main one.

        Raises:
            NotFound: There is no such speaker or sample.
            SampleRejected: Its file is missing.
        """
        speaker = self.library.get_by_id(speaker_id)
        path = _find_sample(speaker, sample_id)
        if not path.is_file():
            raise SampleRejected(
                f"This sample of {speaker.name} can't be found. Choose a recording again."
            )
        return self.examine(TrimSpec(self.uploads.add(path, speaker.name).upload_id))

    def replace_sample(
        self, speaker_id: str, sample_id: str | None, cut: TrimSpec, transcript: str | None = None
    ) -> Speaker:
        """Replace a sample by a part of an upload; its mood and consent stay.

        The library keeps the previous recording. All of an upload of `open_sample`, unrepaired, is
        the sample as it was.

        Args:
            speaker_id: The speaker.
            sample_id: None for the main one.
            cut: The part.
            transcript: The words in that part, if known.

        Raises:
            NotFound: The speaker, the sample or the upload doesn't exist any more.
        """
        speaker = self.library.get_by_id(speaker_id)
        _find_sample(speaker, sample_id)
        clip = self.examine(cut).report.get_usable_clip()
        mended = self.library.replace_sample(speaker.name, sample_id, clip, transcript=transcript)
        if not cut.denoised:
            return mended
        return self.library.keep_original(speaker.name, sample_id, self._read_original(cut))

    def consent_stamp(self, *, given: bool) -> str | None:
        """The date of a consent that is given now; None for one that is withdrawn."""
        return self._stamp() if given else None

    def _check_sample(self, take: NewSample) -> Clip:
        if not take.consent:
            raise BadInput("Confirm that you may use this voice: it is yours, or its owner agreed.")
        return self.examine(take.cut).report.get_usable_clip()

    def _stamp(self) -> str:
        return self._now().isoformat(timespec="seconds")


def _find_sample(speaker: Speaker, sample_id: str | None) -> Path:
    paths = {one.sample_id: one.path for one in speaker.moods}
    path = speaker.sample if sample_id is None else paths.get(sample_id)
    if path is None:
        raise NotFound(f"This sample of {speaker.name} isn't there any more.")
    return path
