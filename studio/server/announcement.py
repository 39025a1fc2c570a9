"""What the terminal says when the studio is up, and the page that opens with it."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

from studio.cli.serve import ServeArguments
from studio.server.policies import ENTER
from studio.sharing.sessions import VisitorSessions
from studio.storage.workspace import OPENING

_REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url={url}">
<title>Tableread</title>
<a href="{url}">Open the studio</a>
"""


@contextmanager
def announced(
    local_url: str,
    arguments: ServeArguments,
    *,
    share_url: str | None,
    sessions: VisitorSessions | None,
    workspace: Path,
) -> Iterator[None]:
    """Print the studio's URLs and what to know, and open the page.

    Args:
        local_url: That of this machine, without the prefix.
        arguments: Of the command.
        share_url: None if there is no share link.
        sessions: None if everybody works in the owner's studio.
        workspace: Where a file may lie until the end.
    """
    url = f"{local_url.rstrip('/')}{arguments.config.prefix}/"
    has_key = sessions is not None and not arguments.config.is_space
    if sessions is not None and has_key:
        url = f"{url.rstrip('/')}{ENTER}?key={sessions.owner_token}"
    for line in (*_share_lines(share_url, arguments), *_open_lines(local_url, arguments)):
        _say(line)
    _say(f"The studio: {url}")
    if not arguments.open_browser:
        yield
        return
    with _redirect_file(url, workspace) if has_key else nullcontext(url) as opened:
        webbrowser.open(opened)
        yield


@contextmanager
def _redirect_file(url: str, folder: Path) -> Iterator[str]:
    """The URL of a file that leads to another one, which no argument of a program should hold.

    Every user of the machine can read the arguments in the list of processes, but only this one
    the file (mode 0600).
    """
    handle, name = tempfile.mkstemp(prefix=OPENING, suffix=".html", dir=folder)
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_REDIRECT.format(url=html.escape(url)))
        yield path.resolve().as_uri()
    finally:
        path.unlink(missing_ok=True)


def _share_lines(share_url: str | None, arguments: ServeArguments) -> list[str]:
    if not arguments.share:
        return []
    if share_url is None:
        return [
            "The share link can't be made: Gradio's tunnel service wasn't reached. Check the "
            "network, then start again; until then the studio runs on this machine only."
        ]
    lines = [f"The share link: {share_url}"]
    if arguments.made_password and arguments.auth is not None:
        lines.append(f"Guests sign in as {arguments.auth[0]} with {arguments.auth[1]}")
    return lines


def _open_lines(local_url: str, arguments: ServeArguments) -> list[str]:
    if not arguments.is_open:
        return []
    key = " TABLEREAD_API_KEY protects /v1 only." if arguments.config.api_key else ""
    return [
        f"Anybody who reaches port {urlsplit(local_url).port} of this machine can do what you can, "
        "without a password: read, change and delete all projects and voices, render, and load, "
        f"stop and install models.{key} What they send and receive isn't encrypted. To ask for a "
        "password, set TABLEREAD_AUTH or TABLEREAD_AUTH_FILE; to be reached from this "
        "machine only, leave out --host."
    ]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
