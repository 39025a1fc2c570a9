"""The tools of the studio's MCP server: voices, scenes, projects, and edits as proposals.

Imported by `McpEndpoint` only, when a client first asks, as the package `mcp` takes a second.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from pydantic import ConfigDict, Field, ValidationError
from starlette.requests import Request

from studio import __version__
from studio.audio.formats import FileSuffix
from studio.dialog.model import name_key
from studio.errors import BadInput, StudioError
from studio.project.document import Document, number_lines
from studio.project.session import ProjectSession
from studio.server.policies import StudioOf
from studio.server.program_calls import ProgramCalls
from studio.services.previews import MAX_PREVIEW_CHARS
from studio.services.proposals import MAX_CHANGES, MAX_NOTE_CHARS, Proposal, WantedChange
from studio.services.spoken_files import SpokenFile, SpokenScene
from studio.services.studio import Studio
from studio.storage.json_bounds import BoundedModel, cut_names

_MAX_EMBEDDED_BYTES = 1_500_000
"""Longer audio is answered as a link only; clients keep what they get in a model's context."""

_MAX_LINES = 500
_MAX_VOICES = 1_000
_MAX_PLACE_CHARS = 100
_TRIED = "This is how I sound when I read a line of your scene."
_INSTRUCTIONS = (
    "Tableread renders dialog with several voices. Read a project before you propose edits to it. "
    "Edits are proposals: the person at the studio's page accepts or rejects them; ask "
    "read_proposal for the answer. Scripts are a line each as `Name: text`, `[pause:1.5s]` for a "
    "pause, `# Title` for a heading."
)


class _Arguments(BoundedModel):
    model_config = ConfigDict(extra="forbid")


class RenderSceneArguments(_Arguments):
    """Render a script with several voices into one audio file."""

    script: str = Field(description="A line each as “Name: text”, or any script to import.")
    voices: Annotated[dict[str, str], cut_names(_MAX_VOICES)] = Field(
        {},
        max_length=_MAX_VOICES,
        description="Voices of list_voices by the name in the script; others find their own.",
    )
    seed: int | None = Field(None, ge=0, lt=2**32, description="The same seed, the same audio.")
    loudness: str = Field("rendered", description="podcast, audiobook, broadcast, or LUFS.")
    audio_format: FileSuffix = "mp3"


class NoArguments(_Arguments):
    """Nothing."""


class TryArguments(_Arguments):
    """Hear a voice say a sentence."""

    voice: str = Field(max_length=200, description="The id of one of list_voices.")
    text: str = Field(_TRIED, max_length=MAX_PREVIEW_CHARS)


class ReadArguments(_Arguments):
    """Read a project's lines."""

    project_id: str = Field(max_length=100, description="Of list_projects.")
    first: int = Field(
        1, ge=1, description="The row to begin with, of n_rows; pauses are rows, too."
    )
    limit: int = Field(_MAX_LINES, ge=1, le=_MAX_LINES)


class ChangeArguments(_Arguments):
    """One change."""

    kind: Literal["change", "insert", "delete"]
    line_id: str | None = Field(
        None, max_length=20, description="The line; of a new line the one before it, or null."
    )
    speaker: str | None = Field(None, max_length=200)
    text: str | None = Field(None, max_length=10_000)


class ProposeArguments(_Arguments):
    """Propose changes to a project's lines, for a person to accept or reject as one step."""

    project_id: str = Field(max_length=100)
    changes: list[ChangeArguments] = Field(min_length=1, max_length=MAX_CHANGES, fail_fast=True)
    note: str = Field("", max_length=MAX_NOTE_CHARS, description="What they are for; is shown.")


class AnswerArguments(_Arguments):
    """Ask what became of a proposal."""

    project_id: str = Field(max_length=100)
    proposal_id: str = Field(max_length=100)


