"""The bounds of what a request's body may hold, each with the value just beyond it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from studio.server.routes.speaker_bodies import CutBody, PreviewBody
from studio.server.v1.speech_bodies import DialogBody


def voices(count: int) -> dict[str, str]:
    return {f"Voice {number}": "alto" for number in range(count)}


@pytest.mark.parametrize(
    ("body", "field", "fits", "beyond"),
    [
        (CutBody, "start_s", 0.0, -0.1),
        (CutBody, "end_s", 0.0, -0.1),
        (PreviewBody, "mood", "x" * 200, "x" * 201),
        (PreviewBody, "language", "x" * 100, "x" * 101),
        (PreviewBody, "backend", "x" * 100, "x" * 101),
        (DialogBody, "voices", voices(1_000), voices(1_001)),
    ],
)
def test_a_value_at_the_bound_fits_and_one_beyond_does_not(
    body: type[BaseModel], field: str, fits: Any, beyond: Any
) -> None:
    needed = {PreviewBody: {"text": "Hello."}, DialogBody: {"input": "Ida: Hello."}}.get(body, {})
    assert getattr(body.model_validate({**needed, field: fits}), field) == fits
    with pytest.raises(ValidationError):
        body.model_validate({**needed, field: beyond})
