"""The page below a path of another host, behind nginx."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from proxying import KEEPS, STRIPS, needs_nginx, proxying
from serving import serving
from ui_steps import fill, ready

pytestmark = [pytest.mark.browser, needs_nginx]

LINES = "Ida: Good evening.\nTom: Good evening, Ida."


@pytest.fixture(scope="module")
def studio(tmp_path_factory) -> Iterator[str]:
    """Host and port of a studio that asks for a name and a password."""
    workspace = tmp_path_factory.mktemp("below") / "workspace"
    environ = {"GRADIO_ROOT_PATH": "/tts"}
    with serving(workspace, "--auth", "ida:secret", environ=environ) as (client, _):
        yield client.base_url.netloc.decode()


@pytest.mark.parametrize("forward", [STRIPS, KEEPS], ids=["strips", "keeps"])
def test_a_scene_is_played_after_signing_in(studio, browser: Browser, tmp_path, forward) -> None:
    with proxying(tmp_path / "nginx", studio, "/tts", forward) as address:
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page, requested, faults = context.new_page(), [], []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address}/tts/")
        page.get_by_label("username").fill("ida")
        page.get_by_label("password").fill("secret")
        page.get_by_role("button", name="Login").click()
        page.wait_for_selector("body[data-tableread=ready]")
        fill(page, LINES, 2)
        page.evaluate(
            "() => { window.tableread.bus.on('player.ended', () => (window.ended = true)) }"
        )
        page.click("#play")
        page.wait_for_function("() => window.ended")
        ready(page)
        played = page.evaluate("() => [...window.tableread.player.laid.values()]")
        assert len(played) == 2
        assert min(played) > 10_000
        expect(page.locator("body")).to_have_css("margin", "0px")
        context.close()
    below = (f"{address}/tts/", "data:", "blob:")
    assert [url for url in requested if not url.startswith(below)] == []
    assert faults == []
