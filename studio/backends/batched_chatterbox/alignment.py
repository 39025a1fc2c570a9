"""The heads that show where in its text a line is, seen for all lines that are decoded together."""

from __future__ import annotations

import torch

from studio.backends.batched.transformer import Attention


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

    def __call__(self, index: int, heads: torch.Tensor) -> torch.Tensor:
        """Attend, and look; see `Attention`."""
        mixed = self._attend(index, heads)
        head = self._heads.get(index)
        if head is not None:
            self._weights.append(self._looked(index, head, heads[0]))
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
