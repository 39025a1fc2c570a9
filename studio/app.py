"""The composition root: reads settings, puts the studio together, runs a command."""

from __future__ import annotations

import argparse
import errno
import gc
import io
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from huggingface_hub.constants import HF_HUB_OFFLINE

from studio import __version__
from studio.backends import registry
from studio.backends.base import Backend
from studio.backends.device import likely_device
from studio.backends.options import OWN_VOICES, BackendOptions, BatchOptions, RemoteOptions
from studio.backends.zero_gpu import ZeroGpuProxy
from studio.cli.arguments import build_parser
from studio.cli.convert import run_convert, run_spoken
from studio.cli.doctor import run_doctor
from studio.cli.judge_command import run_judge
from studio.cli.log_format import REQUESTS, JsonFormatter
from studio.cli.render import RenderArguments, run_render
from studio.cli.serve import ServeArguments, ServerConfig
from studio.cli.voices import VoiceTools, run_voices
from studio.engine.model_manager import EvictionPolicy
from studio.engine.speech_speed import SPEEDS_FILE, SpeechSpeeds
from studio.errors import SettingError, StudioError
from studio.services.studio import Studio, StudioOptions
from studio.settings import Settings
from studio.setup.commands import program, with_command
from studio.setup.models_install import NothingToSetUp, SetupReport
from studio.ui.gradio_import import quick_gradio_import

SPACE_STORAGE = Path("/data")
"""Where a Hugging Face Space keeps files over restarts, when it has such storage."""

log = logging.getLogger("studio")

_CARDS = "CUDA_VISIBLE_DEVICES"

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
"""What a shell says of a program that ended because nobody read on: 128 and SIGPIPE."""

_UNWRITABLE = frozenset({errno.EPIPE, errno.ENOSPC, errno.EFBIG, errno.EIO})
"""What the system says of an output that can't be written: a pipe, a device, a full disk."""


def main(argv: Sequence[str], setup: SetupReport | None = None) -> int:
    """Run one command of the command line.

    Args:
        argv: Arguments without the program's name; the first one is the command; without
            one, `serve` is meant.
        setup: How the installation of the model packages is going; None where the launcher
            installs none.

    Returns:
        The exit status: 0, or 1 when some lines failed, or 2 on bad input.
    """
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - `>&-` closed it
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115 - the same
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as standard error does by itself
    arguments = _parser().parse_args(with_command(argv))
    try:
        settings = _settings(arguments)
        _log(arguments, settings)
        status = _run(arguments, settings, setup or NothingToSetUp())
        sys.stdout.flush()  # where the reader has gone, not later, when Python would say so
        return status
    except OSError as error:
        if error.filename is not None:  # such as a text pasted in place of a name
            log.debug("A path can't be used", exc_info=True)
            print(f"{str(error.filename)[:100]} can't be used: {error.strerror}.", file=sys.stderr)
            return EXIT_BAD_INPUT
        if error.errno not in _UNWRITABLE:
            raise
        # Else Python writes what is left as it ends, and complains.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return EXIT_PIPE_CLOSED
        print(f"The output can't be written: {error.strerror}.", file=sys.stderr)
        return EXIT_BAD_INPUT
    except StudioError as error:
        print(error.full_message, file=sys.stderr)
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return EXIT_INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    try:
        from benchmarks.bench_options import add_bench_options
    except ModuleNotFoundError as error:
        if error.name != "benchmarks":
            raise
        # An installed package, where `bench` says that it has none.
        return build_parser(program())
    return build_parser(program(), add_bench_options)


def _run(arguments: argparse.Namespace, settings: Settings, setup: SetupReport) -> int:
    match arguments.command:
        case "render":
            return run_render(RenderArguments.check(arguments), lambda: _studio(settings))
        case "convert" | "spoken" as command:
            return run_convert(arguments) if command == "convert" else run_spoken(arguments)
        case "voices":
            return run_voices(arguments, _voice_tools(settings, arguments.engine))
        case "judge":
            return run_judge(arguments, lambda: _studio(settings))
        case "completion":
            return _print_completion(arguments.shell)
        case "bench":
            try:
                from benchmarks.command import run_bench
            except ModuleNotFoundError as error:
                if error.name != "benchmarks":
                    raise
                raise SettingError("The benchmarks are in the repository only.") from error

            return run_bench(arguments, _backend_options(settings))
        case "doctor":
            return run_doctor(settings.workspace, setup, _backend_options(settings))
        case _:
            options = ServeArguments.check(arguments, _server_config(settings))
            is_ours = options.is_local and not (options.share or arguments.verbose)
            is_quiet = is_ours and settings.log_format is None
            logging.getLogger(REQUESTS).setLevel(logging.WARNING if is_quiet else logging.NOTSET)
            log.info("Tableread %s logs at level %s", __version__, logging.getLevelName(log.level))
            return _serve(options, _studio(settings), setup)


def _serve(options: ServeArguments, studio: Studio, setup: SetupReport) -> int:
    # Collecting what imports leave takes a sixth of a start; `serve` switches it on again.
    gc.disable()
    try:
        # Not earlier, as Gradio's import takes seconds.
        with quick_gradio_import():
            from studio.server.studio_server import serve

        return serve(options, studio, setup)
    finally:
        gc.enable()


def _print_completion(shell: str) -> int:
    import shtab

    parser = _parser()
    for command in _list_parsers(parser):
        for action in command._actions:
            if action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell))
    return 0


def _list_parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    choices = (one.choices for one in parser._actions if isinstance(one.choices, dict))
    return [parser, *(command for commands in choices for command in commands.values())]


