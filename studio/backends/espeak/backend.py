"""The draft backend: eSpeak NG, which speaks at once and needs no download."""

from __future__ import annotations

import importlib.metadata
import math
import os
import unicodedata
from collections.abc import Callable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from studio.audio.analysis import measure_levels, measure_peak
from studio.audio.clip import (
    BLOCK_SAMPLES,
    STUDIO_RATE_HZ,
    Clip,
    Samples,
    from_pcm16,
    resample,
    split_blocks,
)
from studio.backends.base import (
    VARIED_SEEDS,
    Capabilities,
    Conditioning,
    LoadProgress,
    Param,
    SpeechRequest,
)
from studio.backends.espeak.espeak_voices import (
    PACKAGE,
    TABLE_VERSION,
    DraftVoice,
    Language,
    Languages,
    describe_automatic,
    draft_voice,
    find_package,
    language_of_text,
    presets,
)
from studio.backends.espeak.worker_pool import EspeakWorker, Utterance, WorkerPool, default_workers
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed
from studio.voices.speaker import Voice

SPEECH_DB = -22.0
"""Level of speech, RMS in dB of full scale; the same for every voice."""

PEAK_DB = -1.0

LEAD_S = 0.03
TAIL_S = 0.12
"""Silence before and after every segment, whatever eSpeak NG put there."""

_RATE_STEP_HZ = 50  # a simple ratio to the studio's rate halves the resampler's work
_FADE_S = 0.004
_AUDIBLE = 10 ** (-50 / 20)  # of the peak; fricatives at an edge lie 30 to 40 dB below it
_SILENT = 1e-3


def finish_clip(pcm: npt.NDArray[np.int16], rate_hz: int, *, shift: float = 1.0) -> Samples:
    """Bring raw speech to the studio's rate, a common level and clean edges.

    Args:
        pcm: int16 [samples] at `rate_hz`.
        rate_hz: eSpeak NG's rate.
        shift: Plays it faster by this factor, which raises pitch and formants alike.

    Returns:
        float32 [samples] at `STUDIO_RATE_HZ`, peaks at most `PEAK_DB`, faded at both ends; empty
        when nothing is audible.
    """
    if not len(pcm) or max(int(pcm.max()), -int(pcm.min())) < _SILENT * 32_768:
        return np.zeros(0, dtype=np.float32)
    played_hz = round(rate_hz * shift / _RATE_STEP_HZ) * _RATE_STEP_HZ
    lead, tail = round(LEAD_S * STUDIO_RATE_HZ), round(TAIL_S * STUDIO_RATE_HZ)
    # Block by block into an array that has room for the silence: a copy of a minute takes 6 MB.
    padded = np.zeros(
        lead + math.ceil(len(pcm) * STUDIO_RATE_HZ / played_hz) + 1 + tail, np.float32
    )
    after = lead
    blocks = (from_pcm16(pcm[at : at + BLOCK_SAMPLES]) for at in range(0, len(pcm), BLOCK_SAMPLES))
    for block in resample(blocks, played_hz, STUDIO_RATE_HZ):
        padded[after : after + len(block)] = block
        after += len(block)
    speech = padded[lead:after]
    first, end = _audible(speech)
    _fade(_normalize_level(speech[max(0, first - lead) : end + tail]))
    return padded[first : lead + end + tail]


def _audible(speech: Samples) -> tuple[int, int]:
    """The bounds of the audible part."""
    quiet = np.float32(measure_peak(speech) * _AUDIBLE)
    return _find_audible(speech, quiet), len(speech) - _find_audible(speech[::-1], quiet)


def _find_audible(speech: Samples, quiet: np.float32) -> int:
    """The first sample that is louder; there is one."""
    first = 0
    for block in split_blocks(speech):
        audible = (block > quiet) | (block < -quiet)
        if audible.any():
            break
        first += len(block)
    return first + int(audible.argmax())


def _normalize_level(speech: Samples) -> Samples:
    """Remove the mean and, unless peaks forbid it, bring speech to `SPEECH_DB`; in place."""
    speech -= speech.mean()
    gain_db = SPEECH_DB - measure_levels(Clip(speech), may_be_noisy=False).speech_db
    most = 10 ** (PEAK_DB / 20) / measure_peak(speech)
    speech *= np.float32(min(10 ** (gain_db / 20), most))
    return speech


