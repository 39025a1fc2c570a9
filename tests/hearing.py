"""A voice that remembers what it was given to speak."""

from __future__ import annotations

from studio.backends.espeak.backend import DraftBackend


class HearingDraft(DraftBackend):
    """Speaks as the draft voice does."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def speak(self, request):
        self.heard.append(request.text)
        yield from super().speak(request)
