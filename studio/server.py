"""`serve`: the page and its routes on one server."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType

from fastapi import HTTPException, Request
from gradio.routes import App

from studio.api.errors import answer_error
from studio.api.routes import studio_routes
from studio.cli.serve import ServeArguments
from studio.dialog.read import read_dialog_text
from studio.errors import StudioError
from studio.service import Studio
from studio.setup_report import SetupReport
from studio.ui.blocks import create_ui, launch_look

_ASSETS = Path(__file__).resolve().parent.parent / "assets"
_OPENING_SCRIPT = _ASSETS / "dialogs" / "lighthouse.txt"


def serve(arguments: ServeArguments, studio: Studio, setup: SetupReport) -> int:
    """Serve the page until interrupted."""
    opening_script = _OPENING_SCRIPT.read_text(encoding="utf-8")
    with studio:
        _welcome(studio, opening_script)
        page = create_ui(studio, opening_script=opening_script)
        page.launch(
            server_name=arguments.host,
            server_port=arguments.port,
            share=arguments.share,
            auth=arguments.auth,
            inbrowser=arguments.open_browser,
            prevent_thread_lock=True,
            app_kwargs={
                "routes": studio_routes(
                    lambda _: studio, setup, guard=_require_login, assets=_ASSETS
                ),
                "exception_handlers": {StudioError: answer_error},
            },
            **launch_look(),
        )
        _until_interrupted()
        page.close()
    return 0


def _require_login(request: Request) -> None:
    """Refuse who hasn't signed in at Gradio's own form, when there is one."""
    server = request.app
    assert isinstance(server, App)
    if server.auth is None:
        return
    token = request.cookies.get(f"access-token-{server.cookie_id}") or request.cookies.get(
        f"access-token-unsecure-{server.cookie_id}"
    )
    if server.tokens.get(token) is None:
        raise HTTPException(401, "Sign in first.")


def _welcome(studio: Studio, opening_script: str) -> None:
    """Give a new library the speakers of the sample dialog."""
    if studio.speakers.list():
        return
    for name in read_dialog_text(opening_script).dialog.speakers():
        studio.speakers.add(name)


def _until_interrupted() -> None:
    """Wait for Ctrl+C or a request to end."""
    ended = threading.Event()

    def end(_signal: int, _frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    # A bare wait can't be interrupted by a signal on Windows.
    while not ended.wait(timeout=0.5):
        pass
