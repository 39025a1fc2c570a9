"""`doctor`: reports what this machine has, and why each backend can or can't run on it."""

from __future__ import annotations

import logging
import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from studio.backends import registry
from studio.backends.base import ReportsCapacity
from studio.backends.device import choose_device
from studio.backends.options import BackendOptions
from studio.setup.models_install import SetupReport

log = logging.getLogger(__name__)

_NVIDIA_SMI_S = 20.0

_PACKAGES = (
    "gradio",
    "mcp",
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


_MISSING = {"mcp": "not installed; MCP clients need it: run `python launch.py`, or pip install mcp"}


def run_doctor(workspace: Path, setup: SetupReport, options: BackendOptions) -> int:
    """Print the report; returns 0 if at least one backend can run."""
    offers = registry.offers(options)
    for heading, rows in (
        ("Machine", _machine(workspace, options.device)),
        ("Packages", [(name, _installed(name)) for name in _PACKAGES]),
        ("Model packages", [("state", setup.snapshot()["message"])]),
        ("Backends", [(offer.name, _standing(offer)) for offer in offers]),
        ("Memory", _capacities(options)),
    ):
        print(heading)
        for name, value in rows:
            print(f"  {name:<32} {value}")
    return 0 if any(offer.unavailable is None for offer in offers) else 1


def _machine(workspace: Path, device: str | None) -> list[tuple[str, str]]:
    memory = psutil.virtual_memory()
    return [
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("python", f"{platform.python_version()} at {sys.executable}"),
        ("processors", f"{os.cpu_count()}"),
        ("memory", f"{memory.total / 1e9:.1f} GB, {memory.available / 1e9:.1f} GB free"),
        ("graphics card", _graphics_card()),
        ("device", _device(device)),
        ("workspace", _workspace(workspace)),
    ]


def _graphics_card() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return "none found (nvidia-smi isn't here)"
    query = [program, "--query-gpu=name,memory.total,memory.free", "--format=csv,noheader"]
    try:
        done = subprocess.run(
            query, capture_output=True, text=True, timeout=_NVIDIA_SMI_S, check=False
        )
    except subprocess.TimeoutExpired:
        return (
            f"nvidia-smi didn't answer within {_NVIDIA_SMI_S:g} s: the card or its driver hangs; "
            "restart the computer"
        )
    except OSError as error:
        return f"nvidia-smi can't be run: {error.strerror}"
    return done.stdout.strip() or done.stderr.strip() or "nvidia-smi says nothing"


def _device(wanted: str | None) -> str:
    """Where models run; choosing a device may fail, as it would when a model is loaded."""
    cards = os.environ.get("CUDA_VISIBLE_DEVICES")
    chosen = f"{wanted or 'auto'} (TTS_DEVICE)" + (f", of the cards {cards}" if cards else "")
    if find_spec("torch") is None:
        return chosen
    try:
        return f"{chosen}: {choose_device(wanted)}"
    # Broad, because this report is the place to read whatever a broken driver makes torch raise.
    except Exception as error:
        log.debug("device", exc_info=True)
        return f"{chosen}: {error}".splitlines()[0]


def _workspace(workspace: Path) -> str:
    place = next(folder for folder in (workspace, *workspace.absolute().parents) if folder.exists())
    state = "writable" if os.access(place, os.W_OK) else "NOT writable; choose --workspace"
    return f"{workspace}, {state}, {shutil.disk_usage(place).free / 1e9:.1f} GB free"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return _MISSING.get(name, "not installed")


def _capacities(options: BackendOptions) -> list[tuple[str, str]]:
    """What fits into the memory that is free now, by each backend that can say so."""
    backends = [registry.create(name, options) for name in registry.BACKENDS]
    capacities = [
        (one.name, _capacity(one)) for one in backends if isinstance(one, ReportsCapacity)
    ]
    return [(name, text) for name, text in capacities if text is not None]


def _capacity(backend: ReportsCapacity) -> str | None:
    try:
        return backend.describe_capacity()
    # Broad, as above: such as a card that is present but refuses a context.
    except Exception as error:
        log.debug("capacity", exc_info=True)
        return f"can't be told: {type(error).__name__}: {error}".splitlines()[0]


def _standing(offer: registry.Offer) -> str:
    if offer.unavailable is not None:
        return f"can't run: {offer.unavailable}"
    return "can run" if offer.to_fetch is None else f"can run after a download: {offer.to_fetch}"
