"""Names that backends had once, and what they are called now."""

from __future__ import annotations

import logging
from functools import cache

log = logging.getLogger(__name__)

# There were two backends for each model, one of which decoded many lines at once.
ALIASES = {
    "qwen3-batched": "qwen3",
    "chatterbox-batched": "chatterbox",
    "chatterbox-turbo-batched": "chatterbox-turbo",
    "chatterbox-multilingual-batched": "chatterbox-multilingual",
}
"""Old name to name; old names are accepted everywhere, and stay in takes and projects."""


def canonical_name(name: str) -> str:
    """A backend's name; an old one is noted in the log once."""
    if name not in ALIASES:
        return name
    _note_alias(name)
    return ALIASES[name]


@cache
def _note_alias(alias: str) -> None:
    log.warning(
        "the voice engine “%s” is called “%s” now, and decodes many lines at once by itself where "
        "the device allows it; the old name still works",
        alias,
        ALIASES[alias],
    )
