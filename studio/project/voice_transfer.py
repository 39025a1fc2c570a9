"""Exports and imports the voices of a project's cast with its file.

A take belongs to the exact recording of a voice, so a voice is identified by its content and not by
its name: if the library has the same one, that one is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from studio.dialog.model import name_key, same_name
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
    """Id and voice file of each speaker who is in the library.

    A voice whose recording is missing is left out; its lines fail here as well.
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
    """Import a project's voices into the library, unless it has them.

    Args:
        folder: Folder of the voice files, each named by its former id.
        document: Has the cast.
        library: Gets the voices.

    Returns:
        The cast by which each speaker keeps its voice, and notices for the user.
    """
    cast, notices = dict(document.cast), list[str]()
    known = _KnownVoices(library)
    by_id = _read_voices(folder)
    by_key = {name_key(one.record.name): one for one in by_id.values()}
    for name, speaker_id in _list_casting(document).items():
        arrival = by_id.get(speaker_id) if speaker_id else by_key.get(name_key(name))
        if arrival is None:
            continue
        try:
            voice = arrival.resolve(known)
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
    """A voice in a project's file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self.record, digests_there = inspect_pack(file)
        self._print = _fingerprint_record(self.record, digests_there)
        self._voice: Speaker | None = None

    def resolve(self, known: _KnownVoices) -> Speaker:
        """The library's speaker with this voice; added if there is none."""
        if self._voice is None:
            alike = known.list_alike(self._print)
            named = [one for one in alike if same_name(one.name, self.record.name)]
            self._voice = next(iter(named + alike), None)
        if self._voice is None:
            with self._path.open("rb") as file:
                self._voice = read_pack(known.library, file)
        return self._voice


class _KnownVoices:
    """The voices of a library by how they sound; each recording is read once."""

    def __init__(self, library: SpeakerLibrary) -> None:
        self.library = library
        self._prints: dict[str, _VoicePrint] = {}

    def list_alike(self, wanted: _VoicePrint) -> list[Speaker]:
        return [one for one in self.library.list() if self._read(one.speaker_id) == wanted]

    def _read(self, speaker_id: str) -> _VoicePrint:
        if speaker_id not in self._prints:
            record = self.library.read_record(speaker_id)
            digests = hash_recordings(self.library, speaker_id)
            self._prints[speaker_id] = _fingerprint_record(record, digests)
        return self._prints[speaker_id]


def _read_voices(folder: Path) -> dict[str, _ImportedVoice]:
    """All voices that came, by the id they had; what is no voice counts as missing."""
    found = {}
    for path in sorted(folder.glob(f"*{VOICE_PACK_SUFFIX}")):
        with suppress(BadInput):
            found[path.name.removesuffix(VOICE_PACK_SUFFIX)] = _ImportedVoice(path)
    return found


def _list_casting(document: Document) -> dict[str, str | None]:
    """All speakers' names, as first written, with the id of the cast speaker."""
    chosen = {name_key(name): one for name, one in document.cast.items()}
    names = {name_key(line.speaker): line.speaker for line in document if line.speaker}
    return {name: chosen.get(key) for key, name in names.items()}


def _fingerprint_record(record: SpeakerRecord, digests_there: Mapping[str, str]) -> _VoicePrint:
    """A digest of a voice; equal for voices that sound the same."""
    main = (digests_there.get(MAIN_SAMPLE), record.transcript or "") if record.has_sample else None
    moods = sorted(
        (name_key(one.mood), digests_there.get(one.file_name), one.transcript or "")
        for one in record.moods
    )
    made_up = record.preset or record.description
    # Without sample, preset or description, the voice is a backend's built-in one for the name.
    name = None if main or made_up else name_key(record.builtin_name)
    return (main, tuple(moods), record.preset, record.description, name)
