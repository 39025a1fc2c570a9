"""Sound tags that stand alone between pauses: a model that performs them needs a word beside."""

from __future__ import annotations

from collections.abc import Sequence

from studio.dialog.limits import Limits
from studio.dialog.paragraph import is_speakable
from studio.dialog.tags import replace_tags

Part = str | float


def joined_tags(parts: Sequence[Part], limits: Limits) -> tuple[list[Part], list[str]]:
    """Join tags without words to the words after them, else to those before.

    Args:
        parts: Texts to speak and pauses in seconds, in order.
        limits: What the backend can take in one pass.

    Returns:
        The parts, each text with a word in it, and the tags that fit beside no words.
    """
    joined: list[Part] = []
    left_out: list[str] = []
    waiting = ""
    for part in parts:
        if isinstance(part, float):
            joined.append(part)
        elif not _has_word(part):
            waiting = f"{waiting} {part}".strip()
        else:
            fits = not waiting or _fit(waiting, part, limits)
            joined.append(f"{waiting} {part}".strip() if fits else part)
            left_out += [] if fits else [waiting]
            waiting = ""
    if waiting and not _put_last(waiting, joined, limits):
        left_out.append(waiting)
    return joined, left_out


def _put_last(tags: str, parts: list[Part], limits: Limits) -> bool:
    """Put tags behind the last words; whether there are any and there was room."""
    for idx in reversed(range(len(parts))):
        text = parts[idx]
        if isinstance(text, str):
            if _fit(text, tags, limits):
                parts[idx] = f"{text} {tags}"
                return True
            return False
    return False


def _has_word(text: str) -> bool:
    return is_speakable(replace_tags(text, lambda _tag, _name: ""))


def _fit(first: str, second: str, limits: Limits) -> bool:
    return sum(map(limits.weight, f"{first} {second}")) <= limits.max_chars
