"""Warnings about lines and pronunciations before a render: what the voice can't do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, takewhile
from operator import attrgetter
from typing import Any

from studio.backends.base import Backend, ReportsLanguageGaps
from studio.dialog.directions import (
    Direction,
    DirectionKind,
    Effect,
    describe_effect,
    find_directions,
    find_effect,
)
from studio.dialog.model import (
    Dialog,
    Notice,
    ParamValue,
    Speech,
    SpeechLimits,
    name_key,
    normalize_spoken_text,
)
from studio.dialog.planning import (
    INSTRUCT,
    MAX_DURATION,
    NO_SETTINGS,
    FailedSegment,
    Plan,
    PlanCheck,
    SpeechSegment,
    plan,
)
from studio.dialog.pronunciation import Pronunciation, PronunciationRules
from studio.errors import BadInput, ScriptError
from studio.project import folder as layout
from studio.project.characters import Character
from studio.project.document import Document, LineKind, ProjectLine, check_audio_name
from studio.project.ops import Insert, Op, SetCharacter, SetFields
from studio.project.session import ProjectSession


def check_settings(dialog: Dialog, backend: Backend, others: Iterable[Backend]) -> None:
    """Check what lines set for themselves, before any of them is spoken.

    What only another voice engine has is left out with a notice, as a script is made for several.

    Args:
        dialog: The lines.
        backend: The one that is to speak them.
        others: All of them.
    """
    _check_dialog(dialog, _SettingsCheck(backend, others), frozenset())


def check_script(session: ProjectSession, dialog: Dialog, others: Iterable[Backend]) -> None:
    """Check what a script sets for the lines of a project, as `check_settings`.

    What a line of the project has already passes, as in `check_edits`: its script has it, too.
    """
    known = _list_known(session.document)
    _check_dialog(dialog, _SettingsCheck(session.backend, others), known)


def _check_dialog(dialog: Dialog, check: _SettingsCheck, known: frozenset[_Setting]) -> None:
    for line in dialog:
        if isinstance(line, Speech) and line.params:
            try:
                check.check(_leave_out(line.params, known))
            except BadInput as error:
                raise ScriptError(str(error), line=line.line_number) from error


def check_edits(session: ProjectSession, edits: Iterable[Op], others: Iterable[Backend]) -> None:
    """Check what edits set for lines and characters, as `check_settings`.

    What a line has already passes: a page sends all settings of a line, also those that fitted
    another engine or come from an earlier studio, and copies lines with all that they have.

    Raises:
        BadInput: As `check_settings`; lines that are inserted are counted by themselves.
    """
    document = session.document

    @cache
    def get_check() -> _SettingsCheck:  # when there is something to check, as in few edits
        return _SettingsCheck(session.backend, others)

    @cache
    def list_known() -> frozenset[_Setting]:
        return _list_known(document)

    for edit in edits:
        match edit:
            case SetFields(line_ids=line_ids, fields={"params": Mapping() as params}):
                lines = [line for one in line_ids if (line := document.lines.get(one))]
                had = [_list_settings(line) for line in lines]
                new = _leave_out(params, frozenset.intersection(*had) if had else frozenset())
                try:
                    get_check().check(new)
                except BadInput as error:
                    place = _number_line(document, line_ids)
                    raise BadInput(f"Line {place}: {error}") from error
            case SetCharacter(speaker=speaker, fields={"params": Mapping() as params}):
                kept = _list_settings(document.find_character(speaker))
                try:
                    get_check().check(_leave_out(params, kept))
                except BadInput as error:
                    raise BadInput(f"{speaker}: {error}") from error
            case Insert(lines=inserted):
                for number, new_line in enumerate(inserted, start=1):
                    _check_inserted(new_line.get("params"), number, get_check, list_known)


def _check_inserted(
    params: object,
    number: int,
    get_check: Callable[[], _SettingsCheck],
    list_known: Callable[[], frozenset[_Setting]],
) -> None:
    if not params or not isinstance(params, Mapping):
        return
    try:
        get_check().check(_leave_out(params, list_known()))
    except BadInput as error:
        raise BadInput(f"New line {number}: {error}") from error


def fit_settings(
    dialog: Dialog, backend: Backend, others: Iterable[Backend]
) -> tuple[Dialog, tuple[Notice, ...]]:
    """Leave out what lines set that no voice engine can take, as tables of others have columns.

    Args:
        dialog: The lines.
        backend: The one that is to speak them.
        others: All of them.

    Returns:
        The lines, and what was left out.
    """
    unfit = _UnfitSettings(_SettingsCheck(backend, others))
    lines = [
        replace(line, params=unfit.leave_out(line.params, line.line_number))
        if isinstance(line, Speech) and line.params
        else line
        for line in dialog
    ]
    return Dialog(tuple(lines)), unfit.list_notices("It is left out.")


def find_unfit_settings(session: ProjectSession, others: Iterable[Backend]) -> tuple[Notice, ...]:
    """What lines of a project have set that no voice engine can take, as of an earlier studio.

    Args:
        session: The project.
        others: All engines.

    Returns:
        A notice for each such setting, with the number that the page gives to its first line.
    """
    unfit = _UnfitSettings(_SettingsCheck(session.backend, others))
    number = 1
    for line in session.document:
        unfit.leave_out(line.params, number)
        number += line.kind is not LineKind.SILENCE
    return unfit.list_notices("It stays as it was saved.")


class _UnfitSettings:
    """Collects what a check refuses, by message."""

    _MAX_NOTICES = 10

    def __init__(self, check: _SettingsCheck) -> None:
        self._check = check
        self._lines: dict[str, list[int]] = {}

    def leave_out(
        self, params: Mapping[str, ParamValue], line_number: int
    ) -> dict[str, ParamValue]:
        """The settings that pass."""
        kept = {}
        for name, value in params.items():
            try:
                self._check.check({name: value})
                kept[name] = value
            except BadInput as error:
                self._lines.setdefault(str(error), []).append(line_number)
        return kept

    def list_notices(self, outcome: str) -> tuple[Notice, ...]:
        """What didn't pass, and what became of it."""
        named = list(self._lines.items())[: self._MAX_NOTICES]
        notices = [
            Notice(f"{message}{_count_others(len(lines) - 1)} {outcome}", lines[0])
            for message, lines in named
        ]
        if left := len(self._lines) - len(named):
            notices.append(Notice(f"{left:,} further settings can't be taken either. {outcome}"))
        return tuple(notices)


