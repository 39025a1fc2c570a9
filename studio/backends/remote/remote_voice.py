"""What of a voice is sent to a server."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from studio.audio.clip import Clip
from studio.audio.encode import AudioFormat, encode
from studio.errors import SampleRejected
from studio.voices.speaker import Voice

MAX_SAMPLE_S = 30.0
"""vLLM-Omni takes no longer reference recording."""

_FIXED_BYTES = 1_024


@dataclass(frozen=True, slots=True)
class RemoteVoice:
    """A voice in the API's own terms, for whichever server speaks the line.

    Attributes:
        ref_audio: The sample as a data URL.
        ref_text: What the sample says.
        chosen_by: The name that chooses a voice where nothing else does; empty for the speaker's.
    """

    speaker: str
    preset: str | None = None
    description: str | None = None
    ref_audio: str | None = field(default=None, repr=False)
    ref_text: str | None = field(default=None, repr=False)
    chosen_by: str = ""

    @property
    def size_bytes(self) -> int:
        """Memory it holds."""
        return _FIXED_BYTES + len(self.ref_audio or "")


def remote_voice(voice: Voice) -> RemoteVoice:
    """Get a voice ready to be sent.

    Raises:
        SampleRejected: The sample is too long to go with its transcript.
    """
    sample = voice.sample
    return RemoteVoice(
        voice.speaker,
        preset=voice.preset,
        description=(voice.description or "").strip() or None,
        ref_audio=_data_url(_fitting(voice)) if sample else None,
        ref_text=(sample.transcript or "").strip() or None if sample else None,
        chosen_by=voice.chosen_by,
    )


def _fitting(voice: Voice) -> Clip:
    """The sample's first half minute; a transcript wouldn't fit what is cut."""
    assert voice.sample is not None
    clip = voice.sample.clip
    if clip.duration_s > MAX_SAMPLE_S and (voice.sample.transcript or "").strip():
        raise SampleRejected(
            f"The sample of {voice.speaker} lasts {clip.duration_s:.0f} s; speech servers take "
            f"{MAX_SAMPLE_S:g} s. Cut sample and transcript to that, or remove the transcript."
        )
    return Clip(clip.samples[: round(MAX_SAMPLE_S * clip.rate_hz)], clip.rate_hz)


def _data_url(clip: Clip) -> str:
    return f"data:audio/wav;base64,{base64.b64encode(encode(clip, AudioFormat.WAV)).decode()}"
