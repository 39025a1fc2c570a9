"""`voices`: lists, installs, verifies, removes and tries the voice engines, and recognisers."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from studio.audio.scene_file import ExportOptions, check_export_options
from studio.backends import registry
from studio.backends.base import Backend, LoadProgress, ManagesWeights
from studio.backends.engine_cards import EngineCard, card_of
from studio.backends.hub.weights import WeightState, fetch_best, lacks_best, verify_weights
from studio.backends.options import BackendOptions
from studio.backends.sherpa.catalogue import CATALOGUE, CatalogueModel, DownloadableModel
from studio.backends.sherpa.own_voices import OWN_SUFFIXES, add_voices, remove_voice
from studio.backends.sherpa.public_voices import VoiceDownload, read_public_voices
from studio.dialog.model import Dialog, Speech
from studio.engine.job import build_scene
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.speech_speed import SpeechSpeeds
from studio.engine.weight_downloads import WeightDownloads
from studio.errors import BadInput, ModelUnavailable, SettingError
from studio.hearing.hearing_models import create_listener
from studio.hearing.listeners import Listener
from studio.hearing.model_catalogue import (
    HEARING_MODELS,
    HearingModel,
    describe_models,
    list_recognisers,
)
from studio.services.studio import RenderOptions, Studio
from studio.storage.disk import format_bytes

_SENTENCE = "Nobody has been up here since the lamp went out, and the sea knows it."
_SPEAKER = "Voice"
_YES = frozenset({"y", "yes"})


@dataclass(frozen=True, slots=True)
class VoiceTools:
    """What the command works with.

    Attributes:
        options: How backends are made.
        speeds: How fast each spoke on this machine.
        open_studio: Opens a studio whose voice engine is the one named.
    """

    options: BackendOptions
    speeds: SpeechSpeeds
    open_studio: Callable[[], Studio]


def run_voices(arguments: argparse.Namespace, tools: VoiceTools) -> int:
    """Do what `voices` was asked for.

    Returns:
        0; 1 where a removal was declined, or a file is broken.

    Raises:
        BadInput: There is no such engine, or what was asked for isn't possible with it.
        ModelUnavailable: Something can't be had; names the remedy.
    """
    if arguments.action == "list":
        return _list(arguments, tools)
    if arguments.action == "verify":
        return _verify(arguments.engine)
    name: str | None = arguments.engine
    if arguments.action == "add":
        return _add([Path(one) for one in (name, *arguments.files) if one], tools)
    if name is None:
        raise SettingError(f"Name a voice engine: voices {arguments.action} kitten.")
    if arguments.action == "remove" and Path(name).suffix in OWN_SUFFIXES:
        removed = remove_voice(Path(name).name, _own_folder(tools))
        print(f"{removed} is removed.", file=sys.stderr)
        return 0
    if arguments.action == "install" and (public := read_public_voices().get(name)):
        card = EngineCard("", public.licence, download_bytes=public.size_bytes)
        return _install(VoiceDownload(_own_folder(tools), name), card)
    engine: Backend | Listener
    if name in HEARING_MODELS and arguments.action != "try":
        engine, card = create_listener(HEARING_MODELS[name]), _card_of(HEARING_MODELS[name])
    else:
        engine = registry.create(name, tools.options)
        card = registry.find_card(engine)
    match arguments.action:
        case "install":
            return _install(engine, card)
        case "remove":
            return _remove(engine, tools, is_sure=arguments.yes)
        case _:
            assert not isinstance(engine, Listener)
            return _try(arguments, engine, tools)


def _own_folder(tools: VoiceTools) -> Path:
    assert tools.options.own_voices is not None, "the composition root names it"
    return tools.options.own_voices


def _add(files: list[Path], tools: VoiceTools) -> int:
    if not files:
        raise SettingError("Name a voice's files: voices add de_DE-thorsten-medium.onnx")
    names = add_voices(files, _own_folder(tools))
    print(f"Added to {_own_folder(tools)}: {', '.join(names[:10])}.", file=sys.stderr)
    return 0


def _list(arguments: argparse.Namespace, tools: VoiceTools) -> int:
    if arguments.recognisers:
        return _list_recognisers(as_json=arguments.json)
    if arguments.public:
        return _list_public()
    if arguments.engine is not None:
        return _list_presets(registry.create(arguments.engine, tools.options), arguments.json)
    backends = [registry.create(name, tools.options) for name in registry.BACKENDS]
    rows = [_describe(backend, tools.speeds) for backend in backends]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    _print_table(
        ("NAME", "VOICE", "STATE", "VOICES", "LANGUAGES", "SPEED HERE", "LICENCE"), map(_row, rows)
    )
    print()
    _list_recognisers(as_json=False)
    print()
    recognisers = list_recognisers(HEARING_MODELS)
    others = {name: one for name, one in HEARING_MODELS.items() if name not in recognisers}
    _print_table(
        ("NAME", "OTHER MODELS THAT LISTEN", "STATE", "LICENCE"),
        (
            (one["name"], one["title"], _describe_state(one), _describe_licences(one))
            for one in map(_add_state, describe_models(others))
        ),
    )
    return 0


def _list_presets(backend: Backend, as_json: bool) -> int:
    """The voices of one engine, by the names that choose them."""
    presets = backend.capabilities.presets
    if not presets:
        raise BadInput(f"{backend.title} has no voices of its own.")
    if as_json:
        print(json.dumps(list(map(asdict, presets)), indent=1))
        return 0
    _print_table(
        ("VOICE", "ID", "LANGUAGES", "SOUND"),
        (
            (one.label, one.preset_id, ", ".join(one.languages), ", ".join(one.sound))
            for one in presets
        ),
    )
    return 0


def _list_public() -> int:
    voices = [asdict(one) for one in read_public_voices().values()]
    names = ("title", "language_name", "quality", "speakers", "licence")
    _print_table(
        ("NAME", "LANGUAGE", "QUALITY", "SPEAKERS", "LICENCE", "SIZE"),
        ((*(str(one[key]) for key in names), format_bytes(one["size_bytes"])) for one in voices),
    )
    return 0


def _list_recognisers(*, as_json: bool) -> int:
    rows = [_add_state(card) for card in describe_models(list_recognisers(HEARING_MODELS))]
    if as_json:
        print(json.dumps(rows, indent=1))
        return 0
    _print_table(
        ("NAME", "RECOGNISER", "STATE", "LANGUAGES", "WORD TIMES", "LICENCE"),
        (
            (
                one["name"],
                one["title"],
                _describe_state(one),
                str(len(one["languages"])),
                "yes" if one["word_times"] else "no",
                _describe_licences(one),
            )
            for one in rows
        ),
    )
    return 0


def _add_state(card: dict[str, Any]) -> dict[str, Any]:
    """A recogniser's card as one object of `voices list --recognisers --json`."""
    lacks = card["reason"] or card["to_fetch"]
    hidden = ("reason", "to_fetch", "purpose")
    shown = {name: value for name, value in card.items() if name not in hidden}
    return shown | {"ready": lacks is None, "lacks": lacks}


