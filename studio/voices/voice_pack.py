"""A voice as one file: a zip with `speaker.json` and its recordings."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from studio.audio.clip import Clip
from studio.audio.decode import DecodeLimits
from studio.dialog.model import name_key
from studio.errors import AudioRejected, BadInput, FormatNewer, SampleRejected
from studio.storage.disk import check_is_file, hash_file, storage_errors
from studio.storage.zip_members import ZipWriter, count_members, open_zip, read_member
from studio.voices.library import SpeakerLibrary
from studio.voices.samples import check_sample
from studio.voices.speaker import Speaker
from studio.voices.speaker_record import (
    MAX_MOODS,
    MoodRecord,
    SpeakerRecord,
    clean_mood,
    encode_record,
    parse_record,
)
from studio.voices.speaker_store import RECORD_FILE

VOICE_PACK_SUFFIX = ".voice.zip"

_MAX_RECORD_BYTES = 1_000_000
_RECORDING_LIMITS = DecodeLimits(max_bytes=20_000_000, max_duration_s=120.0)
_BLOCK_BYTES = 1 << 16
_MAX_MEMBERS = 1_000

_UNREADABLE_ERRORS = (zipfile.BadZipFile, RuntimeError, ValueError)

MAX_PACK_BYTES = _RECORDING_LIMITS.max_bytes * (MAX_MOODS + 1) + _MAX_RECORD_BYTES


def write_pack(library: SpeakerLibrary, speaker: Speaker, file: BinaryIO) -> None:
    """Write a speaker with all its samples as one file.

    Args:
        library: Whose speaker it is.
        speaker: With its samples there.
        file: Open for writing and seekable.

    Raises:
        SampleRejected: A recording is missing.
    """
    record = library.read_record(speaker.speaker_id).with_fields(formers=(), checksums={})
    with ZipWriter(file, zipfile.ZIP_DEFLATED) as pack:
        pack.writestr(RECORD_FILE, encode_record(record))
        for name in record.recordings:
            path = library.folder(speaker.speaker_id) / name
            try:
                check_is_file(path)
                pack.write(path, name)
            except (FileNotFoundError, IsADirectoryError) as error:
                raise SampleRejected(
                    f"A recording of {speaker.name} ({name}) is missing. Choose one again or remove"
                    " that sample, then save the voice."
                ) from error


def read_pack(library: SpeakerLibrary, file: BinaryIO) -> Speaker:
    """Import a voice from such a file into the library, under a name that is free there.

    Nothing of the file is trusted: names that don't belong to a voice are refused, sizes are
    counted while they are unpacked, and each recording is decoded and checked as an upload is.

    Raises:
        BadInput: The file is no voice, or holds more than one.
        AudioRejected: A recording in it can't be decoded.
        SampleRejected: A recording in it can't serve as a voice.
        StorageFailed: The library can't be written.
    """
    try:
        with _open_pack(file) as pack, tempfile.TemporaryDirectory() as folder:
            record = _read_member_record(pack)
            wanted = record.recordings
            _check_names(pack, {RECORD_FILE, *wanted})
            clips = {name: _read_clip(pack, name, Path(folder)) for name in wanted}
    except _UNREADABLE_ERRORS as error:
        raise BadInput(
            f"This is no voice file: {error}. Choose one that ends in {VOICE_PACK_SUFFIX}."
        ) from error
    return library.add_imported(record, clips)


def inspect_pack(file: BinaryIO) -> tuple[SpeakerRecord, dict[str, str]]:
    """The record in such a file, and the SHA-256 of each recording, as `hash_recordings`.

    Raises:
        BadInput: The file is no voice, or damaged.
    """
    try:
        with _open_pack(file) as pack:
            record = _read_member_record(pack)
            return record, {name: _hash_member(pack, name) for name in record.recordings}
    except (*_UNREADABLE_ERRORS, KeyError) as error:
        raise BadInput(f"This is no voice file: {error}.") from error


def hash_recordings(library: SpeakerLibrary, speaker_id: str) -> dict[str, str]:
    """The SHA-256 of each of a speaker's recordings by its name; "" for one that is missing."""
    folder, digests = library.folder(speaker_id), dict[str, str]()
    for name in library.read_record(speaker_id).recordings:
        try:
            digests[name] = hash_file(folder / name)
        except OSError:
            digests[name] = ""
    return digests


def _open_pack(file: BinaryIO) -> zipfile.ZipFile:
    if count_members(file) > _MAX_MEMBERS:
        raise BadInput("This voice file holds what belongs to no voice. It is refused.")
    return open_zip(file)


def _read_member_record(pack: zipfile.ZipFile) -> SpeakerRecord:
    if RECORD_FILE not in pack.namelist():
        raise BadInput(
            f"This is no voice file: it holds no {RECORD_FILE}. Choose one that ends in "
            f"{VOICE_PACK_SUFFIX}."
        )
    try:
        record = parse_record(b"".join(_read_member(pack, RECORD_FILE, _MAX_RECORD_BYTES)))
    except FormatNewer as error:
        raise BadInput(str(error)) from error
    except ValueError as error:
        raise BadInput(
            f"The {RECORD_FILE} of this voice file can't be understood. Save the voice again where "
            "it comes from."
        ) from error
    return record.with_fields(moods=_clean_moods(record), formers=(), checksums={})


def _clean_moods(record: SpeakerRecord) -> tuple[MoodRecord, ...]:
    """The moods of a record from elsewhere, as an edit leaves them.

    Raises:
        BadInput: A mood can't be used, or stands there twice.
    """
    moods = tuple(one.model_copy(update={"mood": clean_mood(one.mood)}) for one in record.moods)
    names, ids = {name_key(one.mood) for one in moods}, {one.sample_id for one in moods}
    if len(moods) > min(len(names), len(ids)):
        raise BadInput("This voice file has two samples of one mood. It is refused.")
    return moods


def _check_names(pack: zipfile.ZipFile, wanted: set[str]) -> None:
    names = pack.namelist()
    foreign = sorted(set(names) - wanted)
    if foreign or len(names) != len(set(names)):
        shown = foreign[0][:60] if foreign else "one name twice"
        raise BadInput(f"This voice file holds what belongs to no voice ({shown}). It is refused.")
    missing = sorted(wanted - set(names))
    if missing:
        raise BadInput(f"This voice file lacks its recording {missing[0]}. Save it anew.")


def _hash_member(pack: zipfile.ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    for block in _read_member(pack, name, _RECORDING_LIMITS.max_bytes):
        digest.update(block)
    return digest.hexdigest()


def _read_clip(pack: zipfile.ZipFile, name: str, folder: Path) -> Clip:
    path = folder / "recording"
    content = b"".join(_read_member(pack, name, _RECORDING_LIMITS.max_bytes))
    with storage_errors(path):
        path.write_bytes(content)
    report = check_sample(path, limits=_RECORDING_LIMITS, display_name=name)
    if report.fatal:
        raise SampleRejected(f"{name}: {report.fatal.message}")
    return report.clip


def _read_member(pack: zipfile.ZipFile, name: str, max_bytes: int) -> Iterable[bytes]:
    """Unpack a member up to a limit: the size that it states may be wrong."""
    left = max_bytes
    for block in read_member(pack, name, _BLOCK_BYTES):
        left -= len(block)
        if left < 0:
            raise AudioRejected(
                f"“{name}” in this voice file unpacks to more than {max_bytes / 1e6:g} MB. It is"
                " refused."
            )
        yield block
