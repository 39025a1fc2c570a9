"""What a Qwen3-TTS checkpoint is and can do, read from its folder without loading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Capabilities, Preset
from studio.backends.qwen3.request import MAX_CHARS, MOST_TOP_K, USUAL, Sampling, params_of
from studio.errors import ModelUnavailable

DEFAULT_SOURCE = "Qwen/Qwen3-TTS-12Hz-0.6B-Base"
NEEDS = (
    "config.json",
    "generation_config.json",
    "model*.safetensors*",  # with the index of a model in several files
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "speech_tokenizer/*",
)

_LANGUAGES = {
    "chinese": "zh",
    "english": "en",
    "french": "fr",
    "german": "de",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
}
_SMALL_SIZE = "0b6"  # its CustomVoice was not trained on instructions
_MAX_WIDE_CHARS = 150  # Chinese, Japanese or Korean ones: about 35 s, as long as 400 Latin ones
_PROBES, _PROBE_BYTES = 16, 65_536


class Kind(StrEnum):
    """The three ways in which a checkpoint gets its voices."""

    BASE = "base"
    CUSTOM_VOICE = "custom_voice"
    VOICE_DESIGN = "voice_design"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What one checkpoint can do.

    Attributes:
        speakers: Its own voices, lower case; the first is the built-in one.
        languages: BCP-47 code to the model's own name.
        takes_instruction: Whether words beside the line change how it is spoken.
        sampling: Of a frame's first code, where a line sets nothing.
        rest: Of the codes after it, whatever the line's own is: only the first carries the words.
    """

    kind: Kind = Kind.BASE
    speakers: tuple[str, ...] = ()
    languages: Mapping[str, str] = field(
        default_factory=lambda: {code: name for name, code in _LANGUAGES.items()}
    )
    takes_instruction: bool = False
    sampling: Sampling = USUAL
    rest: Sampling = USUAL

    @property
    def capabilities(self) -> Capabilities:
        """The same in the studio's words."""
        return Capabilities(
            sample_rate_hz=STUDIO_RATE_HZ,
            max_chars=MAX_CHARS,
            wide_weight=MAX_CHARS / _MAX_WIDE_CHARS,
            cloning=self.kind is Kind.BASE,
            builtin_voice=bool(self.speakers),
            builtin_by_name=False,
            presets=tuple(Preset(name, _label(name)) for name in self.speakers),
            described_voices=self.kind is Kind.VOICE_DESIGN,
            instructions=self.takes_instruction,
            languages={code: name.capitalize() for code, name in self.languages.items()},
            params=params_of(self.sampling),
            streaming=True,
        )


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint's `config.json` and `generation_config.json`.

    Raises:
        ModelUnavailable: It isn't one of Qwen3-TTS.
    """
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        generation = folder / "generation_config.json"
        chosen = json.loads(generation.read_text("utf-8")) if generation.is_file() else {}
        return _checkpoint(config, chosen)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ModelUnavailable(
            f"“{folder}” holds no Qwen3-TTS model: its config.json or "
            "generation_config.json can't be used. Give "
            f"QWEN3_TTS_MODEL a hub name such as {DEFAULT_SOURCE}, or a folder with such a model."
        ) from None


def fingerprint(folder: Path) -> str:
    """12 hexadecimal digits that tell apart weights of the same shape.

    Samples the files at fixed places instead of reading gigabytes.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted(folder.rglob("*.safetensors")):
        size_bytes = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()} {size_bytes}".encode())
        with path.open("rb") as file:
            for probe in range(_PROBES):
                file.seek(size_bytes * probe // _PROBES)
                digest.update(file.read(_PROBE_BYTES))
    return digest.hexdigest()[:12]


def _checkpoint(config: Mapping[str, Any], chosen: Mapping[str, Any]) -> Checkpoint:
    talker = config["talker_config"]
    kind = Kind(config["tts_model_type"])
    known = talker["codec_language_id"]
    small = config.get("tts_model_size") == _SMALL_SIZE
    return Checkpoint(
        kind=kind,
        speakers=tuple(talker["spk_id"]) if kind is Kind.CUSTOM_VOICE else (),
        languages={code: name for name, code in _LANGUAGES.items() if name in known},
        takes_instruction=kind is Kind.VOICE_DESIGN or (kind is Kind.CUSTOM_VOICE and not small),
        sampling=_sampling(chosen, "", "do_sample"),
        rest=_sampling(chosen, "subtalker_", "subtalker_dosample"),
    )


def _sampling(chosen: Mapping[str, Any], prefix: str, draws: str) -> Sampling:
    """Sampling as a checkpoint's author chose it; of what is left out, the usual.

    Args:
        chosen: What `generation_config.json` holds.
        prefix: Of the names.
        draws: Name of whether chance takes part.
    """
    usual = asdict(USUAL)
    given = {name: type(value)(chosen.get(prefix + name, value)) for name, value in usual.items()}
    given["top_k"] = given["top_k"] or MOST_TOP_K  # 0 stands for all
    return Sampling(**(given if chosen.get(draws, True) else given | {"temperature": 0.0}))


def _label(speaker: str) -> str:
    return speaker.replace("_", " ").title()