def _card_of(model: HearingModel) -> EngineCard:
    return EngineCard(
        model.summary,
        model.code_licence,
        model.weights_licence,
        non_commercial=model.non_commercial,
        download_bytes=model.size_bytes,
    )


def _print_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    table = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )


def _describe(backend: Backend, speeds: SpeechSpeeds) -> dict[str, Any]:
    """A voice engine as one object of `voices list --json`."""
    offer = registry.offer_of(backend)
    return registry.describe_engine(backend, speeds.device) | {
        "ready": offer.ready,
        "lacks": offer.unavailable or offer.to_fetch,
        "speech_per_s": speeds.get(offer.name),
        "expected_speech_per_s": card_of(offer.name).expected.get(speeds.device),
    }


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    voices = "clones" if one["cloning"] else str(one["presets"] or "")
    speed, expected = one["speech_per_s"], one["expected_speech_per_s"]
    shown = f"{speed:.2g}" if speed else f"about {expected:g}?" if expected else ""
    return (
        one["name"],
        one["title"],
        _describe_state(one),
        voices,
        str(len(one["languages"]) or ""),
        shown,
        _describe_licences(one),
    )


def _describe_state(one: dict[str, Any]) -> str:
    size = f", {format_bytes(one['download_bytes'])}" if one["download_bytes"] else ""
    return "ready" if one["ready"] else f"to install{size}" if size else "can't run"


def describe_licence(code: str, weights: str, non_commercial: bool) -> str:
    """Both licences in a few words; what forbids commercial use is said first."""
    both = code if code == weights or not weights else f"{code}; weights {weights}"
    return f"not for commercial use; {both}" if non_commercial else both


def _describe_licences(one: dict[str, Any]) -> str:
    return describe_licence(one["code_licence"], one["weights_licence"], one["non_commercial"])


