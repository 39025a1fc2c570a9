"""Times the words of a project's takes, after they are saved and behind whatever is listened to."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from threading import Lock

from studio.dialog.text_view import TextView
from studio.errors import StudioError
from studio.hearing.word_aligner import WordAligner
from studio.hearing.word_times import Alignment, pack_phonemes, pack_words, unpack
from studio.hearing.written_words import place_in_written
from studio.project.render_queue import RenderQueue
from studio.project.takes import Take, TakeStore

log = logging.getLogger(__name__)


class WordTimer:
    """The aligner of a workspace, and the one thread that waits for it."""

    def __init__(self, aligner: WordAligner) -> None:
        self.aligner = aligner
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="words")

    def close(self) -> None:
        """Drop what waits, and wait for what is being aligned."""
        self.thread.shutdown(cancel_futures=True)


class WordTiming:
    """The takes of a project whose words are to be timed. Safe from any thread.

    While the line at the play-head has yet to be made, all wait: the processor is for that line.
    """

    def __init__(self, timer: WordTimer | None, takes: TakeStore, queue: RenderQueue) -> None:
        self._timer = timer
        self._takes = takes
        self._queue = queue
        self._lock = Lock()  # guards the table and the flag
        self._waiting: dict[str, tuple[TextView, str | None]] = {}
        self._is_submitted = False
        self._is_closed = False

    def add(self, take: Take, said: TextView, language: str | None) -> None:
        """Time a new take; as `time_now`, later."""
        if self._timer is not None and take.words is None:
            with self._lock:
                self._waiting[take.take_id] = (said, language)
            self.pump()

    def pump(self) -> None:
        """Go on, unless the line at the play-head is waited for; to be called when that changes."""
        if self._timer is None or self._is_closed or self._is_held:
            return
        with self._lock:  # one at a time, as other projects wait for the same thread
            if self._is_submitted or not self._waiting:
                return
            self._is_submitted = True
        with suppress(RuntimeError):  # the studio is closing
            self._timer.thread.submit(self._time_next)

    @property
    def _is_held(self) -> bool:
        return self._queue.play_head in self._queue.queued

    def _time_next(self) -> None:
        with self._lock:
            self._is_submitted = False
            if not self._waiting or self._is_closed or self._is_held:
                return
            take_id = next(iter(self._waiting))
            how = self._waiting.pop(take_id)
        take = self._takes.get(take_id)
        try:
            if take is not None and not self._takes.is_freed(take):
                self.time_now(take, *how)
        except StudioError as error:
            if self._timer is None or self._timer.aligner.is_closed:
                return  # the rest is timed when it is asked for
            log.warning("take %s: its words aren't timed: %s", take_id, error)
        self.pump()

    def time_now(self, take: Take, said: TextView, language: str | None) -> Take:
        """Time the words of a take, unless they are, and keep their times with it.

        Args:
            take: Of a line that is spoken.
            said: What is said of its text.
            language: The one it is spoken in; None for that of most of its letters.
        """
        if take.words is not None or self._timer is None:
            return take
        path = self._takes.get_audio_path(take)
        found = self._timer.aligner.align_file(path, said.text, take.language or language)
        words = pack_words(place_in_written(found.words, said, take.text))
        phonemes = pack_phonemes(found.phonemes)
        if self._is_closed:
            return replace(take, words=words, phonemes=phonemes)
        return self._takes.set_words(take.take_id, words, phonemes) or take

    def close(self) -> None:
        """Forget what waits; it is timed when it is asked for."""
        self._is_closed = True


def read_words(take: Take) -> Alignment:
    """The words and phonemes of a take, as far as they are timed."""
    return unpack(take.text, take.words or (), take.phonemes or "")
