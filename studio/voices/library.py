"""The speaker library: speakers on disk, their samples, earlier sample versions and the trash."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Unpack

from studio.audio.clip import Clip
from studio.audio.encode import write_wav
from studio.dialog.names import clean_name, name_key, same_name
from studio.errors import NameRejected, NotFound, SampleRejected, SpeakerExists, StorageFailed
from studio.voices.sample_checks import check_sample
from studio.voices.sample_history import Clock, SampleHistory, get_utc_now, remove_version
from studio.voices.speaker import RemovedSpeaker, Speaker, choose_colour
from studio.voices.speaker_record import (
    MAIN_SAMPLE,
    SpeakerDetails,
    SpeakerRecord,
    add_mood,
    change_mood,
    find_mood,
    remove_mood,
)
from studio.voices.speaker_store import SpeakerStore


class SpeakerCatalog:
    """Speakers on disk. Readers need no lock: a folder appears and vanishes whole."""

    def __init__(self, root: Path) -> None:
        """Use `root` as the library's folder; it is made with the first speaker."""
        self._shelf = SpeakerStore(root)

    def list(self) -> tuple[Speaker, ...]:
        """All speakers that can be read, in the order of their names.

        A speaker whose `sample.wav` is missing is among them and keeps its path, so that its lines
        fail with the reason instead of taking another voice.

        Raises:
            StorageFailed: The library's folder can't be read.
        """
        return self._scan()[0]

    def problems(self) -> tuple[str, ...]:
        """What is wrong with single speakers, one message each; hides none of the others."""
        return self._scan()[1]

    def find(self, name: str) -> Speaker | None:
        """The speaker of that name, whatever its case; None when there is none."""
        try:
            wanted = name_key(clean_name(name))
        except NameRejected:
            return None
        return next((one for one in self.list() if name_key(one.name) == wanted), None)

    def get(self, name: str) -> Speaker:
        """The speaker of that name, whatever its case.

        Raises:
            NotFound: There is none; names those that are written nearly alike.
        """
        speaker = self.find(name)
        if speaker is None:
            raise NotFound(f"There is no speaker “{name}” in the library. {self._hint(name)}")
        return speaker

    def by_id(self, speaker_id: str) -> Speaker:
        """The speaker in that folder.

        Raises:
            NotFound: It was removed, or never was.
        """
        for speaker in self.list():
            if speaker.speaker_id == speaker_id:
                return speaker
        raise NotFound("This speaker isn't in the library any more.")

    def record(self, speaker_id: str) -> SpeakerRecord:
        """What a speaker's `speaker.json` holds.

        Raises:
            StorageFailed: It can't be read.
        """
        return self._shelf.read(speaker_id)

    def folder(self, speaker_id: str) -> Path:
        """Where a speaker's files are."""
        return self._shelf.folder(speaker_id)

    def length_s(self, sample: Path) -> float | None:
        """Seconds of a speaker's recording, None when it can't be read."""
        return self._shelf.length_s(sample)

    def _hint(self, name: str) -> str:
        names = {name_key(one.name): one.name for one in self.list()}
        near = difflib.get_close_matches(name_key(name), names, n=3)
        if near:
            return f"Did you mean {' or '.join(f'“{names[key]}”' for key in near)}?"
        return "Add it first."

    def _scan(self) -> tuple[tuple[Speaker, ...], tuple[str, ...]]:
        speakers: dict[str, Speaker] = {}
        problems: list[str] = []
        for folder in self._shelf.folders():
            try:
                speaker = self._shelf.speaker(folder.name, self._shelf.read(folder.name))
            except StorageFailed as error:
                problems.append(str(error))
                continue
            first = speakers.setdefault(name_key(speaker.name), speaker)
            if first is not speaker:
                problems.append(
                    f"The speaker at {folder} is left out, since another one is named"
                    f" “{first.name}”, too. Remove one of the two folders."
                )
            else:
                problems += _find_missing_samples(speaker)
        return tuple(speakers[key] for key in sorted(speakers)), tuple(problems)


def _find_missing_samples(speaker: Speaker) -> list[str]:
    named = [(speaker.sample, "sample")] if speaker.sample else []
    named += [(one.path, f"{one.mood} sample") for one in speaker.moods]
    return [
        f"The {what} of {speaker.name} can't be found at {path}. Choose a recording again."
        for path, what in named
        if not path.is_file()
    ]