def _fade(speech: Samples) -> Samples:
    """Fade both ends of speech in place."""
    n = min(round(_FADE_S * STUDIO_RATE_HZ), len(speech) // 2)
    rise = (0.5 - 0.5 * np.cos(np.pi * np.arange(n) / max(n, 1))).astype(np.float32)
    speech[:n] *= rise
    speech[len(speech) - n :] *= rise[::-1]
    return speech


PARAMS = (
    Param(
        "speed", "Speed", 0.5, 2.0, 1.0, 0.05, "How fast the line is spoken; 2 is twice as fast."
    ),
    Param("pitch", "Pitch", -12, 12, 0, 0.5, "Semitones above or below the speaker's own voice."),
    Param("expressiveness", "Expressiveness", 0, 2, 1, 0.1, "How far the melody rises and falls."),
)

# Joiners shape words of Persian and Indian scripts; all else invisible is noise or a command
# to eSpeak NG, which takes control characters as such.
_KEPT_INVISIBLE = {"\u200c", "\u200d"}

_WORDS_PER_MINUTE = 175
_SLOWEST, _FASTEST = 80, 450  # eSpeak NG's own bounds
_LEAST_SHIFT, _MOST_SHIFT = 0.6, 1.7


def plain_text(text: str) -> str:
    """Text without control and other invisible characters, on one line."""
    visible = (
        " " if char.isspace() else char
        for char in text
        if char.isspace()
        or char in _KEPT_INVISIBLE
        or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
    )
    return "".join(visible).strip()


def utterance_for(text: str, request: SpeechRequest, language: Language) -> tuple[Utterance, float]:
    """The request in eSpeak NG's units, and the shift that its samples still need.

    The shift moves the formants by the voice's tract, and makes up for what eSpeak NG's pitch,
    an integer of two octaves, can't reach. A high pitch at the lowest speed comes out faster than
    asked: eSpeak NG speaks no slower than `_SLOWEST`.
    """
    voice = request.conditioning.payload
    assert isinstance(voice, DraftVoice), "conditioning of another backend"
    tempo, semitones, range_ = _vary(request.seed)
    wanted_hz = voice.fundamental_hz * 2 ** ((_param(request, "pitch") + semitones) / 12)
    pitch = voice.variant.pitch(wanted_hz / voice.tract)
    shift = wanted_hz / voice.variant.fundamental_hz(pitch)
    shift = min(_MOST_SHIFT, max(_LEAST_SHIFT, shift))
    words_per_minute = _WORDS_PER_MINUTE * _param(request, "speed") * voice.tempo * tempo / shift
    utterance = Utterance(
        text=text,
        voice=f"{language.voice_file}+{voice.variant.name}",
        words_per_minute=min(_FASTEST, max(_SLOWEST, round(words_per_minute))),
        pitch=pitch,
        pitch_range=min(99, max(0, round(50 * _param(request, "expressiveness")) + range_)),
    )
    return utterance, shift


_MOST_VARIED = {"tempo": 0.06, "semitones": 0.5, "range": 14}


def _vary(seed: int | None) -> tuple[float, float, int]:
    """The factor of the pace, semitones of the pitch and units of its range that a seed adds."""
    first, end = VARIED_SEEDS
    if seed is None or not first <= seed < end:
        return 1.0, 0.0, 0
    tempo, semitones, range_ = np.random.default_rng(seed).uniform(-1, 1, 3)
    return (
        1 + _MOST_VARIED["tempo"] * float(tempo),
        _MOST_VARIED["semitones"] * float(semitones),
        round(_MOST_VARIED["range"] * float(range_)),
    )


def _param(request: SpeechRequest, name: str) -> float:
    default = next(param.default for param in PARAMS if param.name == name)
    return float(request.params.get(name, default))


MAX_CHARS = 1_000
_WIDE_WEIGHT = 4.0  # eSpeak NG names characters that it doesn't know, which takes 0.4 s each

_CHUNK_SAMPLES = STUDIO_RATE_HZ // 2
_PATIENCE_S = 10.0
_PATIENCE_S_PER_CHAR = 0.01  # about a hundred times what a character takes
_VOICE_BYTES = 512


class DraftBackend:
    """eSpeak NG as a backend: any number of requests at once, spoken by a few processes.

    Its voices are synthetic and can't be cloned: a sample only sets a speaker's pitch. It reads
    over 100 languages, so that a script can be played before there is a neural voice, or without.
    The same request gives the same samples whatever was spoken before. A new take's seed changes
    pace and melody a little; any other changes nothing.
    """

    name = "draft"
    title = "Draft voice (eSpeak NG)"

    def __init__(self, *, workers: int | None = None) -> None:
        """Start nothing yet; None for `workers` is one process a core and at most four."""
        self._workers = workers or default_workers(os.cpu_count())
        self._pool: WorkerPool | None = None

    @cached_property
    def revision(self) -> str:
        if self.unavailable():
            return f"missing, voices {TABLE_VERSION}"
        return f"{PACKAGE} {importlib.metadata.version(PACKAGE)}, voices {TABLE_VERSION}"

    @cached_property
    def capabilities(self) -> Capabilities:
        """Its abilities; without its package it knows no languages."""
        return Capabilities(
            sample_rate_hz=STUDIO_RATE_HZ,
            max_chars=MAX_CHARS,
            wide_weight=_WIDE_WEIGHT,
            builtin_voice=True,
            presets=presets(),
            languages={} if self.unavailable() else self._languages.names_by_code(),
            guess=language_of_text,
            params=PARAMS,
            streaming=True,
            take_seeds=VARIED_SEEDS,
            instead_of_sample="an automatic voice at the pitch of the recording",
            describe_builtin=describe_automatic,
        )

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its package is complete."""
        try:
            find_package()
        except ModelUnavailable as error:
            return str(error)
        return None

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Start the first process, which proves that the library runs here.

        Raises:
            ModelUnavailable: The package is missing or broken, or doesn't fit this system; or the
                process is ended from outside each time.
        """
        if self._pool is not None:
            return
        progress(LoadProgress("Starting eSpeak NG", 0.0))
        package = find_package()
        pool = WorkerPool(lambda: EspeakWorker(package), size=self._workers)
        try:
            version = pool.run(lambda worker: worker.version)
        except SpeechFailed as error:
            raise ModelUnavailable(str(error)) from error
        self._pool = pool
        progress(LoadProgress(f"eSpeak NG {version} is ready", 1.0))

    def unload(self) -> None:
        """End every process. Safe when not loaded."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def condition(self, voice: Voice) -> Conditioning:
        """Choose a timbre, pitch and tempo; instant but for measuring a sample's pitch."""
        return Conditioning(draft_voice(voice), _VOICE_BYTES)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment; yields it in pieces of at most half a second.

        Without a language the text's script decides: see `language_of_text`.
        """
        _stop_if_cancelled(request)
        samples = self._synthesize(request)
        for start in range(0, len(samples), _CHUNK_SAMPLES):
            _stop_if_cancelled(request)
            yield samples[start : start + _CHUNK_SAMPLES]

    @cached_property
    def _languages(self) -> Languages:
        return Languages(find_package().folder / "espeak-ng-data")

    def _synthesize(self, request: SpeechRequest) -> Samples:
        if self._pool is None:
            raise ModelUnavailable("The draft voice is not loaded. Load it and try again.")
        text = plain_text(request.text)
        utterance, shift = utterance_for(text, request, self._language(request.language, text))
        patience_s = _PATIENCE_S + _PATIENCE_S_PER_CHAR * len(text)

        def speak(worker: EspeakWorker) -> tuple[npt.NDArray[np.int16], int]:
            _stop_if_cancelled(request)  # the wait for a free worker may have been long
            return worker.speak(utterance, timeout_s=patience_s), worker.rate_hz

        pcm, rate_hz = self._pool.run(speak)
        samples = finish_clip(pcm, rate_hz, shift=shift)
        if not len(samples):
            raise SpeechFailed(
                "There is nothing to speak in this line. Write at least one word, or name the "
                "language its letters belong to."
            )
        return samples

    def _language(self, code: str | None, text: str) -> Language:
        language = self._languages.find(code or language_of_text(text))
        if language is None:
            raise SpeechFailed(
                f"The draft voice doesn't know the language “{code}”. Use a code such as en, "
                "de or pt-BR, or leave the language out."
            )
        return language


def _stop_if_cancelled(request: SpeechRequest) -> None:
    if request.cancelled():
        raise Cancelled("The line was stopped before it was finished.")
