"""The speaker library: speakers on disk, their samples, earlier sample versions and the trash."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from studio.audio.clip import Clip, write_wav
from studio.dialog.model import clean_name, name_key, same_name
from studio.errors import NameRejected, NotFound, SpeakerExists, StorageFailed
from studio.voices.samples import check_sample
from studio.voices.speaker import RemovedSpeaker, Speaker, choose_colour
from studio.voices.speaker_record import (
    MAIN_SAMPLE,
    SpeakerDetails,
    SpeakerRecord,
    read_record,
    write_record,
)
from studio.voices.speaker_store import (
    RECORD_FILE,
    Clock,
    SpeakerEdit,
    SpeakerStore,
    StoredSpeaker,
    build_speaker,
    get_utc_now,
)


class SpeakerLibrary:
    """All speakers of a workspace; safe from several threads and processes at once.

    Names are unique whatever their case. Folder and file names are generated and never made from
    outside text. What is changed or removed can be brought back for a while. Readers need no lock:
    a folder appears and vanishes whole.

    Raises:
        NotFound: From every method that changes a speaker: there is none of that name.
        Conflict: From every method that writes: another process writes for seconds.
        StorageFailed: From every method: the library can't be read or written.
    """

    def __init__(self, root: Path, *, now: Clock = get_utc_now) -> None:
        """Use `root` as the library's folder; `now` dates what is changed.

        The folder is made with the first speaker.
        """
        self._store = SpeakerStore(root)
        # What only reads a speaker's folder is the store's own.
        self.folder, self.read_record = self._store.folder, self._store.read
        self.measure_length_s = self._store.measure_length_s
        self.require_open = self._store.require_open
        self._now = now

    def close(self, why: str) -> None:
        """Keep the voices without a recording, and refuse every change from now on."""
        for speaker in self.list():
            if speaker.sample or speaker.moods:
                self.remove(speaker.name)
        self._store.closed_because = why

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` after each change made here, in the thread that made it."""
        self._store.on_change = on_change

    def list(self) -> tuple[Speaker, ...]:
        """All speakers that can be read, in the order of their names.

        A speaker whose `sample.wav` is missing is among them and keeps its path, so that its lines
        fail with the reason instead of taking another voice.
        """
        return tuple(one.speaker for one in self._scan()[0])

    def list_problems(self) -> tuple[str, ...]:
        """What is wrong with single speakers, one message each; hides none of the others."""
        return self.scan()[1]

    def list_unreadable(self) -> tuple[str, ...]:
        """Those problems for which a speaker or a sample is left out; reads no recording."""
        return self._scan()[1]

    def scan(self) -> tuple[tuple[Speaker, ...], tuple[str, ...]]:
        """What `list` and `list_problems` return, from one look at the folders."""
        stored, problems = self._scan()
        damaged = (
            f"“{name}” of {one.speaker.name} (folder {one.speaker.speaker_id}) has changed on the "
            "disk since it was saved. Check this voice, and save it or choose a recording again."
            for one in stored
            for name in self._store.find_damaged(one)
        )
        return tuple(one.speaker for one in stored), (*problems, *damaged)

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
            raise NotFound(f"There is no speaker “{name}” in the library. {self._suggest(name)}")
        return speaker

    def get_by_id(self, speaker_id: str) -> Speaker:
        """The speaker in that folder.

        Raises:
            NotFound: It was removed, or never was.
        """
        for speaker in self.list():
            if speaker.speaker_id == speaker_id:
                return speaker
        raise NotFound("This speaker isn't in the library any more.")

    def add(
        self, name: str, *, sample: Path | Clip | None = None, **details: Unpack[SpeakerDetails]
    ) -> Speaker:
        """Add a speaker; without a colour it gets one that few others have.

        Args:
            name: Free in the library, whatever its case.
            sample: The main recording, as a file in any format or as a clip already checked.
            details: As in `Speaker`.

        Raises:
            SpeakerExists: It is taken, in whatever case.
        """
        clip = _load_usable_clip(sample) if sample is not None else None
        with self._store.lock_for_writing():
            self._check_free(clean_name(name))
            if not details.get("colour"):
                details["colour"] = choose_colour(one.colour for one in self.list())
            record = SpeakerRecord.create(name, has_sample=clip is not None, details=details)
            return self._store.create(record, {} if clip is None else {MAIN_SAMPLE: clip})

    def add_imported(self, record: SpeakerRecord, clips: Mapping[str, Clip]) -> Speaker:
        """Add a speaker from another library, under a name that is free here.

        Args:
            record: Checked; every recording it names has a clip.
            clips: By file name, as in the speaker's folder.
        """
        with self._store.lock_for_writing():
            return self._store.create(self._with_free_name(record), clips)

    def set_sample(
        self,
        name: str,
        sample: Path | Clip | None,
        *,
        transcript: str | None = None,
        consent_at: str | None = None,
    ) -> Speaker:
        """Replace a speaker's main sample, or remove it; the previous one stays as a version."""
        clip = _load_usable_clip(sample) if sample is not None else None
        with self._edit(name) as edit:
            edit.save_version(None, removed=clip is None)
            edit.release_original(None, removed=clip is None)
            edit.record = edit.record.with_fields(
                has_sample=clip is not None, transcript=transcript, consent_at=consent_at
            )
            if clip is not None:
                write_wav(edit.folder / MAIN_SAMPLE, clip)
        return edit.speaker

    def add_mood(
        self,
        name: str,
        mood: str,
        sample: Path | Clip,
        *,
        transcript: str | None = None,
        consent_at: str | None = None,
    ) -> Speaker:
        """Add a sample to a speaker, for the lines that name its mood."""
        clip = _load_usable_clip(sample)
        with self._edit(name) as edit:
            edit.record = edit.record.with_mood(mood, transcript=transcript, consent_at=consent_at)
            write_wav(edit.folder / edit.record.recordings[-1], clip)
        return edit.speaker

    def update_mood(self, name: str, sample_id: str, **fields: str | None) -> Speaker:
        """Change `mood`, `transcript` or `consent_at` of a further sample, and no other."""
        with self._edit(name) as edit:
            edit.record = edit.record.with_changed_mood(sample_id, **fields)
        return edit.speaker

    def replace_sample(
        self, name: str, sample_id: str | None, clip: Clip, *, transcript: str | None
    ) -> Speaker:
        """Replace the recording of a sample by one that was checked; its mood and consent stay.

        The one before is kept.

        Args:
            name: Whose sample it is.
            sample_id: None for the main one.
            clip: The recording.
            transcript: What is said in it.
        """
        with self._edit(name) as edit:
            edit.save_version(sample_id, removed=False)
            if sample_id is None:
                edit.record = edit.record.with_fields(transcript=transcript)
            else:
                edit.record = edit.record.with_changed_mood(sample_id, transcript=transcript)
            write_wav(edit.folder / edit.record.recording_of(sample_id), clip)
        return edit.speaker

    def keep_original(self, name: str, sample_id: str | None, clip: Clip) -> Speaker:
        """Keep the recording that a sample was denoised from, as long as there is the sample.

        `restore_version` exchanges the two.

        Args:
            name: Whose sample it is.
            sample_id: None for the main one.
            clip: The recording as it came.
        """
        with self._edit(name) as edit:
            edit.keep_original(sample_id, clip)
        return edit.speaker

    def find_version_path(self, speaker_id: str, version_id: str) -> Path:
        """The recording of an earlier version of a sample.

        Raises:
            NotFound: It isn't kept any more.
        """
        speaker = self.get_by_id(speaker_id)
        for one in speaker.formers:
            if one.former_id == version_id and one.path.is_file():
                return one.path
        raise NotFound(f"This recording of {speaker.name} isn't kept any more.")

    def remove_mood(self, name: str, sample_id: str) -> Speaker:
        """Remove one of a speaker's mood samples; its recording stays as a version for a while."""
        with self._edit(name) as edit:
            edit.save_version(sample_id, removed=True)
            edit.record = edit.record.without_mood(sample_id)
        return edit.speaker

    def restore_version(self, name: str, version_id: str) -> Speaker:
        """Restore a recording that was changed or removed."""
        with self._edit(name) as edit:
            edit.restore_version(version_id)
        return edit.speaker

    def delete_version(self, name: str, version_id: str) -> Speaker:
        """Delete for good a recording that was changed or removed."""
        with self._edit(name) as edit:
            edit.record = edit.record.without_version(version_id)
        return edit.speaker

    def update(self, name: str, **details: Unpack[SpeakerDetails]) -> Speaker:
        """Change the given details only; None clears one."""
        with self._edit(name) as edit:
            edit.record = edit.record.with_fields(**details)
        return edit.speaker

    def rename(self, old: str, new: str) -> Speaker:
        """Rename a speaker; its folder and samples stay.

        Raises:
            NotFound: There is no speaker `old`.
            SpeakerExists: Another speaker has `new`, in whatever case.
        """
        with self._edit(old) as edit:
            name = clean_name(new)
            if not same_name(edit.record.name, name):
                self._check_free(name)
            edit.record = edit.record.with_name(name)
        return edit.speaker

    def remove(self, name: str) -> None:
        """Move a speaker with its samples to the trash, where it is deleted after 30 days."""
        with self._store.lock_for_writing():
            self._store.trash.put(self.folder(self.get(name).speaker_id))

    def list_removed(self) -> tuple[RemovedSpeaker, ...]:
        """Speakers in the trash, the latest first; to restore a damaged one says what is wrong."""
        return tuple(self._store.list_removed())

    def restore_removed(self, speaker_id: str) -> Speaker:
        """Restore a speaker from the trash with its id, under its name or, if taken, a free one."""
        with self._store.lock_for_writing():
            removed = self._store.trash.get(speaker_id) / RECORD_FILE
            record = self._with_free_name(read_record(removed))
            write_record(removed, record)
            self._store.trash.restore(speaker_id, self.folder(speaker_id))
            return build_speaker(self.folder(speaker_id), record)

    def delete_removed(self, speaker_id: str) -> None:
        """Delete a speaker in the trash for good."""
        with self._store.lock_for_writing():
            self._store.trash.delete(speaker_id)

    @contextmanager
    def _edit(self, name: str) -> Iterator[SpeakerEdit]:
        """Change a speaker under the library's lock; nothing is written after an error."""
        with self._store.lock_for_writing():
            edit = SpeakerEdit(self.folder(self.get(name).speaker_id), self._now)
            yield edit
            edit.commit()

    def _check_free(self, name: str) -> None:
        taken = self.find(name)
        if taken is not None:
            raise SpeakerExists(
                f"There is a speaker “{taken.name}” already. Choose another name, or change that"
                " speaker."
            )

    def _with_free_name(self, record: SpeakerRecord) -> SpeakerRecord:
        """The record, with a number behind its name where that is taken."""
        taken, name = {name_key(one.name) for one in self.list()}, record.name
        names = (name, *(f"{name[:55]} {number}" for number in range(2, len(taken) + 3)))
        free = next(one for one in names if name_key(clean_name(one)) not in taken)
        return record.model_copy(update={"name": free})

    def _suggest(self, name: str) -> str:
        names = {name_key(one.name): one.name for one in self.list()}
        near = difflib.get_close_matches(name_key(name), names, n=3)
        if near:
            return f"Did you mean {' or '.join(f'“{names[key]}”' for key in near)}?"
        return "Add it first."

    def _scan(self) -> tuple[tuple[StoredSpeaker, ...], tuple[str, ...]]:
        found: dict[str, StoredSpeaker] = {}
        problems: list[str] = []
        for speaker_id in self._store.list_ids():
            try:
                stored = self._store.load(speaker_id)
            except StorageFailed as error:
                problems.append(str(error))
                continue
            first = found.setdefault(name_key(stored.speaker.name), stored)
            if first is not stored:
                problems.append(
                    f"The speaker at {self.folder(speaker_id)} is left out, since another one is "
                    f"named “{first.speaker.name}”, too. Remove one of the two folders."
                )
            elif stored.is_rebuilt:
                problems.append(
                    f"The {RECORD_FILE} of {stored.speaker.name} (folder {speaker_id}) is damaged. "
                    "The voice is rebuilt from what is left: check its name and details, and save "
                    "it. Recordings of its moods, if it had any, are still in that folder."
                )
            else:
                problems += _find_missing_samples(stored.speaker)
        return tuple(found[key] for key in sorted(found)), tuple(problems)


class SpeakerSnapshot:
    """The speakers of a library as they are now, for many look-ups; each of its own reads all."""

    def __init__(self, library: SpeakerLibrary) -> None:
        speakers = library.list()
        self._library = library
        self._by_key = {name_key(one.name): one for one in speakers}
        self._by_id = {one.speaker_id: one for one in speakers}

    def find(self, name: str) -> Speaker | None:
        """As `SpeakerLibrary.find`."""
        return self._by_key.get(name_key(name))

    def get_by_id(self, speaker_id: str) -> Speaker:
        """As `SpeakerLibrary.get_by_id`."""
        return self._by_id.get(speaker_id) or self._library.get_by_id(speaker_id)


def _find_missing_samples(speaker: Speaker) -> list[str]:
    named = [(speaker.sample, "sample")] if speaker.sample else []
    named += [(one.path, f"{one.mood} sample") for one in speaker.moods]
    return [
        f"The {what} of {speaker.name} can't be found at {path}. Choose a recording again."
        for path, what in named
        if not path.is_file()
    ]


def _load_usable_clip(sample: Path | Clip) -> Clip:
    return sample if isinstance(sample, Clip) else check_sample(sample).get_usable_clip()