def _settings(arguments: argparse.Namespace) -> Settings:
    """The environment, with what the command line says on top."""
    settings = Settings.from_environment()
    given: dict[str, str | Path] = {
        name: value
        for name in ("backend", "workspace")
        if (value := getattr(arguments, name, None)) is not None
    }
    if settings.keeps_in(SPACE_STORAGE):
        given.setdefault("workspace", SPACE_STORAGE / "tableread")
    if settings.is_space and settings.backend == "auto" and not _has_card(settings):
        # Weights that the platform fetched beforehand would make `auto` choose a neural voice.
        given.setdefault("backend", "draft")
    return settings.model_copy(update=given)


def _has_card(settings: Settings) -> bool:
    """Whether a Space has a graphics card; asked before anything heavy is imported."""
    return settings.zero_gpu or Path("/dev/nvidia0").exists()


def _studio(settings: Settings) -> Studio:
    backend_options = _backend_options(settings)
    lending = _lending(settings, backend_options)
    speeds = _speeds(settings, backend_options)
    backend_name, reason = registry.choose(settings.backend, backend_options, speeds.get)
    options = StudioOptions(
        workspace=settings.workspace,
        backend_name=backend_name,
        backend_names=tuple(registry.BACKENDS),
        backend_reason=reason,
        voice_names=settings.voice_names,
        any_voice=settings.any_voice,
    )
    studio = Studio.open(
        options,
        lambda name: _backend(name, backend_options, lending),
        max_concurrency=settings.max_concurrency,
        eviction=EvictionPolicy(
            enabled=settings.eviction_enabled,
            idle_timeout_s=settings.idle_timeout_s,
            check_interval_s=settings.idle_check_interval_s,
        ),
        speeds=speeds,
    )
    studio.compare_takes()
    return studio


def _voice_tools(settings: Settings, engine: str | None) -> VoiceTools:
    options = _backend_options(settings)
    wanted = settings.model_copy(update={"backend": engine})
    return VoiceTools(options, _speeds(settings, options), lambda: _studio(wanted))


def _speeds(settings: Settings, options: BackendOptions) -> SpeechSpeeds:
    """How fast each backend spoke on this machine, as far as this workspace remembers."""
    return SpeechSpeeds(settings.workspace / SPEEDS_FILE, likely_device(options.device))


def _lending(settings: Settings, options: BackendOptions) -> ZeroGpuProxy | None:
    """The GPU lending of a ZeroGPU Space; made before the page, as the platform demands."""
    if not settings.zero_gpu:
        return None
    return ZeroGpuProxy(lambda name: registry.create(name, replace(options, graphs=False)))


def _backend(name: str, options: BackendOptions, lending: ZeroGpuProxy | None) -> Backend:
    backend = registry.create(name, options)
    return backend if lending is None else lending.wrap(backend)


def _device(settings: Settings) -> str | None:
    """The kind of the chosen device; of several GPUs only the chosen one stays visible."""
    kind, colon, number = settings.device.partition(":")
    if colon:
        # Not a device of torch's, which each thread would have to be told: other cards go out of
        # sight of the whole process, which works until torch first looks for them.
        seen = [one for one in os.environ.get(_CARDS, "").split(",") if one.strip()]
        if seen and int(number) >= len(seen):
            raise SettingError(
                f"TTS_DEVICE={settings.device} can't be used: {_CARDS} leaves {len(seen)} card(s)."
            )
        os.environ[_CARDS] = seen[int(number)] if seen else number
    return None if kind == "auto" else kind


def _backend_options(settings: Settings) -> BackendOptions:
    return BackendOptions(
        device=_device(settings),
        chatterbox_model=settings.chatterbox_model,
        chatterbox_turbo_model=settings.chatterbox_turbo_model,
        chatterbox_multilingual_model=settings.chatterbox_multilingual_model,
        qwen3_model=settings.qwen3_model,
        package_ends=settings.package_ends,
        amp_on_cuda=settings.amp_on_cuda,
        tf32=settings.tf32,
        reference_silence_s=settings.reference_silence_s,
        own_voices=settings.workspace / OWN_VOICES,
        batch=BatchOptions(
            enabled=not settings.zero_gpu,  # a forked process lacks the engine's threads
            slots=settings.batch_slots,
            positions=settings.batch_positions,
            max_wait_s=settings.batch_max_wait_ms / 1000,
            continuous=settings.batch_continuous,
            float32="float32" in settings.batch_tuning,
        ),
        remote=RemoteOptions(
            urls=tuple(map(str, settings.remote_urls)),
            model=settings.remote_model,
            key=settings.remote_key.get_secret_value() if settings.remote_key else None,
            concurrency=settings.remote_concurrency,
            timeout_s=settings.remote_timeout_s,
            patience_s=settings.remote_patience_s,
        ),
    )


def _server_config(settings: Settings) -> ServerConfig:
    return ServerConfig(
        auth=settings.auth.get_secret_value() if settings.auth else None,
        api_key=settings.api_key.get_secret_value() if settings.api_key else None,
        allowed_hosts=settings.allowed_hosts + settings.space_hosts,
        space_port=settings.space_port if settings.is_space else None,
        root_path=settings.root_path,
        brings_voice=settings.install_voices and not HF_HUB_OFFLINE,
        visitor_bytes=round(settings.visitor_gb * 1e9),
    )


def _log(arguments: argparse.Namespace, settings: Settings) -> None:
    level = logging.INFO if arguments.command == "serve" else logging.WARNING
    if getattr(arguments, "verbose", False):
        level = logging.DEBUG
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else text)
    logging.basicConfig(handlers=[handler])
    log.setLevel(level)
