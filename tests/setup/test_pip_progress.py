"""Lines as pip 23.2 and pip 26.3 wrote them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.setup.pip import PipProgress, likely_cause

_OLD = """\
Looking in indexes: https://pypi.org/simple
Collecting torch==2.11.0 (from -r requirements.txt (line 40))
  Obtaining dependency information for torch==2.11.0 from https://files.pythonhosted.org/torch.metadata
  Downloading torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl.metadata (29 kB)
  Downloading torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl (600.0 MB)
Collecting sympy>=1.13.3 (from torch==2.11.0)
  Using cached sympy-1.14.0-py3-none-any.whl (400.0 MB)
Processing /srv/wheels/mpmath-1.3.0-py3-none-any.whl (from sympy>=1.13.3->torch==2.11.0)
Installing collected packages: mpmath, sympy, torch
Successfully installed mpmath-1.3.0 sympy-1.14.0 torch-2.11.0
""".splitlines()


def _after(lines: list[str], download_bytes: int = 1_000_000_000):
    progress = PipProgress("the voices", download_bytes)
    for line in lines:
        progress.feed(line)
    return progress.state()


def test_nothing_is_known_before_the_first_line():
    assert _after([]).fraction == 0
    assert _after([], download_bytes=0).fraction is None


def test_an_old_pip_counts_whole_files():
    state = _after(_OLD[:6])
    assert state.message == "Downloading the voices."
    assert state.fraction == pytest.approx(0)
    state = _after(_OLD[:7])
    assert state.fraction == pytest.approx(0.7 * 0.6)
    assert state.detail == "sympy, package 2, 600 MB"


def test_a_new_pip_tells_bytes_within_a_file():
    lines = [*_OLD[:5], "Progress 0 of 600000000", "Progress 150000000 of 600000000"]
    state = _after(lines)
    assert state.fraction == pytest.approx(0.7 * 0.15)
    assert state.detail == "torch, package 1, 150 MB"


def test_a_local_package_has_no_size_and_keeps_its_name():
    assert _after(_OLD[:8]).detail == "mpmath, package 3, 600 MB"


def test_unpacking_comes_last():
    state = _after(_OLD)
    assert state.message == "Installing the voices."
    assert state.fraction == 0.7
    assert state.detail.startswith("unpacking 3 packages")


@given(st.lists(st.sampled_from(_OLD) | st.text(max_size=40), max_size=40))
def test_any_output_leaves_the_fraction_in_range_and_never_going_back(lines):
    progress = PipProgress("the voices", 700_000_000)
    fractions = [progress.feed(line).fraction for line in lines if not line.startswith("Prog")]
    assert all(0 <= fraction <= 1 for fraction in fractions)
    assert fractions == sorted(fractions)


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        (
            "WARNING: Retrying after connection broken by 'NameResolutionError(...)'\n"
            "ERROR: Could not find a version that satisfies the requirement torch",
            "check the network",
        ),
        (
            "ERROR: Could not install packages: [Errno 28] No space left on device",
            "free some space",
        ),
        ("ERROR: No matching distribution found for torch==2.11.0", "try Python 3.12"),
        ("ERROR: ResolutionImpossible: for help visit https://pip.pypa.io", "contradict"),
        ("ERROR: [Errno 13] Permission denied: '/usr/lib'", "check who owns it"),
        ("Segmentation fault", "read its output"),
    ],
)
def test_a_failure_names_its_likely_cause_and_the_remedy(output, remedy):
    assert remedy in likely_cause(output)
