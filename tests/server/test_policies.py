"""The policy of every route, and what becomes of a route that declares none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from addresses import filled
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from shared_studio import ASSETS, app_of_front, front_of, routes_of, visitor_of
from starlette.staticfiles import StaticFiles

from studio.server.policies import (
    UNDECLARED,
    Access,
    DiskUse,
    RequestClass,
    RoutePolicies,
    RoutePolicy,
)
from studio.server.route_table import service_routes, studio_routes
from studio.server.studio_server import StudioServer
from studio.services.studio import Studio
from studio.setup.models_install import NothingToSetUp

PAGE = {
    "GET /studio/state": "guest polled",
    "POST /studio/setup/start": "owner",
    "POST /studio/setup/stop": "owner",
    "POST /studio/engines/{name}/download": "owner",
    "POST /studio/engines/{name}/pause": "owner",
    "POST /studio/engines/{name}/cancel": "owner",
    "DELETE /studio/engines/{name}/weights": "owner long",
    "GET /studio/voice-files": "owner",
    "POST /studio/voice-files": "owner long fill 200MB upload",
    "POST /studio/projects/{project_id}/audition": "guest fill",
    "POST /studio/projects/{project_id}/try": "guest fill",
    "POST /studio/projects/{project_id}/lines/{line_id}/patch": "guest fill",
    "POST /studio/projects/{project_id}/lines/{line_id}/recording": "guest long fill 200MB upload",
    "POST /studio/projects/import": "guest long fill 100GB upload",
    "GET /studio/projects/{project_id}/export": "guest long",
    "POST /studio/projects/{project_id}/audio": "guest long fill 200MB upload",
    "POST /studio/projects/lines": "guest 20MB",
    "PUT /studio/projects/{project_id}/place": "guest",
    "POST /studio/projects/{project_id}/exports": "guest",
    "GET /studio/projects/{project_id}/exports/{export_id}": "guest",
    "DELETE /studio/projects/{project_id}/exports/{export_id}": "guest free",
    "GET /studio/projects/{project_id}/exports/{export_id}/file": "guest long",
    "GET /studio/projects/{project_id}/exports/{export_id}/captions": "guest long",
    "GET /studio/projects/{project_id}/cover": "guest",
    "PUT /studio/projects/{project_id}/cover": "guest fill",
    "DELETE /studio/projects/{project_id}/cover": "guest free",
    "GET /studio/projects": "guest",
    "POST /studio/projects": "guest fill",
    "GET /studio/projects/{project_id}": "guest",
    "GET /studio/projects/{project_id}/voices": "guest",
    "PATCH /studio/projects/{project_id}": "guest edit",
    "DELETE /studio/projects/{project_id}": "guest free",
    "POST /studio/projects/{project_id}/edits": "guest edit",
    "POST /studio/projects/{project_id}/undo": "guest edit",
    "GET /studio/projects/{project_id}/proposal": "guest",
    "POST /studio/projects/{project_id}/proposal/{proposal_id}/accept": "guest edit",
    "POST /studio/projects/{project_id}/proposal/{proposal_id}/reject": "guest",
    "POST /studio/projects/{project_id}/redo": "guest edit",
    "GET /studio/projects/{project_id}/script": "guest",
    "PUT /studio/projects/{project_id}/script": "guest edit",
    "GET /studio/projects/{project_id}/events": "guest uncounted",
    "POST /studio/projects/{project_id}/render": "guest fill",
    "POST /studio/projects/{project_id}/cancel": "guest",
    "POST /studio/projects/{project_id}/focus": "guest",
    "GET /studio/projects/{project_id}/reading": "guest",
    "GET /studio/projects/{project_id}/reading/events": "guest uncounted",
    "PUT /studio/projects/{project_id}/heard": "guest",
    "GET /studio/projects/{project_id}/reviews": "owner",
    "POST /studio/projects/{project_id}/reviews": "owner",
    "DELETE /studio/projects/{project_id}/reviews/{review_id}": "owner",
    "DELETE /studio/projects/{project_id}/pending-take": "guest edit",
    "GET /studio/projects/{project_id}/judgement": "guest",
    "POST /studio/projects/{project_id}/judgement": "guest edit",
    "DELETE /studio/projects/{project_id}/judgement": "guest",
    "GET /studio/projects/{project_id}/takes/{line_id}": "guest",
    "GET /studio/projects/{project_id}/lines/{line_id}/audio": "guest uncounted",
    "GET /studio/projects/{project_id}/takes/{line_id}/{take_id}/audio.wav": "guest",
    "GET /studio/projects/{project_id}/takes/{line_id}/{take_id}/peaks": "guest long",
    "GET /studio/projects/{project_id}/takes/{line_id}/{take_id}/words": "guest long",
    "GET /studio/projects/{project_id}/peaks": "guest long",
    "GET /studio/space": "guest long",
    "POST /studio/space/free": "guest long free",
    "GET /studio/space/trash": "guest long",
    "POST /studio/space/trash/{project_id}/restore": "guest long free",
    "POST /studio/model/load": "owner uncounted",
    "POST /studio/model/cancel": "owner uncounted",
    "POST /studio/model/unload": "owner uncounted",
    "POST /studio/model/timeout": "owner uncounted",
    "POST /studio/model/concurrency": "owner uncounted",
    "POST /studio/backend": "guest",
    "GET /studio/speakers": "guest",
    "POST /studio/speakers": "guest fill",
    "POST /studio/speakers/import": "guest long fill 200MB upload",
    "POST /studio/speakers/removed/{speaker_id}/restore": "guest fill",
    "DELETE /studio/speakers/removed/{speaker_id}": "guest free",
    "GET /studio/speakers/{speaker_id}/voice": "guest",
    "PATCH /studio/speakers/{speaker_id}": "guest fill",
    "DELETE /studio/speakers/{speaker_id}": "guest free",
    "GET /studio/speakers/{speaker_id}/sample.wav": "guest long",
    "GET /studio/speakers/{speaker_id}/samples/{sample_id}.wav": "guest long",
    "POST /studio/speakers/{speaker_id}/samples": "guest long fill",
    "PATCH /studio/speakers/{speaker_id}/samples/{sample_id}": "guest long fill",
    "POST /studio/speakers/{speaker_id}/samples/{sample_id}/open": "guest long fill",
    "PUT /studio/speakers/{speaker_id}/samples/{sample_id}/recording": "guest long fill",
    "DELETE /studio/speakers/{speaker_id}/samples/{sample_id}": "guest long free",
    "GET /studio/speakers/{speaker_id}/formers/{version_id}.wav": "guest long",
    "POST /studio/speakers/{speaker_id}/formers/{version_id}/restore": "guest fill",
    "DELETE /studio/speakers/{speaker_id}/formers/{version_id}": "guest free",
    "POST /studio/speakers/{speaker_id}/preview": "guest fill",
    "POST /studio/speakers/{speaker_id}/act": "guest long fill 200MB upload",
    "POST /studio/uploads": "guest long fill 200MB upload",
    "POST /studio/uploads/{upload_id}/check": "guest long",
    "GET /studio/uploads/{upload_id}/audio.wav": "guest long",
    "POST /studio/uploads/{upload_id}/words": "guest long",
    "POST /studio/uploads/{upload_id}/preview": "guest long",
    "DELETE /studio/uploads/{upload_id}": "guest long free",
    "POST /studio/projects/{project_id}/hints": "guest",
    "POST /studio/projects/{project_id}/pronunciations/reach": "guest",
    "POST /studio/projects/{project_id}/pronunciations/hear": "guest",
    "POST /studio/projects/{project_id}/pronunciations/read": "guest",
    "GET /studio/projects/{project_id}/pronunciations/file": "guest",
}
"""Each starts a session and opens its workspace. Unless it says otherwise: 12 MB, short queue."""

REVIEW = {
    "GET /studio/read": "anybody page",
    "GET /studio/review/{token}": "reviewer page",
    "GET /studio/review/{token}/project": "reviewer",
    "GET /studio/review/{token}/events": "reviewer uncounted",
    "GET /studio/review/{token}/takes/{line_id}/{take_id}.wav": "reviewer long",
    "POST /studio/review/{token}/comments": "reviewer 0.1MB",
}
"""Nobody signs in to these: the token in the path opens them, and the page of the table read holds
nothing."""

SERVICES = {
    "GET /studio/assets/{path:path}": "anybody",
    "GET /healthz": "anybody uncounted",
    "GET /healthz/live": "anybody uncounted",
    "GET /metrics": "owner polled",
    "GET /v1/models": "guest uncounted workspace",
    "GET /v1/models/{model_id:path}": "guest uncounted workspace",
    "GET /v1/audio/models": "guest uncounted workspace",
    "GET /v1/audio/voices": "guest uncounted workspace",
    "POST /v1/audio/voices": "guest long fill 200MB upload workspace",
    "DELETE /v1/audio/voices/{name}": "guest uncounted free workspace",
    "POST /v1/audio/speech": "guest uncounted fill 17MB workspace",
    "POST /v1/dialogs": "guest uncounted fill workspace",
    "GET /v1/dialogs/{dialog_id}": "guest uncounted workspace",
    "GET /v1/dialogs/{dialog_id}/events": "guest uncounted workspace",
    "PUT /v1/dialogs/{dialog_id}/cover": "guest uncounted fill workspace",
    "GET /v1/dialogs/{dialog_id}/timestamps": "guest long workspace",
    "GET /v1/dialogs/{dialog_id}/audio": "guest long workspace",
    "GET /v1/dialogs/{dialog_id}/segments/{segment}/tries/{number}": "guest uncounted workspace",
    "DELETE /v1/dialogs/{dialog_id}": "guest uncounted free workspace",
    "GET /v1/openapi.json": "guest uncounted workspace",
}

GRADIO = {
    "GET /": "guest page session",
    "GET /studio/enter": "anybody page",
    "GET /config": "guest",
    "HEAD /config/": "guest",
    "GET /theme.css": "anybody",
    "GET /favicon.ico": "anybody",
    "GET /manifest.json": "guest",
    "GET /robots.txt": "guest",
    "GET /pwa_icon": "guest",
    "GET /pwa_icon/192": "guest",
    "GET /logout": "guest",
    "GET /assets/index.js": "anybody",
    "GET /static/img/logo.svg": "anybody",
    "GET /svelte/svelte.js": "anybody",
    "GET /gradio_api/startup-events": "guest 0.2MB",
    "GET /gradio_api/info": "guest 0.2MB",
    "GET /gradio_api/user/": "guest 0.2MB",
    "GET /gradio_api/login_check": "guest 0.2MB",
    "GET /gradio_api/app_id": "guest 0.2MB",
    "GET /gradio_api/theme.css": "guest 0.2MB",
    "GET /gradio_api/heartbeat/abc": "guest uncounted 0.2MB",
    "GET /gradio_api/queue/data": "guest uncounted 0.2MB",
    "GET /gradio_api/call/speak/0f": "guest uncounted 0.2MB",
    "GET /gradio_api/call/v2/speak/0f": "guest uncounted 0.2MB",
    "POST /gradio_api/call/speak": "guest 0.2MB",
    "POST /gradio_api/call/v2/speak": "guest 0.2MB",
    "POST /gradio_api/queue/join": "guest 0.2MB",
    "POST /gradio_api/reset": "guest 0.2MB",
    "POST /gradio_api/upload": "guest long fill 200MB upload workspace",
    "GET /gradio_api/file=spoken/a-b_c/speech.wav": "guest long 0.2MB workspace",
    "GET /gradio_api/mcp/schema": "guest 0.2MB",
    "POST /gradio_api/mcp/": "guest uncounted edit 2MB workspace",
    "GET /gradio_api/mcp": "guest uncounted edit 2MB workspace",
    "DELETE /gradio_api/mcp": "guest uncounted edit 2MB workspace",
    "POST /login": "anybody 0.01MB",
    "POST /login/": "anybody 0.01MB",
}

UNGUARDED = {"GET /v1/openapi.json"}
"""For anybody, since it says nothing of what is here; it is counted all the same."""


def described(policy: RoutePolicy) -> str:
    words = [policy.access.name.lower()]
    if policy.request_class is not RequestClass.SHORT:
        words.append(policy.request_class.name.lower())
    if policy.disk is not DiskUse.NONE:
        words.append(policy.disk.name.lower())
    if policy.max_body_bytes != 12_000_000:
        size_mb = policy.max_body_bytes / 1e6
        words.append(f"{size_mb / 1000:g}GB" if size_mb >= 1000 else f"{size_mb:g}MB")
    flags = {
        "upload": policy.is_upload,
        "page": policy.is_page,
        "session": policy.starts_session,
        "workspace": policy.opens_workspace,
    }
    return " ".join([*words, *(name for name, is_set in flags.items() if is_set)])


@pytest.fixture
def policies(studio: Studio) -> RoutePolicies:
    """Of the server that is started, before Gradio adds its own routes."""
    return RoutePolicies(StudioServer(front_of(studio, apart=False), NothingToSetUp()).routes)


def declared(policies: RoutePolicies) -> Iterator[tuple[str, RoutePolicy | None]]:
    for route in policies.routes:
        for method in sorted((route.methods or {"GET"}) - {"HEAD"}):
            yield f"{method} {route.path}", route.policy


def test_every_route_declares_its_policy(policies: RoutePolicies) -> None:
    undeclared = [address for address, policy in declared(policies) if policy is None]
    assert not undeclared, "declare who may call these, see studio/server/policies.py"


def test_every_route_has_the_policy_it_should_have(policies: RoutePolicies) -> None:
    page = {address: f"{policy} session workspace" for address, policy in PAGE.items()}
    found = {address: described(policy) for address, policy in declared(policies)}
    assert found == page | REVIEW | SERVICES


def test_a_request_gets_the_policy_of_the_route_that_answers_it(policies: RoutePolicies) -> None:
    for address, policy in declared(policies):
        method, path = address.split(" ")
        assert policies.find(method, filled(path, {})) == policy, address
        assert policies.find("TRACE", filled(path, {})) is not None, address  # answered with 405
    slash = policies.find("POST", "/studio/uploads/")
    assert slash == policies.find("POST", "/studio/uploads")  # redirected there


def test_gradios_routes_are_an_allow_list(policies: RoutePolicies) -> None:
    found = {address: policies.find(*address.split(" ")) for address in GRADIO}
    assert {address: described(policy) for address, policy in found.items()} == GRADIO
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in ("/gradio_api/run/x", "/gradio_api/file= http://x/", "/studio/x", "/x"):
            assert policies.find(method, path) is None
    assert policies.find("POST", "/") is None
    assert policies.find("GET", f"/static/{'9' * 256}") is None


def test_the_guard_is_asked_by_every_route_that_is_not_for_anybody(studio: Studio) -> None:
    def refuse() -> None:
        raise HTTPException(401)

    routes = [
        *studio_routes(lambda _: studio, NothingToSetUp(), guard=refuse),
        *service_routes(studio, lambda _: studio, guard=refuse),
    ]
    client = TestClient(FastAPI(routes=routes))
    for address, policy in declared(RoutePolicies(routes)):
        if policy.access is Access.REVIEWER:
            continue  # the token in the path is asked, in tests of review links
        method, path = address.split(" ")
        status = client.request(method, filled(path, {})).status_code
        is_open = policy.access is Access.ANYBODY or address in UNGUARDED
        assert (status == 401) is not is_open, (address, status)


def test_a_route_that_declares_nothing_is_the_owners(studio: Studio) -> None:
    front = front_of(studio, key="sk-owner")
    app = routes_of(front)
    app.get("/studio/forgotten")(lambda: "a secret")
    sub = FastAPI()
    sub.get("/forgotten")(lambda: "a secret")
    app.mount("/v1/sub", sub)
    app.mount("/studio/files", StaticFiles(directory=ASSETS))
    policies = RoutePolicies(app.routes)
    for path in ("/studio/forgotten", "/v1/sub/forgotten", "/studio/files/x"):
        assert policies.find("GET", path) is UNDECLARED
    client = visitor_of(front.build_middleware(app, app))
    assert client.get("/studio/forgotten").status_code == 403
    owner = {"Authorization": "Bearer sk-owner"}
    assert client.get("/studio/forgotten", headers=owner).json() == "a secret"


def test_an_unknown_address_is_refused_before_any_session(studio: Studio) -> None:
    client = visitor_of(app_of_front(front_of(studio)))
    nothing = "There is nothing at this address."
    for path, message in (
        ("/studio/nothing", "Not Found"),
        ("/v1/nothing", nothing),
        ("/v1/dialogs/%0Aabc", nothing),  # not as the router, whose mounts match no line break
        ("/nothing", nothing),
    ):
        answer = client.get(path)
        assert answer.status_code == 404
        assert "set-cookie" not in answer.headers
        said = answer.json()
        assert message in (said.get("detail"), said.get("error", {}).get("message"))
