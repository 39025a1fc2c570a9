"""What Qwen3-TTS needs of a speaker, computed once and kept."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

_PRESET = "preset"


@dataclass(frozen=True, slots=True, eq=False)
class Qwen3Voice:
    """A speaker as the model hears it; all on the CPU, a few kilobytes.

    Attributes:
        preset: One of the checkpoint's own voices.
        instruction: Words on the voice or the manner: int64 [tokens].
        embedding: The timbre of a sample: float32 [hidden].
        ref_codes: The sample in the codec's codes: int64 [frames, groups]; with it the model goes
            on from the sample rather than from its timbre alone.
        ref_tokens: The sample's transcript: int64 [tokens]; there when `ref_codes` is.
    """

    preset: str | None = None
    instruction: torch.Tensor | None = None
    embedding: torch.Tensor | None = None
    ref_codes: torch.Tensor | None = None
    ref_tokens: torch.Tensor | None = None

    @property
    def size_bytes(self) -> int:
        """Memory it holds."""
        return 256 + sum(tensor.nbytes for tensor in self._tensors().values())

    def write(self, path: Path) -> None:
        """Write as safetensors."""
        save_file(self._tensors(), path, metadata={_PRESET: self.preset or ""})

    @classmethod
    def read(cls, path: Path) -> Qwen3Voice:
        """Read what `write` wrote.

        Raises:
            OSError: The file isn't there.
            SafetensorError: It is no such file.
        """
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return cls(preset=file.metadata()[_PRESET] or None, **tensors)

    def _tensors(self) -> dict[str, torch.Tensor]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.contiguous() for name, value in values.items() if torch.is_tensor(value)
        }
