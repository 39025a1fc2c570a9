"""The draft voice as a backend that also converts: a recording at the pitch of the voice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from studio.audio.clip import Clip
from studio.backends.base import Capabilities, Conditioning
from studio.backends.espeak.backend import DraftBackend
from studio.errors import AudioRejected, Cancelled


class ActingDraft(DraftBackend):
    """Turns a recording round in time, at half its level; waits while `held`."""

    name = "acting"
    title = "Acting draft"

    def __init__(self, *, held: bool = False) -> None:
        """Convert at once, or for `held` not before `released` is set."""
        super().__init__(workers=1)
        self.released = threading.Event()
        self.began = threading.Event()
        if not held:
            self.released.set()

    @property
    def capabilities(self) -> Capabilities:
        """The draft voice's, conversion, and words on how a line is spoken."""
        return replace(
            super().capabilities,
            voice_conversion=True,
            described_voices=True,
            instructions=True,
        )

    def convert(
        self,
        recording: Clip,
        conditioning: Conditioning,
        *,
        seed: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Clip:
        """As `ConvertsVoices` asks."""
        if not 0.2 <= recording.duration_s <= 60:
            raise AudioRejected("Record between 0.2 and 60 s.")
        self.began.set()
        while not self.released.wait(timeout=0.01):
            if cancelled():
                raise Cancelled("The conversion was stopped.")
        return Clip((recording.samples[::-1] * 0.5).astype(np.float32), recording.rate_hz)
