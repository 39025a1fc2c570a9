"""The speakers a person keeps, one folder each, with `speaker.json` and `sample.wav`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

from studio.audio.clip import Clip
from studio.audio.encode import write_wav
from studio.dialog.names import clean_name, same_name
from studio.errors import SampleRejected, SpeakerExists
from studio.speakers.bringing_back import BringsBack
from studio.speakers.colours import next_colour
from studio.speakers.moods import mood_of, with_changed_mood, with_mood, without_mood
from studio.speakers.record import MAIN_SAMPLE, Details, SpeakerRecord
from studio.speakers.sample import check_sample
from studio.speakers.speaker import Speaker


class SpeakerLibrary(BringsBack):
    """The catalogue with all that changes it; safe from several threads and processes at once.

    Names are unique whatever their case. Folder and file names are generated and never made from
    outside text. What is changed or removed can be brought back for a while.
    """

    def add(
        self, name: str, *, sample: Path | Clip | None = None, **details: Unpack[Details]
    ) -> Speaker:
        """Keep a new speaker; without a colour it gets one that few others have.

        Args:
            name: Free in the library, whatever its case.
            sample: The main recording, as a file in any format or as a clip already checked.
            details: As in `Speaker`.

        Raises:
            NameRejected: The name can't be written in a script.
            SpeakerExists: It is taken, in whatever case.
            AudioRejected: The sample can't be decoded.
            SampleRejected: The sample has a fatal problem.
            BadInput: A detail can't be used.
            StorageFailed: The library can't be written.
        """
        clip = _usable_clip(sample) if sample is not None else None
        with self._shelf.writing():
            self._check_free(clean_name(name))
            if not details.get("colour"):
                details["colour"] = next_colour(one.colour for one in self.list())
            record = SpeakerRecord.made(name, has_sample=clip is not None, details=details)
            return self._place(record, {} if clip is None else {MAIN_SAMPLE: clip})

    def restore(self, record: SpeakerRecord, clips: Mapping[str, Clip]) -> Speaker:
        """Keep a speaker as another library had it, under a name that is free here.

        Args:
            record: Checked; every recording it names has a clip.
            clips: By file name, as in the speaker's folder.

        Raises:
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            return self._place(record.model_copy(update={"name": self._free(record.name)}), clips)

    def set_sample(
        self,
        name: str,
        sample: Path | Clip | None,
        *,
        transcript: str | None = None,
        consent_at: str | None = None,
    ) -> Speaker:
        """Give a speaker another main sample with what belongs to it, or none; the former is kept.

        Raises:
            NotFound: There is no such speaker.
            AudioRejected: The sample can't be decoded; the earlier one stays.
            SampleRejected: The sample has a fatal problem; the earlier one stays.
            StorageFailed: The library can't be written.
        """
        clip = _usable_clip(sample) if sample is not None else None
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            formers = self._formers(speaker_id)
            record = formers.keep(record, None, removed=clip is None)
            changed = record.changed(
                has_sample=clip is not None, transcript=transcript, consent_at=consent_at
            )
            path = self._shelf.folder(speaker_id) / MAIN_SAMPLE
            if clip is not None:
                write_wav(path, clip)
            speaker = self._shelf.rewrite(speaker_id, changed)
            if clip is None:
                path.unlink(missing_ok=True)
            formers.sweep(changed)
        return speaker

    def add_mood(
        self,
        name: str,
        mood: str,
        sample: Path | Clip,
        *,
        transcript: str | None = None,
        consent_at: str | None = None,
    ) -> Speaker:
        """Give a speaker one more sample, for the lines that name its mood.

        Raises:
            NotFound: There is no such speaker.
            BadInput: The mood can't be written in a script, or the speaker has too many.
            Conflict: The speaker has a sample of that mood.
            AudioRejected: The sample can't be decoded.
            SampleRejected: The sample has a fatal problem.
            StorageFailed: The library can't be written.
        """
        clip = _usable_clip(sample)
        fields = {"transcript": transcript, "consent_at": consent_at}
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            changed, fresh = with_mood(record, mood, fields)
            write_wav(self._shelf.folder(speaker_id) / fresh.file_name, clip)
            return self._shelf.rewrite(speaker_id, changed)

    def update_mood(self, name: str, sample_id: str, **fields: str | None) -> Speaker:
        """Change `mood`, `transcript` or `consent_at` of a further sample, and no other.

        Raises:
            NotFound: There is no such speaker or sample.
            BadInput: The mood or the transcript can't be used.
            Conflict: Another sample has that mood.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            return self._shelf.rewrite(speaker_id, with_changed_mood(record, sample_id, fields))

    def replace_sample(
        self, name: str, sample_id: str | None, clip: Clip, *, transcript: str | None
    ) -> Speaker:
        """Put another recording, already checked, in the place of a sample that stays otherwise.

        The former one is kept.

        Args:
            name: Whose sample it is.
            sample_id: None for the main one.
            clip: The recording.
            transcript: What is said in it.

        Raises:
            NotFound: There is no such speaker or sample.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            formers = self._formers(speaker_id)
            record = formers.keep(record, sample_id, removed=False)
            if sample_id is None:
                changed = record.changed(transcript=transcript)
            else:
                changed = with_changed_mood(record, sample_id, {"transcript": transcript})
            write_wav(self._shelf.folder(speaker_id) / record.recording_of(sample_id), clip)
            speaker = self._shelf.rewrite(speaker_id, changed)
            formers.sweep(changed)
        return speaker

    def remove_mood(self, name: str, sample_id: str) -> Speaker:
        """Take one of a speaker's further samples away; its recording is kept for a while.

        Raises:
            NotFound: There is no such speaker or sample.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            gone = mood_of(record, sample_id)
            formers = self._formers(speaker_id)
            changed = without_mood(formers.keep(record, sample_id, removed=True), sample_id)
            speaker = self._shelf.rewrite(speaker_id, changed)
            formers.sweep(changed)
            (self._shelf.folder(speaker_id) / gone.file_name).unlink(missing_ok=True)
        return speaker

    def update(self, name: str, **details: Unpack[Details]) -> Speaker:
        """Change the given details and no others; None clears one.

        Raises:
            NotFound: There is no such speaker.
            BadInput: A detail can't be used.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            return self._shelf.rewrite(speaker_id, record.changed(**details))

    def rename(self, old: str, new: str) -> Speaker:
        """Give a speaker another name; its folder and samples stay.

        Raises:
            NotFound: There is no speaker `old`.
            NameRejected: `new` can't be written in a script.
            SpeakerExists: Another speaker has `new`, in whatever case.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(old)
            name = clean_name(new)
            if not same_name(record.name, name):
                self._check_free(name)
            return self._shelf.rewrite(speaker_id, record.renamed(name))

    def remove(self, name: str) -> None:
        """Put a speaker with its samples into the trash, from where it is deleted after 30 days.

        Raises:
            NotFound: There is no such speaker.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            self._shelf.throw_away(self.get(name).speaker_id)

    def _place(self, record: SpeakerRecord, clips: Mapping[str, Clip]) -> Speaker:
        def fill(folder: Path) -> None:
            for file_name, clip in clips.items():
                write_wav(folder / file_name, clip)

        return self._shelf.speaker(self._shelf.place(record, fill), record)

    def _check_free(self, name: str) -> None:
        taken = self.find(name)
        if taken is not None:
            raise SpeakerExists(
                f"There is a speaker “{taken.name}” already. Choose another name, or change that"
                " speaker."
            )


def _usable_clip(sample: Path | Clip) -> Clip:
    if isinstance(sample, Clip):
        return sample
    report = check_sample(sample)
    if report.fatal:
        raise SampleRejected(report.fatal.message)
    return report.clip
