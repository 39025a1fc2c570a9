"""The three Chatterbox models: names, weights, languages, and what a line may set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Capabilities, Param
from studio.backends.espeak.espeak_data import language_of_text
from studio.backends.options import BackendOptions

_OTHER_NAMES = {"cmn": "zh", "nb": "no", "nn": "no", "iw": "he"}
_UKRAINIAN = frozenset("іїєґІЇЄҐ")


def normalize_language(code: str) -> str:
    """The model's name of a language, whatever its region: "zh" of "cmn" or "zh-TW"."""
    code = code.partition("-")[0].lower()
    return _OTHER_NAMES.get(code, code)


def guess_language(text: str) -> str:
    """The language that a text's script suggests; it may be none that the model speaks."""
    if any(char in _UKRAINIAN for char in text):
        return "uk"  # by its script alone it would pass for Russian
    return normalize_language(language_of_text(text))


LANGUAGES = MappingProxyType(
    {
        "ar": "Arabic", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
        "es": "Spanish", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi",
        "it": "Italian", "ja": "Japanese", "ko": "Korean", "ms": "Malay", "nl": "Dutch",
        "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "sv": "Swedish",
        "sw": "Swahili", "tr": "Turkish", "zh": "Chinese",
    }
)  # fmt: skip
"""What the multilingual model speaks; the package's own list, which needs torch to import."""

ENGLISH_ONLY = MappingProxyType({"en": LANGUAGES["en"]})
"""So that a line in another language is refused, not misread."""

TURBO_TAGS = frozenset(
    ("clear throat", "sigh", "shush", "cough", "groan", "sniff", "gasp", "chuckle", "laugh")
)
"""Sounds in the tokenizer of the turbo model, each a token `[tag]` of its own."""


@dataclass(frozen=True, slots=True)
class ChatterboxVariant:
    """One Chatterbox model.

    Attributes:
        source: Its name on the hub.
        needs: Files that the package's `from_local` reads, as glob patterns.
        over_sample_s: A sample must be longer than this.
    """

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    capabilities: Capabilities
    over_sample_s: float = 0.0

    @property
    def t3(self) -> str:
        """The file that no other variant has."""
        return next(need for need in self.needs if need.startswith("t3_"))


_TEMPERATURE = Param(
    "temperature", "Temperature", 0.05, 2.0, 0.8, 0.05,
    "Higher is livelier and less reliable.",
)  # fmt: skip
_TOP_P = Param("top_p", "Top-p", 0.05, 1.0, 1.0, 0.05, "Lower leaves out unlikely sounds.")
_TURBO_TOP_P = Param("top_p", "Top-p", 0.05, 1.0, 0.95, 0.05, _TOP_P.help)


_REPETITION_PENALTY = Param(
    "repetition_penalty", "Repetition penalty", 1.0, 2.5, 1.2, 0.1,
    "Higher keeps the voice from dwelling on a sound.",
)  # fmt: skip


def _guidance_params() -> tuple[Param, ...]:
    """What the models with classifier-free guidance let a line set."""
    return (
        Param("exaggeration", "Exaggeration", 0.25, 2.0, 0.5, 0.05, "Higher acts more."),
        Param(
            "cfg_weight", "Pace (CFG weight)", 0.0, 1.0, 0.5, 0.05,
            "Lower speaks slower and follows the text less; 0 is also quicker to make.",
        ),
        _TEMPERATURE,
        _REPETITION_PENALTY,
        Param("min_p", "Min-p", 0.0, 1.0, 0.05, 0.01, "Higher leaves out unlikely sounds."),
        _TOP_P,
    )  # fmt: skip


def _capabilities(max_chars: int, **more: object) -> Capabilities:
    # Not streaming: the flow that turns tokens into sound attends to the whole line in both
    # directions and starts from noise of the line's length, so chunks joined are not the whole.
    return Capabilities(
        sample_rate_hz=STUDIO_RATE_HZ,
        max_chars=max_chars,
        cloning=True,
        builtin_voice=True,
        builtin_by_name=False,
        voice_conversion=True,
        **more,  # type: ignore[arg-type]
    )


ENGLISH = ChatterboxVariant(
    name="chatterbox",
    title="Chatterbox",
    source="ResembleAI/chatterbox",
    needs=("ve.safetensors", "t3_cfg.safetensors", "s3gen.safetensors", "tokenizer.json",
           "conds.pt"),
    capabilities=_capabilities(300, languages=ENGLISH_ONLY, params=_guidance_params()),
)  # fmt: skip

MULTILINGUAL = ChatterboxVariant(
    name="chatterbox-multilingual",
    title="Chatterbox Multilingual",
    source="ResembleAI/chatterbox",
    needs=("ve.pt", "t3_mtl23ls_v2.safetensors", "s3gen.pt",
           "grapheme_mtl_merged_expanded_v1.json", "conds.pt", "Cangjie5_TC.json"),
    # The package's 0.1.7 weighs repetition with 2.0, which makes noise at a line's end; its later
    # source with 1.2. 80 Chinese or Japanese characters last about as long as 200 Latin ones, and
    # half as long as a line may: 40 s.
    capabilities=_capabilities(
        200,
        wide_weight=2.5,
        languages=LANGUAGES,
        guess=guess_language,
        asks_language=True,
        params=_guidance_params(),
    ),
)  # fmt: skip

TURBO = ChatterboxVariant(
    name="chatterbox-turbo",
    title="Chatterbox Turbo",
    source="ResembleAI/chatterbox-turbo",
    needs=("ve.safetensors", "t3_turbo_v1.safetensors", "s3gen_meanflow.safetensors", "conds.pt",
           "vocab.json", "merges.txt", "added_tokens.json", "tokenizer_config.json"),
    capabilities=_capabilities(
        300,
        languages=ENGLISH_ONLY,
        tags=TURBO_TAGS,
        params=(
            _TEMPERATURE,
            _REPETITION_PENALTY,
            Param("top_k", "Top-k", 1, 1000, 1000, 1, "Lower leaves out unlikely sounds."),
            _TURBO_TOP_P,
        ),
    ),
    over_sample_s=5.0,
)  # fmt: skip

VARIANTS = (ENGLISH, MULTILINGUAL, TURBO)


def resolve_source(variant: ChatterboxVariant, options: BackendOptions) -> str:
    """Where a variant's weights are.

    What is set for all three counts for those whose files can be there: a folder that holds
    another variant's model, or another variant's name on the hub, does not.
    """
    own = {
        TURBO.name: options.chatterbox_turbo_model,
        MULTILINGUAL.name: options.chatterbox_multilingual_model,
    }.get(variant.name)
    shared = options.chatterbox_model
    if own is not None or shared is None:
        return own or variant.source
    others = [other for other in VARIANTS if other is not variant]
    if shared.partition("@")[0] in {other.source for other in others} - {variant.source}:
        return variant.source
    folder = Path(shared).expanduser()
    holds_another = any((folder / other.t3).is_file() for other in others)
    return variant.source if holds_another and not (folder / variant.t3).is_file() else shared
