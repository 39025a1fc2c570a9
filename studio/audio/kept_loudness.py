"""What was measured of scenes: kept, so that the same scene isn't read again for its level.

Measuring an hour takes half a minute; a scene that is saved as MP3 and then as WAV, or again after
a restart, has the same level as before as long as nothing that is laid out has changed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from studio.audio.loudness import Loudness
from studio.audio.mastering import Master, Mastering
from studio.audio.timeline import Timeline
from studio.errors import FormatNewer, StorageFailed
from studio.storage.disk import Disk, read_file, storage_errors
from studio.storage.records import RecordFormat

log = logging.getLogger(__name__)

MAX_KEPT = 64
"""Scenes of which a measurement is kept; the one that was used longest ago goes."""

_FORMAT = RecordFormat("The list of measured levels")
_UNREADABLE_ERRORS = (OSError, ValueError, LookupError, TypeError, AttributeError, FormatNewer)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What is known of a scene's level.

    Attributes:
        master: How it is brought to a level.
        loudness: Of finished files, by their form: the suffix, and the bit rate if one was chosen.
    """

    master: Master
    loudness: Mapping[str, Loudness] = field(default_factory=dict)

    def find_loudness(self, form: str) -> Loudness | None:
        """The level of a file of that form, else of any: coding changes it by tenths of a dB."""
        return self.loudness.get(form) or next(iter(self.loudness.values()), None)

    def with_loudness(self, form: str, loudness: Loudness) -> Measurement:
        """The same with another file's level."""
        return replace(self, loudness={**self.loudness, form: loudness})


_ADAPTER: TypeAdapter[dict[str, Measurement]] = TypeAdapter(dict[str, Measurement])


def identify_scene(timeline: Timeline, speakers: Mapping[int, str], mastering: Mastering) -> str:
    """A digest of all that a scene's level depends on.

    A take never changes in its file, which size and time tell apart from another of that name.
    """
    spans: list[tuple[object, ...]] = []
    for span in timeline.spans():
        speaker = speakers.get(span.segment_idx) if mastering.even_voices else None
        source: tuple[object, ...] = ()
        if span.source is not None:
            with storage_errors(span.source):
                about = span.source.stat()
            source = (str(span.source), about.st_size, about.st_mtime_ns)
        # Only what isn't usual, so that what was measured of other scenes before is still known.
        settings = (("level", span.gain_db), ("pan", span.pan))
        own = (one for one in settings if one[1])
        spans.append((span.segment_idx, span.n_samples, speaker, *source, *own))
    target = mastering.target and (
        mastering.target.level_db,
        mastering.target.ceiling_db,
        mastering.target.scale.value,
    )
    written = json.dumps([spans, target, mastering.even_voices])
    return hashlib.sha256(written.encode("utf-8", "surrogateescape")).hexdigest()


class LoudnessStore:
    """The measurements of a workspace, in one small file; safe from any thread.

    A file that is damaged, or a disk that is full, costs a measurement and nothing else.
    """

    def __init__(self, path: Path | None = None, disk: Disk | None = None) -> None:
        """Keep them in a file, which is read when it is first needed; None keeps them in memory."""
        self._path = path
        self._disk = disk or Disk()
        # Guards the table, and the file.
        self._lock = threading.Lock()
        self._known: dict[str, Measurement] | None = None

    def find(self, key: str) -> Measurement | None:
        """What is known of a scene."""
        with self._lock:
            return self._load().get(key)

    def keep(self, key: str, measurement: Measurement) -> None:
        """Keep what was measured of a scene."""
        with self._lock:
            known = self._load()
            if known.pop(key, None) == measurement:
                known[key] = measurement
                return
            known[key] = measurement
            while len(known) > MAX_KEPT:
                del known[next(iter(known))]
            self._save(known)

    def _load(self) -> dict[str, Measurement]:
        if self._known is None:
            self._known = {} if self._path is None else _read(self._path)
        return self._known

    def _save(self, known: Mapping[str, Measurement]) -> None:
        if self._path is None:
            return
        record = {"scenes": {key: asdict(one) for key, one in known.items()}}
        try:
            _FORMAT.write(self._disk, self._path, record, synced=False)
        except StorageFailed as error:
            log.info("a measured level isn't kept: %s", error)


def _read(path: Path) -> dict[str, Measurement]:
    try:
        return _ADAPTER.validate_python(_FORMAT.decode(read_file(path))["scenes"])
    except FileNotFoundError:
        return {}
    except _UNREADABLE_ERRORS as error:
        log.info("%s can't be read, so levels are measured again: %s", path.name, error)
        return {}