@dataclass(frozen=True, slots=True)
class _ToolCall:
    """A call with its caller's studio."""

    studio: Studio
    base_url: str
    progress: Callable[[int, int], Awaitable[None]]

    def link(self, made: SpokenFile) -> str:
        return f"{self.base_url}gradio_api/file={made.address}"

    def open_project(self, project_id: str) -> ProjectSession:
        self.studio.speakers.require_open()  # whoever keeps no voices has no projects either
        return self.studio.projects.open(project_id)


Content = list[types.ContentBlock]


def _say(body: Any) -> types.TextContent:
    return types.TextContent(type="text", text=json.dumps(body, ensure_ascii=False))


def _sound(made: SpokenFile) -> Content:
    if made.path.stat().st_size > _MAX_EMBEDDED_BYTES:
        return []
    data = base64.b64encode(made.path.read_bytes()).decode()
    return [types.AudioContent(type="audio", data=data, mimeType=made.media_type)]


def _answer_scene(call: _ToolCall, scene: SpokenScene) -> Content:
    about = {
        "url": call.link(scene.file),
        "audio_s": round(scene.audio_s, 2),
        "lines": scene.lines,
        "failed": scene.failed,
        "notices": scene.notices,
    }
    return [_say(about), *_sound(scene.file)]


async def _render(call: _ToolCall, given: RenderSceneArguments) -> Content:
    calls = ProgramCalls(call.studio, on_progress=call.progress)
    scene = await calls.render(given.script, **given.model_dump(exclude={"script"}))
    return await asyncio.to_thread(_answer_scene, call, scene)


async def _list_voices(call: _ToolCall, _: NoArguments) -> Content:
    return [_say(await asyncio.to_thread(ProgramCalls(call.studio).list_voices))]


async def _try_voice(call: _ToolCall, given: TryArguments) -> Content:
    calls = ProgramCalls(call.studio)
    listed = await asyncio.to_thread(calls.list_voices)
    known = {name_key(one[key]) for one in listed for key in ("id", "name")}
    if (
        known and name_key(given.voice) not in known
    ):  # where any name has a voice, a mistake has one
        raise BadInput(f"There is no voice “{given.voice[:60]}”. list_voices has those there are.")
    made = await calls.speak(given.text, given.voice, 0, audio_format="mp3")
    return [_say({"url": call.link(made)}), *await asyncio.to_thread(_sound, made)]


async def _list_projects(call: _ToolCall, _: NoArguments) -> Content:
    found = await asyncio.to_thread(call.studio.projects.list_summaries)
    return [
        _say([{"project_id": p.project_id, "name": p.name, "lines": p.numbered} for p in found])
    ]


async def _read_project(call: _ToolCall, given: ReadArguments) -> Content:
    project = await asyncio.to_thread(call.open_project, given.project_id)
    return [await asyncio.to_thread(_describe_lines, project.document, given)]


def _describe_lines(document: Document, given: ReadArguments) -> types.TextContent:
    numbers = number_lines(document)
    lines = [
        {
            "number": numbers.get(line.line_id),
            "line_id": line.line_id,
            "kind": line.unspoken or line.kind,
            "speaker": line.speaker,
            "text": line.text,
            "seconds": line.duration_s or None,
        }
        for line in list(document)[given.first - 1 : given.first - 1 + given.limit]
    ]
    lines = [{key: value for key, value in line.items() if value is not None} for line in lines]
    about = {"name": document.name, "n_lines": len(numbers), "n_rows": len(document.order)}
    return _say({**about, "lines": lines})


async def _propose_edits(call: _ToolCall, given: ProposeArguments) -> Content:
    project = await asyncio.to_thread(call.open_project, given.project_id)
    wanted = [WantedChange(**one.model_dump()) for one in given.changes]
    made = await asyncio.to_thread(call.studio.proposals.propose, project, wanted, given.note)
    return [_describe_proposal(made)]


async def _read_proposal(call: _ToolCall, given: AnswerArguments) -> Content:
    project = await asyncio.to_thread(call.open_project, given.project_id)
    found = await asyncio.to_thread(call.studio.proposals.find, project, given.proposal_id)
    return [_describe_proposal(found)]


