from __future__ import annotations

import os
from collections.abc import Mapping
from unittest import mock

from studio.settings import Settings


def settings_from(environ: Mapping[str, str]) -> Settings:
    """The settings of a process whose environment is this and nothing else."""
    with mock.patch.dict(os.environ, environ, clear=True):
        return Settings.from_environment()
