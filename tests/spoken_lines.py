"""Lines of dialog in three languages, spoken by six draft voices: to plant faults into."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from studio.audio.clip import Clip
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.speaker import Voice

VOICES = ("m3", "robert", "Alex", "f1", "linda", "Annie")
"""Presets of the draft voice, low to high."""

_PARTS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "en": (
        ("Listen", "After the storm", "In the morning", "Honestly", "As far as I know",
         "By the way", "Since Tuesday", "Between you and me", "When the bell rang",
         "At the old mill"),
        ("the baker closed his shop", "nobody came to the harbour", "I found your grey umbrella",
         "my brother is selling the boat", "the children were hiding upstairs",
         "we could hear music from the garden", "the letters never reached her",
         "he walks to the station alone", "she has forgotten every word",
         "the river rose above the bridge", "they painted the kitchen yellow",
         "you left the window open"),
        (".", "!", "?", ", and that was all.", ", but don't tell Martha.",
         " before the lamp went out.", " without asking anyone.", ", as if nothing had happened.",
         " again?", " for the third time!"),
    ),
    "de": (
        ("Hör zu", "Nach dem Sturm", "Am nächsten Morgen", "Ehrlich gesagt", "Soweit ich weiß",
         "Übrigens", "Seit letztem Dienstag", "Unter uns gesagt", "Als die Glocke schlug",
         "An der alten Mühle"),
        ("der Bäcker hat den Laden geschlossen", "niemand kam zum Hafen herunter",
         "dein grauer Schirm liegt im Keller", "mein Bruder verkauft das Boot",
         "die Kinder haben sich oben versteckt", "wir hörten Musik aus dem Garten",
         "die Briefe haben sie nie erreicht", "er geht allein zum Bahnhof",
         "sie hat jedes Wort vergessen", "der Fluss stieg über die Brücke",
         "die Küche wurde gelb gestrichen", "du hast das Fenster offen gelassen"),
        (".", "!", "?", ", und das war alles.", ", aber sag es nicht Martha.",
         ", bevor das Licht ausging.", ", ohne jemanden zu fragen.", ", als wäre nichts geschehen.",
         ", schon wieder?", ", zum dritten Mal!"),
    ),
    "es": (
        ("Escucha", "Después de la tormenta", "Por la mañana", "Francamente", "Que yo sepa",
         "Por cierto", "Desde el martes", "Entre nosotros", "Cuando sonó la campana",
         "En el viejo molino"),
        ("el panadero cerró la tienda", "nadie bajó hasta el puerto", "encontré tu paraguas gris",
         "mi hermano vende la barca", "los niños se escondían arriba",
         "se oía música desde el jardín", "las cartas nunca le llegaron",
         "él camina solo a la estación", "ella ha olvidado cada palabra",
         "el río subió por encima del puente", "pintaron la cocina de amarillo",
         "dejaste la ventana abierta"),
        (".", "!", "?", ", y eso fue todo.", ", pero no se lo digas a Marta.",
         " antes de que se apagara la luz.", " sin preguntar a nadie.",
         ", como si nada hubiera pasado.", " otra vez?", " por tercera vez."),
    ),
}  # fmt: skip
LANGUAGES = tuple(_PARTS)


def iter_texts(language: str, seed: int = 0) -> Iterator[str]:
    """Different sentences of 5 to 20 words, the same for a seed; some hundred of them."""
    begins, middles, ends = _PARTS[language]
    rng = random.Random(seed)
    every = [(a, b, c) for a in ("", *begins) for b in middles for c in ends]
    rng.shuffle(every)
    for begin, middle, end in every:
        text = f"{begin}, {middle}{end}" if begin else f"{middle[0].upper()}{middle[1:]}{end}"
        yield text


@dataclass(frozen=True)
class SpokenLine:
    """A text as a voice spoke it."""

    text: str
    language: str
    voice: str
    clip: Clip


class VoiceReader:
    """Speaks in presets of the draft voice."""

    def __init__(self, backend: DraftBackend) -> None:
        self._backend = backend

    def read(self, text: str, language: str | None, voice: str = "m3") -> Clip:
        request = SpeechRequest(
            text=text,
            conditioning=self._backend.condition(Voice(voice, preset=voice)),
            language=language,
        )
        return Clip(np.concatenate(list(self._backend.speak(request))))

    def lines(self, voice: str, language: str, count: int, seed: int = 0) -> list[SpokenLine]:
        texts = iter_texts(language, seed)
        return [
            SpokenLine(text, language, voice, self.read(text, language, voice))
            for text, _ in zip(texts, range(count), strict=False)
        ]
