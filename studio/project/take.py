"""One take: what it was made of, as its record beside the audio tells."""

from __future__ import annotations

import secrets
import wave
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from studio.audio.doubts import Doubt, Figures
from studio.dialog.model import ParamValue

_WAV_HEADER_BYTES = 44


@dataclass(frozen=True, slots=True)
class Take:
    """One generated result of a line.

    Attributes:
        key: Of the text, voice, backend, language and parameters it was made of.
        voice: Who spoke, in words.
        samples: Length at the studio's rate.
        created_at: ISO 8601 in UTC.
        cut: Whether the voice was stopped before the end of the line; never chosen by itself.
        doubts: What may not be right about it by itself.
        figures: What is compared with others of its voice; None where nobody measured it.
    """

    take_id: str
    line_id: str
    key: str
    seed: int
    backend: str
    text: str
    voice: str
    samples: int
    created_at: str
    language: str | None = None
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    cut: bool = False
    doubts: tuple[Doubt, ...] = ()
    figures: Figures | None = None


_TAKE: TypeAdapter[Take] = TypeAdapter(Take)

VoiceKey = tuple[object, ...]
"""What takes have in common that are to sound alike."""


def voice_key(take: Take) -> VoiceKey:
    """The voice of a take, with the language and settings it spoke with."""
    return (take.backend, take.voice, take.language, tuple(sorted(take.params.items())))


def new_take_id() -> str:
    """A take's id: 16 hex digits, never made from outside text."""
    return secrets.token_hex(8)


def take_record(take: Take) -> dict[str, object]:
    """A take as a table of plain values, without what it was measured by."""
    return {name: getattr(take, name) for name in _PLAIN}


def written_take(take: Take) -> bytes:
    """A take's record as its file holds it."""
    return _TAKE.dump_json(take, indent=2) + b"\n"


def read_take_record(path: Path) -> Take | None:
    """A take by its record; None when the record or its audio isn't whole, or they don't fit.

    Audio that isn't there at all fits any record.
    """
    try:
        take = _TAKE.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    if take.take_id != path.stem or take.line_id != path.parent.name:
        return None
    audio = path.with_suffix(".wav")
    return take if not audio.exists() or _is_whole(audio, take.samples) else None


def _is_whole(path: Path, samples: int) -> bool:
    """Whether a WAV holds that many samples. By its size, or where a header is longer, by it."""
    try:
        if path.stat().st_size == _WAV_HEADER_BYTES + 2 * samples:
            return True
        with wave.open(str(path), "rb") as audio:
            shortest = audio.getnframes() * audio.getsampwidth()
            return audio.getnframes() == samples and path.stat().st_size >= shortest
    except (OSError, EOFError, wave.Error):
        return False


_PLAIN = tuple(name for name in Take.__dataclass_fields__ if name not in ("doubts", "figures"))
