"""How good the checks are on a project's own takes: judged on demand, kept in `judge.json`.

A kind of issue that is of no use for a voice in a language is switched off there, until the project
is judged again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from studio.audio.clip import Clip
from studio.audio.timeline import read_take
from studio.errors import (
    Cancelled,
    Conflict,
    FormatNewer,
    ModelUnavailable,
    SpeechFailed,
    StudioError,
)
from studio.hearing.draft_reading import DraftReader
from studio.hearing.fault_planting import PlantableTake
from studio.hearing.judge import AlignWords, CheckFigures, Judge, JudgeReport, Share
from studio.hearing.recognition import lower_priority
from studio.hearing.word_times import WordTime, align_words
from studio.project.document import LineKind, ProjectLine
from studio.project.line_states import ProjectState
from studio.project.takes import build_voice_key
from studio.project.word_timing import read_words
from studio.quality.checks import ExpectedSpeech, QualityReport
from studio.storage.disk import Disk, read_file
from studio.storage.records import RecordFormat

JUDGE_FORMAT = RecordFormat("The judgement of the checks")
JUDGE_FILE = "judge.json"

_MAX_CHARS = 600  # a longer line would take as long as ten others

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was found when a project was judged.

    Attributes:
        judged_at: ISO 8601 in UTC.
    """

    judged_at: str
    report: JudgeReport

    @property
    def checks_off(self) -> tuple[CheckFigures, ...]:
        """The checks that are switched off."""
        return tuple(one for one in self.report.checks if one.is_off)


_ADAPTER: TypeAdapter[Judgement] = TypeAdapter(Judgement)


def read_judgement(root: Path) -> Judgement | None:
    """Read a project's judgement; None if there is none, or none that can be read."""
    try:
        return _ADAPTER.validate_python(JUDGE_FORMAT.decode(read_file(root / JUDGE_FILE)))
    except (OSError, ValueError, FormatNewer):
        return None  # it can be judged again


def save_judgement(root: Path, judgement: Judgement, disk: Disk) -> None:
    """Save a project's judgement."""
    JUDGE_FORMAT.write(disk, root / JUDGE_FILE, _ADAPTER.dump_python(judgement, mode="json"))


def describe_judgement(judgement: Judgement | None) -> dict[str, Any]:
    """A judgement as JSON; `judged_at` is None before the first.

    Rates and the ends of their intervals are given of a hundred.
    """
    report = judgement.report if judgement else JudgeReport((), ())
    return {
        "judged_at": judgement.judged_at if judgement else None,
        "faults": [
            {
                "voice": one.voice,
                "language": one.language,
                "fault": one.fault.value,
                "label": one.fault.label,
                "found": _describe_share(one.found),
                "alarms": _describe_share(one.alarms),
            }
            for one in report.faults
        ],
        "off": [
            {
                "voice": one.voice,
                "language": one.language,
                "check": one.check,
                "message": one.describe_off(),
            }
            for one in (judgement.checks_off if judgement else ())
        ],
        "too_few": [
            {"voice": voice, "language": language, "takes": takes}
            for voice, language, takes in report.too_few
        ],
    }


def _describe_share(share: Share) -> dict[str, int]:
    low, high = share.interval
    return {
        "hits": share.hits,
        "trials": share.trials,
        "rate": round(100 * share.rate),
        "low": round(100 * low),
        "high": round(100 * high),
    }


