"""The page on licences names every package that is passed on, with the licence that it states."""

from __future__ import annotations

import re
from importlib import metadata

import pytest
from tiny_index import REPO

PAGE = (REPO / "docs" / "operate" / "licences.md").read_text("utf-8")
SHIPPED = ("studio", "models-torch", "models", "models-alone")
STATES_NONE = {"cuda-toolkit", "espeakng-loader"}
"""Packages without a word on it in their metadata."""
IN_SHORT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "Apache 2.0 License": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache licensed, as found in the LICENSE file": "Apache-2.0",
    "Apache2.0": "Apache-2.0",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "NVIDIA Proprietary Software": "LicenseRef-NVIDIA-Proprietary",
    "PSFL": "PSF-2.0",
    "BSD-3-Clause, Apache-2.0, dependency licenses": "Apache-2.0 OR BSD-3-Clause",
}
EXPRESSION = re.compile(r"[(\w.+)-]+(?: (?:AND|OR|WITH) [(\w.+)-]+)*")


def shipped() -> dict[str, set[str]]:
    """Versions by package, over all Pythons."""
    found: dict[str, set[str]] = {}
    for file in SHIPPED:
        for path in REPO.glob(f"locks/3.*/{file}.txt"):
            for name, version in re.findall(
                r"^([\w-]+)==([^\s;]+)", path.read_text(), re.MULTILINE
            ):
                found.setdefault(name, set()).add(version)
    return found


def named() -> dict[str, str]:
    """Licence by package, as the table has it."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
    pairs = [(name, licence) for licence, names in rows[1:] for name in names.split(", ")]
    assert len({name for name, _ in pairs}) == len(pairs), "a package stands in two rows"
    return dict(pairs)


def stated(name: str) -> str | None:
    """The licence of an installed package's metadata; None if there is none."""
    about = metadata.metadata(name)
    classes = about.get_all("Classifier") or []
    candidates = [
        about.get("License-Expression") or "",
        (about.get("License") or "").partition("\n")[0],
        *(line.rpartition(" :: ")[2] for line in classes if line.startswith("License ::")),
    ]
    for text in candidates:
        if short := IN_SHORT.get(text) or (EXPRESSION.fullmatch(text) and text):
            return short
    return None


def test_every_package_that_is_passed_on_is_named_and_no_other():
    assert set(named()) == set(shipped())


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_package_has_the_licence_that_it_states(name):
    try:
        version = metadata.version(name).partition("+")[0]
    except metadata.PackageNotFoundError:
        pytest.skip("not installed here")
    if version in shipped()[name] and name not in STATES_NONE:
        assert named()[name] == stated(name)


def test_what_a_wheel_of_pyav_brings_is_named():
    """Its metadata says BSD; what it holds decides for who passes it on."""
    av = pytest.importorskip("av")
    assert {"libx264", "libx265"} <= av.codecs_available
    (line,) = [line for line in PAGE.splitlines() if line.startswith("- **av**")]
    assert "GPL-3.0-or-later" in line


HELD = {
    "ffmpeg-core.wasm": "GPL-2.0-or-later",
    "libasound": "ALSA",
    "libcupti": "CUPTI",
    "libespeak-ng": "eSpeak NG",
    "libgfortran": "libgfortran",
    "libgmp": "GMP",
    "libgnutls": "GnuTLS",
    "libgomp": "libgomp",
    "libhogweed": "Nettle",
    "libmp3lame": "LAME",
    "libnettle": "Nettle",
    "libquadmath": "libquadmath",
    "libsndfile": "libsndfile",
    "libsoxr": "libsoxr",
    "libunistring": "libunistring",
    "libx264": "x264",
    "libx265": "x265",
}
"""What wheels hold under other conditions than they state: how a file's name begins, and a word."""


def test_what_a_wheel_holds_beside_its_own_is_named_with_it():
    paragraphs = re.split(r"\n(?:- |\n)", PAGE)
    held = set()
    for name in (one for one in shipped() if not one.startswith("nvidia-")):
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        about = " ".join(one for one in paragraphs if f"**{name}**" in one)
        for begin, word in HELD.items():
            if any(file.name.startswith(begin) for file in files):
                held.add(name)
                assert word in about, f"{name} holds {begin}"
    assert {"av", "espeakng-loader", "gradio"} <= held


@pytest.mark.parametrize("name", ["av", "espeakng-loader", "pykakasi", "soxr", "soundfile"])
def test_copyleft_is_explained(name):
    assert re.search(rf"^- \*\*{name}\*\*", PAGE, re.MULTILINE)
