"""`judge`: says how good the checks are on a project's own takes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from functools import partial

from studio.cli.render import ProgressBar
from studio.errors import BadInput, NotFound
from studio.hearing.judge import FaultFigures, Share
from studio.project.folder import ProjectSummary
from studio.project.judgement import Judgement, describe_judgement
from studio.services.studio import Studio

_COLUMNS = ("VOICE", "LANGUAGE", "PLANTED", "FOUND OF 100", "FALSE ALARMS OF 100")


def run_judge(arguments: argparse.Namespace, open_studio: Callable[[], Studio]) -> int:
    """Judge the checks on a project's takes, keep the result, and print it.

    Returns:
        0.

    Raises:
        NotFound: There is no such project.
        BadInput: Several have that name, or it has too few takes.
    """
    with open_studio() as studio:
        chosen = _find_project(studio.projects.list_summaries(), arguments.project)
        session = studio.projects.open(chosen.project_id)
        bar = ProgressBar(sys.stderr, quiet=arguments.json, of="checks")
        session.judge.judge(partial(bar.show, remaining_s=None))
        judgement = session.judge.judgement
        if session.judge.message is not None or judgement is None:
            raise BadInput(session.judge.message or "The checks weren't judged.")
    if arguments.json:
        print(json.dumps(describe_judgement(judgement)))
    else:
        print("\n".join(_describe(judgement)))
    return 0


def _find_project(projects: Iterable[ProjectSummary], name: str) -> ProjectSummary:
    """The project with an id or a name."""
    known = list(projects)
    found = [one for one in known if one.project_id == name]
    found = found or [one for one in known if one.name.casefold() == name.casefold()]
    if not found:
        names = ", ".join(f"“{one.name}”" for one in known[:10]) or "none"
        raise NotFound(f"There is no project “{name}” in this workspace. It has: {names}.")
    if len(found) > 1:
        ids = ", ".join(one.project_id for one in found)
        raise BadInput(f"{len(found)} projects are named “{name}”. Give an id: {ids}.")
    return found[0]


def _describe(judgement: Judgement) -> Iterable[str]:
    rows = [_COLUMNS, *map(_build_row, judgement.report.faults)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
    yield from (one.describe_off() for one in judgement.checks_off)
    for voice, language, takes in judgement.report.too_few:
        place = f" in {language}" if language else ""
        yield f"{voice}{place} has {takes} takes to judge by, which are too few."


def _build_row(one: FaultFigures) -> tuple[str, ...]:
    language = one.language or "not said"
    return one.voice, language, one.fault.label, _show(one.found), _show(one.alarms)


def _show(share: Share) -> str:
    low, high = share.interval
    return f"{100 * share.rate:.0f} ({100 * low:.0f} to {100 * high:.0f}), n = {share.trials}"