def _describe_proposal(proposal: Proposal) -> types.TextContent:
    changes = len(proposal.changes)
    return _say({"proposal_id": proposal.proposal_id, "state": proposal.state, "changes": changes})


_Work = Callable[[_ToolCall, Any], Awaitable[Content]]

_TOOLS: dict[str, tuple[type[_Arguments], str, _Work]] = {
    "list_voices": (NoArguments, "List the voices that the studio can speak with.", _list_voices),
    "try_voice": (TryArguments, "Hear a voice say a sentence.", _try_voice),
    "render_scene": (RenderSceneArguments, RenderSceneArguments.__doc__ or "", _render),
    "list_projects": (NoArguments, "List the projects, the last edited first.", _list_projects),
    "read_project": (ReadArguments, "Read a project's lines, with their ids.", _read_project),
    "propose_edits": (ProposeArguments, ProposeArguments.__doc__ or "", _propose_edits),
    "read_proposal": (AnswerArguments, AnswerArguments.__doc__ or "", _read_proposal),
}

# What a tool makes is heard or read; a person decides on a proposal, and a newer one replaces it.
_READS = types.ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_PROPOSES = types.ToolAnnotations(readOnlyHint=False, destructiveHint=False, openWorldHint=False)


class McpTools:
    """The server of the tools. It keeps nothing of a client between two messages."""

    def __init__(self, studio_of: StudioOf) -> None:
        self._studio_of = studio_of
        self._server: Server[Any, Any] = Server(
            "tableread", __version__, instructions=_INSTRUCTIONS
        )
        self._server.list_tools()(self._list)
        # The arguments are checked below, in words for whoever sent them.
        self._server.call_tool(validate_input=False)(self._call)
        self._manager = StreamableHTTPSessionManager(app=self._server, stateless=True)
        self.handle = self._manager.handle_request  # an ASGI application

    async def run(self, up: asyncio.Future[None]) -> None:
        """Run until it is cancelled; `up` gets its result once messages can be handled."""
        async with self._manager.run():
            up.set_result(None)
            await asyncio.Event().wait()

    def describe(self) -> list[dict[str, Any]]:
        """The tools as Gradio's page lists them."""
        return [
            {
                "name": name,
                "description": about,
                "inputSchema": arguments.model_json_schema(),
                "endpoint_name": name,
                "meta": {"file_data_present": False, "mcp_type": "tool", "endpoint_name": name},
            }
            for name, (arguments, about, _) in _TOOLS.items()
        ]

    async def _list(self) -> list[types.Tool]:
        return [
            types.Tool(
                name=name,
                description=about,
                inputSchema=arguments.model_json_schema(),
                annotations=_PROPOSES if name == "propose_edits" else _READS,
            )
            for name, (arguments, about, _) in _TOOLS.items()
        ]

    async def _call(self, name: str, given: dict[str, Any]) -> types.CallToolResult:
        try:
            content = await self._work(name, given)
            return types.CallToolResult(content=content)
        except StudioError as error:
            text = types.TextContent(type="text", text=str(error))
            return types.CallToolResult(content=[text], isError=True)

    async def _work(self, name: str, given: dict[str, Any]) -> Content:
        if name not in _TOOLS:
            raise BadInput(f"There is no tool “{name[:60]}” here.")
        arguments, _, work = _TOOLS[name]
        try:
            checked = arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))[:_MAX_PLACE_CHARS]
            raise BadInput(f"The argument {place} can't be used: {first['msg']}.") from error
        context = self._server.request_context
        request = context.request
        assert isinstance(request, Request), "it came by HTTP"
        token = context.meta.progressToken if context.meta else None

        async def progress(done: int, total: int) -> None:
            if token is not None:
                await context.session.send_progress_notification(
                    token, done, total, related_request_id=str(context.request_id)
                )

        call = _ToolCall(self._studio_of(request), str(request.base_url), progress)
        return await work(call, checked)
