"""The engine under the names of faster-qwen3-tts-batch, for programs written for that package."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from studio.audio.clip import Samples
from tableread_engine.line_request import LineRequest
from tableread_engine.speech_model import SpeechModel
from tableread_engine.speech_scheduler import SpeechScheduler

log = logging.getLogger(__name__)


class BatchedFasterQwen3TTS(SpeechModel):
    """`SpeechModel` under that package's names."""

    @classmethod
    def from_pretrained(  # type: ignore[override] # its names differ, which is what it is for
        cls,
        source: str | Path,
        *,
        max_batch_size: int = 4,
        max_seq_len: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Load a model; see `SpeechModel.from_pretrained`.

        Args:
            source: A folder or a name on the hub.
            max_batch_size: Lines decoded together.
            max_seq_len: Positions of a line: its prompt and its frames.
            device: "cuda", "mps" or "cpu"; None for the best there is.
        """
        return super().from_pretrained(
            source, slots=max_batch_size, positions=max_seq_len, device=device
        )

    def warmup(self, prefill_len: int = 100) -> None:
        """Do nothing: `from_pretrained` has prepared and captured the steps of all lengths."""

    def generate_voice_clone_batch(
        self, requests: Iterable[LineRequest | Mapping[str, Any]], **defaults: Any
    ) -> list[tuple[list[Samples], int]]:
        """Speak lines together; see `SpeechModel.generate`.

        Args:
            requests: As there.
            defaults: `max_new_tokens` and parameters, for requests without their own.

        Returns:
            For each request a list with its audio, float32 [samples], and the rate in Hz. The list
            is empty for a request that failed, and the reason is logged; a line that was cut is
            there as far as it was made.
        """
        most = defaults.pop("max_new_tokens", None)
        outputs = []
        for audio in self.generate(requests, max_frames=most, params=defaults):
            if audio.error is not None:
                log.warning("a line isn't whole: %s", audio.error)
            outputs.append(([audio.samples] if len(audio.samples) else [], audio.sample_rate_hz))
        return outputs


class BatchScheduler(SpeechScheduler):
    """`SpeechScheduler` under that package's names."""

    def __init__(
        self,
        model: SpeechModel,
        *,
        max_batch_size: int | None = None,
        max_wait_ms: float = 50.0,
        continuous: bool = False,
        gen_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            model,
            max_batch=max_batch_size,
            max_wait_ms=max_wait_ms,
            continuous=continuous,
            defaults=gen_kwargs,
        )
