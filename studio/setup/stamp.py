"""The mark an environment carries once a part is complete in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from studio.setup.requirements import Part


@dataclass(frozen=True, slots=True)
class Stamp:
    """A small file in the environment's own folder, so that it goes when the environment goes."""

    root: Path
    part: Part

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.root / f"tableread-{self.part.name}.json"

    def is_current(self) -> bool:
        """Whether this very part, for this Python, was completed here."""
        try:
            held = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(held, dict) and held.get("fingerprint") == self.part.fingerprint()

    def write(self) -> None:
        """Mark the part complete; the file appears whole or not at all."""
        content = {
            "part": self.part.name,
            "fingerprint": self.part.fingerprint(),
            "packages": [str(pin) for pin in (*self.part.pins, *self.part.no_deps)],
        }
        draft = self.path.with_suffix(".tmp")
        draft.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draft.replace(self.path)

    def remove(self) -> None:
        """Take the mark away before the packages change."""
        self.path.unlink(missing_ok=True)
