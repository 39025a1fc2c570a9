"""A take beside the others of its voice."""

from __future__ import annotations

from studio.audio.doubts import Doubt, Usual, stands_out, usual_of
from studio.project.take import Take, VoiceKey, voice_key
from studio.project.takes import TakeShelf

_OLD = 1.1
"""By how many times the takes of a voice may grow before they are looked at again."""


class Company:
    """Knows what is usual for each voice of a project. Under the session's lock."""

    def __init__(self, shelf: TakeShelf) -> None:
        """Nothing was looked at yet."""
        self._shelf = shelf
        self._usual: dict[VoiceKey, tuple[int, Usual | None]] = {}
        self._settled: dict[VoiceKey, int] = {}
        self._stood_out: set[str] = set()

    def doubts(self, take: Take) -> tuple[Doubt, ...]:
        """What may not be right about a take, by itself and beside the others."""
        return take.doubts + self._apart(take)

    def settle(self) -> list[str]:
        """After a render: look at the voices that have more takes than before.

        Returns:
            Lines with a take that stands out now, or did when it was asked about.
        """
        lines: set[str] = set()
        for voice in list(self._usual):
            takes = self._shelf.of_voice(voice)
            if len(takes) == self._settled.get(voice):
                continue
            self._settled[voice] = len(takes)
            self._look(voice)
            before = frozenset(self._stood_out)
            lines |= {one.line_id for one in takes if self._apart(one) or one.take_id in before}
        return sorted(lines)

    def _apart(self, take: Take) -> tuple[Doubt, ...]:
        if take.figures is None or take.cut:
            return ()
        voice = voice_key(take)
        n_known, usual = self._usual.get(voice, (0, None))
        if self._shelf.n_of_voice(voice) > _OLD * n_known:
            usual = self._look(voice)
        found = stands_out(take.figures, usual)
        if found:
            self._stood_out.add(take.take_id)
        return found

    def _look(self, voice: VoiceKey) -> Usual | None:
        takes = self._shelf.of_voice(voice)
        usual = usual_of([take.figures for take in takes if take.figures is not None])
        self._usual[voice] = (len(takes), usual)
        return usual
