"""A studio that nobody asks anything lets the processor sleep."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from serving import serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts in /proc"),
]

WINDOW_S = 2.0
PATIENCE_S = 60.0


def count_wakeups(pid: int) -> int:
    """How often all threads of a process have gone to sleep so far."""
    texts = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/status")]
    rows = [row.split() for text in texts for row in text.splitlines()]
    return sum(int(row[1]) for row in rows if row[0] == "voluntary_ctxt_switches:")


def test_an_idle_studio_wakes_at_most_ten_times_a_second(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace") as (client, process):
        made = client.post("/studio/projects", json={"name": "Scene", "text": "Ida: One."})
        assert made.status_code == 201
        rates = []
        # What a start goes on doing ends; a busy machine wakes nobody more often.
        while not rates or (min(rates) > 10 and len(rates) < PATIENCE_S / WINDOW_S):
            before, began_s = count_wakeups(process.pid), time.monotonic()
            time.sleep(WINDOW_S)
            seconds = time.monotonic() - began_s
            rates.append((count_wakeups(process.pid) - before) / seconds)
    print("wake-ups a second:", [round(one, 1) for one in rates])
    assert min(rates) <= 10
