"""The multilingual model's watch over its alignment, a row a slot, without asking the host.

Three attention heads show which token of the text is being spoken. From them the package's
analyzer forbids a line's end before its text is spoken, and forces it where the line dwells on the
text's end, goes back in the text, or says a token twice in a row. Its decisions are those of the
package; what it reckons without deciding by it, such as a false start, is left out.

Source: `AlignmentStreamAnalyzer` of chatterbox-tts 0.1.7.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import torch

from studio.backends.batched.transformer import Attention
from studio.backends.chatterbox.tokens import UNWATCHED_TEXT_TOKENS

_CERTAIN = 2.0**15  # the package's score of what must be or must not be
_END_TOKENS = 3  # of text; an end is nearly reached at the first of them
_NEXT_TO_END = 5  # tokens of text that a line may come back to when it is done
_BACK, _AHEAD = -4, 7  # tokens of text that the place moves at once, both left out
_LONGEST_TAIL = 5.0  # sum of attention to one of the last tokens: 200 ms
_MOST_AGAIN = 5.0  # sum of attention to what was spoken before


class Watch(IntEnum):
    """Columns of a slot's watch; whole numbers but for the sums."""

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
    """A slot's watch before a line's first token, which can't be its end.

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
    forced = torch.where(is_end, _CERTAIN, -_CERTAIN)
    scores = scores.masked_fill(is_end & (ruling == Ruling.FORBIDDEN), -_CERTAIN)
    return torch.where(ruling == Ruling.FORCED, forced, scores)


def watched(watch: torch.Tensor, seen: Seen) -> torch.Tensor:
    """The watch after a step: [rows, WIDTH], anew."""
    text_at, text = _column(watch, Watch.TEXT_AT), _column(watch, Watch.TEXT_TOKENS)
    token = torch.arange(seen.attention.shape[1], device=watch.device) - text_at  # [rows, window]
    # As in the package, no token of the text counts before as many tokens were spoken.
    weight = seen.attention.masked_fill(token > seen.frame[:, None], 0.0)
    weight = weight.masked_fill((token < 0) | (token >= text), -1.0)
    spoken = weight.argmax(dim=1, keepdim=True) - text_at  # [rows, 1]
    place = _moved(_column(watch, Watch.PLACE), spoken)
    done = _column(watch, Watch.DONE)
    again = weight.masked_fill(token >= text - _NEXT_TO_END, 0.0).amax(dim=1, keepdim=True)
    again = _column(watch, Watch.AGAIN) + done * again
    tail = watch[:, Watch.TAIL :] + done * _last(weight, text_at + text)
    wrong = (tail.amax(dim=1, keepdim=True) >= _LONGEST_TAIL) | (again > _MOST_AGAIN)
    forced, early = wrong | seen.twice[:, None], spoken < text - _END_TOKENS
    ruling = (forced.float() - (early & ~forced).float()) * (text > 0)
    done = torch.maximum(done, (place >= text - _END_TOKENS).float())
    return torch.cat([text_at, text, place, done, ruling, again, tail], dim=1)


def _column(watch: torch.Tensor, name: Watch) -> torch.Tensor:
    return watch[:, name, None]  # [rows, 1]


def _moved(place: torch.Tensor, spoken: torch.Tensor) -> torch.Tensor:
    """Where the text is: what was seen, unless that is too far off."""
    by = spoken - place
    return torch.where((by > _BACK) & (by < _AHEAD), spoken, place)


def _last(weight: torch.Tensor, end: torch.Tensor) -> torch.Tensor:
    """Attention to the text's last tokens: [rows, 3]."""
    places = end - _END_TOKENS + torch.arange(_END_TOKENS, device=weight.device)
    # A resting slot's may be anywhere.
    return weight.gather(1, places.long().clamp(0, weight.shape[1] - 1))


class HeadSpy:
    """Sees what watched heads of each slot's first row attend to, beside the attention itself."""

    def __init__(
        self,
        attend: Attention,
        keys: torch.Tensor,
        mask: torch.Tensor,
        heads: tuple[tuple[int, int], ...],
    ) -> None:
        """Begin with nothing seen.

        Args:
            attend: What is done anyway.
            keys: The slots' cache, from the first row's heads on:
                [layers, slots, heads, positions, head_dim].
            mask: 0 or minus infinity: [rows, 1, window].
            heads: Layer and query head of each that is watched.
        """
        self._attend = attend
        self._keys = keys
        self._mask = mask
        self._heads = dict(heads)
        self._weights: list[torch.Tensor] = []

    def __call__(self, index: int, turned: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
        """Attend, and look; see `Attention`."""
        mixed = self._attend(index, turned, plain)
        head = self._heads.get(index)
        if head is not None:
            self._weights.append(self._looked(index, head, turned))
        return mixed

    @property
    def attention(self) -> torch.Tensor:
        """Mean over the watched heads: float32 [rows, window]."""
        return torch.stack(self._weights).mean(dim=0)

    def _looked(self, index: int, head: int, turned: torch.Tensor) -> torch.Tensor:
        rows, _, window = self._mask.shape
        group = turned.shape[2] - 2
        shared, own = divmod(head, group)
        query = turned.unflatten(0, (rows, -1))[:, 0, shared, own, None]  # [rows, 1, head_dim]
        keys = self._keys[index, :rows, shared, :window]
        scores = query @ keys.transpose(1, 2) * query.shape[-1] ** -0.5 + self._mask
        return scores.softmax(dim=-1, dtype=torch.float32)[:, 0]
