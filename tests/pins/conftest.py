"""One studio for the whole folder, on a copy of the workspace that is kept here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pins_studio import Server, serving, unpack


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test of the command line starts the studio; so does what needs a Space's studio."""
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        starts = item.path.name == "test_pins_command_line.py"
        if starts or "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what is kept here; nobody changes it."""
    folder = tmp_path_factory.mktemp("pins")
    unpack(folder)
    return folder


@pytest.fixture(scope="session")
def files(unpacked: Path) -> Path:
    """Voice and project files."""
    return unpacked / "files"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    workspace = unpack(tmp_path_factory.mktemp("served"))
    with serving(workspace, "--backend", "draft") as running:
        yield running


@pytest.fixture(scope="session")
def client(server: Server) -> httpx.Client:
    return server.client
