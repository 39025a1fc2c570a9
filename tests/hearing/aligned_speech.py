"""Speech whose word times are known: eSpeak NG says them as it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import soxr

from studio.audio.clip import STUDIO_RATE_HZ, Clip, from_pcm16
from studio.backends.espeak.espeak_voices import find_package
from studio.backends.espeak.worker_pool import EspeakWorker, Utterance, WorkerPool

VOICES = ("m8", "robert", "Alex", "aunty", "f4", "linda")
LEAD_S = 0.2

# No sentence of these was used when the aligner was made.
SUBJECTS = {
    "en": ("The old postman", "My younger sister", "A stranger in a grey coat", "Every carpenter",
           "The committee"),
    "de": ("Der alte Briefträger", "Meine jüngere Schwester", "Ein Fremder im grauen Mantel",
           "Jeder Tischler", "Der Ausschuss"),
    "es": ("El viejo cartero", "Mi hermana menor", "Un extraño con abrigo gris",
           "Cada carpintero", "El comité"),
}  # fmt: skip
VERBS = {
    "en": ("remembers the flood of last spring", "has forgotten where the ladder stands",
           "asked twice for a cup of tea", "will never sell that crooked house",
           "found seven letters under the floor"),
    "de": ("erinnert sich an das Hochwasser vom Frühjahr", "hat vergessen, wo die Leiter steht",
           "bat zweimal um eine Tasse Tee", "wird das schiefe Haus nie verkaufen",
           "fand sieben Briefe unter dem Boden"),
    "es": ("recuerda la inundación de la primavera", "ha olvidado dónde está la escalera",
           "pidió dos veces una taza de té", "nunca venderá esa casa torcida",
           "encontró siete cartas bajo el suelo"),
}  # fmt: skip
ENDS = {
    "en": (", or so they say.", "; nobody believed it!", " before the bell rings."),
    "de": (", so sagt man.", "; niemand hat es geglaubt!", " und schweigt seitdem."),
    "es": (", o eso dicen.", "; nadie lo creyó.", " antes de la medianoche."),
}
_FILES = {"en": "gmw/en-US", "de": "gmw/de", "es": "roa/es"}


@dataclass(frozen=True)
class KnownSpeech:
    """A take, and when its words start: by their offsets in the text, in seconds."""

    clip: Clip
    text: str
    language: str
    starts_s: dict[int, float]


class KnownVoice:
    """eSpeak NG's voices, with what a room or another throat does to them."""

    def __init__(self) -> None:
        package = find_package()
        self._pool = WorkerPool(lambda: EspeakWorker(package), size=1)
        self._chance = np.random.default_rng(7)

    def speak(
        self,
        text: str,
        language: str,
        voice: str,
        *,
        shift: float = 1.0,
        snr_db: float | None = None,
    ) -> KnownSpeech:
        """Speak a text; `shift` moves formants, pitch and tempo alike."""
        utterance = Utterance(text, f"{_FILES[language]}+{voice}", pitch=55)
        said, rate_hz = self._pool.run(
            lambda worker: (worker.speak_timed(utterance, timeout_s=20), worker.rate_hz)
        )
        speech = soxr.resample(from_pcm16(said.pcm), rate_hz * shift, STUDIO_RATE_HZ)
        around = np.pad(speech, (round(LEAD_S * STUDIO_RATE_HZ), STUDIO_RATE_HZ // 10))
        if snr_db is not None:
            loudness = np.sqrt(np.mean(speech**2)) / 10 ** (snr_db / 20)
            around = around + self._chance.normal(0, loudness, len(around))
        starts: dict[int, float] = {}
        sounds = [(at, ipa) for at, ipa in said.phonemes]
        after_pause = {at for (_, before), (at, _) in pairwise([(0, ""), *sounds]) if not before}
        for at, offset in said.words:
            # Its events lie where the sound begins to glide to the next phoneme.
            glide_s = 0.0 if at in after_pause else 0.04
            starts.setdefault(offset, LEAD_S + (at / rate_hz + glide_s) / shift)
        return KnownSpeech(Clip(around.astype(np.float32)), text, language, starts)

    def close(self) -> None:
        self._pool.close()


def iter_lines(n_lines: int) -> Iterator[tuple[str, str, str]]:
    """Texts, each with its language and voice: all voices in all languages, evenly."""
    languages = list(SUBJECTS)
    for number in range(n_lines):
        language = languages[number % 3]
        voice = VOICES[number // 3 % 6]
        turn = number // 18 + 7 * (number % 18)
        subject, verb, end = SUBJECTS[language], VERBS[language], ENDS[language]
        text = f"{subject[turn % 5]} {verb[turn // 5 % 5]}{end[turn // 25 % 3]}"
        yield text, language, voice