def _count_others(count: int) -> str:
    if not count:
        return ""
    return f" So it is in {count:,} other {'line' if count == 1 else 'lines'}."


_PARAMS = attrgetter("params")

_Setting = tuple[str, bool, ParamValue]
"""A name, whether its value is true or false, which equal 1 and 0 otherwise, and the value."""


def _list_settings(line: ProjectLine | Character) -> frozenset[_Setting]:
    return frozenset((name, isinstance(one, bool), one) for name, one in line.params.items())


def _list_known(document: Document) -> frozenset[_Setting]:
    """All that lines have set."""
    return frozenset(chain.from_iterable(map(_list_settings, filter(_PARAMS, document))))


def _number_line(document: Document, line_ids: Collection[str]) -> int:
    """The place of the first of some lines, as the page counts: pauses have no number."""
    before = takewhile(lambda one: one.line_id not in line_ids, document)
    return 1 + sum(one.kind is not LineKind.SILENCE for one in before)


def _leave_out(params: Mapping[str, Any], known: frozenset[_Setting]) -> dict[str, Any]:
    def is_known(name: str, value: Any) -> bool:
        return (
            isinstance(value, str | int | float) and (name, isinstance(value, bool), value) in known
        )

    return {name: value for name, value in params.items() if not is_known(name, value)}


class _SettingsCheck:
    """Checks settings of lines for a backend; what only another one has passes."""

    def __init__(self, backend: Backend, others: Iterable[Backend]) -> None:
        self._title, self._can = backend.title, backend.capabilities
        known = {param.name for one in others for param in one.capabilities.line_params}
        own = {param.name for param in self._can.line_params}
        self._passing = (known | NO_SETTINGS | {INSTRUCT}) - own

    def check(self, params: Mapping[str, Any]) -> None:
        allowed_s = params.get(MAX_DURATION)
        if allowed_s is not None and not (isinstance(allowed_s, int | float) and allowed_s > 0):
            raise BadInput(f"max_duration is the most seconds a line may last, not {allowed_s}.")
        judged = {name: value for name, value in params.items() if name not in self._passing}
        self._can.check_params(self._title, judged)


