"""Builds sherpa-onnx's object of a model; run by path, it says whether a model can be loaded.

sherpa-onnx ends the whole process, without a word to Python, where a model's metadata or voices
aren't what it expects. So each model is loaded once in this process before the studio loads it. It
takes JSON from standard input, of `paths` to import from, `kind`, `family`, `files` and `threads`,
and answers with JSON of what the model says about itself. It imports nothing else of the studio.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def build_tts(family: str, files: Mapping[str, str], threads: int) -> Any:
    """Load a model.

    Args:
        family: As sherpa-onnx's configuration names it.
        files: Path by what the family's configuration calls the file.
        threads: That one line is computed with.

    Raises:
        ValueError: A file is missing.
        RuntimeError: A file is broken, or of a format newer than sherpa-onnx's runtime knows.
    """
    import sherpa_onnx

    family_config = getattr(sherpa_onnx, f"OfflineTts{family.title()}ModelConfig")
    model = sherpa_onnx.OfflineTtsModelConfig(
        **{family: family_config(**files)}, num_threads=threads
    )
    config = sherpa_onnx.OfflineTtsConfig(model=model, max_num_sentences=1)
    if not config.validate():
        raise ValueError("a file is missing")
    return sherpa_onnx.OfflineTts(config)


_RECOGNISER_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "whisper": {"language": ""},  # which it finds by itself
    "sense_voice": {"use_itn": True},  # marks and digits, as people write
    "transducer": {"model_type": "nemo_transducer"},
}


def build_recogniser(family: str, files: Mapping[str, str], threads: int) -> Any:
    """Load a recogniser.

    Args:
        family: As in the name of `OfflineRecognizer`'s constructor for it.
        files: Path by what that constructor calls the file.
        threads: That one recording is computed with.

    Raises:
        ValueError: A file is missing.
        RuntimeError: A file is broken, or of a format newer than sherpa-onnx's runtime knows.
    """
    import sherpa_onnx

    given = dict(files)
    if family == "qwen3_asr":  # which takes the folder of its tokenizer's files
        given["tokenizer"] = str(Path(given["tokenizer"]).parent)
        for name in ("merges", "tokenizer_config"):
            given.pop(name, None)
    build = getattr(sherpa_onnx.OfflineRecognizer, f"from_{family}")
    return build(**given, num_threads=threads, **_RECOGNISER_OPTIONS.get(family, {}))


def build_language_identifier(files: Mapping[str, str], threads: int) -> Any:
    """Load a Whisper model of several languages to tell which one is spoken.

    Raises:
        ValueError: A file is missing.
        RuntimeError: A file is broken, or of a format newer than sherpa-onnx's runtime knows.
    """
    import sherpa_onnx

    whisper = sherpa_onnx.SpokenLanguageIdentificationWhisperConfig(
        files["encoder"], files["decoder"]
    )
    config = sherpa_onnx.SpokenLanguageIdentificationConfig(whisper, num_threads=threads)
    return sherpa_onnx.SpokenLanguageIdentification(config)


def build_denoiser(files: Mapping[str, str], threads: int) -> Any:
    """Load a denoiser of the GTCRN family; `files` has the path of its `model`."""
    import sherpa_onnx

    config = sherpa_onnx.OfflineSpeechDenoiserConfig(
        model=sherpa_onnx.OfflineSpeechDenoiserModelConfig(
            gtcrn=sherpa_onnx.OfflineSpeechDenoiserGtcrnModelConfig(files["model"]),
            num_threads=threads,
        )
    )
    return sherpa_onnx.OfflineSpeechDenoiser(config)


def build_embedder(files: Mapping[str, str]) -> Any:
    """Load a model of speaker embeddings.

    Raises:
        ValueError: The file is missing.
        RuntimeError: It is broken, or of a format newer than sherpa-onnx's runtime knows.
    """
    import sherpa_onnx

    config = sherpa_onnx.SpeakerEmbeddingExtractorConfig(model=files["model"])
    if not config.validate():
        raise ValueError("a file is missing")
    return sherpa_onnx.SpeakerEmbeddingExtractor(config)


def main() -> None:
    """Answer on standard output; on standard error sherpa-onnx says what is wrong."""
    asked = json.load(sys.stdin)
    sys.path[:] = asked["paths"]
    about = {}
    if asked["kind"] == "recogniser":
        build_recogniser(asked["family"], asked["files"], asked["threads"])
    elif asked["kind"] == "language":
        build_language_identifier(asked["files"], asked["threads"])
    elif asked["kind"] == "denoiser":
        build_denoiser(asked["files"], asked["threads"])
    elif asked["kind"] == "embedding":
        build_embedder(asked["files"])
    else:
        tts = build_tts(asked["family"], asked["files"], asked["threads"])
        about = {"sample_rate_hz": tts.sample_rate, "voices": tts.num_speakers}
    print(json.dumps(about))  # noqa: T201 -- its answer


if __name__ == "__main__":
    main()
