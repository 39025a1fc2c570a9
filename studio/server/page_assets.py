"""The page's scripts and styles, at URLs that change with their content.

One digest is in all URLs, so that no page mixes modules of two versions. The scripts are served as
one file and the styles as another. A browser that has them requests neither again; any other finds
links to them in the page's first bytes, rather than import by import after Gradio has started.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.module_bundle import ModuleBundle, bundle_modules

_STYLES = (
    "colours",
    "window",
    "controls",
    "fields",
    "header",
    "engine_cards",
    "project_menu",
    "editor",
    "start",
    "line_rows",
    "row_marks",
    "pauses",
    "density",
    "goto_bar",
    "line_panel",
    "takes",
    "record_panel",
    "cast_panel",
    "pronunciations",
    "library_panel",
    "sheet",
    "voice_picker",
    "character_panel",
    "sample_panel",
    "player_panel",
    "timeline",
    "motion",
    "gap_grip",
    "sound_form",
    "medium",
    "narrow",
    "touch",
    "short",
    "tiny",
    "tiny_panels",
)
"""The style sheets in order: a later one overrides an earlier one. They are served as one file."""

_LANGUAGE_SCRIPT = """(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("tableread.language"); } catch (off) { /* no storage */ }
  var known = %(known)s;
  var wished = (chosen ? [chosen] : navigator.languages).map(function (code) {
    return code.split("-")[0].toLowerCase();
  }).filter(function (code) { return known.indexOf(code) >= 0; })[0];
  if (!wished || wished === "en") return;
  document.documentElement.lang = wished;
  document.write('<script src="' + %(folder)s + '/' + wished + '.js"></' + "script>");
})();"""

_LOADING_SIGN_SCRIPT = r"""(function (ask) {
  window.requestAnimationFrame = function (callback) {
    if (!/performance\.now\(\)-.*\/1e3/.test(callback)) return ask(callback);
    window.requestAnimationFrame = ask;
  };
})(window.requestAnimationFrame);"""
"""Stops the clock of Gradio's loading sign, which goes on in each frame when the sign is gone."""

_LANGUAGE = "language.js"
_SAME_FOLDER = 'document.currentScript.src.replace(/[^/]*$/, "texts")'
_JOINED_STYLES = "styles.css"
_JOINED_MODULES = "modules.js"
_SOURCE_MAP = "modules.js.map"
_ENTRY = "main.js"
_TEXTS = re.compile(r"texts/([a-z]{2})\.js")
_VERSIONED = re.compile(r"page/([0-9a-f]{16})/(.+)")
_FOREVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


