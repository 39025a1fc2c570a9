"""The first start on a machine that has only Python, timed against a bare installation."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from tiny_index import REPO

from benchmarks.first_start import measure_setup

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(1200)]


def test_first_sound_costs_a_bare_installation_and_at_most_ten_seconds(capsys):
    times = measure_setup(REPO)
    with capsys.disabled():
        print(f"\nbare {times.bare_s:.1f} s, first sound {times.first_sound_s:.1f} s")
    assert times.first_sound_s <= times.bare_s + 10


def test_a_start_in_a_ready_environment_begins_within_three_seconds(tmp_path, capsys):
    script = tmp_path / "scene.txt"
    script.write_text("Anna: Good evening.\nBen: Good evening, Anna.\n")
    out = tmp_path / "scene.wav"
    command = [sys.executable, str(REPO / "launch.py"), "render", str(script), "-o", str(out)]
    began_s = time.perf_counter()
    subprocess.run([*command, "--backend", "draft"], check=True, capture_output=True)
    took_s = time.perf_counter() - began_s
    with capsys.disabled():
        print(f"\nstart to finished scene {took_s:.1f} s")
    assert took_s <= 3
