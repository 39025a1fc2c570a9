"""The model hub's cache on this disk, in the layout of the hub's own library.

`blobs/<etag>` hold the files, `snapshots/<commit>/<path>` link to them, and `refs/<revision>` name
a commit.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from huggingface_hub import constants


def model_folder(name: str) -> Path:
    """The cache's folder of a model."""
    return Path(constants.HF_HUB_CACHE) / "--".join(("models", *name.split("/")))


def snapshot(name: str, revision: str | None) -> Path | None:
    """A model's files in the cache, complete or not; None when there are none.

    Args:
        name: The model's name on the hub.
        revision: Branch, tag or commit; None for the hub's default.
    """
    model = model_folder(name)
    ref = model / "refs" / (revision or constants.DEFAULT_REVISION)
    commit = ref.read_text().strip() if ref.is_file() else revision
    folder = model / "snapshots" / commit if commit else None
    return folder if folder is not None and folder.is_dir() else None


def blob_path(model: Path, commit: str, path: str, *, etag: str) -> None:
    """Make a blob a file of a snapshot: a link to it, or a copy where links aren't allowed."""
    file = model / "snapshots" / commit / path
    blob = model / "blobs" / etag
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)  # it may link to a blob that is gone
    try:
        file.symlink_to(os.path.relpath(blob, file.parent))
    except OSError:
        shutil.copyfile(blob, file)


def note_ref(model: Path, revision: str, commit: str) -> None:
    """Remember which commit a branch or tag stood for."""
    if revision == commit:
        return
    ref = model / "refs" / revision
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)
