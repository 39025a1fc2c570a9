"""The multilingual model's watch over its alignment: when a line may end, and when it must.

Three attention heads show which token of the text is being spoken. The watch is a row of numbers a
line; rows stand below each other for lines that are made together, and nothing asks the host.

Two rules read it. The package's forces an end as soon as a token comes twice, and at the end of the
text after 200 ms, which may be its last syllable: trained weights lose words and half sentences to
it, and the package's later source has done without. The studio's own rule, `Ends.SPOKEN`, forbids
an end until the text was spoken once, and forces one only after that: where the line dwells on what
follows the last word, or goes back in the text.

Source: `AlignmentStreamAnalyzer` of chatterbox-tts 0.1.7; what it reckons without deciding by it,
such as a false start, is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

import torch

UNWATCHED_TEXT_TOKENS = 5
"""Up to here the package's analyzer has nothing to say, and fails once the text is spoken."""

_CERTAIN = 2.0**15  # the package's score of what must be or must not be
_END_TOKENS = 3  # of text; an end is nearly reached at the first of them
_NEXT_TO_END = 5  # tokens of text that a line may come back to when it is done
_BACK, _AHEAD = -4, 7  # tokens of text that the place moves at once, both left out
_LONGEST_TAIL = 5.0  # sum of attention to one of the last tokens: 200 ms
_LONGEST_REST = 12.5  # the same of what follows the last word: half a second
_SETTLED = 3.0  # sum of attention to the last tokens from which on the text's end isn't a glance
_MOST_AGAIN = 5.0  # sum of attention to what was spoken before


class Ends(Enum):
    """Whose rule decides about a line's end."""

    SPOKEN = "spoken"
    PACKAGE = "package"


class Watch(IntEnum):
    """Columns of a line's watch; whole numbers but for the sums."""

    TEXT_AT = 0  # position of the text's first token in the prompt
    TEXT_TOKENS = 1  # 0 where nothing is watched
    PLACE = 2  # token of the text that is spoken
    DONE = 3  # whether the text was spoken, 0 or 1
    RULING = 4  # on the next token, a `Ruling`
    AGAIN = 5  # attention to text that isn't its end, summed up since it was spoken
    TAIL = 6  # attention to each of the text's last tokens since then; three columns


WIDTH = Watch.TAIL + _END_TOKENS


class Ruling(IntEnum):
    """What the watch decides about a line's end at the next token."""

    FORBIDDEN = -1
    OPEN = 0
    FORCED = 1


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What was seen of a step.

    Attributes:
        attention: Mean of the watched heads over all positions: float32 [rows, window].
        frame: Number of the token that comes next: int64 [rows].
        twice: Whether the last two tokens are the same: bool [rows].
    """

    attention: torch.Tensor
    frame: torch.Tensor
    twice: torch.Tensor


def begun(text_at: int, text_tokens: int) -> list[float]:
    """A line's watch before its first token, which can't be its end.

    Args:
        text_at: Where in the prompt the text begins.
        text_tokens: With the marks of its start and stop. A text of up to
            `UNWATCHED_TEXT_TOKENS` isn't watched.
    """
    watch = [0.0] * WIDTH
    if text_tokens > UNWATCHED_TEXT_TOKENS:
        watch[Watch.TEXT_AT], watch[Watch.TEXT_TOKENS] = text_at, text_tokens
        watch[Watch.RULING] = Ruling.FORBIDDEN
    return watch


def ruled(scores: torch.Tensor, watch: torch.Tensor, end: int) -> torch.Tensor:
    """Scores with the end forbidden or forced, as the rows' watch has decided.

    Args:
        scores: float32 [rows, vocabulary].
        watch: [rows, WIDTH].
        end: The token.
    """
    ruling = watch[:, Watch.RULING, None]
    is_end = torch.arange(scores.shape[1], device=scores.device) == end
    forced = torch.where(is_end, _CERTAIN, -_CERTAIN).to(scores.dtype)
    scores = scores.masked_fill(is_end & (ruling == Ruling.FORBIDDEN), -_CERTAIN)
    return torch.where(ruling == Ruling.FORCED, forced, scores)


def cuts(watch: torch.Tensor) -> torch.Tensor:
    """Whether the end that is forced at the next token comes before the text's: bool [rows]."""
    return (watch[:, Watch.RULING] == Ruling.FORCED) & (watch[:, Watch.DONE] == 0)


def watched(watch: torch.Tensor, seen: Seen, ends: Ends) -> torch.Tensor:
    """The watch after a step: [rows, WIDTH], anew."""
    text_at, text = _column(watch, Watch.TEXT_AT), _column(watch, Watch.TEXT_TOKENS)
    token = torch.arange(seen.attention.shape[1], device=watch.device) - text_at  # [rows, window]
    # As in the package, no token of the text counts before as many tokens were spoken.
    weight = seen.attention.masked_fill(token > seen.frame[:, None], 0.0)
    weight = weight.masked_fill((token < 0) | (token >= text), -1.0)
    spoken = weight.argmax(dim=1, keepdim=True) - text_at  # [rows, 1]
    place = _moved(_column(watch, Watch.PLACE), spoken)
    before = _column(watch, Watch.DONE)
    done = torch.maximum(before, (place >= text - _END_TOKENS).float())
    again = weight.masked_fill(token >= text - _NEXT_TO_END, 0.0).amax(dim=1, keepdim=True)
    tail = _column_of_tail(watch)
    counts = before if ends is Ends.PACKAGE else (_sum(tail) >= _SETTLED).float()
    again = _column(watch, Watch.AGAIN) + counts * again
    tail = tail + before * _last(weight, text_at + text)
    early = spoken < text - _END_TOKENS
    if ends is Ends.PACKAGE:
        forced = (_most(tail) >= _LONGEST_TAIL) | (again > _MOST_AGAIN) | seen.twice[:, None]
    else:
        # The first of the last tokens is a sound of the last word, the others its stop and end.
        forced = (_most(tail[:, 1:]) >= _LONGEST_REST) | (again > _MOST_AGAIN)
        early = early & (done == 0)  # a line that went back may end there
    ruling = (forced.float() - (early & ~forced).float()) * (text > 0)
    return torch.cat([text_at, text, place, done, ruling, again, tail], dim=1)


def _column(watch: torch.Tensor, name: Watch) -> torch.Tensor:
    return watch[:, name, None]  # [rows, 1]


def _column_of_tail(watch: torch.Tensor) -> torch.Tensor:
    return watch[:, Watch.TAIL :]  # [rows, 3]


def _sum(tail: torch.Tensor) -> torch.Tensor:
    return tail.sum(dim=1, keepdim=True)


def _most(tail: torch.Tensor) -> torch.Tensor:
    return tail.amax(dim=1, keepdim=True)


def _moved(place: torch.Tensor, spoken: torch.Tensor) -> torch.Tensor:
    """Where the text is: what was seen, unless that is too far off."""
    by = spoken - place
    return torch.where((by > _BACK) & (by < _AHEAD), spoken, place)


def _last(weight: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Attention to the text's last tokens: [rows, 3]."""
    places = end - _END_TOKENS + torch.arange(_END_TOKENS, device=weight.device)
    # A resting slot's may be anywhere.
    return weight.gather(1, places.long().clamp(0, weight.shape[1] - 1))
