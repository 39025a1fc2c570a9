"""What can go wrong between the studio and a speech server; `line.py` ends all of it.

RemoteError
├── ServerFault      this try failed; another may do better
│   ├── Busy         full: says when to come back
│   ├── Unreachable  no answer at all, or it broke off: the server counts as down
│   └── Garbled      an answer, but no speech
└── Refused          no try will do better; the message is for the person
    └── Declined     not on this server; another one may take it
"""

from __future__ import annotations


class RemoteError(Exception):
    """Base; the message is a clause without a full stop, free of keys and recordings."""


class ServerFault(RemoteError):
    """This try failed; another may do better."""


class Busy(ServerFault):
    """The server is full.

    Attributes:
        retry_after_s: When it wants to be asked again; None when it doesn't say.
    """

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        """Keep the time beside the message."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unreachable(ServerFault):
    """The server doesn't answer, or broke off in the middle."""


class Garbled(ServerFault):
    """The server answered with an error of its own, or with something that isn't whole speech."""


class Refused(RemoteError):
    """The server won't do this, however often it is asked."""


class Declined(Refused):
    """This server won't do it; another one may.

    Attributes:
        always: Whether it would decline any line: its key, path or model isn't the one asked for.
    """

    def __init__(self, message: str, *, always: bool = False) -> None:
        """Keep beside the message whom it concerns."""
        super().__init__(message)
        self.always = always
