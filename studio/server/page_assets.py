"""The page's scripts and styles, at addresses that change with their content.

All of them stand below one digest, so that no page mixes modules of two versions. They are sent
as two files, the joined modules and the joined styles. A browser that has these asks for neither
again; one that hasn't learns of them from the page's first bytes, rather than import by import
after Gradio has started.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from fastapi.staticfiles import StaticFiles
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from studio.server.module_bundle import ModuleBundle, bundle_modules

_STYLES = (
    "colours",
    "window",
    "controls",
    "fields",
    "header",
    "project_menu",
    "editor",
    "line_rows",
    "pauses",
    "goto_bar",
    "line_panel",
    "cast_panel",
    "pronunciations",
    "library_panel",
    "sheet",
    "sample_panel",
    "player_panel",
    "sound_form",
    "medium",
    "narrow",
    "touch",
)
"""Style sheets in the order in which they may override each other; they are sent as one."""

_JOINED_STYLES = "styles.css"
_JOINED_MODULES = "modules.js"
_SOURCE_MAP = "modules.js.map"
_ENTRY = "main.js"
_VERSIONED = re.compile(r"page/([0-9a-f]{16})/(.+)")
_FOREVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"


class PageAssets:
    """The files below `assets/`, and how the page refers to them."""

    def __init__(self, folder: Path) -> None:
        """Read all that is versioned.

        Args:
            folder: Holds `page/` with the scripts and `page/styles/`.
        """
        self.folder = folder
        self._page = folder / "page"
        self._modules = sorted(self._page.rglob("*.js"))
        self._sheets = [self._page / "styles" / f"{name}.css" for name in _STYLES]
        self._stamp = self._read_stamp()
        self._joined: tuple[list[int], ModuleBundle] | None = None
        sent = f"{self.joined_styles()}\0{self.joined_modules().code}"
        self.digest = hashlib.sha256(sent.encode()).hexdigest()[:16]

    @property
    def head(self) -> str:
        """What Gradio puts into the page's head once it has started.

        Addresses are relative to the page's base, so that a root path or a share link works.
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
        """Links that have the browser fetch both files while Gradio still starts."""
        return "\n".join(
            (
                f'<link rel="preload" as="style" href="{self._address(_JOINED_STYLES)}">',
                f'<link rel="modulepreload" href="{self._address(_JOINED_MODULES)}">',
            )
        )

    def joined_styles(self) -> str:
        """All style sheets in their order."""
        return "\n".join(sheet.read_text(encoding="utf-8") for sheet in self._sheets)

    def joined_modules(self) -> ModuleBundle:
        """All modules, `main.js` the last of them; joined again once one has changed on disk."""
        stamp = self._read_stamp()
        if self._joined is None or self._joined[0] != stamp:
            self._joined = (stamp, self._join_modules())
        return self._joined[1]

    def _join_modules(self) -> ModuleBundle:
        sources = {
            path.relative_to(self._page).as_posix(): path.read_text(encoding="utf-8")
            for path in self._modules
        }
        return bundle_modules(sources, _ENTRY, map_name=_SOURCE_MAP)

    def is_current(self) -> bool:
        """Whether the files are still those that the digest was made of."""
        return self._stamp == self._read_stamp()

    def _address(self, name: str) -> str:
        return f"studio/assets/page/{self.digest}/{name}"

    def _read_stamp(self) -> list[int]:
        return [path.stat().st_mtime_ns for path in (*self._modules, *self._sheets)]


class AssetFiles(StaticFiles):
    """Files by name, with or without a digest; only the digest of now is kept for good."""

    def __init__(self, assets: PageAssets) -> None:
        """Serve a folder whose digest is known."""
        super().__init__(directory=assets.folder)
        self._assets = assets

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Find a file and say how long it may be kept."""
        versioned = _VERSIONED.fullmatch(path)
        if versioned is None:
            return self._kept(await super().get_response(path, scope), _ASK_AGAIN)
        digest, name = versioned.groups()
        # A page of before an update gets what there is today: its two files fit each other.
        is_current = digest == self._assets.digest and self._assets.is_current()
        return self._kept(await self._find(name, scope), _FOREVER if is_current else _ASK_AGAIN)

    async def _find(self, name: str, scope: Scope) -> Response:
        if name == _JOINED_STYLES:
            return Response(self._assets.joined_styles(), media_type="text/css")
        if name == _JOINED_MODULES:
            return Response(self._assets.joined_modules().code, media_type="text/javascript")
        if name == _SOURCE_MAP:
            return Response(self._assets.joined_modules().source_map, media_type="application/json")
        return await super().get_response(f"page/{name}", scope)

    @staticmethod
    def _kept(response: Response, how: str) -> Response:
        response.headers["Cache-Control"] = how
        return response


class PreloadLinks:
    """Middleware that puts links into the head of the page's HTML, before Gradio's own scripts run.

    Gradio's `head` comes into the page by its script only: a second after the page's first bytes
    on a slow link.
    """

    def __init__(self, app: ASGIApp, links: str) -> None:
        """Wrap the innermost application, whose HTML isn't compressed yet.

        Args:
            app: Answers all requests.
            links: HTML for the head.
        """
        self._app = app
        self._links = f"{links}\n</head>".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, the page itself with its links."""
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("GET", "/"):
            await self._app(scope, receive, send)
            return
        await self._app(scope, receive, _LinkedPage(send, self._links).send)


class _LinkedPage:
    """Holds a response back until it is whole, then sends it with the links."""

    def __init__(self, send: Send, links: bytes) -> None:
        self._send = send
        self._links = links
        self._start: Message = {}
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return
        body = bytes(self._body).replace(b"</head>", self._links, 1)
        headers = MutableHeaders(raw=self._start["headers"])
        headers["content-length"] = str(len(body))
        await self._send(self._start)
        await self._send({"type": "http.response.body", "body": body})
