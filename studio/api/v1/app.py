"""The speech API as an application of its own, with its own document and error shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException

from studio.api.desk import StudioOf, seat
from studio.api.v1.dialogs import dialog_routes
from studio.api.v1.errors import (
    DOCUMENTED,
    answer_fault,
    answer_http_error,
    answer_invalid,
    answer_studio_error,
)
from studio.api.v1.reference import References
from studio.api.v1.shelf import Shelves
from studio.api.v1.speech import speech_routes
from studio.errors import StudioError


def speech_api(studio_of: StudioOf, *, guard: Callable[..., Any]) -> FastAPI:
    """What is served under `/v1`.

    Args:
        studio_of: Whose studio a request works with.
        guard: Refuses who has no key, where one is needed.
    """
    api = FastAPI(
        title="Tableread speech API",
        version="1",
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(guard), Depends(seat(studio_of))],
        responses=DOCUMENTED,
        exception_handlers={
            StudioError: answer_studio_error,
            HTTPException: answer_http_error,
            RequestValidationError: answer_invalid,
            Exception: answer_fault,
        },
    )
    api.state.shelves = Shelves()
    api.state.finishing = set()
    api.state.references = References()
    api.include_router(speech_routes)
    api.include_router(dialog_routes)
    api.openapi = lambda: _document(api)  # type: ignore[method-assign]
    return api


def _document(api: FastAPI) -> dict[str, Any]:
    """The document as served."""
    if api.openapi_schema is None:
        document = get_openapi(title=api.title, version=api.version, routes=api.routes)
        document["servers"] = [{"url": "/v1"}]
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        api.openapi_schema = document
    return api.openapi_schema
