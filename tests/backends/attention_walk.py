"""Attention as a line of the multilingual model might have it."""

from __future__ import annotations

import torch


class Walk:
    """Attention that wanders through a text, as of one line, and its tokens."""

    def __init__(self, number: int) -> None:
        self.chance = torch.Generator().manual_seed(number)
        self.text_at = self.draw(1, 5)
        self.text_tokens = self.draw(4, 24)
        self.place = 0.0
        self.pace = (0.3, 0.8, 1.0)[number % 3]

    def draw(self, least: int, most: int) -> int:
        return int(torch.randint(least, most + 1, (1,), generator=self.chance))

    def attention(self, keys: int) -> torch.Tensor:
        """A row of weights that add up to less than 1: [keys]."""
        self.place += self.pace
        if self.draw(0, 24) == 0:
            self.place = float(self.draw(0, self.text_tokens))
        if self.draw(0, 29) == 0:
            self.pace = (0.0, 0.3, 1.0)[self.draw(0, 2)]
        row = 0.1 * torch.rand(keys, generator=self.chance) / keys
        at = self.text_at + min(int(self.place), self.text_tokens - 1)
        row[at] += 0.3 + 0.6 * torch.rand(1, generator=self.chance)[0]
        return row
