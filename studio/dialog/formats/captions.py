"""Subtitles to a dialog: cues become lines, the time between them silence."""

from __future__ import annotations

from studio.dialog.attributes import Attributes, checked_language
from studio.dialog.formats.building import DialogBuilder
from studio.dialog.formats.cue_text import CueReader, Utterance
from studio.dialog.formats.cues import Cue, read_cues
from studio.dialog.formats.remarks import Remarks
from studio.dialog.model import MAX_PAUSE_S, ParsedScript
from studio.errors import ScriptError

_UNREADABLE = (
    "This timing can't be read. The text is kept, without a pause before it. "
    "Write 00:01:02,500 --> 00:01:04,000."
)
_MISSING = "This text has no timing above it. It is kept, without a pause before it."
_OVERLAP = (
    "This cue begins before the one above it ends. Lines are spoken one after another, "
    "in the order of the file."
)
_SOUND = "This only describes a sound, such as [door creaks]; it is left out."
_LATE = "The first cue comes at {:.0f} s; the time before it is left out."
_NOTHING = (
    "The subtitles hold no text. A cue is a timing, such as 00:00:01,000 --> 00:00:03,000, "
    "with “Anna: Good evening.” on the line below."
)


def read_captions(text: str, remarks: Remarks, *, is_vtt: bool, min_gap_s: float) -> ParsedScript:
    """Read SRT or WebVTT.

    Args:
        text: The whole file.
        remarks: Takes what is broken or left out.
        is_vtt: Whether it is WebVTT.
        min_gap_s: The shortest time between two cues that becomes silence.

    Raises:
        ScriptError: No cue holds text, or one holds text that can't be kept.
    """
    cues = read_cues(text, is_vtt=is_vtt)
    reader = CueReader(cues, is_vtt=is_vtt)
    scene = _Scene(DialogBuilder(remarks), round(1000 * min_gap_s))
    for cue in cues:
        scene.add(cue, reader.read(cue))
    return scene.builder.finish(nothing_found=_NOTHING)


class _Scene:
    """Takes cues in the order of the file."""

    def __init__(self, builder: DialogBuilder, min_gap_ms: int) -> None:
        self.builder = builder
        self._min_gap_ms = min_gap_ms
        self._end_ms: int | None = 0
        self._is_first = True

    def add(self, cue: Cue, utterances: list[Utterance]) -> None:
        if not utterances:
            return
        self._remark_on_timing(cue)
        self._pause_before(cue)
        for utterance in utterances:
            if utterance.is_only_a_sound:
                self.builder.remarks.add(_SOUND, utterance.line_number)
            else:
                self._speak(utterance)
        self._is_first = False

    def _remark_on_timing(self, cue: Cue) -> None:
        if not cue.timing:
            self.builder.remarks.add(_MISSING, cue.line_number)
        elif cue.start_ms is None:
            self.builder.remarks.add(_UNREADABLE, cue.line_number)

    def _pause_before(self, cue: Cue) -> None:
        """Lay the gap before a cue; beside a broken timing no gap is known."""
        end_ms, self._end_ms = self._end_ms, cue.end_ms
        if cue.start_ms is None or cue.end_ms is None or end_ms is None:
            return
        gap_ms = cue.start_ms - end_ms
        if gap_ms < 0:
            self.builder.remarks.add(_OVERLAP, cue.line_number)
            self._end_ms = max(end_ms, cue.end_ms)
        elif self._is_first and gap_ms > 1000 * MAX_PAUSE_S:
            self.builder.remarks.add(_LATE.format(gap_ms / 1000), cue.line_number)
        elif gap_ms and gap_ms >= self._min_gap_ms:
            self.builder.silence(gap_ms / 1000, cue.line_number)

    def _speak(self, utterance: Utterance) -> None:
        number = utterance.line_number
        attributes = self._checked(utterance.attributes, number)
        self.builder.speech(utterance.speaker, utterance.text, number, attributes)

    def _checked(self, attributes: Attributes, number: int) -> Attributes:
        if attributes.language is None:
            return attributes
        try:
            language = checked_language(attributes.language)
        except ScriptError as error:
            self.builder.remarks.add(f"{error} It is left out.", number)
            return Attributes(None, attributes.seed, attributes.params)
        return Attributes(language, attributes.seed, attributes.params)
