"""The speakers a person keeps, one folder each, with `speaker.json` and `sample.wav`."""

from __future__ import annotations

import difflib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Unpack

from filelock import FileLock, Timeout

from studio.audio.atomic_file import storage_errors
from studio.audio.clip import Clip
from studio.audio.encode import write_wav
from studio.dialog.names import clean_name, name_key, same_name
from studio.errors import NameRejected, NotFound, SampleRejected, SpeakerExists, StorageFailed
from studio.speakers.colours import next_colour
from studio.speakers.record import Details, SpeakerRecord, read_record, write_record
from studio.speakers.sample import check_sample
from studio.speakers.speaker import Speaker

_RECORD = "speaker.json"
_SAMPLE = "sample.wav"
_LOCK_WAIT_S = 10.0

_Stamp = tuple[int, int, int]


class SpeakerLibrary:
    """Speakers on disk; safe to use from several threads and processes at once.

    Readers need no lock: a folder appears and vanishes whole. Names are unique whatever their case.
    Folder names are generated and never made from outside text.
    """

    def __init__(self, root: Path) -> None:
        """Use `root` as the library's folder; it is made with the first speaker."""
        self._root = root
        # One writer at a time, among threads and among processes.
        self._lock = FileLock(root / ".lock", timeout=_LOCK_WAIT_S)
        self._read: dict[Path, tuple[_Stamp, SpeakerRecord]] = {}

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

    def add(self, name: str, *, sample: Path | None = None, **details: Unpack[Details]) -> Speaker:
        """Keep a new speaker; without a colour it gets one that few others have.

        Raises:
            NameRejected: The name can't be written in a script.
            SpeakerExists: It is taken, in whatever case.
            AudioRejected: The sample can't be decoded.
            SampleRejected: The sample has a fatal problem.
            BadInput: A detail can't be used.
            StorageFailed: The library can't be written.
        """
        clip = _usable_clip(sample) if sample is not None else None
        with self._writing():
            self._check_free(clean_name(name))
            if not details.get("colour"):
                details["colour"] = next_colour(one.colour for one in self.list())
            record = SpeakerRecord.made(name, has_sample=clip is not None, details=details)
            speaker_id = secrets.token_hex(6)
            unfinished = self._root / f".new-{speaker_id}"
            unfinished.mkdir()
            if clip is not None:
                write_wav(unfinished / _SAMPLE, clip)
            write_record(unfinished / _RECORD, record)
            unfinished.rename(self._root / speaker_id)
        return self._speaker(speaker_id, record)

    def set_sample(
        self, name: str, sample: Path | None, *, transcript: str | None = None
    ) -> Speaker:
        """Give a speaker another sample with its transcript, or none.

        Raises:
            NotFound: There is no such speaker.
            AudioRejected: The sample can't be decoded; the earlier one stays.
            SampleRejected: The sample has a fatal problem; the earlier one stays.
            StorageFailed: The library can't be written.
        """
        clip = _usable_clip(sample) if sample is not None else None
        with self._writing():
            speaker = self.get(name)
            folder = self._root / speaker.speaker_id
            if clip is not None:
                write_wav(folder / _SAMPLE, clip)
            changed = self._rewrite(
                speaker, Details(transcript=transcript), has_sample=clip is not None
            )
            if clip is None:
                (folder / _SAMPLE).unlink(missing_ok=True)
        return changed

    def update(self, name: str, **details: Unpack[Details]) -> Speaker:
        """Change the given details and no others; None clears one.

        Raises:
            NotFound: There is no such speaker.
            BadInput: A detail can't be used.
            StorageFailed: The library can't be written.
        """
        with self._writing():
            return self._rewrite(self.get(name), details)

    def rename(self, old: str, new: str) -> Speaker:
        """Give a speaker another name; its folder and sample stay.

        Raises:
            NotFound: There is no speaker `old`.
            NameRejected: `new` can't be written in a script.
            SpeakerExists: Another speaker has `new`, in whatever case.
            StorageFailed: The library can't be written.
        """
        with self._writing():
            speaker = self.get(old)
            name = clean_name(new)
            if not same_name(speaker.name, name):
                self._check_free(name)
            return self._rewrite(speaker, Details(), name=name)

    def remove(self, name: str) -> None:
        """Delete a speaker and its sample for good.

        Raises:
            NotFound: There is no such speaker.
            StorageFailed: The library can't be written.
        """
        with self._writing():
            speaker_id = self.get(name).speaker_id
            gone = self._root / f".gone-{speaker_id}"
            (self._root / speaker_id).rename(gone)
            shutil.rmtree(gone)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the library's lock; clears what an interrupted writer left behind."""
        with storage_errors(self._root):
            self._root.mkdir(parents=True, exist_ok=True)
            try:
                with self._lock:
                    for pattern in (".new-*", ".gone-*"):
                        for leftover in self._root.glob(pattern):
                            shutil.rmtree(leftover)
                    yield
            except Timeout as error:
                raise StorageFailed(
                    f"Another process has held the speaker library at {self._root} for"
                    f" {_LOCK_WAIT_S:g} s. Close it, then try again."
                ) from error

    def _check_free(self, name: str) -> None:
        taken = self.find(name)
        if taken is not None:
            raise SpeakerExists(
                f"There is a speaker “{taken.name}” already. Choose another name, or change that"
                " speaker."
            )

    def _hint(self, name: str) -> str:
        names = {name_key(one.name): one.name for one in self.list()}
        near = difflib.get_close_matches(name_key(name), names, n=3)
        if near:
            return f"Did you mean {' or '.join(f'“{names[key]}”' for key in near)}?"
        return "Add it first."

    def _rewrite(
        self,
        speaker: Speaker,
        details: Details,
        *,
        name: str | None = None,
        has_sample: bool | None = None,
    ) -> Speaker:
        path = self._root / speaker.speaker_id / _RECORD
        record = read_record(path)
        changed = SpeakerRecord.made(
            name or record.name,
            has_sample=record.has_sample if has_sample is None else has_sample,
            details={**record.details, **details},
        )
        write_record(path, changed)
        return self._speaker(speaker.speaker_id, changed)

    def _speaker(self, speaker_id: str, record: SpeakerRecord) -> Speaker:
        sample = self._root / speaker_id / _SAMPLE if record.has_sample else None
        return Speaker(speaker_id, record.name, sample, **record.details)

    def _scan(self) -> tuple[tuple[Speaker, ...], tuple[str, ...]]:
        speakers: dict[str, Speaker] = {}
        problems = []
        for folder in self._folders():
            try:
                speaker = self._speaker(folder.name, self._record_of(folder))
            except StorageFailed as error:
                problems.append(str(error))
                continue
            first = speakers.setdefault(name_key(speaker.name), speaker)
            if first is not speaker:
                problems.append(
                    f"The speaker at {folder} is left out, since another one is named"
                    f" “{first.name}”, too. Remove one of the two folders."
                )
            elif speaker.sample is not None and not speaker.sample.is_file():
                problems.append(
                    f"The sample of {speaker.name} can't be found at {speaker.sample}. Choose a"
                    " recording again."
                )
        return tuple(speakers[key] for key in sorted(speakers)), tuple(problems)

    def _folders(self) -> tuple[Path, ...]:
        try:
            return tuple(
                path
                for path in sorted(self._root.iterdir())
                if path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
            )
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageFailed(
                f"The speaker library at {self._root} can't be read: {error.strerror}. Choose"
                " another workspace folder."
            ) from error

    def _record_of(self, folder: Path) -> SpeakerRecord:
        """Read a record, once for each state of its file."""
        path = folder / _RECORD
        try:
            status = path.stat()
        except OSError:
            return read_record(path)
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = self._read[path] = (stamp, read_record(path))
        return known[1]


def _usable_clip(path: Path) -> Clip:
    report = check_sample(path)
    if report.fatal:
        raise SampleRejected(report.fatal.message)
    return report.clip
