"""How long a page takes from a gesture to the paint that shows it, asked of a real browser."""

from __future__ import annotations

from collections.abc import Sequence

NAMES = ("Mara", "Tomas", "Ilse", "Wren")

PAINTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
"""Resolves once the next frame is painted."""

DELAY_KEYS = """() => {
  window.delays_ms = [];
  window.onkeydown ??= () => {
    const pressed = performance.now();
    requestAnimationFrame(() => setTimeout(() =>
      window.delays_ms.push(performance.now() - pressed)));
  };
}"""
"""From now on `window.delays_ms` holds each key's time to its paint."""


def _timed(act: str) -> str:
    return f"""async () => {{
      const {{ commands, selection, project }} = window.tableread;
      const times = [];
      for (let turn = 0; turn < 20; turn += 1) {{
        const {{ order }} = project.view;
        selection.go(order[(20 + 7 * turn) % order.length]);
        await {PAINTED};
        const began = performance.now();
        const painted = {PAINTED}; // asked first: what is put off until after the paint comes later
        {act};
        await painted;
        times.push(performance.now() - began);
      }}
      return times;
    }}"""


STRUCTURE_MS = {
    "insert": _timed("commands.add()"),
    "delete": _timed("commands.delete()"),
    "move": _timed("commands.shift(1)"),
}
"""Scripts for the studio's page: twenty times each, in milliseconds."""


def line_text(number: int) -> str:
    """What a line of a long scene says."""
    return f"Line number {number} of a long scene, with words enough to wrap."


def scene(lines: int) -> str:
    """A script of that many lines by four speakers."""
    return "\n".join(f"{NAMES[n % 4]}: {line_text(n)}" for n in range(lines))


def p95(values: Sequence[float]) -> float:
    """The value that 19 of 20 stay below."""
    return sorted(values)[int(0.95 * (len(values) - 1))]
