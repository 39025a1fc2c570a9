"""The voices of a project's cast in its file: exported, recognised by their content, imported.

A take is of a voice's very recording, so a voice is known by what it is made of and not by its
name: where the library has the same one, that one speaks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from studio.dialog.names import name_key, same_name
from studio.errors import BadInput, SampleRejected
from studio.project.document import Document
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Speaker
from studio.voices.speaker_record import MAIN_SAMPLE, SpeakerRecord
from studio.voices.voice_pack import (
    VOICE_PACK_SUFFIX,
    hash_recordings,
    inspect_pack,
    read_pack,
    write_pack,
)

_VoicePrint = tuple[object, ...]


def export_voices(document: Document, library: SpeakerLibrary) -> Iterator[tuple[str, IO[bytes]]]:
    """Id and voice file of everybody who speaks and is in the library.

    A voice whose recording is missing is left out: its lines fail here as they will there.

    Raises:
        StorageFailed: The library can't be read.
    """
    speakers = {one.speaker_id: one for one in library.list()}
    by_name = {name_key(one.name): one.speaker_id for one in speakers.values()}
    in_use = {
        chosen or by_name.get(name_key(name)) for name, chosen in _list_casting(document).items()
    }
    for speaker_id, speaker in speakers.items():
        if speaker_id not in in_use:
            continue
        with tempfile.TemporaryFile() as file:
            try:
                write_pack(library, speaker, file)
            except SampleRejected:
                continue
            file.seek(0)
            yield speaker_id, file


def import_voices(
    folder: Path, document: Document, library: SpeakerLibrary
) -> tuple[dict[str, str | None], list[str]]:
    """Bring the voices that came with a project into the library, where it lacks them.

    Args:
        folder: Of their files, each named by the id it had.
        document: Whose cast they are.
        library: Where they go.

    Returns:
        The cast by which everybody keeps the voice they had, and what people should know.

    Raises:
        StorageFailed: The library can't be read or written.
    """
    cast, notices = dict(document.cast), list[str]()
    came = _ImportedVoices(folder)
    for name, speaker_id in _list_casting(document).items():
        arrival = came.find(name, speaker_id)
        if arrival is None:
            continue
        try:
            voice = arrival.resolve(library)
        except BadInput as error:
            notices.append(f"The voice of {name} could not be brought in: {error}")
            continue
        by_name = library.find(name)
        if speaker_id is None and by_name is not None and by_name.speaker_id == voice.speaker_id:
            continue
        cast = {one: given for one, given in cast.items() if not same_name(one, name)}
        cast[name] = voice.speaker_id
        if not same_name(voice.name, arrival.record.name):
            notices.append(f"{name} has the voice “{voice.name}”, which came with the project.")
    return cast, notices


class _ImportedVoice:
    """A voice that came with a project."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self.record, digests_there = inspect_pack(file)
        self._print = _fingerprint_record(self.record, digests_there)
        self._voice: Speaker | None = None

    def resolve(self, library: SpeakerLibrary) -> Speaker:
        """The library's speaker with this voice, who is added when there is none."""
        if self._voice is None:
            self._voice = self._known(library) or self._added(library)
        return self._voice

    def _known(self, library: SpeakerLibrary) -> Speaker | None:
        alike = [
            one
            for one in library.list()
            if _fingerprint_record(
                library.read_record(one.speaker_id), hash_recordings(library, one.speaker_id)
            )
            == self._print
        ]
        named = [one for one in alike if same_name(one.name, self.record.name)]
        return next(iter(named + alike), None)

    def _added(self, library: SpeakerLibrary) -> Speaker:
        with self._path.open("rb") as file:
            return read_pack(library, file)


class _ImportedVoices:
    """All voices that came, by the id they had and by name; what is no voice counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._by_id: dict[str, _ImportedVoice] = {}
        for path in sorted(folder.glob(f"*{VOICE_PACK_SUFFIX}")):
            with suppress(BadInput):
                self._by_id[path.name.removesuffix(VOICE_PACK_SUFFIX)] = _ImportedVoice(path)
        self._by_name = {name_key(one.record.name): one for one in self._by_id.values()}

    def find(self, name: str, speaker_id: str | None) -> _ImportedVoice | None:
        if speaker_id is not None:
            return self._by_id.get(speaker_id)
        return self._by_name.get(name_key(name))


def _list_casting(document: Document) -> dict[str, str | None]:
    """Everybody who speaks, as first written, with the speaker that was chosen for them."""
    chosen = {name_key(name): one for name, one in document.cast.items()}
    names = {name_key(line.speaker): line.speaker for line in document if line.speaker}
    return {name: chosen.get(key) for key, name in names.items()}


def _fingerprint_record(record: SpeakerRecord, digests_there: Mapping[str, str]) -> _VoicePrint:
    """What a voice is made of; the same for voices that sound the same."""
    main = (digests_there.get(MAIN_SAMPLE), record.transcript or "") if record.has_sample else None
    moods = sorted(
        (name_key(one.mood), digests_there.get(one.file_name), one.transcript or "")
        for one in record.moods
    )
    made_up = record.preset or record.description
    # Without anything else, a voice is the one that some backends have for each name.
    name = None if main or made_up else name_key(record.builtin_name)
    return (main, tuple(moods), record.preset, record.description, name)
