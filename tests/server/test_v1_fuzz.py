"""The speech API against its own document: nothing undocumented, and never a 5xx."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from live import live
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from speech_client import app_of

from studio.backends.registry import create
from studio.server.middleware.security import OriginGuard, SecurityMiddleware
from studio.server.policies import RoutePolicies
from studio.services.studio import Studio, StudioOptions

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
OPERATIONS = (
    ("GET", "/models"),
    ("GET", "/models/{model_id}"),
    ("GET", "/audio/models"),
    ("GET", "/audio/voices"),
    ("POST", "/audio/voices"),
    ("DELETE", "/audio/voices/{name}"),
    ("POST", "/audio/speech"),
    ("POST", "/dialogs"),
    ("GET", "/dialogs/{dialog_id}"),
    ("GET", "/dialogs/{dialog_id}/events"),
    ("GET", "/dialogs/{dialog_id}/audio"),
    ("GET", "/dialogs/{dialog_id}/segments/{segment}/tries/{number}"),
    ("GET", "/dialogs/{dialog_id}/timestamps"),
    ("PUT", "/dialogs/{dialog_id}/cover"),
    ("DELETE", "/dialogs/{dialog_id}"),
)


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> Iterator[str]:
    workspace = tmp_path_factory.mktemp("fuzz") / "workspace"
    with (
        Studio.open(StudioOptions(workspace, "draft"), create) as studio,
        live(secured(app_of(studio))) as address,
    ):
        yield address


def secured(app: FastAPI) -> SecurityMiddleware:
    return SecurityMiddleware(app, OriginGuard(None), RoutePolicies(app.routes))


def _drive(address: str, method: str, path: str, cases: int) -> dict[int, int]:
    """Send so many cases of one operation; how often each status came."""
    schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json")
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    seen: dict[int, int] = {}

    @settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def every(case: schemathesis.Case) -> None:
        answer = case.call(base_url=f"{address}/v1", timeout=120)
        seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
        case.validate_response(answer, checks=CHECKS)

    operation = schema[path][method]
    strategy = operation.as_strategy() | operation.as_strategy(
        generation_mode=GenerationMode.NEGATIVE
    )
    given(strategy)(every)()
    return seen


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_documented(address: str, method: str, path: str) -> None:
    assert sum(_drive(address, method, path, 20).values()) >= 1


@pytest.mark.campaign
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_of_1000_cases_is_documented(address: str, method: str, path: str) -> None:
    seen = _drive(address, method, path, 1_200)
    print(f"{method} {path}: {seen}")
    assert max(seen) < 500


def test_the_document_names_every_operation(address: str) -> None:
    document = httpx.get(f"{address}/v1/openapi.json", timeout=60).json()
    named = {(m.upper(), path) for path, one in document["paths"].items() for m in one}
    assert named == set(OPERATIONS)
