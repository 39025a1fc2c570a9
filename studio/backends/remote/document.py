"""Reading from an OpenAPI document which fields a speech request may have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SPEECH_PATH = "/audio/speech"  # the version before it may stand in the document's server URL


@dataclass(frozen=True, slots=True)
class RequestShape:
    """Names of a request's fields, and which of them must be there."""

    fields: frozenset[str]
    required: frozenset[str]


def request_shape(body: bytes) -> RequestShape | None:
    """The shape of a speech request; None when the document doesn't tell of one."""
    try:
        document = json.loads(body)
        paths = document["paths"]
        operation = next(paths[path]["post"] for path in paths if path.endswith(_SPEECH_PATH))
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        shape = _shape(document, schema)
    except (ValueError, KeyError, TypeError, StopIteration, RecursionError):
        return None
    return shape if "input" in shape.fields else None


def _shape(document: Mapping[str, Any], schema: Mapping[str, Any]) -> RequestShape:
    """Follow references and `allOf`, which is how tools write one schema built on another."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return _shape(document, document["components"]["schemas"][name])
    parts = [_shape(document, part) for part in schema.get("allOf", ())]
    return RequestShape(
        frozenset(schema.get("properties", ())).union(*(part.fields for part in parts)),
        frozenset(schema.get("required", ())).union(*(part.required for part in parts)),
    )
