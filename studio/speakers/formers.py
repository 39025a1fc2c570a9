"""Recordings that were changed or removed, kept beside the samples so that they can come back."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from studio.audio.atomic_file import replacing
from studio.errors import NotFound
from studio.speakers.moods import free_mood, mood_of
from studio.speakers.record import FormerRecord, MoodRecord, SpeakerRecord

MAX_FORMERS = 10
KEPT_DAYS = 30

Now = Callable[[], datetime]


class Formers:
    """The former recordings in one speaker's folder; whoever calls holds the library's lock."""

    def __init__(self, folder: Path, now: Now) -> None:
        """Look after a folder; `now` dates what is kept."""
        self._folder = folder
        self._now = now

    def keep(self, record: SpeakerRecord, sample_id: str | None, *, removed: bool) -> SpeakerRecord:
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
            sample = mood_of(record, sample_id)
        path = self._folder / record.recording_of(sample_id)
        if not path.is_file():
            return record
        fresh = FormerRecord(
            former_id=secrets.token_hex(4),
            sample_id=sample_id,
            mood=sample.mood if isinstance(sample, MoodRecord) else None,
            transcript=sample.transcript,
            consent_at=sample.consent_at,
            removed=removed,
            at=self._now().isoformat(),
        )
        _copy(path, self._folder / fresh.file_name)
        kept = [one for one in record.formers if not self._is_over(one)]
        return record.changed(formers=(*kept, fresh)[-MAX_FORMERS:])

    def put_back(self, record: SpeakerRecord, former_id: str) -> SpeakerRecord:
        """Put a recording back where it was.

        Returns:
            The record with the sample as it was, still to be written.

        Raises:
            NotFound: The recording isn't kept any more.
            BadInput: The speaker has too many moods.
            Conflict: Another sample has its mood now.
        """
        former = former_of(record, former_id)
        source = self._folder / former.file_name
        if not source.is_file():
            raise NotFound(f"This recording of {record.name} isn't kept any more.")
        if former.removed and former.sample_id is None and record.has_sample:
            record = self.keep(record, None, removed=True)  # the present one gives way
        back = _with_former(record, former)
        _copy(source, self._folder / back.recording_of(former.sample_id))
        return back

    def sweep(self, record: SpeakerRecord) -> None:
        """Delete copies that a record doesn't name; it is written already."""
        named = {one.file_name for one in record.formers}
        for path in self._folder.glob("former-*.wav"):
            if path.name not in named:
                path.unlink(missing_ok=True)

    def _is_over(self, former: FormerRecord) -> bool:
        age = self._now() - datetime.fromisoformat(former.at)
        return age > timedelta(days=KEPT_DAYS)


def former_of(record: SpeakerRecord, former_id: str) -> FormerRecord:
    """A former recording by its id.

    Raises:
        NotFound: There is none.
    """
    for one in record.formers:
        if one.former_id == former_id:
            return one
    raise NotFound(f"This recording of {record.name} isn't kept any more.")


def without_former(record: SpeakerRecord, former_id: str) -> SpeakerRecord:
    """A record that doesn't name a former recording.

    Raises:
        NotFound: There is no such recording.
    """
    gone = former_of(record, former_id)
    return record.changed(formers=tuple(one for one in record.formers if one is not gone))


def utc_now() -> datetime:
    """The time of day."""
    return datetime.now(UTC)


def _with_former(record: SpeakerRecord, former: FormerRecord) -> SpeakerRecord:
    formers = tuple(one for one in record.formers if one is not former)
    said = {"transcript": former.transcript, "consent_at": former.consent_at}
    if former.sample_id is None:
        return record.changed(has_sample=True, formers=formers, **said)
    if any(one.sample_id == former.sample_id for one in record.moods):
        moods = [
            {**dict(one), **said} if one.sample_id == former.sample_id else one
            for one in record.moods
        ]
    else:
        mood = free_mood(record.moods, former.mood or "", record.name)
        moods = [*record.moods, {"sample_id": former.sample_id, "mood": mood, **said}]
    return record.changed(formers=formers, moods=tuple(moods))


def _copy(source: Path, target: Path) -> None:
    with source.open("rb") as recording, replacing(target) as file:
        shutil.copyfileobj(recording, file)
