"""Where somebody was last in a project, so that another device goes on there.

It is no part of the dialog: no edit, no step of undo, and left out of copies and files. A workspace
is one person's, so there is one such place in a project, whichever device it was left on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from studio.project.disk import Disk
from studio.project.ops import LineId

_FILE = "place.json"


class Whereabouts(BaseModel):
    """A place in a project.

    Attributes:
        line_id: The line one was at.
        heard: The line under the play-head.
        by: The browser that says so.
        number: Rises with each place that is kept.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    line_id: LineId | None = None
    heard: LineId | None = None
    by: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    number: Annotated[int, Field(ge=0)] = 0


def kept_place(root: Path) -> Whereabouts | None:
    """The place that was left last in a project's folder; None where there is none to read."""
    try:
        return Whereabouts.model_validate_json((root / _FILE).read_bytes())
    except (OSError, ValidationError):
        return None  # one begins at the top: no reason to keep a project shut


def keep_place(root: Path, place: Whereabouts, disk: Disk) -> Whereabouts:
    """Keep a place, under the next number; the lines needn't be there any more.

    Raises:
        StorageFailed: It can't be written; the former one stays.
    """
    former = kept_place(root)
    number = former.number + 1 if former else 1
    kept = place.model_copy(update={"number": number})
    disk.write_whole(root / _FILE, kept.model_dump_json().encode())
    return kept
