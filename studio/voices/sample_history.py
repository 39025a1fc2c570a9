"""Earlier versions of a speaker's recordings, kept so that they can be restored."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from studio.errors import NotFound
from studio.storage.disk import open_atomic
from studio.voices.speaker_record import (
    MoodRecord,
    SampleVersionRecord,
    SpeakerRecord,
    check_mood_is_free,
    find_mood,
)

MAX_VERSIONS = 10
VERSION_RETENTION_DAYS = 30

Clock = Callable[[], datetime]


class SampleHistory:
    """The former recordings in one speaker's folder; whoever calls holds the library's lock."""

    def __init__(self, folder: Path, now: Clock) -> None:
        """Look after a folder; `now` dates what is kept."""
        self._folder = folder
        self._now = now

    def save_version(
        self, record: SpeakerRecord, sample_id: str | None, *, removed: bool
    ) -> SpeakerRecord:
        """Copy a sample's recording, before it is changed or removed.

        Args:
            record: The speaker's.
            sample_id: None for the main sample.
            removed: Whether the sample goes with its recording.

        Returns:
            The record that names the copy, still to be written. The oldest copies make room.
        """
        sample: SpeakerRecord | MoodRecord = record
        if sample_id is not None:
            sample = find_mood(record, sample_id)
        path = self._folder / record.recording_of(sample_id)
        if not path.is_file():
            return record
        fresh = SampleVersionRecord(
            former_id=secrets.token_hex(4),
            sample_id=sample_id,
            mood=sample.mood if isinstance(sample, MoodRecord) else None,
            transcript=sample.transcript,
            consent_at=sample.consent_at,
            removed=removed,
            at=self._now().isoformat(),
        )
        _copy_recording(path, self._folder / fresh.file_name)
        kept = [one for one in record.formers if not self._is_expired(one)]
        return record.with_fields(formers=(*kept, fresh)[-MAX_VERSIONS:])

    def restore(self, record: SpeakerRecord, former_id: str) -> SpeakerRecord:
        """Put a recording back where it was.

        Returns:
            The record with the sample as it was, still to be written.

        Raises:
            NotFound: The recording isn't kept any more.
            BadInput: The speaker has too many moods.
            Conflict: Another sample has its mood now.
        """
        version = find_version(record, former_id)
        source = self._folder / version.file_name
        if not source.is_file():
            raise NotFound(f"This recording of {record.name} isn't kept any more.")
        if version.removed and version.sample_id is None and record.has_sample:
            record = self.save_version(record, None, removed=True)  # the present one gives way
        back = _restore_version(record, version)
        _copy_recording(source, self._folder / back.recording_of(version.sample_id))
        return back

    def sweep(self, record: SpeakerRecord) -> None:
        """Delete copies that a record doesn't name; it is written already."""
        named = {one.file_name for one in record.formers}
        for path in self._folder.glob("former-*.wav"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _is_expired(self, version: SampleVersionRecord) -> bool:
        age = self._now() - datetime.fromisoformat(version.at)
        return age > timedelta(days=VERSION_RETENTION_DAYS)


def find_version(record: SpeakerRecord, former_id: str) -> SampleVersionRecord:
    """A former recording by its id.

    Raises:
        NotFound: There is none.
    """
    for one in record.formers:
        if one.former_id == former_id:
            return one
    raise NotFound(f"This recording of {record.name} isn't kept any more.")


def remove_version(record: SpeakerRecord, former_id: str) -> SpeakerRecord:
    """A record that doesn't name a former recording.

    Raises:
        NotFound: There is no such recording.
    """
    gone = find_version(record, former_id)
    return record.with_fields(formers=tuple(one for one in record.formers if one is not gone))


def get_utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def _restore_version(record: SpeakerRecord, version: SampleVersionRecord) -> SpeakerRecord:
    formers = tuple(one for one in record.formers if one is not version)
    said = {"transcript": version.transcript, "consent_at": version.consent_at}
    if version.sample_id is None:
        return record.with_fields(has_sample=True, formers=formers, **said)
    if any(one.sample_id == version.sample_id for one in record.moods):
        moods = [
            {**dict(one), **said} if one.sample_id == version.sample_id else one
            for one in record.moods
        ]
    else:
        mood = check_mood_is_free(record.moods, version.mood or "", record.name)
        moods = [*record.moods, {"sample_id": version.sample_id, "mood": mood, **said}]
    return record.with_fields(formers=formers, moods=tuple(moods))


def _copy_recording(source: Path, target: Path) -> None:
    with source.open("rb") as recording, open_atomic(target) as file:
        shutil.copyfileobj(recording, file)
