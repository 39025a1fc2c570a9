"""Tableread's speech engine for other programs: the package `tableread_engine`.

See docs/reference/engine-api.md.
"""

from __future__ import annotations

import sys

try:
    from studio.backends.base import Param
    from studio.errors import (
        BadInput,
        Cancelled,
        Conflict,
        ModelUnavailable,
        OutOfMemory,
        SampleRejected,
        SettingError,
        SpeechFailed,
        StudioError,
    )
    from tableread_engine.line_request import LineRequest, Reference
    from tableread_engine.planned_names import BatchedFasterQwen3TTS, BatchScheduler
    from tableread_engine.speech_model import LineResult, SpeechModel
    from tableread_engine.speech_scheduler import SpeechScheduler
except ModuleNotFoundError as error:
    if not (error.name or "").startswith("studio"):
        raise
    found = getattr(sys.modules.get("studio"), "__file__", None)
    raise ImportError(
        f"Another module named studio ({found}) hides Tableread's, which tableread_engine is made "
        "of. Rename it, or take its folder off sys.path."
    ) from error

__all__ = [
    "BadInput",
    "BatchScheduler",
    "BatchedFasterQwen3TTS",
    "Cancelled",
    "Conflict",
    "LineRequest",
    "LineResult",
    "ModelUnavailable",
    "OutOfMemory",
    "Param",
    "Reference",
    "SampleRejected",
    "SettingError",
    "SpeechFailed",
    "SpeechModel",
    "SpeechScheduler",
    "StudioError",
]
