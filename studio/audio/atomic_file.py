"""Files that are either whole or not there."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from studio.errors import StorageFailed

log = logging.getLogger(__name__)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends without an error.

    The file is seekable, lies beside `path` until then, and is gone again after any error, which
    leaves an earlier file at `path` as it was.

    Raises:
        StorageFailed: The folder is missing, can't be written or is full.
    """
    unfinished = path.with_name(f".{secrets.token_hex(8)}.part")
    with storage_errors(path):
        try:
            with unfinished.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Tell an `OSError` of the block as a `StorageFailed` that names the file.

    Its folder goes to the log alone: whoever reads the message may be a stranger.
    """
    try:
        yield
    except OSError as error:
        log.info("%s: %s", path, error)
        reason = error.strerror or str(error)
        raise StorageFailed(
            f"“{path.name}” can't be written: {reason}. Free some space or choose a folder you may"
            " write to."
        ) from error
