"""The page's own routes against what no page sends: refused in words, and never a fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import schemathesis
from addresses import PAGE_ADDRESSES, filled
from hypothesis import HealthCheck, Phase, assume, given, settings
from live import live
from schemathesis import GenerationMode
from shared_studio import app_of_front, front_of, routes_of

from studio.backends.registry import create
from studio.services.studio import Studio, StudioOptions

pytestmark = pytest.mark.slow

UNABLE = frozenset({"ModelUnavailable", "SetupFailed"})
"""Errors of the 500s that are nobody's fault."""

RAW = frozenset({"/studio/uploads", "/studio/projects/import", "/studio/speakers/import"})
"""What takes a file instead of JSON."""

MOST_QUERY_CHARS = 2_000
"""Beyond 64 kB the server closes the connection without a word."""

ODD_VALUES = (
    "NaN",
    "Infinity",
    "1e400",
    r'"\ud800"',
    r'{"\udfff": 1}',
    "[[[]]]",
    "-1",
    "9" * 400,
    '"' + "a" * 300 + '"',
    '"../../x"',
    r'"\u0000"',
    "null",
)
ODD_IDS = ("0" * 300, "é", "%ff", "%00", "..%2f..", "a" * 5_000, "%F0%9F%8E%AD")

SENT = tuple(
    (method, path)
    for method, path in PAGE_ADDRESSES
    if method in {"POST", "PUT", "PATCH"} and path not in RAW
)
FUZZED = tuple(one for one in PAGE_ADDRESSES if not one[1].endswith("/events"))


@dataclass(frozen=True)
class Target:
    """A studio with one of everything.

    Attributes:
        client: Of its address.
        schema: What its routes take, as FastAPI documents it.
        ids: By the name that paths give them.
    """

    client: httpx.Client
    schema: dict[str, Any]
    ids: dict[str, str]


@pytest.fixture(scope="module")
def target(tmp_path_factory) -> Iterator[Target]:
    workspace = tmp_path_factory.mktemp("studio-fuzz") / "workspace"
    with Studio.open(StudioOptions(workspace, "draft"), create) as studio:
        front = front_of(studio, apart=False)
        with (
            live(app_of_front(front)) as address,
            httpx.Client(base_url=address, timeout=120) as client,
        ):
            yield Target(client, routes_of(front).openapi(), _made(client))


def _made(client: httpx.Client) -> dict[str, str]:
    project = client.post("/studio/projects", json={"text": "Ida: Hello."}).json()
    speaker = client.post("/studio/speakers", json={"name": "Ida"}).json()
    return {
        "project_id": project["project_id"],
        "line_id": project["lines"][0]["line_id"],
        "speaker_id": speaker["speaker_id"],
    }


def check(answer: Any, what: object) -> None:
    fault = answer.status_code >= 500 and answer.json()["error"]["kind"] not in UNABLE
    assert not fault, (str(what)[:300], answer.status_code, answer.json())
    assert b"studio-fuzz" not in answer.content, "a path of this machine"
    if answer.status_code >= 400:
        body = answer.json()
        # The framework refuses by itself what has no route or is no form at all.
        message = body["error"]["message"] if "error" in body else body["detail"]
        assert message.strip(), (str(what)[:300], answer.status_code)
        assert "Traceback" not in message


def fields_of(target: Target, method: str, path: str) -> list[str]:
    """The fields of an operation's body, as far as it is JSON."""
    body = target.schema["paths"][path][method.lower()].get("requestBody", {})
    content = body.get("content", {}).get("application/json", {}).get("schema", {})
    name = content.get("$ref", "").rpartition("/")[2]
    return list(target.schema["components"]["schemas"].get(name, {}).get("properties", {}))


@pytest.mark.parametrize(("method", "path"), SENT)
def test_odd_values_are_refused_in_words(target: Target, method: str, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    fields = fields_of(target, method, path)
    fitting = {"base_rev": 0, "client": "fuzz", "ops": [], "text": "Ida: Hello.", "name": "Ida"}
    for odd in ODD_VALUES:
        bodies = [odd, f'{{"ops": [{odd}]}}']
        for field in fields:
            others = {key: fitting[key] for key in fields if key in fitting and key != field}
            bodies.append(json.dumps(others | {field: "?"}).replace('"?"', odd))
        for body in bodies:
            url = filled(path, target.ids)
            answer = target.client.request(method, url, content=body, headers=headers)
            check(answer, body)
            if answer.status_code == 422:
                assert answer.json()["error"]["message"]


@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: odd[:8])
def test_odd_ids_are_not_found(target: Target, odd: str) -> None:
    names = ("project_id", "line_id", "take_id", "speaker_id", "sample_id", "upload_id")
    for method, path in PAGE_ADDRESSES:
        if "{" in path:
            check(target.client.request(method, filled(path, dict.fromkeys(names, odd))), path)


def _drive(target: Target, method: str, path: str, cases: int) -> None:
    schema = schemathesis.openapi.from_dict(target.schema)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])

    @settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def every(case: schemathesis.Case) -> None:
        assume(len(str(case.query)) < MOST_QUERY_CHARS)
        for name in case.path_parameters or {}:
            # What isn't there is soon told; what is there goes deeper.
            case.path_parameters[name] = target.ids.get(name, case.path_parameters[name])
        answer = case.call(base_url=str(target.client.base_url), timeout=120)
        check(answer, (method, path, case.body))

    operation = schema[path][method]
    either = operation.as_strategy() | operation.as_strategy(
        generation_mode=GenerationMode.NEGATIVE
    )
    given(either)(every)()


@pytest.mark.parametrize(("method", "path"), FUZZED)
def test_what_no_page_sends_is_refused(target: Target, method: str, path: str) -> None:
    _drive(target, method, path, 5)


@pytest.mark.campaign
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize(("method", "path"), FUZZED)
def test_500_cases_of_what_no_page_sends_are_refused(
    target: Target, method: str, path: str
) -> None:
    _drive(target, method, path, 500)
