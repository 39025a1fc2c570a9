"""Every error the studio raises on purpose.

StudioError
├── BadInput               what the person gave can't be used
│   ├── SettingError       an environment variable or option
│   ├── ScriptError        a script or dialog file; knows its line
│   ├── AudioRejected      a recording that can't be decoded or is too large
│   ├── SampleRejected     a recording that decodes but can't serve as a voice
│   └── NameRejected       a speaker's name
├── NotFound               a speaker, job or file that isn't there
├── Conflict               the state of things forbids it now
│   ├── SpeakerExists
│   ├── ModelInUse         unload refused while a lease is held
│   └── EditConflict       somebody else changed the same lines; knows which
├── EngineBusy             the queue is full; says when to come back
│   └── LimitReached       a visitor has had as much as one may have for now
├── NotAllowed             only the owner of the studio may do that
├── ModelUnavailable       a package, weights or device is missing; names the remedy
├── SpeechFailed           one segment could not be spoken
│   ├── OutOfMemory
│   └── ReadingChanged     it began again, and differs from what was played of it
├── SetupFailed            the environment can't be made or completed
├── StorageFailed          the workspace can't be read or written
│   ├── DiskFull           the disk has no room left
│   ├── NoRoom             a visitor's workspace is as large as it may be
│   ├── FileDamaged        a file has changed since the studio wrote it
│   └── FormatNewer        a newer studio wrote a file
└── Cancelled              the person stopped it

The domain raises; `api/` turns an error into a status and `ui/` into a message.
Every message is a full sentence for the person at the page and names the remedy. Whoever is at
another machine sees the names of files, but not where they are: `str(error)` holds no folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

_WORD = r"""[^/\\\s“”"'<>|:;()]+"""
_NAME = rf"{_WORD}(?:(?<!,) {_WORD})*"
_PATH = re.compile(
    # Not within an address or a relative path, nor an address of the studio's own.
    r"""(?<![\w.:/\\~-])(?:/(?!(?:v1|studio|gradio_api|healthz|metrics)\b)|[A-Za-z]:[\\/])"""
    rf"""(?:{_NAME}[/\\])+([^/\\\s“”"'<>|:;,()]*)"""
)


def hide_folders(message: str) -> str:
    """A message with the last name of each absolute path in it, for whoever may read it."""
    return _PATH.sub(lambda path: path[1] or "a folder", message)


class StudioError(Exception):
    """Base of every error the studio raises on purpose.

    As text it names files without their folders, because it may be shown to a visitor.

    Attributes:
        param: The field of a request that it is about, as a path; None where that isn't known.
    """

    param: str | None = None

    def __str__(self) -> str:
        return hide_folders(self.full_message)

    @property
    def full_message(self) -> str:
        return super().__str__()


@contextmanager
def about(param: str) -> Iterator[None]:
    """Say of the errors inside which field of a request they are about, or what is above it."""
    try:
        yield
    except StudioError as error:
        error.param = f"{param}.{error.param}" if error.param else param
        raise


class BadInput(StudioError):
    """What the person gave can't be used."""


class SettingError(BadInput):
    """An environment variable or a command-line option holds an unusable value."""


class ScriptError(BadInput):
    """A script or dialog file can't be read as a dialog.

    Attributes:
        line: 1-based line (or item) number in the source, None when it concerns all of it.
    """

    def __init__(self, message: str, *, line: int | None = None, unit: str = "Line") -> None:
        super().__init__(f"{unit} {line}: {message}" if line is not None else message)
        self.line = line


class AudioRejected(BadInput):
    """A recording can't be decoded, or is larger or longer than allowed."""


class SampleRejected(BadInput):
    """A recording decodes but can't serve as a speaker's sample."""


class NameRejected(BadInput):
    """A speaker's name is empty, too long, or holds characters a script can't write."""


class NotFound(StudioError):
    """A speaker, job or file that isn't there."""


class Conflict(StudioError):
    """It can't be done in the current state."""


class SpeakerExists(Conflict):
    """A speaker of that name (whatever its case) is in the library already."""


class ModelInUse(Conflict):
    """Unloading was refused because a lease is held."""


class EditConflict(Conflict):
    """Somebody else changed what an edit concerns; nothing of the edit was applied.

    Attributes:
        rev: The project's revision now.
        conflicts: What is in dispute: `op`, which of the edits, `line_id`, `field`, `mine` and
            `theirs` each.
    """

    def __init__(
        self, message: str, *, rev: int = 0, conflicts: Sequence[Mapping[str, object]] = ()
    ) -> None:
        super().__init__(message)
        self.rev = rev
        self.conflicts = list(conflicts)


class EngineBusy(StudioError):
    """The queue is full.

    Attributes:
        retry_after_s: Seconds after which a new try makes sense.
    """

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LimitReached(EngineBusy):
    """A visitor has used up a limit for now."""


class NotAllowed(StudioError):
    """Only the owner of the studio may do that."""


class ModelUnavailable(StudioError):
    """A package, weights or a device is missing; the message names the remedy."""


class SpeechFailed(StudioError):
    """One segment could not be spoken; the others go on."""


class OutOfMemory(SpeechFailed):
    """The device had no memory left for this segment, also on a second, smaller try."""


class ReadingChanged(SpeechFailed):
    """A segment had to begin again, and its audio differs from what was delivered of it."""


class SetupFailed(StudioError):
    """The environment can't be made or completed; the message names the remedy."""


class StorageFailed(StudioError):
    """The workspace can't be read or written."""


class DiskFull(StorageFailed):
    """The disk has no room, or the user's share of it is used up."""


class NoRoom(StorageFailed):
    """A visitor's workspace is as large as it may be."""


class FileDamaged(StorageFailed):
    """A file has changed since the studio wrote it, and nothing can stand in for it."""


class FormatNewer(StorageFailed):
    """A newer studio wrote a file; it isn't touched."""


class Cancelled(StudioError):
    """The user stopped it."""
