"""Text as Qwen3-TTS reads it: wrapped in the roles it was trained on, as token numbers."""

from __future__ import annotations

import threading
from typing import Any

import torch


class Tokens:
    """The checkpoint's tokenizer, safe from many threads."""

    def __init__(self, tokenizer: Any) -> None:
        """Take a loaded tokenizer of the transformers package."""
        self._tokenizer = tokenizer
        self._commands = tuple(tokenizer.get_added_vocab())
        # The tokenizer sets padding on itself at each call; two at once fail as "already borrowed".
        self._lock = threading.Lock()

    def line(self, text: str) -> torch.Tensor:
        """A line to speak: int64 [tokens]; the first 3 and the last 5 are its roles."""
        return self._numbers(
            f"<|im_start|>assistant\n{self._plain(text)}<|im_end|>\n<|im_start|>assistant\n"
        )

    def transcript(self, text: str) -> torch.Tensor:
        """What a sample says: int64 [tokens]; the first 3 and the last 2 are its role."""
        return self._numbers(f"<|im_start|>assistant\n{self._plain(text)}<|im_end|>\n")

    def instruction(self, text: str) -> torch.Tensor:
        """How to speak: int64 [tokens]."""
        return self._numbers(f"<|im_start|>user\n{self._plain(text)}<|im_end|>\n")

    def _plain(self, text: str) -> str:
        """Keep a person's text from holding the model's own commands, such as the end of a role."""
        for command in self._commands:
            text = text.replace(command, f"{command[0]} {command[1:]}")
        return text.strip()

    def _numbers(self, text: str) -> torch.Tensor:
        with self._lock:
            return torch.tensor(self._tokenizer(text)["input_ids"], dtype=torch.long)
