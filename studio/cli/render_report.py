"""What `render` says at the end: for people, and as one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.audio.loudness import Loudness
from studio.audio.scene_file import SoundChoice, remarks
from studio.dialog.model import Notice
from studio.engine.doubtful import Doubtful, doubtful
from studio.engine.job import Failure, Job

_CUT = "What was made of it isn't whole and is left out."
_SAID_AGAIN = "It was begun again with another seed, and came to its end."
_TRIED_AGAIN = "It was spoken again with another seed, and the better one is kept."


@dataclass(frozen=True, slots=True)
class Written:
    """A file that was written, what it holds, and how it was wished."""

    out: Path
    loudness: Loudness
    sound: SoundChoice


def report(job: Job, lines: int, written: Written | None, *, as_json: bool) -> None:
    """Name the lines that failed or were cut on standard error; the sum goes to standard output.

    Args:
        job: One that is over.
        lines: Lines of the script.
        written: The file; None when there is none.
        as_json: Whether a program reads the sum.
    """
    for failure in job.failures():
        _say(failure, _CUT if failure.cut else "")
    for again in job.second_tries():
        _say(again, _TRIED_AGAIN if job.order.tries > 1 else _SAID_AGAIN)
    for one in doubtful(job):
        print(f"Line {one.line_number} may not be right: {one.message}", file=sys.stderr)
    for remark in remarks(written.loudness, written.sound) if written else ():
        print(remark, file=sys.stderr)
    print(json.dumps(_body(job, lines, written)) if as_json else _sum(job, written))


def tell(notices: Iterable[Notice]) -> None:
    """Show what a script may not mean, on standard error."""
    for notice in notices:
        place = f"Line {notice.line_number}: " if notice.line_number else ""
        print(f"{place}{notice.message}", file=sys.stderr)


def _say(failure: Failure, more: str) -> None:
    print(f"Line {failure.line_number}: {failure.message} {more}".rstrip(), file=sys.stderr)


def _sum(job: Job, written: Written | None) -> str:
    summary = job.summary()
    told = (
        f"{written.out if written else 'Nothing was written'}: {summary.audio_s:.1f} s of audio in "
        f"{summary.wall_s:.2f} s, {summary.failed} of {len(job.records)} segments failed, "
        f"at most {summary.max_in_flight} in flight with {job.order.backend_name}"
    )
    return f"{told}, {written.loudness}" if written else told


def _body(job: Job, lines: int, written: Written | None) -> dict[str, Any]:
    summary = job.summary()
    return {
        "backend": job.order.backend_name,
        "lines": lines,
        "segments": len(job.records),
        "failed": [_entry(failure) | {"cut": failure.cut} for failure in job.failures()],
        "second_tries": [_entry(again) for again in job.second_tries()],
        "doubtful": [_doubtful_entry(one) for one in doubtful(job)],
        "audio_s": summary.audio_s,
        "wall_s": summary.wall_s,
        "first_audio_s": summary.first_audio_s,
        "max_in_flight": summary.max_in_flight,
        "out": str(written.out) if written else None,
        "loudness_lufs": _rounded(written.loudness.lufs) if written else None,
        "true_peak_db": _rounded(written.loudness.true_peak_db) if written else None,
    }


def _rounded(level_db: float | None) -> float | None:
    return None if level_db is None else round(level_db, 2)


def _doubtful_entry(one: Doubtful) -> dict[str, Any]:
    kinds = [doubt.kind for doubt in one.doubts]
    place = {"segment_idx": one.segment_idx, "line": one.line_number}
    return {**place, "kinds": kinds, "message": one.message}


def _entry(failure: Failure) -> dict[str, Any]:
    return {
        "segment_idx": failure.segment_idx,
        "line": failure.line_number,
        "message": failure.message,
    }
