"""Which addresses there are: the studio's own, and of Gradio's only those that the page uses."""

from __future__ import annotations

import re

_OWN = re.compile(r"/(studio|v1|healthz|metrics)(/.*)?")

_PAGE_FILES = (
    r"",
    r"config/?",
    r"theme\.css",
    r"favicon\.ico",
    r"manifest\.json",
    r"robots\.txt",
    r"pwa_icon(/\d+)?",
    r"logout",
    r"(assets|static|svelte)/.+",
)
_ASKED = (
    r"startup-events",
    r"info/?",
    r"user/?",
    r"login_check/?",
    r"app_id/?",
    r"theme\.css",
    r"heartbeat/[^/]+",
    r"queue/data",
)
_TOLD = (r"queue/join", r"reset/?")

_MAX_PART_BYTES = 255
"""No file's name is longer, and looking for one that is fails."""

_READ = re.compile(rf"/({'|'.join(_PAGE_FILES)})|/gradio_api/({'|'.join(_ASKED)})")
_WRITE = re.compile(rf"/login/?|/gradio_api/({'|'.join(_TOLD)})")


def is_open(method: str, path: str) -> bool:
    """Whether anything answers there.

    Gradio brings more: `run`, `call`, `proxy`, `upload`, `file`, `process_recording`, deep links,
    monitoring, documents. They stay closed.

    Args:
        method: As in the request.
        path: Decoded, from the root.
    """
    if any(len(part.encode(errors="replace")) > _MAX_PART_BYTES for part in path.split("/")):
        return False
    if _OWN.fullmatch(path):
        return True
    if method in {"GET", "HEAD"}:
        return _READ.fullmatch(path) is not None
    return method == "POST" and _WRITE.fullmatch(path) is not None


def is_visit(method: str, path: str) -> bool:
    """Whether it only asks for the page itself."""
    return method in {"GET", "HEAD"} and path in {"/", "/studio/enter"}
