"""Routes the page asks what is: the studio's state, and what a script holds."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from studio.api.desk import Desk
from studio.api.schemas import ScriptBody, line_body, lines_by_speaker, notice_body
from studio.api.state import state_body
from studio.dialog.model import Dialog
from studio.dialog.read import read_dialog_text
from studio.errors import ScriptError
from studio.service import Studio
from studio.setup_report import SetupReport
from studio.speakers.colours import next_colour
from studio.speakers.speaker import Speaker


def page_routes(setup: SetupReport) -> APIRouter:
    """The routes, bound to the installation's report."""
    routes = APIRouter(prefix="/studio")

    @routes.get("/state")
    def state(studio: Desk) -> dict[str, Any]:
        return state_body(studio, setup)

    @routes.post("/setup/start", status_code=204)
    def start_setup() -> None:
        setup.start()

    @routes.post("/script")
    def script(studio: Desk, body: ScriptBody) -> dict[str, Any]:
        return _script_body(studio, body.text)

    return routes


def _script_body(studio: Studio, text: str) -> dict[str, Any]:
    """A script as the page shows it; an unreadable one is an answer too, not a failed request."""
    try:
        parsed = read_dialog_text(text)
    except ScriptError as error:
        problem = {"line": error.line, "message": str(error)}
        return {"lines": [], "notices": [], "speakers": [], "error": problem}
    dialog = parsed.dialog
    return {
        "lines": [line_body(idx, line) for idx, line in enumerate(dialog)],
        "notices": [notice_body(notice) for notice in parsed.notices],
        "speakers": _speakers(studio, dialog),
        "error": None,
    }


def _speakers(studio: Studio, dialog: Dialog) -> list[dict[str, Any]]:
    """Who speaks in a dialog; who isn't in the library gets a colour for as long as that lasts."""
    colours = [speaker.colour for speaker in studio.speakers.list()]
    bodies = []
    for name, count in lines_by_speaker(dialog).items():
        speaker = studio.speakers.find(name)
        colour = speaker.colour if speaker else next_colour(colours)
        colours.append(colour)
        voice = _voice_kind(speaker)
        bodies.append({"name": name, "colour": colour, "lines": count, "voice": voice})
    return bodies


def _voice_kind(speaker: Speaker | None) -> str:
    if speaker is None:
        return "built-in"
    if speaker.sample is not None:
        return "sample"
    if speaker.preset is not None:
        return "preset"
    return "described" if speaker.description is not None else "built-in"
