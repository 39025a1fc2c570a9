"""Voices and recordings that were changed or removed, for as long as they can be brought back."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from studio.dialog.names import clean_name, name_key
from studio.errors import NotFound, StorageFailed
from studio.speakers.catalogue import Catalogue
from studio.speakers.formers import Formers, Now, utc_now, without_former
from studio.speakers.record import SpeakerRecord
from studio.speakers.speaker import RemovedSpeaker, Speaker


class BringsBack(Catalogue):
    """A catalogue that knows what was in it."""

    def __init__(self, root: Path, *, now: Now = utc_now) -> None:
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
            changed = without_former(record, former_id)
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

    def _formers(self, speaker_id: str) -> Formers:
        return Formers(self._shelf.folder(speaker_id), self._now)

    def _record_of(self, name: str) -> tuple[str, SpeakerRecord]:
        speaker_id = self.get(name).speaker_id
        return speaker_id, self._shelf.read(speaker_id)

    def _free(self, name: str) -> str:
        """The name itself, or with the first number behind it that makes it free."""
        taken = {name_key(one.name) for one in self.list()}
        tries = (name, *(f"{name[:55]} {number}" for number in range(2, len(taken) + 3)))
        return next(one for one in tries if name_key(clean_name(one)) not in taken)