def check_lines(
    session: ProjectSession, line_ids: Collection[str] | None = None
) -> dict[str, list[str]]:
    """Find tags that a voice would read aloud, and settings and moods that it doesn't have.

    Beyond 50,000 brackets, nothing is said of what is in those of further lines.

    Args:
        session: The project.
        line_ids: The lines to check; None for all.

    Returns:
        Warnings by line; lines without any are left out.
    """
    check = _LineChecker(session)
    found = {}
    for line in session.document:
        if line_ids is not None and line.line_id not in line_ids:
            continue
        if line.kind is LineKind.AUDIO:
            found[line.line_id] = _check_audio(session, line)
        elif line.kind is LineKind.SPEECH and normalize_spoken_text(line.text):
            found[line.line_id] = check.list_warnings(line)
    return {line_id: messages for line_id, messages in found.items() if messages}


@dataclass(frozen=True, slots=True)
class DirectionNote:
    """A stage direction in a line's text.

    Attributes:
        start: Its place in UTF-16 units, as browsers count.
        end: As `start`.
        note: How the voice follows it, or that it doesn't.
        followed: Whether it does; a cue is none for a voice.
    """

    start: int
    end: int
    note: str
    followed: bool


def find_line_directions(
    session: ProjectSession, line_ids: Collection[str] | None = None
) -> dict[str, list[DirectionNote]]:
    """Find the stage directions that aren't spoken, by line; lines without any are left out.

    Beyond 50,000 brackets, further lines aren't looked at: each direction is marked on the page.

    Args:
        session: The project.
        line_ids: The lines to look at; None for all.
    """
    limits = session.backend.capabilities.limits()
    list_moods = cache(session.cast.list_moods)
    found: dict[str, list[DirectionNote]] = {}
    check = PlanCheck()
    for line in session.document:
        if line.kind is not LineKind.SPEECH or (
            line_ids is not None and line.line_id not in line_ids
        ):
            continue
        if check.takes(line.text) and (directions := find_directions(line.text)):
            moods = list_moods(line.speaker or "")
            found[line.line_id] = list(_describe(line.text, directions, limits, moods))
    return {line_id: notes for line_id, notes in found.items() if notes}


def _describe(
    text: str, directions: Iterable[Direction], limits: SpeechLimits, moods: Collection[str]
) -> Iterator[DirectionNote]:
    known: dict[tuple[str, str], tuple[str, bool]] = {}
    units = end = 0
    for one in directions:
        if one.is_spoken:
            continue
        key = one.kind, one.words
        if key not in known:
            has_effect = find_effect(one, limits, moods) is not Effect.NONE
            is_followed = has_effect or one.kind is DirectionKind.CUE
            known[key] = describe_effect(one, limits, moods), is_followed
        start = units + _count_units(text[end : one.start])
        units, end = start + _count_units(text[one.start : one.end]), one.end
        yield DirectionNote(start, units, *known[key])


def _count_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _find_first_lines(document: Document) -> frozenset[str]:
    """The first line of each speaker in each language, and the first without a language."""
    first: dict[tuple[str, str | None], str] = {}
    for line in document:
        if line.speaker is not None and normalize_spoken_text(line.text):
            first.setdefault((name_key(line.speaker), line.language), line.line_id)
    return frozenset(first.values())


def _check_audio(session: ProjectSession, line: ProjectLine) -> list[str]:
    """Warn if the file of an audio line is missing."""
    view = session.get_view(line.line_id)
    if view is None or view.take is not None:
        return []
    try:
        path = session.folder.root / layout.AUDIO_FOLDER / check_audio_name(line.path or "")
    except BadInput as error:
        return [str(error)]
    if path.is_file():
        return []
    return [f"“{line.path}” isn't in this project yet. Choose the file, or drop it on this line."]


_MAX_SPOKEN_CHARS = 2_000_000
"""What pronunciations may add to the lines that are checked; spoken forms are checked themselves,
where the list is edited."""


