"""What one address, and all visitors together, may take from a shared studio."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from serving import serving
from shared_studio import app_of_front, front_of
from starlette.types import ASGIApp

from studio.server.middleware.visitors import COOKIE
from studio.services.studio import Studio
from studio.sharing.quota import VisitLimits

pytestmark = pytest.mark.slow

TUNNEL = "127.0.0.1"


def at(app: ASGIApp, address: str, **cookies: str) -> TestClient:
    """A browser at an address."""
    return TestClient(app, cookies=cookies, client=(address, 50_000), raise_server_exceptions=False)


def visit(app: ASGIApp, address: str) -> TestClient:
    """Somebody who loads the page and does nothing."""
    client = at(app, address)
    assert client.get("/").status_code == 200
    assert client.get("/studio/projects").status_code == 200
    return client


def works(client: TestClient) -> None:
    assert client.get("/").status_code == 200
    made = client.post("/studio/projects", json={"name": "Mine", "text": "Ida: Hello."})
    assert made.status_code == 201, made.text
    assert [one["name"] for one in client.get("/studio/projects").json()] == ["Mine"]


@pytest.mark.parametrize(
    ("address", "limits", "visits"),
    [("203.0.113.7", None, 499), (TUNNEL, VisitLimits(visitors=40), 60)],
)
def test_499_visits_leave_newcomers_served(
    studio: Studio, address: str, limits: VisitLimits | None, visits: int
) -> None:
    app = app_of_front(front_of(studio, limits))
    staying = at(app, "198.51.100.1")
    works(staying)
    for _ in range(visits):
        visit(app, address)
    for newcomer in ("203.0.113.8", "2001:db8::1", TUNNEL, address):
        works(at(app, newcomer))
    assert [one["name"] for one in staying.get("/studio/projects").json()] == ["Mine"]
    assert len(list((studio.options.workspace / "visitors").iterdir())) <= 500


def test_an_address_has_100_places_and_its_emptiest_visit_goes(studio: Studio) -> None:
    front = front_of(studio)
    app = app_of_front(front)
    working = at(app, "203.0.113.7")
    works(working)
    visitors = [visit(app, "203.0.113.7") for _ in range(99)]
    kept = [front.sessions.find_open(one.cookies[COOKIE]) for one in visitors]
    visit(app, "203.0.113.7")
    found = [front.sessions.find_open(one.cookies[COOKIE]) for one in visitors]
    assert found == [None, *kept[1:]]
    assert front.sessions.find_open(working.cookies[COOKIE]) is not None


def test_when_all_are_at_work_a_newcomer_still_gets_the_page(studio: Studio) -> None:
    front = front_of(studio, VisitLimits(visitors=3))
    app = app_of_front(front)
    for number in range(3):
        client = at(app, f"203.0.113.{number}")
        works(client)
        front.sessions.find(client.cookies[COOKIE]).open_requests = 1
    newcomer = at(app, "203.0.113.99")
    for _ in range(3):
        assert newcomer.get("/").status_code == 200
    refused = newcomer.get("/studio/projects")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0


def test_who_drops_the_cookie_after_each_action_holds_no_place_for_long(studio: Studio) -> None:
    now_s = 1_000.0
    front = front_of(studio, VisitLimits(visitors=10), clock=lambda: now_s)
    app = app_of_front(front)
    staying = at(app, "198.51.100.1")
    works(staying)
    for number in range(9):
        thrower = at(app, f"203.0.113.{number}")
        assert thrower.post("/studio/projects", json={"text": "Ida: Hello."}).status_code == 201
    now_s += 10.0
    works(at(app, "203.0.113.99"))
    assert [one["name"] for one in staying.get("/studio/projects").json()] == ["Mine"]


def test_a_visitors_token_is_no_way_in_for_the_owner_however_full_it_is(studio: Studio) -> None:
    now_s = 1_000.0
    front = front_of(studio, VisitLimits(visitors=1), clock=lambda: now_s)
    app = app_of_front(front)
    gone = at(app, "203.0.113.1")
    works(gone)
    now_s += 100.0
    staying = at(app, "203.0.113.2")
    works(staying)
    front.sessions.find(staying.cookies[COOKIE]).open_requests = 1
    stranger = at(app, "203.0.113.3")
    answer = stranger.get(f"/studio/enter?key={gone.cookies[COOKIE]}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "..")
    assert "set-cookie" not in answer.headers


def test_one_address_cannot_use_up_what_newcomers_may_ask(studio: Studio) -> None:
    app = app_of_front(front_of(studio, VisitLimits(requests_a_minute=5)))
    codes = [at(app, "203.0.113.7").get("/studio/projects").status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3
    assert at(app, "203.0.113.7").get("/").status_code == 200
    assert at(app, "203.0.113.8").get("/studio/projects").status_code == 200


def uploads(client: TestClient, count: int) -> Counter[int]:
    """Upload what is no project, and is refused sooner than a sound would be."""
    address = "/studio/projects/import?name=x.zip"
    return Counter(
        client.post(address, content=b"\x89PNG\r\n\x1a\n").status_code for _ in range(count)
    )


def test_120_uploads_an_hour_of_a_visitor_and_480_of_an_address(studio: Studio) -> None:
    app = app_of_front(front_of(studio, clock=lambda: 100.0))
    first, *more = (visit(app, "203.0.113.7") for _ in range(5))
    counted = uploads(first, 125)
    assert counted == {400: 120, 429: 5}
    for client in more[:3]:
        assert uploads(client, 120)[429] == 0
    assert uploads(more[3], 5) == {429: 5}
    assert uploads(visit(app, "203.0.113.8"), 5)[429] == 0


RENDERED = 8
SCRIPT = "\n".join(f"Ida: This is line {line}." for line in range(RENDERED))


def rendered(client: TestClient) -> str | None:
    """Render a project; what the render says where it stopped."""
    project = client.post("/studio/projects", json={"text": SCRIPT}).json()
    job = client.post(f"/studio/projects/{project['project_id']}/render", json={}).json()
    return job["summary"]["message"] if job["state"] == "cancelled" else None


def test_lines_of_an_address_and_of_all(studio: Studio) -> None:
    limits = VisitLimits(lines_an_hour=8, address_share=2, total_share=3)
    app = app_of_front(front_of(studio, limits))
    first = visit(app, "203.0.113.7")
    assert rendered(first) is None
    assert "one visitor may have" in rendered(first)
    assert rendered(visit(app, "203.0.113.7")) is None
    assert "the visitors of one address may have" in rendered(visit(app, "203.0.113.7"))
    assert rendered(visit(app, "203.0.113.8")) is None
    assert "all visitors together may have" in rendered(visit(app, "203.0.113.9"))


def test_the_disk_of_an_address_and_of_all(studio: Studio) -> None:
    limits = VisitLimits(workspace_bytes=100_000, address_share=2, total_share=3)
    app = app_of_front(front_of(studio, limits))
    big = {"name": "Big", "text": "Ida: " + "so it is and so it goes " * 1_000}

    def fill(address: str) -> set[int]:
        client = visit(app, address)
        answers = [client.post("/studio/projects", json=big) for _ in range(5)]
        return {answer.status_code for answer in answers}

    assert fill("203.0.113.7") == {201, 507}  # a visitor's own limit
    assert fill("203.0.113.7") == {201, 507}
    assert fill("203.0.113.7") == {507}
    assert fill("203.0.113.8") == {201, 507}
    assert fill("203.0.113.9") == {507}
    # What lies on the disk counts after a restart as well.
    front = front_of(studio, limits)
    front.sessions.start()
    front.sessions.close()
    app = app_of_front(front)
    assert fill("203.0.113.10") == {507}


def test_the_address_is_what_the_platforms_proxy_says(tmp_path: Path) -> None:
    space = {"SPACE_ID": "somebody/tableread"}
    workspace = tmp_path / "workspace"
    with serving(workspace, "--auth", "ida:the right one", environ=space) as (client, _):
        base_url = str(client.base_url)

        def sign_in(forwarded: str, password: str) -> int:
            form = {"username": "ida", "password": password}
            headers = {"X-Forwarded-For": forwarded}
            return httpx.post(f"{base_url}/login", data=form, headers=headers).status_code

        for number in range(10):  # what the client itself sends stands in front
            assert sign_in(f"198.51.100.{number}, 203.0.113.7, 10.16.3.80", "no") == 400
        assert sign_in("203.0.113.7", "the right one") == 429
        assert sign_in("203.0.113.8, 10.16.3.80", "the right one") == 200
        assert sign_in("127.0.0.1", "the right one") == 200
