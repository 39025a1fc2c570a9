"""Asking a server what it can do: its models, its voices, and the document of its API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

from pydantic import BaseModel, Field, ValidationError

from studio.backends.remote.abilities import (
    OPENAI_FIELDS,
    VLLM_OMNI_FIELDS,
    Abilities,
    Told,
    task_of,
)
from studio.backends.remote.document import RequestShape, request_shape
from studio.backends.remote.faults import Garbled, Refused

MAX_VOICES = 500

Get = Callable[[str], Awaitable[bytes | None]]
"""Fetches a URL; None when the server has no such page."""

_ROUND_ABOUT = "remote"
_SPEAKING_NAMES = ("tts", "speech", "audio")


class _Told(BaseModel):
    """What another studio tells of a model."""

    cloning: bool
    builtin_voice: bool = False
    described_voices: bool = False
    instructions: bool | None = None
    languages: dict[str, str] = Field(default_factory=dict)


class _Model(BaseModel):
    id: str
    root: str | None = None
    capabilities: object = None

    @property
    def told(self) -> Told | None:
        """What it says of itself; other servers have other things under that name."""
        try:
            return Told(**_Told.model_validate(self.capabilities).model_dump())
        except ValidationError:
            return None


class _Models(BaseModel):
    data: list[_Model]


class _Voice(BaseModel):
    voice_id: str | None = None
    id: str | None = None
    name: str | None = None

    @property
    def called(self) -> str | None:
        return self.voice_id or self.id or self.name


class _Voices(BaseModel):
    voices: list[str | _Voice] = Field(default_factory=list)
    data: list[str | _Voice] = Field(default_factory=list)
    uploaded_voices: list[object] | None = None

    def names(self) -> tuple[str, ...]:
        listed = self.voices or self.data
        names = (one if isinstance(one, str) else one.called for one in listed)
        return tuple(dict.fromkeys(name for name in names if name))[:MAX_VOICES]


async def abilities_of(
    get: Get, *, base: str, documents: tuple[str, ...], wanted: str | None
) -> Abilities:
    """Put together what a server tells.

    Args:
        get: Fetches from this server.
        base: The base URL, with version.
        documents: Where its API may be described.
        wanted: The model that the person named.

    Raises:
        Refused: It isn't a speech server, or hasn't the model.
        ServerFault: It doesn't answer, or not now.
    """
    model = _chosen(_models(await get(f"{base}/models")), wanted)
    query = f"?model={quote(model.id, safe='')}" if model else ""
    voices = _voices(await _optional(get, f"{base}/audio/voices{query}"))
    described = await _described(get, documents)
    if not (model or voices or described or wanted):
        raise Refused("lists neither models nor voices; check its URL, or set TTS_REMOTE_MODEL")
    shape = described or _usual(voices)
    return Abilities(
        model=model.id if model else wanted,
        fields=shape.fields,
        voices=voices.names() if voices else None,
        task=task_of((model.id, model.root or "") if model else (wanted or "",), shape.fields),
        voice_required="voice" in shape.required,
        told=model.told if model else None,
    )


async def _described(get: Get, documents: tuple[str, ...]) -> RequestShape | None:
    for url in documents:
        body = await _optional(get, url)
        shape = request_shape(body) if body is not None else None
        if shape is not None:
            return shape
    return None


async def _optional(get: Get, url: str) -> bytes | None:
    """A page that a server may keep to itself."""
    try:
        return await get(url)
    except (Refused, Garbled):
        return None


def _usual(voices: _Voices | None) -> RequestShape:
    """For a server without a document: only vLLM-Omni lists uploaded voices."""
    if voices is not None and voices.uploaded_voices is not None:
        return RequestShape(VLLM_OMNI_FIELDS, frozenset({"input"}))
    return RequestShape(OPENAI_FIELDS, frozenset({"model", "input", "voice"}))


def _models(body: bytes | None) -> list[_Model]:
    if body is None:
        return []
    try:
        return _Models.model_validate_json(body).data
    except ValidationError:
        raise Refused("doesn't list models as a speech server does; check its URL") from None


def _voices(body: bytes | None) -> _Voices | None:
    if body is None:
        return None
    try:
        return _Voices.model_validate_json(body)
    except ValidationError:
        return None


def _chosen(models: list[_Model], wanted: str | None) -> _Model | None:
    if wanted is None:
        return _likeliest(models)
    found = next((one for one in models if wanted in (one.id, one.root)), None)
    if models and found is None:
        listed = ", ".join(one.id for one in models[:10])
        raise Refused(f"has no model “{wanted}”, only {listed}; correct TTS_REMOTE_MODEL")
    return found


def _likeliest(models: list[_Model]) -> _Model | None:
    """The first that speaks, by its name.

    The servers of another studio are left out: it could be this one, and lines would go in circles.
    """
    own = [one for one in models if one.id != _ROUND_ABOUT] or models
    speaking = [one for one in own if any(part in one.id.lower() for part in _SPEAKING_NAMES)]
    return next(iter(speaking or own), None)
