"""The folders that a studio keeps its files in."""

from __future__ import annotations

import secrets
from pathlib import Path

from studio.errors import StorageFailed


def writable(folder: Path) -> Path:
    """Make a folder and see that files can be written to it.

    Raises:
        StorageFailed: They can't; says how to choose another workspace.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise StorageFailed(
            f"The folder {folder} can't be written ({error.strerror}); choose another with "
            "--workspace or TABLEREAD_WORKSPACE."
        ) from error
    return folder
