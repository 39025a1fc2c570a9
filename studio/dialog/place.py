"""Where in a source something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from studio.errors import NameRejected, ScriptError


@contextmanager
def placed(line: int, *, unit: str = "Line") -> Iterator[None]:
    """Give errors raised inside their place, so that only the reader of a source counts lines.

    Raises:
        ScriptError: In place of one without a line, or of a NameRejected.
    """
    try:
        yield
    except (ScriptError, NameRejected) as error:
        if isinstance(error, ScriptError) and error.line is not None:
            raise
        raise ScriptError(str(error), line=line, unit=unit) from error
