"""`doctor`: what this machine has, and why each backend can or can't run on it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from studio.backends import registry
from studio.backends.base import TellsRoom
from studio.backends.options import BackendOptions
from studio.setup_report import SetupReport

_PACKAGES = (
    "gradio",
    "numpy",
    "av",
    "soundfile",
    "soxr",
    "espeakng-loader",
    "torch",
    "torchaudio",
    "transformers",
    "chatterbox-tts",
    "faster-qwen3-tts",
    "qwen-tts-hf",
)


def run_doctor(workspace: Path, setup: SetupReport, options: BackendOptions) -> int:
    """Print what was found; 0 when at least one backend can run."""
    offers = registry.offers(options)
    for heading, rows in (
        ("Machine", _machine(workspace)),
        ("Packages", [(name, _installed(name)) for name in _PACKAGES]),
        ("Model packages", [("state", setup.snapshot()["message"])]),
        ("Backends", [(offer.name, _standing(offer)) for offer in offers]),
        ("Memory", _rooms(options)),
    ):
        print(heading)
        for name, value in rows:
            print(f"  {name:<32} {value}")
    return 0 if any(offer.unavailable is None for offer in offers) else 1


def _machine(workspace: Path) -> list[tuple[str, str]]:
    memory = psutil.virtual_memory()
    return [
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("python", f"{platform.python_version()} at {sys.executable}"),
        ("processors", f"{os.cpu_count()}"),
        ("memory", f"{memory.total / 1e9:.1f} GB, {memory.available / 1e9:.1f} GB free"),
        ("graphics card", _graphics_card()),
        ("workspace", _workspace(workspace)),
    ]


def _graphics_card() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return "none found (nvidia-smi isn't here)"
    query = [program, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    return done.stdout.strip() or done.stderr.strip() or "nvidia-smi says nothing"


def _workspace(workspace: Path) -> str:
    place = next(folder for folder in (workspace, *workspace.absolute().parents) if folder.exists())
    state = "writable" if os.access(place, os.W_OK) else "NOT writable; choose --workspace"
    return f"{workspace}, {state}, {shutil.disk_usage(place).free / 1e9:.1f} GB free"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _rooms(options: BackendOptions) -> list[tuple[str, str]]:
    """What fits into the memory there is now, of backends that can tell."""
    backends = [registry.create(name, options) for name in registry.BACKENDS]
    rooms = [(one.name, one.room()) for one in backends if isinstance(one, TellsRoom)]
    return [(name, room) for name, room in rooms if room is not None]


def _standing(offer: registry.Offer) -> str:
    if offer.unavailable is not None:
        return f"can't run: {offer.unavailable}"
    return "can run" if offer.to_fetch is None else f"can run after a download: {offer.to_fetch}"
