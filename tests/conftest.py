"""What many tests share: a studio on the draft voice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from scenes import OpenStudio

from studio.backends.base import Backend
from studio.backends.registry import create
from studio.engine.model_manager import EvictionPolicy
from studio.services.studio import Studio, StudioOptions

# How long an example takes says more of what else the machine does than of the example.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")


@pytest.fixture
def open_studio(tmp_path: Path) -> Iterator[OpenStudio]:
    """Makes started studios in one temporary workspace; closes them at the end."""
    opened: list[Studio] = []

    def open_one(
        backend: Backend | None = None,
        *,
        max_concurrency: int = 3,
        eviction: EvictionPolicy | None = None,
        **options: object,
    ) -> Studio:
        studio = Studio.open(
            StudioOptions(tmp_path / "workspace", "draft"),
            create if backend is None else lambda _: backend,
            max_concurrency=max_concurrency,
            eviction=eviction,
            **options,
        )
        studio.start()
        opened.append(studio)
        return studio

    yield open_one
    for studio in opened:
        studio.close()


@pytest.fixture
def studio(open_studio: OpenStudio) -> Studio:
    """A started studio on the draft voice."""
    return open_studio()