class PageAssets:
    """The files below `assets/`, and the page's links to them."""

    def __init__(self, folder: Path) -> None:
        """Read the scripts in `page/` and the styles in `page/styles/` of a folder."""
        self.folder = folder
        self._page = folder / "page"
        self._modules = sorted(self._page.rglob("*.js"))
        self._sheets = [self._page / "styles" / f"{name}.css" for name in _STYLES]
        self._catalogues = sorted(self._page.glob("texts/*.json"))
        self._server_catalogues = sorted(self._page.glob("texts/server/*.json"))
        self._stamp = self._read_stamp()
        self._joined: tuple[list[int], ModuleBundle] | None = None
        sent = "\0".join(
            (
                self.joined_styles(),
                self.joined_modules().code,
                *map(_read, (*self._catalogues, *self._server_catalogues)),
            )
        )
        self.digest = hashlib.sha256(sent.encode()).hexdigest()[:16]

    @property
    def head(self) -> str:
        """HTML that Gradio adds to the page's head once it has started.

        URLs are relative to the page's base, so that a root path or a share link works.
        """
        return "\n".join(
            (
                '<meta name="color-scheme" content="light dark">',
                f'<link rel="stylesheet" href="{self._address(_JOINED_STYLES)}">',
                f'<script type="module" src="{self._address(_JOINED_MODULES)}"></script>',
            )
        )

    @property
    def preload(self) -> str:
        """Links by which the browser fetches all files while Gradio is still starting.

        The texts of another language than English come by a script that the others wait for, so
        that these find them whenever they run.
        """
        return "\n".join(
            (
                f"<script>\n{self.language_script(json.dumps(self._address('texts')))}\n</script>",
                f"<script>\n{_LOADING_SIGN_SCRIPT}\n</script>",
                f'<link rel="preload" as="style" href="{self._address(_JOINED_STYLES)}">',
                f'<link rel="modulepreload" href="{self._address(_JOINED_MODULES)}">',
            )
        )

    def joined_styles(self) -> str:
        """All style sheets in their order."""
        return "\n".join(sheet.read_text(encoding="utf-8") for sheet in self._sheets)

    def joined_modules(self) -> ModuleBundle:
        """All modules, `main.js` last; joined again when one has changed on disk."""
        stamp = self._read_stamp()
        if self._joined is None or self._joined[0] != stamp:
            sources = {
                path.relative_to(self._page).as_posix(): path.read_text(encoding="utf-8")
                for path in self._modules
            }
            self._joined = (stamp, bundle_modules(sources, _ENTRY, map_name=_SOURCE_MAP))
        return self._joined[1]

    def language_script(self, folder: str) -> str:
        """The script that asks for the texts of the browser's language, or the chosen one.

        `folder` says where a page finds the texts, as an expression of the script.
        """
        known = json.dumps(["en", *(path.stem for path in self._catalogues)])
        return _LANGUAGE_SCRIPT % {"known": known, "folder": folder}

    def texts(self, language: str) -> str | None:
        """The script that holds the texts of a language, by its code; None where there are none."""
        catalogues = (("texts", self._catalogues), ("server", self._server_catalogues))
        texts = {
            name: json.loads(_read(path))
            for name, paths in catalogues
            for path in paths
            if path.stem == language
        }
        if "texts" not in texts:
            return None
        held = json.dumps({"language": language, **texts}, ensure_ascii=False)
        return f"globalThis.tablereadTexts = {held};\n"

    def is_current(self) -> bool:
        """Whether no file has changed since the digest was computed."""
        return self._stamp == self._read_stamp()

    def _address(self, name: str) -> str:
        return f"studio/assets/page/{self.digest}/{name}"

    def _read_stamp(self) -> list[int]:
        sources = (*self._modules, *self._sheets, *self._catalogues, *self._server_catalogues)
        return [path.stat().st_mtime_ns for path in sources]


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class AssetFiles(StaticFiles):
    """Serves files with or without a digest; only the current digest may be cached for good."""

    def __init__(self, assets: PageAssets) -> None:
        super().__init__(directory=assets.folder)
        self._assets = assets

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Find a file and set how long a browser may cache it."""
        versioned = _VERSIONED.fullmatch(path)
        if versioned is None:
            found = self._of_language(path.removeprefix("page/"))
            response = found or await super().get_response(path, scope)
            is_current = False
        else:
            digest, name = versioned.groups()
            # A page from before an update gets today's files: the two fit each other.
            is_current = digest == self._assets.digest and self._assets.is_current()
            response = await self._find(name, scope)
        response.headers["Cache-Control"] = _FOREVER if is_current else _ASK_AGAIN
        return response

    async def _find(self, name: str, scope: Scope) -> Response:
        if name == _JOINED_STYLES:
            return Response(self._assets.joined_styles(), media_type="text/css")
        if name == _JOINED_MODULES:
            return Response(self._assets.joined_modules().code, media_type="text/javascript")
        if name == _SOURCE_MAP:
            return Response(self._assets.joined_modules().source_map, media_type="application/json")
        return self._of_language(name) or await super().get_response(f"page/{name}", scope)

    def _of_language(self, name: str) -> Response | None:
        """A script of the page's language, which the small pages ask for without a digest."""
        if name == _LANGUAGE:
            script: str | None = self._assets.language_script(_SAME_FOLDER)
        else:
            asked = _TEXTS.fullmatch(name)
            script = self._assets.texts(asked[1]) if asked else None
        return Response(script, media_type="text/javascript") if script else None


def link_page(routes: Iterable[BaseRoute], links: str) -> None:
    """Put links into the HTML of the page, which is Gradio's route, before Gradio's own scripts.

    Gradio's `head` enters the page by script only: on a slow link a second after the first bytes.
    """
    at_root = (one for one in routes if isinstance(one, Route) and one.path == "/")
    page = next(one for one in at_root if "GET" in (one.methods or ()))
    page.app = _with_links(page.app, f"{links}\n</head>".encode())


def _with_links(page: ASGIApp, links: bytes) -> ASGIApp:
    async def linked(scope: Scope, receive: Receive, send: Send) -> None:
        start: Message = {}
        body = bytearray()

        async def send_linked(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message
                return
            body.extend(message.get("body", b""))
            if message.get("more_body", False):
                return
            html = bytes(body).replace(b"</head>", links, 1)
            MutableHeaders(raw=start["headers"])["content-length"] = str(len(html))
            await send(start)
            await send({"type": "http.response.body", "body": html})

        await page(scope, receive, send_linked)

    return linked
