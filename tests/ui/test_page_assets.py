"""The page's files: two, asked for at once by who comes first, and never again by who returns."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route
from starlette.testclient import TestClient

from studio.server.page_assets import AssetFiles, PageAssets, link_page

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """A page of one module, with all the sheets there must be."""
    for path in (ROOT / "assets" / "page" / "styles").iterdir():
        sheet = tmp_path / "page" / "styles" / path.name
        sheet.parent.mkdir(parents=True, exist_ok=True)
        sheet.write_text(f"/* {path.name} */", encoding="utf-8")
    (tmp_path / "page" / "main.js").write_text("export const one = 1;\n", encoding="utf-8")
    return tmp_path


def _client(folder: Path) -> TestClient:
    return TestClient(Starlette(routes=[Mount("/studio/assets", AssetFiles(PageAssets(folder)))]))


def _address(assets: PageAssets) -> str:
    found = re.search(r'src="([^"]+)modules\.js"', assets.head)
    assert found is not None
    return f"/{found[1]}main.js"


def test_an_address_with_the_digest_is_kept_for_good(folder):
    answer = _client(folder).get(_address(PageAssets(folder)))
    assert answer.text == "export const one = 1;\n"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"


def test_an_address_without_it_is_asked_for_again(folder):
    answer = _client(folder).get("/studio/assets/page/main.js")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"


def test_another_content_has_another_address(folder):
    before = _address(PageAssets(folder))
    (folder / "page" / "main.js").write_text("export const one = 2;\n", encoding="utf-8")
    assert _address(PageAssets(folder)) != before


def test_a_file_that_changed_while_the_studio_runs_is_not_kept(folder):
    client, address = _client(folder), _address(PageAssets(folder))
    (folder / "page" / "main.js").write_text("export const one = 22;\n", encoding="utf-8")
    answer = client.get(address)
    assert answer.text == "export const one = 22;\n"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_page_of_before_an_update_gets_what_there_is(folder):
    answer = _client(folder).get(f"/studio/assets/page/{'0' * 16}/main.js")
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "no-cache"


def test_the_sheets_are_sent_as_one(folder):
    address = _address(PageAssets(folder)).replace("main.js", "styles.css")
    answer = _client(folder).get(address)
    assert answer.headers["Content-Type"].startswith("text/css")
    assert answer.text.index("/* colours.css */") < answer.text.index("/* touch.css */")


@pytest.mark.parametrize("path", ["main.js/x", "%2e%2e/%2e%2e/%2e%2e/secret", "none.js"])
def test_what_is_not_there_is_not_found(folder, path):
    (folder.parent / "secret").write_text("no", encoding="utf-8")
    digest = PageAssets(folder).digest
    assert _client(folder).get(f"/studio/assets/page/{digest}/{path}").status_code == 404


def test_the_modules_are_sent_as_one_with_a_map(folder):
    client, address = _client(folder), _address(PageAssets(folder))
    joined = client.get(address.replace("main.js", "modules.js"))
    assert joined.headers["Content-Type"].startswith("text/javascript")
    assert "const one = 1;" in joined.text
    found = re.search(r"//# sourceMappingURL=(\S+)", joined.text)
    assert found is not None
    assert client.get(address.replace("main.js", found[1])).json()["sources"] == ["main.js"]


def test_links_go_into_the_page_and_nowhere_else():
    html = "<html><head><title>é</title></head><body></head></body></html>"
    routes = [Route(path, lambda _: HTMLResponse(html)) for path in ("/", "/other")]
    link_page(routes, "<link>")
    client = TestClient(Starlette(routes=routes))
    linked = client.get("/")
    assert linked.text == html.replace("</head>", "<link>\n</head>", 1)
    assert int(linked.headers["Content-Length"]) == len(linked.content)
    assert client.get("/other").text == html


@pytest.mark.browser
def test_all_is_asked_for_at_once_and_never_again(server, browser):
    """Over a link of 100 ms; how long it takes is printed, and counted is what is asked for."""
    context = browser.new_context()
    page = context.new_page()
    link = {"offline": False, "latency": 100, "downloadThroughput": -1, "uploadThroughput": -1}
    context.new_cdp_session(page).send("Network.emulateNetworkConditions", link)
    asked = []
    page.on("request", lambda one: asked.append(one.url))

    def opened():
        asked.clear()
        page.goto(server.url)
        page.wait_for_selector("body[data-tableread=ready]")
        ready = "() => performance.getEntriesByName('tableread-ready')[0].startTime"
        print(f"usable after {page.evaluate(ready):.0f} ms")
        return [url for url in asked if "/studio/assets/" in url]

    first = opened()
    assert sorted(url.rsplit("/")[-1] for url in first) == ["modules.js", "styles.css"]
    late = page.evaluate(
        """() => {
          const of = (part) => performance.getEntriesByType('resource')
            .filter(({ name }) => name.includes(part));
          const gradio = Math.min(...of('/assets/index').map(({ responseEnd }) => responseEnd));
          return of('/studio/assets/').filter(({ startTime }) => startTime > gradio)
            .map(({ name }) => name);
        }"""
    )
    assert late == []  # none waited for Gradio to start
    page.goto("about:blank")
    opened()
    sent = page.evaluate(
        """() => performance.getEntriesByType('resource')
             .filter(({ name, transferSize }) => name.includes('/studio/assets/') && transferSize)
             .map(({ name }) => name)"""
    )
    assert sent == []
    context.close()