class SpeakerTrash(SpeakerCatalog):
    """A catalogue that knows what was in it."""

    def __init__(self, root: Path, *, now: Clock = get_utc_now) -> None:
        """Use `root` as the library's folder; `now` dates what is changed and removed."""
        super().__init__(root)
        self._now = now

    def put_back(self, name: str, former_id: str) -> Speaker:
        """Bring back a recording that was changed or removed.

        Raises:
            NotFound: There is no such speaker, or the recording isn't kept any more.
            Conflict: Another sample has its mood now.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            formers = self._formers(speaker_id)
            changed = formers.put_back(record, former_id)
            speaker = self._shelf.rewrite(speaker_id, changed)
            formers.sweep(changed)
        return speaker

    def forget_former(self, name: str, former_id: str) -> Speaker:
        """Delete for good a recording that was changed or removed.

        Raises:
            NotFound: There is no such speaker, or the recording isn't kept any more.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            changed = remove_version(record, former_id)
            speaker = self._shelf.rewrite(speaker_id, changed)
            self._formers(speaker_id).sweep(changed)
        return speaker

    def removed(self) -> tuple[RemovedSpeaker, ...]:
        """Speakers in the trash that can be read, the latest first."""
        found = []
        for speaker_id, thrown_s in self._shelf.thrown_away().items():
            with suppress(StorageFailed):  # it can't be brought back, and goes in time
                name = self._shelf.thrown_record(speaker_id).name
                found.append(RemovedSpeaker(speaker_id, name, thrown_s))
        return tuple(sorted(found, key=lambda one: -one.removed_s))

    def bring_back(self, speaker_id: str) -> Speaker:
        """Take a speaker out of the trash, under its name or one that is free, with its old id.

        Raises:
            NotFound: It isn't there any more.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            self._check_thrown(speaker_id)
            record = self._shelf.thrown_record(speaker_id)
            record = record.model_copy(update={"name": self._free(record.name)})
            return self._shelf.take_back(speaker_id, record)

    def delete_removed(self, speaker_id: str) -> None:
        """Delete a speaker in the trash for good.

        Raises:
            NotFound: It isn't there any more.
            StorageFailed: The library can't be written.
        """
        with self._shelf.writing():
            self._check_thrown(speaker_id)
            self._shelf.delete_thrown(speaker_id)

    def _check_thrown(self, speaker_id: str) -> None:
        # The id comes from outside, so it is looked up, never made a path of.
        if speaker_id not in self._shelf.thrown_away():
            raise NotFound("This voice isn't among the removed ones any more.")

    def _formers(self, speaker_id: str) -> SampleHistory:
        return SampleHistory(self._shelf.folder(speaker_id), self._now)

    def _record_of(self, name: str) -> tuple[str, SpeakerRecord]:
        speaker_id = self.get(name).speaker_id
        return speaker_id, self._shelf.read(speaker_id)

    def _free(self, name: str) -> str:
        """The name itself, or with the first number behind it that makes it free."""
        taken = {name_key(one.name) for one in self.list()}
        tries = (name, *(f"{name[:55]} {number}" for number in range(2, len(taken) + 3)))
        return next(one for one in tries if name_key(clean_name(one)) not in taken)


class SpeakerLibrary(SpeakerTrash):
    """The catalogue with all that changes it; safe from several threads and processes at once.

    Names are unique whatever their case. Folder and file names are generated and never made from
    outside text. What is changed or removed can be brought back for a while.
    """

    def add(
        self, name: str, *, sample: Path | Clip | None = None, **details: Unpack[SpeakerDetails]
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
        clip = _load_usable_clip(sample) if sample is not None else None
        with self._shelf.writing():
            self._check_free(clean_name(name))
            if not details.get("colour"):
                details["colour"] = choose_colour(one.colour for one in self.list())
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
        clip = _load_usable_clip(sample) if sample is not None else None
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
        clip = _load_usable_clip(sample)
        fields = {"transcript": transcript, "consent_at": consent_at}
        with self._shelf.writing():
            speaker_id, record = self._record_of(name)
            changed, fresh = add_mood(record, mood, fields)
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
            return self._shelf.rewrite(speaker_id, change_mood(record, sample_id, fields))

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
                changed = change_mood(record, sample_id, {"transcript": transcript})
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
            gone = find_mood(record, sample_id)
            formers = self._formers(speaker_id)
            changed = remove_mood(formers.keep(record, sample_id, removed=True), sample_id)
            speaker = self._shelf.rewrite(speaker_id, changed)
            formers.sweep(changed)
            (self._shelf.folder(speaker_id) / gone.file_name).unlink(missing_ok=True)
        return speaker

    def update(self, name: str, **details: Unpack[SpeakerDetails]) -> Speaker:
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


def _load_usable_clip(sample: Path | Clip) -> Clip:
    if isinstance(sample, Clip):
        return sample
    report = check_sample(sample)
    if report.fatal:
        raise SampleRejected(report.fatal.message)
    return report.clip
