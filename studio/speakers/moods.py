"""A speaker's further samples, one for each mood."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from studio.dialog.names import name_key
from studio.errors import BadInput, Conflict, NotFound
from studio.speakers.record import MAX_MOODS, MoodRecord, SpeakerRecord, clean_mood
from studio.speakers.speaker import MoodSample, Speaker


def mood_sample(speaker: Speaker, mood: str) -> MoodSample | None:
    """A speaker's sample of that mood, whatever its case; None when there is none."""
    wanted = name_key(mood.strip())
    return next((one for one in speaker.moods if name_key(one.mood) == wanted), None)


def mood_of(record: SpeakerRecord, sample_id: str) -> MoodRecord:
    """A further sample by its id.

    Raises:
        NotFound: There is none.
    """
    for one in record.moods:
        if one.sample_id == sample_id:
            return one
    raise NotFound(f"This sample of {record.name} isn't there any more.")


def with_mood(
    record: SpeakerRecord, mood: str, fields: Mapping[str, str | None]
) -> tuple[SpeakerRecord, MoodRecord]:
    """A record with one more mood, and that mood's own; its file isn't there yet.

    Args:
        record: What the speaker has so far.
        mood: As a person writes it.
        fields: `transcript` and `consent_at`.

    Raises:
        BadInput: The mood or a field can't be used, or there are too many.
        Conflict: There is a sample of that mood.
    """
    if len(record.moods) == MAX_MOODS:
        raise BadInput(f"{record.name} has {MAX_MOODS} moods already. Remove one first.")
    free = free_mood(record.moods, mood, record.name)
    fresh = {"sample_id": secrets.token_hex(4), "mood": free, **fields}
    changed = record.changed(moods=(*record.moods, fresh))
    return changed, changed.moods[-1]


def with_changed_mood(
    record: SpeakerRecord, sample_id: str, fields: Mapping[str, str | None]
) -> SpeakerRecord:
    """A record with other values in a mood's `mood`, `transcript` or `consent_at`.

    Raises:
        NotFound: There is no such sample.
        BadInput: A value can't be used.
        Conflict: Another sample has that mood.
    """
    mine = mood_of(record, sample_id)
    values = {**dict(mine), **fields}
    others = tuple(one for one in record.moods if one is not mine)
    values["mood"] = free_mood(others, str(values["mood"]), record.name)
    return record.changed(moods=tuple(values if one is mine else one for one in record.moods))


def without_mood(record: SpeakerRecord, sample_id: str) -> SpeakerRecord:
    """A record without one of its moods.

    Raises:
        NotFound: There is no such sample.
    """
    gone = mood_of(record, sample_id)
    return record.changed(moods=tuple(one for one in record.moods if one is not gone))


def free_mood(taken: tuple[MoodRecord, ...], mood: str, name: str) -> str:
    """A mood as it is kept.

    Raises:
        BadInput: It can't be used.
        Conflict: One of those taken is the same.
    """
    mood = clean_mood(mood)
    if any(name_key(one.mood) == name_key(mood) for one in taken):
        raise Conflict(
            f"{name} has a sample for “{mood}” already. Choose another mood, or remove that sample."
        )
    return mood
