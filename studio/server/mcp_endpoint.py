"""The address of the studio's MCP server; the package `mcp` is imported with the first request.

It stands where Gradio has its own, whose tools would call the studio by HTTP as somebody else, and
which takes a URL for every file.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from studio.errors import ModelUnavailable
from studio.server.middleware.admission import receive_once
from studio.server.policies import StudioOf

PACKAGE = "mcp"
_TOOLS = "studio.server.mcp_tools"
_FOR_PEOPLE = (
    "This is the studio's MCP server. Give its address to an MCP client (transport: streamable "
    "HTTP), not to a browser. The guide is docs/reference/programs.md.\n"
)

_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
"""Of JSON-RPC."""

_SURROGATE = re.compile("[\ud800-\udfff]")

Answer = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


def is_installed() -> bool:
    """Whether the package is there; imports nothing."""
    return importlib.util.find_spec(PACKAGE) is not None


class McpEndpoint:
    """Imports the tools and starts the server when they are first asked for; one event loop."""

    def __init__(self, studio_of: StudioOf) -> None:
        self._studio_of = studio_of
        self._starting = asyncio.Lock()
        self._tools: Any = None
        self._running: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Response:
        """Answer a message of a client."""
        if request.method != "POST":
            # No stream that the server begins, nor a session to delete.
            return PlainTextResponse(_FOR_PEOPLE, 405, {"Allow": "POST"})
        try:
            message = json.loads(await request.body(), parse_constant=_reject_number)
            body = json.dumps(message, ensure_ascii=False)
        except (ValueError, RecursionError):
            return _refuse(_PARSE_ERROR, "This isn't JSON in UTF-8, or is nested too deeply.")
        if not isinstance(message, dict):
            return _refuse(_INVALID_REQUEST, "A message is one JSON object.")
        if type(message.get("id", 0)) not in {int, str}:  # it would be taken for a notification
            return _refuse(_INVALID_REQUEST, "A message's id is a text or a whole number.")
        return _Handed((await self._started()).handle, body)

    async def describe(self) -> Response:
        """The tools as Gradio's page *Use via API* lists them."""
        if not is_installed():
            return JSONResponse({"detail": "Not Found"}, 404)
        return JSONResponse((await self._started()).describe())

    async def _started(self) -> Any:
        async with self._starting:
            if self._running is None or self._running.done():
                self._tools = (await asyncio.to_thread(_import_tools)).McpTools(self._studio_of)
                up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._running = asyncio.create_task(self._tools.run(up))
                await up
        return self._tools


class _Handed(Response):
    """A response that somebody else writes, to a message that was read already."""

    def __init__(self, answer: Answer, message: str) -> None:
        super().__init__()
        self._answer = answer
        # The package answers nothing at all where half a character would come back.
        self._message = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", message).encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._answer(scope, receive_once(self._message, receive), send)


def _refuse(code: int, why: str) -> Response:
    """JSON-RPC's error for what has no id that could be read."""
    error = {"code": code, "message": why}
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, 400)


def _reject_number(text: str) -> None:
    raise ValueError(f"{text} isn't JSON")


def _import_tools() -> Any:
    if not is_installed():
        raise ModelUnavailable(
            "The studio's MCP server needs the package mcp. Start the studio with "
            "`python launch.py`, which installs it, or run `pip install mcp`."
        )
    return importlib.import_module(_TOOLS)


def mcp_routes(studio_of: StudioOf) -> APIRouter:
    """The routes at Gradio's addresses, with and without the slash."""
    endpoint = McpEndpoint(studio_of)
    routes = APIRouter(prefix="/gradio_api/mcp")

    @routes.get("/schema")
    async def schema() -> Response:
        """List the tools, without a client."""
        return await endpoint.describe()

    @routes.api_route("", methods=["GET", "POST", "DELETE"])
    @routes.api_route("/", methods=["GET", "POST", "DELETE"])
    async def message(request: Request) -> Response:
        """Take a message of an MCP client."""
        return await endpoint.answer(request)

    return routes