class JudgeState(StrEnum):
    """Whether a project is being judged, and how that ended."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ProjectJudge:
    """Judges the checks on one project's takes; safe from any thread.

    Attributes:
        judgement: The latest one; None if there is none.
        state: Of the latest run.
        progress: Checks done, of how many.
        message: Why it failed.
    """

    def __init__(self, core: ProjectState) -> None:
        self._state = core
        self._stopped = threading.Event()
        # Guards the start of a run.
        self._lock = threading.Lock()
        core.folder.set_aside_damaged(
            JUDGE_FILE, JUDGE_FORMAT, "All checks are on again until it is judged anew."
        )
        self.judgement = read_judgement(core.folder.root)
        self.state = JudgeState.NONE if self.judgement is None else JudgeState.DONE
        self.progress = (0, 0)
        self.message: str | None = None
        self._apply()

    def start(self, turn: threading.Semaphore) -> None:
        """Judge in a thread, when it is its turn."""
        self._begin()

        def run() -> None:
            lower_priority()  # a render, and above all what is listened to, goes first
            while not turn.acquire(timeout=0.2):
                if self._stopped.is_set():
                    self._end(JudgeState.CANCELLED)
                    return
            try:
                self._run()
            finally:
                turn.release()

        threading.Thread(target=run, name="judge", daemon=True).start()

    def judge(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Judge now; the result is in `state`, `message` and `judgement`."""
        self._begin()
        self._run(on_progress)

    def stop(self) -> None:
        """Stop judging; what was known before stays."""
        self._stopped.set()

    def _begin(self) -> None:
        with self._lock:
            if self.state is JudgeState.RUNNING:
                raise Conflict("The checks are being judged already. Wait, or stop that first.")
            self.state, self.progress, self.message = JudgeState.RUNNING, (0, 0), None
            self._stopped.clear()

    def _run(self, on_progress: Callable[[int, int], None] = lambda done, total: None) -> None:
        """Judge; never raises."""
        try:
            report = self._judge(on_progress)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            judgement = Judgement(at, report)
            save_judgement(self._state.folder.root, judgement, self._state.folder.disk)
        except Cancelled:
            self._end(JudgeState.CANCELLED)
        except StudioError as error:
            self._end(JudgeState.FAILED, str(error))
        except Exception:
            # Broad, as this is the top of a thread: the log gets the fault, and the page a message.
            log.exception("project %s: judging failed", self._state.folder.root.name)
            self._end(JudgeState.FAILED, "The studio failed at this; its log says more.")
        else:
            self.judgement = judgement
            self._apply()
            self._end(JudgeState.DONE)

    def _judge(self, on_progress: Callable[[int, int], None]) -> JudgeReport:
        def report(done: int, total: int) -> None:
            self.progress = (done, total)
            on_progress(done, total)

        def judge(align: AlignWords | None) -> JudgeReport:
            return Judge(
                self._check,
                align,
                progress=report,
                cancelled=self._stopped.is_set,
            ).judge(collect_takes(self._state))

        try:
            reader = DraftReader()
        except ModelUnavailable:
            return judge(None)  # faults of words can't be planted then
        with closing(reader):
            return judge(partial(_align, reader))

    def _check(self, clip: Clip, said: ExpectedSpeech) -> QualityReport:
        """Check sound and words, as takes are checked."""
        deps = self._state.deps
        report = deps.engine.renderer.check(clip, said)
        if deps.checker is None:
            return report
        return replace(report, issues=report.issues + deps.checker.find_issues(clip, said))

    def _apply(self) -> None:
        checks = () if self.judgement is None else self.judgement.checks_off
        core = self._state
        with core.lock:
            before = core.outliers.checks_off
            core.outliers.checks_off = frozenset(
                (one.voice, one.language, str(kind)) for one in checks for kind in one.kinds
            )
            if core.outliers.checks_off != before:
                core.publish_lines(core.document.order)

    def _end(self, state: JudgeState, message: str | None = None) -> None:
        self.message = message
        self.state = state


def collect_takes(core: ProjectState) -> list[PlantableTake]:
    """The takes of a project that can be judged by: ready, whole, and of plain text."""
    with core.lock:
        return [take for line in core.document if (take := _make_plantable(core, line)) is not None]


def _make_plantable(core: ProjectState, line: ProjectLine) -> PlantableTake | None:
    lines, context = core.line_states, core.line_states.context
    take = lines.find_chosen(line)
    if line.kind is not LineKind.SPEECH or take is None or take.cut or not lines.is_ready(line):
        return None
    if take.source is not None:
        return None
    text = context.build_spoken_words(line, take.text).text
    if "[" in take.text or not 0 < len(text) <= _MAX_CHARS:
        return None
    speed = context.inherit(line).params.get("speed", 1.0)
    is_number = isinstance(speed, int | float) and not isinstance(speed, bool) and speed > 0
    language = line.language or context.resolve_language(line)
    return PlantableTake(
        partial(read_take, core.take_store.get_audio_path(take)),
        ExpectedSpeech(text, float(speed) if is_number else 1.0, language),
        take.voice,
        take.language,
        build_voice_key(take),
        read_words(take).words,
    )


def _align(reader: DraftReader, clip: Clip, text: str, language: str | None) -> Sequence[WordTime]:
    try:
        return align_words(clip, text, language, reader=reader)
    except SpeechFailed:
        return ()
