"""How busy the graphics card is while something runs."""

from __future__ import annotations

import shutil
import statistics
import subprocess
from typing import Self

_EVERY_MS = 200


class GpuUse:
    """Asks `nvidia-smi` five times a second inside `with`.

    Attributes:
        mean_percent: Mean use of the first card; None without `nvidia-smi` or a card.
    """

    def __init__(self) -> None:
        """Ask nothing yet."""
        self.mean_percent: float | None = None
        self._asking: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        """Begin to ask."""
        program = shutil.which("nvidia-smi")
        if program is not None:
            query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
            self._asking = subprocess.Popen(
                [program, *query, "--id=0", f"--loop-ms={_EVERY_MS}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        """Stop asking and take the mean."""
        if self._asking is None:
            return
        self._asking.terminate()
        told = self._asking.communicate()[0]
        answers = [float(line) for line in told.split() if line.isdigit()]
        self.mean_percent = statistics.mean(answers) if answers else None
