"""Takes the list of lines out of a JSON object of another program.

ElevenLabs has it as `inputs`, WhisperX as `segments`, chats with a model as `messages` or
`conversations`, podcast tools as `transcript` or `dialogue`.
"""

from __future__ import annotations

import json

from studio.dialog.formats.tables import Role, role_of

_LISTS = (
    "inputs",
    "segments",
    "conversations",
    "messages",
    "transcript",
    "dialogue",
    "dialog",
    "lines",
    "script",
    "turns",
    "utterances",
)
_OTHER_KEYS = {"from": "speaker", "value": "text", "voice_id": "speaker"}
_SAID = (Role.SPEAKER, Role.TEXT, Role.LANGUAGE)


def unwrap_items(text: str) -> tuple[str, str | None]:
    """The list that a JSON object holds as text of its own, and the object's title.

    Returns:
        The text as it is, and None, if it is anything else.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(found, dict) or "type" in found:
        return text, None
    held = next((found[key] for key in _LISTS if isinstance(found.get(key), list)), None)
    if held is None:
        return text, None
    items = [_keep_said(item) if isinstance(item, dict) else item for item in held]
    title = found.get("title")
    return json.dumps(items, ensure_ascii=False), title if isinstance(title, str) else None


def _keep_said(item: dict[str, object]) -> dict[str, object]:
    """Who says what; a recogniser's times and scores are nobody's settings."""
    named = {_OTHER_KEYS.get(key, key): value for key, value in item.items()}
    return {key: value for key, value in named.items() if role_of(key) in _SAID or key == "type"}
