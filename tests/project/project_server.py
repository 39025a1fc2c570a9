"""The studio's routes on a server of their own: `python project_server.py WORKSPACE PORT`.

The process that the kill tests end; without the page it starts in a second.
"""

from __future__ import annotations

import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from studio.backends.registry import create
from studio.errors import StudioError
from studio.server.error_responses import answer_error
from studio.server.route_table import studio_routes
from studio.services.studio import Studio, StudioOptions
from studio.setup.models_install import NothingToSetUp


def main(workspace: Path, port: int) -> None:
    with Studio.open(StudioOptions(workspace, "draft"), create) as studio:
        studio.projects.resume()
        routes = studio_routes(lambda _: studio, NothingToSetUp(), guard=lambda: None)
        app = FastAPI(routes=routes, exception_handlers={StudioError: answer_error})
        uvicorn.run(app, port=port, log_level="warning")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
