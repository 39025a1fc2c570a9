"""The composition root: reads settings, puts the studio together, runs a command."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from studio.backends import registry
from studio.backends.options import BackendOptions, BatchOptions
from studio.cli.arguments import build_parser
from studio.cli.bench import run_bench
from studio.cli.doctor import run_doctor
from studio.cli.render import RenderArguments, run_render
from studio.cli.serve import ServeArguments
from studio.engine.model_manager import EvictionPolicy
from studio.errors import StudioError
from studio.service import Studio, StudioOptions
from studio.settings import Settings
from studio.setup_report import NothingToSetUp, SetupReport

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str], setup: SetupReport | None = None) -> int:
    """Run one command of the command line.

    Args:
        argv: Arguments without the program's name; the first one is the command.
        setup: How the installation of the model packages is going.

    Returns:
        The exit status: 0, or 1 when some lines failed, or 2 on bad input.
    """
    arguments = build_parser().parse_args(argv)
    _log(arguments)
    try:
        settings = _settings(arguments)
        return _run(arguments, settings, setup or NothingToSetUp())
    except StudioError as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return EXIT_INTERRUPTED


def _run(arguments: argparse.Namespace, settings: Settings, setup: SetupReport) -> int:
    match arguments.command:
        case "render":
            return run_render(RenderArguments.check(arguments), lambda: _studio(settings))
        case "bench":
            return run_bench(arguments, _backend_options(settings))
        case "doctor":
            return run_doctor(settings.workspace, setup, _backend_options(settings))
        case _:
            options = ServeArguments.check(arguments)
            studio = _studio(settings)
            # Not before all is well: Gradio's import takes seconds.
            from studio.server import serve

            return serve(options, studio, setup)


def _settings(arguments: argparse.Namespace) -> Settings:
    """The environment, with what the command line says on top."""
    settings = Settings.from_environment(os.environ)
    given: dict[str, str | Path] = {
        name: value
        for name in ("backend", "workspace")
        if (value := getattr(arguments, name, None)) is not None
    }
    return settings.model_copy(update=given)


def _studio(settings: Settings) -> Studio:
    backend_options = _backend_options(settings)
    backend_name, reason = registry.choose(settings.backend, backend_options)
    options = StudioOptions(
        workspace=settings.workspace,
        backend_name=backend_name,
        backend_names=tuple(registry.BACKENDS),
        backend_reason=reason,
    )
    return Studio.open(
        options,
        lambda name: registry.create(name, backend_options),
        max_concurrency=settings.max_concurrency,
        eviction=EvictionPolicy(
            enabled=settings.eviction_enabled,
            idle_timeout_s=settings.idle_timeout_s,
            check_interval_s=settings.idle_check_interval_s,
        ),
    )


def _backend_options(settings: Settings) -> BackendOptions:
    return BackendOptions(
        chatterbox_model=settings.chatterbox_model,
        qwen3_model=settings.qwen3_model,
        amp_on_cuda=settings.amp_on_cuda,
        reference_silence_s=settings.reference_silence_s,
        batch=BatchOptions(
            slots=settings.batch_slots,
            positions=settings.batch_positions,
            max_wait_s=settings.batch_max_wait_ms / 1000,
            continuous=settings.batch_continuous,
        ),
    )


def _log(arguments: argparse.Namespace) -> None:
    level = logging.INFO if arguments.command == "serve" else logging.WARNING
    if getattr(arguments, "verbose", False):
        level = logging.DEBUG
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("studio").setLevel(level)
