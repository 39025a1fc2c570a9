"""The three Chatterbox models: weights, languages, settings, and the limits of a line's text."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from huggingface_hub import constants

from studio.audio.clip import STUDIO_RATE_HZ
from studio.backends.base import Capabilities, LoadProgress, Param
from studio.backends.espeak.espeak_voices import language_of_text
from studio.backends.hub.weights import needed_files
from studio.backends.options import BackendOptions
from studio.dialog.tags import TAG, has_words, replace_tags
from studio.errors import ModelUnavailable, SpeechFailed

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
"""The multilingual model's languages; the package's own list needs torch to import."""

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
        needs: Files that a load reads; see `fetch_weights`.
        over_sample_s: A sample must be longer than this.
    """

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    capabilities: Capabilities
    over_sample_s: float = 0.0

    def t3_in(self, folder: Path) -> Path | None:
        """The weights file of T3 that a folder has, whose name no other variant shares."""
        t3 = next(need for need in self.needs if need.startswith("t3_"))
        return next(iter(needed_files(folder, [t3])), None)


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
    """Parameters of the models with classifier-free guidance."""
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
    # Version 3 reads text as version 2 does: the package's source of July 2026 has one tokenizer
    # for both, which writes all in lower case and NFKD. It is the one that its makers recommend;
    # where version 2 was downloaded before, that stays, and with it the takes made by it.
    needs=("ve.pt", "t3_mtl23ls_v3.safetensors|t3_mtl23ls_v2.safetensors", "s3gen.pt",
           "grapheme_mtl_merged_expanded_v1.json", "conds.pt", "Cangjie5_TC.json"),
    # The package's 0.1.7 weighs repetition with 2.0, which makes noise at a line's end; its later
    # source with 1.2. 80 Chinese or Japanese characters last about as long as 200 Latin ones, and
    # half as long as a line may: 40 s.
    capabilities=_capabilities(
        200,
        wide_weight=2.5,
        languages=LANGUAGES,
        guess=guess_language,
        params=_guidance_params(),
    ),
)  # fmt: skip

TURBO = ChatterboxVariant(
    name="chatterbox-turbo",
    title="Chatterbox Turbo",
    source="ResembleAI/chatterbox-turbo",
    needs=("ve.safetensors", "t3_turbo_v1.safetensors", "s3gen_meanflow.safetensors", "conds.pt",
           "vocab.json|tokenizer.json", "merges.txt|tokenizer.json",
           "added_tokens.json|tokenizer.json", "tokenizer_config.json"),
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
    """The source of a variant's weights.

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
    holds_another = any(other.t3_in(folder) for other in others)
    return variant.source if holds_another and not variant.t3_in(folder) else shared


TOKENS_PER_S = 25
"""Speech tokens in a second of audio, for all Chatterbox models."""

MAX_TOKENS = 1_000
"""40 s, the longest line the package makes itself."""

_STARTING_S, _S_PER_CHAR = 3.0, 0.2  # a very slow reader: 60 words a minute
_SHORT_STARTING_S, _SHORT_S_PER_CHAR = 1.5, 0.15
_FEW_WORDS, _SHORT_WEIGHT = 2, 30  # of what the models like to go on babbling after
_WIDE_WEIGHT = 2  # a Chinese or Japanese character is a syllable, or two
_NUMBER_WEIGHT = 4  # a digit or a sign is a word
_NUMBERS = frozenset(("Nd", "Nl", "No", "Sc"))  # with currency
_SIGNS = frozenset("%&@#+=<>°")
_TAG_WEIGHT = 12  # a laugh lasts two seconds


def estimate_token_bound(text: str) -> int:
    """The limit of a line's speech tokens, beyond which the model is babbling.

    25 tokens a second for 3 s plus 0.2 s a character, and never more than `MAX_TOKENS`. Up to two
    words have 1.5 s plus 0.15 s a character. Wide (East Asian) characters count twice, digits and
    signs, which are words when spoken, four times. People speak about three times as fast.
    """
    words, tags = _split_tags(text)
    weight = sum(map(_char_weight, words)) + _TAG_WEIGHT * tags
    is_short = len(words.split()) <= _FEW_WORDS and weight <= _SHORT_WEIGHT
    starting_s, s_per_char = (
        (_SHORT_STARTING_S, _SHORT_S_PER_CHAR) if is_short else (_STARTING_S, _S_PER_CHAR)
    )
    return min(MAX_TOKENS, math.ceil(TOKENS_PER_S * (starting_s + s_per_char * weight)))


def check_speakable(text: str) -> None:
    """Refuse what would make a model babble: nothing, or tags alone.

    Raises:
        SpeechFailed: There is no letter or digit outside of tags.
    """
    if not has_words(text):
        raise SpeechFailed(
            f"There is nothing to speak in “{text.strip()}”. Write at least one word beside it."
        )


def choose_language(language: str | None, text: str) -> str:
    """The line's language, or the one that its script suggests, by the multilingual model's name.

    Raises:
        SpeechFailed: It is none of `LANGUAGES`, in which the model would babble.
    """
    code = normalize_language(language) if language else guess_language(text)
    if code not in LANGUAGES:
        raise SpeechFailed(_unknown_language_message(code, is_guess=language is None))
    return code


def _unknown_language_message(code: str, *, is_guess: bool) -> str:
    seems = "This line seems to be" if is_guess else "This line is said to be"
    return (
        f"{seems} in a language that Chatterbox Multilingual doesn't speak ({code}). Give the "
        f"language it is in, one of {', '.join(sorted(LANGUAGES))}, or choose another voice engine."
    )


def _split_tags(text: str) -> tuple[str, int]:
    """A text without its tags, and their number."""
    return replace_tags(text, lambda _tag, _name: ""), len(TAG.findall(text))


def _char_weight(char: str) -> int:
    category = unicodedata.category(char)
    if category in _NUMBERS or char in _SIGNS:
        return _NUMBER_WEIGHT
    return _WIDE_WEIGHT if unicodedata.east_asian_width(char) in "WF" else 1


# Word boundaries for Chinese, which the multilingual model was trained with.
#
# The package fetches its segmenter's model without a word, and again wherever it is missing. Here
# that happens with the model's load, shown as its progress; without it Chinese is still read.

NO_SEGMENTER = (
    "Chinese is read without word boundaries, which sounds worse: their model isn't on this "
    "machine. Load Chatterbox Multilingual again with a network to have it."
)
_MODEL = "spacy_ontonotes"

log = logging.getLogger(__name__)


def segmenter_folder() -> Path:
    """The folder in which the segmenter's package looks for its model."""
    return Path(os.environ.get("PKUSEG_HOME", "~/.pkuseg")).expanduser() / _MODEL


def fetch_segmenter(progress: Callable[[LoadProgress], None]) -> None:
    """Download the word segmenter's model if missing; without network go on without it."""
    folder = segmenter_folder()
    if (
        folder.is_dir()
        or constants.HF_HUB_OFFLINE
        or importlib.util.find_spec("spacy_pkuseg") is None
    ):
        return
    from spacy_pkuseg.config import Config

    from studio.backends.hub.download import fetch_archive

    try:
        fetch_archive(
            Config.model_urls[_MODEL],
            sha256=Config.model_hash[_MODEL],
            folder=folder,
            progress=progress,
        )
    except ModelUnavailable as error:
        log.warning("%s (%s)", NO_SEGMENTER, error)


def load_segmenter() -> Any:
    """The package's `pkuseg`; None where its model isn't here."""
    folder = segmenter_folder()
    if not folder.is_dir():
        return None
    from spacy_pkuseg import pkuseg

    return pkuseg(str(folder))
