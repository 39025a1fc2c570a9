"""The speakers that are kept, as those see them who only look."""

from __future__ import annotations

import difflib
from pathlib import Path

from studio.dialog.names import clean_name, name_key
from studio.errors import NameRejected, NotFound, StorageFailed
from studio.speakers.record import SpeakerRecord
from studio.speakers.shelf import Shelf
from studio.speakers.speaker import Speaker


class Catalogue:
    """Speakers on disk. Readers need no lock: a folder appears and vanishes whole."""

    def __init__(self, root: Path) -> None:
        """Use `root` as the library's folder; it is made with the first speaker."""
        self._shelf = Shelf(root)

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
                problems += _missing_samples(speaker)
        return tuple(speakers[key] for key in sorted(speakers)), tuple(problems)


def _missing_samples(speaker: Speaker) -> list[str]:
    named = [(speaker.sample, "sample")] if speaker.sample else []
    named += [(one.path, f"{one.mood} sample") for one in speaker.moods]
    return [
        f"The {what} of {speaker.name} can't be found at {path}. Choose a recording again."
        for path, what in named
        if not path.is_file()
    ]
