"""A request's own randomness, where the package draws from the generator of the process."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class Noise:
    """One random stream a device, seeded alike, as after `torch.manual_seed` in a fresh process.

    A request draws all its randomness here. It therefore neither disturbs nor feels what other
    threads draw, and its audio is that of the package for the same seed.
    """

    def __init__(self, seed: int) -> None:
        """Seed the streams with a number from 0."""
        self._seed = seed
        self._streams: dict[str, torch.Generator] = {}

    def on(self, device: torch.device | str) -> torch.Generator:
        """The stream of a device."""
        key = str(device)
        if key not in self._streams:
            self._streams[key] = torch.Generator(device).manual_seed(self._seed)
        return self._streams[key]

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Normal noise of a tensor's shape, type and device; `torch.randn_like`, bit by bit."""
        return torch.empty_like(tensor).normal_(generator=self.on(tensor.device))

    def routed(self) -> TorchFunctionMode:
        """A context in which this thread's `torch` draws come from here."""
        return _Routed(self)


class _Routed(TorchFunctionMode):  # type: ignore[misc]
    """Redirects draws of the thread that entered it; torch keeps such modes per thread."""

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self._noise = noise

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        arguments: tuple[Any, ...] = (),
        options: dict[str, Any] | None = None,
    ) -> Any:
        options = options or {}
        if function is torch.randn_like:
            return self._noise.like(*arguments, **options)
        if function in {torch.rand, torch.randn}:
            options["generator"] = self._noise.on(options.get("device") or "cpu")
        return function(*arguments, **options)