class _LineChecker:
    """Plans lines one by one; looks up each speaker in the library once."""

    def __init__(self, session: ProjectSession) -> None:
        backend = session.backend
        self._can = backend.capabilities
        self._limits = self._can.limits()
        self._kinds = self._can.voice_kinds()
        self._find_lack = backend.lacks if isinstance(backend, ReportsLanguageGaps) else None
        self._cast = session.cast
        self._list_languages = cache(self._cast.list_languages)
        self._list_moods = cache(self._cast.list_moods)
        self._say = session.render_context.pronouncing.spoken
        self._check = PlanCheck()
        self._left_chars = _MAX_SPOKEN_CHARS
        self._first_lines = _find_first_lines(session.document)
        self._of_voices: dict[tuple[str, str], list[str]] = {}

    def _pronounce(self, text: str, language: str | None) -> str:
        """The spoken text of a line, or the written one once all of them became very long."""
        if self._left_chars <= 0:
            return text
        said = self._say(text, language)
        self._left_chars -= max(0, len(said) - len(text))
        return said

    def list_warnings(self, line: ProjectLine) -> list[str]:
        planned = self._check.plan(
            Dialog((line.to_dialog_line(),)),
            self._limits,
            languages_of=self._list_languages,
            moods_of=self._list_moods,
            pronounce=self._pronounce,
        )
        # What the voice can't follow is shown with the directions, and needs no check.
        quiet = {notice.message for notice in planned.unfollowed}
        return [
            *(one for one in _list_plan_warnings(planned) if one not in quiet),
            *self._check_voice(planned),
            *self._check_language(line),
        ]

    def _check_voice(self, planned: Plan) -> list[str]:
        """Warn if the speaker has no voice on this backend, or no sample of the line's mood."""
        spoken = [one for one in planned.segments if isinstance(one, SpeechSegment)][:1]
        if not spoken:
            return []
        key = (name_key(spoken[0].speaker), name_key(spoken[0].mood or ""))
        if key not in self._of_voices:
            notices = self._cast.find_notices(spoken, self._kinds)
            self._of_voices[key] = [notice.message for notice in notices]
        return self._of_voices[key]

    def _check_language(self, line: ProjectLine) -> list[str]:
        """Warn once for each speaker: nobody has to set the language of each English line."""
        if line.line_id not in self._first_lines:
            return []
        known = self._list_languages(line.speaker or "")
        language = next(filter(None, (line.language, *known)), None)
        lack = self._find_lack(language) if self._find_lack and language else None
        return [lack] if lack else []


def _list_plan_warnings(planned: Plan) -> list[str]:
    """The errors of a plan, then its notices."""
    failed = [one.message for one in planned.segments if isinstance(one, FailedSegment)]
    return [*failed, *(notice.message for notice in planned.notices)]


_TAG_STARTS = frozenset("[(<")


@dataclass(frozen=True, slots=True)
class PronunciationEffects:
    """The effects of a list of pronunciations.

    Attributes:
        lines: How many lines each entry changes, by the word; has all entries. A disabled entry
            counts as if it were enabled.
        hints: Warnings about entries, by the word.
        example: A line's text with its spoken form, if a word was asked about.
    """

    lines: Mapping[str, int]
    hints: Mapping[str, list[str]]
    example: tuple[str, str] | None = None


def find_pronunciation_effects(
    document: Document, limits: SpeechLimits, asked: Pronunciation | None = None
) -> PronunciationEffects:
    """Find the effects on a document's lines.

    Args:
        document: Lines and their pronunciations.
        limits: The backend's.
        asked: An entry that is being written; it counts as if it were saved.
    """
    entries = {**document.pronunciations, **({asked.written: asked} if asked else {})}
    texts = [normalize_spoken_text(line.text) for line in document if line.kind is LineKind.SPEECH]
    uses = PronunciationRules(_enable_entry(one) for one in entries.values()).uses(texts)
    return PronunciationEffects(
        {written: uses[written] for written in entries},
        {
            written: hints
            for written, one in entries.items()
            if (hints := _find_warnings(one, limits))
        },
        _find_example(texts, PronunciationRules(entries.values()), asked),
    )


def _enable_entry(entry: Pronunciation) -> Pronunciation:
    return Pronunciation(entry.written, entry.spoken, entry.match_case)


def _find_warnings(entry: Pronunciation, limits: SpeechLimits) -> list[str]:
    """Warn about tags in a spoken form."""
    if _TAG_STARTS.isdisjoint(entry.spoken):
        return []
    return _list_plan_warnings(plan(Dialog((Speech("Voice", entry.spoken),)), limits))


def _find_example(
    texts: list[str], pronouncing: PronunciationRules, asked: Pronunciation | None
) -> tuple[str, str] | None:
    if asked is None:
        return None
    own = PronunciationRules([asked])  # one word is looked for soon, where most texts haven't it
    found = (
        text
        for text in texts
        if own.find_first(text) is not None and asked.written in pronouncing.used(text)
    )
    text = next(found, None)
    return None if text is None else (text, pronouncing.spoken(text))