def _install(backend: Backend | Listener | VoiceDownload, card: EngineCard) -> int:
    reason = backend.unavailable()
    if reason is not None:
        raise ModelUnavailable(reason)
    if not isinstance(backend, ManagesWeights):
        raise BadInput(f"{backend.title} has nothing to download.")
    if backend.to_fetch() is None and not any(map(lacks_best, backend.weight_sources)):
        print(f"{backend.title} is installed already.", file=sys.stderr)
        return 0
    size = f" ({format_bytes(card.download_bytes)})" if card.download_bytes else ""
    licence = describe_licence(card.code_licence, card.weights_licence, card.non_commercial)
    print(f"{backend.title}{size}: {licence}.", file=sys.stderr)
    line = ProgressLine(sys.stderr)
    try:
        backend.fetch(line.show)
        for source in filter(lacks_best, backend.weight_sources):
            fetch_best(source, line.show)
    finally:
        line.end()
    print(f"{backend.title} is installed.", file=sys.stderr)
    return 0


class ProgressLine:
    """One line of a terminal that is written over; nothing where there is no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None
        self._width = 0

    def show(self, progress: LoadProgress) -> None:
        """Write a step over the one before."""
        if self._stream is None:
            return
        self._stream.write(f"\r{progress.message:<{self._width}}")
        self._stream.flush()
        self._width = len(progress.message)

    def end(self) -> None:
        """Go on below it."""
        if self._stream is not None and self._width:
            self._stream.write("\n")


def _verify(name: str | None) -> int:
    """Say of each file of the catalogues, or of one model, what became of it."""
    models: dict[str, CatalogueModel | HearingModel] = {**CATALOGUE, **HEARING_MODELS}
    if name is not None and name not in models:
        raise SettingError(f"There is no model “{name}”. Choose one of {', '.join(models)}.")
    rows, broken = [], []
    for model in [models[name]] if name else models.values():
        sources = DownloadableModel(model).weight_sources
        found = {file.path: state for one in sources for file, state in verify_weights(one)}
        if set(found.values()) == {WeightState.MISSING}:
            rows.append((model.name, "", "not here"))
            continue
        rows += [(model.name, path, str(state)) for path, state in found.items()]
        broken += [model.name] if WeightState.BROKEN in found.values() else []
    _print_table(("NAME", "FILE", "STATE"), rows)
    for one in broken:
        print(f"{one} is broken: `voices remove {one}`, then `voices install {one}`.")
    return 1 if broken else 0


def _remove(backend: Backend | Listener, tools: VoiceTools, *, is_sure: bool) -> int:
    def create(name: str) -> Backend | Listener:
        known = HEARING_MODELS.get(name)
        return create_listener(known) if known else registry.create(name, tools.options)

    downloads = WeightDownloads(ModelPool(create, EvictionPolicy()), lambda _: None)
    downloads.backend_names = (*registry.BACKENDS, *HEARING_MODELS)
    downloads.check_removable(backend.name)
    if not is_sure and not _agree(f"Delete the weights of {backend.title}?"):
        print("Nothing was deleted.", file=sys.stderr)
        return 1
    downloads.remove(backend.name)
    tools.speeds.forget(backend.name)
    print(f"The weights of {backend.title} are deleted.", file=sys.stderr)
    return 0


def _agree(question: str) -> bool:
    if not sys.stdin.isatty():
        raise SettingError("voices remove asks first, which needs a terminal; or add --yes.")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in _YES


def _try(arguments: argparse.Namespace, backend: Backend, tools: VoiceTools) -> int:
    output: Path = arguments.output or Path(f"{backend.name}.wav")
    sample: Path | None = arguments.voice
    check_export_options(output, ExportOptions())
    if sample is not None and not sample.is_file():
        raise BadInput(f"--voice {sample} can't be read: it isn't there.")
    offer = registry.offer_of(backend)
    if not offer.ready:
        raise ModelUnavailable(
            offer.unavailable or f"Install it first: voices install {offer.name}."
        )
    line = Speech(_SPEAKER, arguments.text or _SENTENCE, None, line_number=1)
    voices = {_SPEAKER: sample} if sample is not None else {}
    with tempfile.TemporaryDirectory(prefix="tableread-") as folder, tools.open_studio() as studio:
        studio.engine.load(backend.name)
        began_s = time.monotonic()
        job = studio.render(Dialog((line,)), RenderOptions(voices=voices, folder=Path(folder)))
        _wait(job.events.follow())
        took_s = time.monotonic() - began_s
        failures = job.list_failures()
        if failures:
            raise BadInput(failures[0].message)
        build_scene(job).write(output, ExportOptions())
        audio_s = job.summarize().audio_s
    print(f"{output}: {audio_s:.1f} s of speech in {took_s:.1f} s.")
    return 0


def _wait(events: Iterable[object]) -> None:
    for _ in events:
        pass
