"""The small voices as backends: one for each model of the catalogue."""

from __future__ import annotations

import gc
import hashlib
import importlib.metadata
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from studio.audio.analysis import measure_peak
from studio.audio.clip import Clip, Samples
from studio.backends.base import (
    VARIED_SEEDS,
    VOICE_LUFS,
    Capabilities,
    Conditioning,
    LoadProgress,
    Param,
    Preset,
    SpeechRequest,
)
from studio.backends.espeak.espeak_voices import find_package, language_of_text
from studio.backends.espeak.phonemizer import Phonemizer
from studio.backends.espeak.worker_pool import default_workers
from studio.backends.hub.weights import identify_weights
from studio.backends.sherpa import mandarin
from studio.backends.sherpa.catalogue import (
    CatalogueModel,
    DownloadableModel,
    find_folders,
)
from studio.backends.sherpa.graph_model import (
    GRAPH_FAMILIES,
    STYLE_SHAPES,
    CataloguedPiper,
    PiperGraph,
    StyledGraph,
    read_numbers,
)
from studio.backends.sherpa.line_pieces import Piece, Splitter, cut_at_clauses, make_splitter
from studio.backends.sherpa.own_voices import OwnVoices
from studio.backends.sherpa.sherpa_model import (
    Reference,
    SherpaModel,
    SmallVoiceLine,
    SmallVoiceModel,
    check_model,
    locate_files,
)
from studio.backends.sherpa.styles import StyleTable
from studio.dialog.model import name_key
from studio.errors import Cancelled, ModelUnavailable, SampleRejected, SpeechFailed
from studio.voices.automatic import VoiceTraits
from studio.voices.speaker import Voice

MAX_CHARS = 400
"""A longer segment would only keep the listener waiting; each is spoken sentence by sentence."""

LONGEST_SAMPLE_S = 10.0
"""Of a sample, from its beginning, where no transcript goes with it."""

LONGEST_WHOLE_SAMPLE_S = 20.0
"""Of a sample that goes with its transcript, and so can't be cut; each line is spoken behind it."""

_LARGEST_SEED = 2**31 - 1  # sherpa-onnx's are 32-bit integers, and negative ones random
_VOICE_BYTES = 512
_PHONEMIC = frozenset({"kokoro", "kitten", "vits", "zipvoice"})
_SEEDED = frozenset({"supertonic", "pocket"})
_SPEED = Param("speed", "Speed", 0.5, 2.0, 1.0, 0.05, "How fast the line is spoken; 2 is twice.")
_STEPS = "More steps sound cleaner and take longer."
_FAMILY_PARAMS = {
    "supertonic": (_SPEED, Param("steps", "Steps", 2, 16, 5, 1, _STEPS)),
    "zipvoice": (_SPEED, Param("steps", "Steps", 2, 16, 4, 1, _STEPS)),
    # It has no speed of its own. One step is what its makers take.
    "pocket": (Param("steps", "Steps", 1, 10, 1, 1, _STEPS),),
}
_CODES = {"cmn": "zh"}  # eSpeak NG's code of what the catalogue calls Chinese


@dataclass(frozen=True, slots=True)
class SherpaVoice:
    """A voice of these backends: a sample, or one of the model's own.

    Attributes:
        preset: The one that was chosen; None to choose by `name`.
        name: Chooses among the voices of a line's language.
        reference: The sample, where the model clones.
    """

    preset: str | None
    name: str
    reference: Reference | None = None


class SherpaBackend(DownloadableModel):
    """A model of the catalogue as a backend; a few lines at once, each on one core.

    One loaded model serves all lines: nothing about a line is kept in it. Each line is computed by
    one thread, as many lines at once as there are cores. Two threads make one line 1.6 times as
    quick, but eight lines a quarter slower, and a line alone is far quicker than speech.
    The same request gives the same samples only where the model is given a seed (Supertonic,
    Pocket). In Kokoro, Kitten and Piper a node of the graph draws noise, in ZipVoice sherpa-onnx
    itself: a generator that is seeded when the model is loaded, and that all lines go on drawing
    from. A seed written into the graph would only decide what the first line after a load gets.
    Those three are run by ONNX Runtime, the others by sherpa-onnx.
    Of those three a line that somebody waits for is cut at clauses, so that its first one sounds
    soon. No key of a take says so: the words and the voice are the same, and whoever comes later
    gets the take that was heard. One that is made again for its key may be joined otherwise, as it
    may have other noise; it counts as the same only where it is so to the sample. Lines with a
    seed aren't cut, as theirs promises the same samples; nor is what is said to find out whether a
    voice varies (`TakeVariations`), as it is one short clause.
    """

    def __init__(
        self, model: CatalogueModel, *, cores: int | None = None, own: Path | None = None
    ) -> None:
        """Load nothing yet.

        Args:
            model: Of the catalogue.
            cores: How many lines are computed at once; None for all.
            own: Folder of voices that somebody added.
        """
        super().__init__(model)
        self.package = "onnxruntime" if model.family in GRAPH_FAMILIES else "sherpa-onnx"
        self.name = model.name
        self._catalogued = model
        self._cores = cores or os.cpu_count() or 1
        self._free_cores = threading.Semaphore(self._cores)
        self._own_folder = own
        self._own = OwnVoices(model, own if model.family == "vits" else None)
        self._model: SmallVoiceModel | None = None
        self._split: Splitter | None = None
        self._offered: tuple[Preset, ...] | None = None
        self._phonemizer: Phonemizer | None = None

    @property
    def revision(self) -> str:
        model = self._catalogued.at_hand()
        folders = find_folders(model)
        weights = " ".join(
            identify_weights(folder, source.needs)
            for folder, source in zip(folders, model.sources, strict=False)
        )
        return f"{self._speaks_since()}, {model.sources[0].source} {weights or 'not here yet'}"

    def _speaks_since(self) -> str:
        # sherpa-onnx ran these graphs once, with the same phonemes: its takes count as theirs.
        if self._catalogued.family in GRAPH_FAMILIES:
            return "sherpa-onnx 2.0.1"
        version = "missing" if _is_missing() else importlib.metadata.version("sherpa-onnx")
        return f"sherpa-onnx {version}"

    @property
    def capabilities(self) -> Capabilities:
        model = self._catalogued
        presets = self._presets
        return Capabilities(
            sample_rate_hz=model.sample_rate_hz,
            max_chars=MAX_CHARS,
            cloning=model.cloning,
            builtin_voice=bool(presets),
            presets=presets,
            languages=self._languages,
            guess=self._guess,
            wide_weight=3.0,
            params=_FAMILY_PARAMS.get(model.family, (_SPEED,)),
            streaming=True,
            slots=self._cores,
            seeded=model.family in _SEEDED,
            take_seeds=(0, 2**31) if model.family in _SEEDED else VARIED_SEEDS,
            describe_builtin=self._describe_builtin if presets else None,
        )

    def unavailable(self) -> str | None:
        """Why it can't run here, with the remedy; None when its packages are installed."""
        if reason := super().unavailable():
            return reason
        if self._catalogued.family not in _PHONEMIC:
            return None
        try:
            find_package()
        except ModelUnavailable as error:
            return f"{self.title} needs eSpeak NG, which reads text for it. {error}"
        return None

    def load(self, progress: Callable[[LoadProgress], None]) -> None:
        """Bring the model into memory; downloads its weights first where needed.

        Raises:
            ModelUnavailable: The package is missing, or the weights are missing, broken, of a
                newer format, or another model's.
        """
        if self._split is not None:
            return
        if not (self._own.list() and self.unavailable() is None):
            self.fetch(progress)
        progress(LoadProgress(f"Loading {self.title} into memory"))
        family, model = self._catalogued.family, self._catalogued.at_hand()
        folders = find_folders(model)
        files = {}
        if folders:
            files = {role: Path(file) for role, file in locate_files(model, folders).items()}
        phonemic = family in _PHONEMIC
        self._phonemizer = Phonemizer(workers=default_workers(self._cores)) if phonemic else None
        loaded: SmallVoiceModel | None = None
        if not folders:
            pass  # somebody's own voices are each loaded when they speak
        elif styles := self._find_styles():
            loaded = StyledGraph(model, folders, styles, self._free_cores)
        elif family in GRAPH_FAMILIES:
            numbers = read_numbers(str(files["tokens"]))
            voice = CataloguedPiper(files["model"], numbers, model.sample_rate_hz)
            loaded = PiperGraph(model, voice, self._free_cores)
        else:
            check_model(model, folders)
            loaded = SherpaModel(model, folders, self._free_cores)
        tokens = None if family in GRAPH_FAMILIES else files.get("tokens")
        self._model, self._offered = loaded, self._find_presets()
        self._split = make_splitter(family, tokens, self._phonemizer, files.get("lexicon"))
        progress(LoadProgress(f"{self.title} is ready", 1.0))

    def lacks(self, language: str) -> str | None:
        """What reading a language well lacks here, with the remedy."""
        if self.name != "kokoro":
            return None
        found = self._find_language(language)
        if found == "hi":
            return (
                "Kokoro's Hindi is hard to understand: one word in four is wrong. Use another "
                "voice engine for it."
            )
        has_lexicon = "lexicon" in self.weight_sources[0].files
        return None if found != "zh" or has_lexicon else mandarin.lacks()

    def unload(self) -> None:
        """Give all memory back. Safe when not loaded."""
        phonemizer, self._phonemizer = self._phonemizer, None
        self._model, self._split, self._offered = None, None, None
        self._own.unload()
        if phonemizer is not None:
            phonemizer.close()
        gc.collect()

    def condition(self, voice: Voice) -> Conditioning:
        """Choose a voice, or take a sample's beginning; instant."""
        if not self._catalogued.cloning:
            known = {one.preset_id for one in self._presets}
            preset = voice.preset if voice.preset in known else None
            return Conditioning(SherpaVoice(preset, name_key(voice.builtin_name)), _VOICE_BYTES)
        reference = self._reference(voice)
        return Conditioning(
            SherpaVoice(None, "", reference), _VOICE_BYTES + reference.clip.samples.nbytes
        )

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        """Speak one segment; yields it sentence by sentence.

        Without a language the chosen voice's own counts, and else the text's script.

        Raises:
            SpeechFailed: The language is unknown, or there is nothing to speak.
            Cancelled: `request.cancelled` became true.
        """
        _stop_if_cancelled(request)
        if self._split is None:
            raise ModelUnavailable(f"{self.title} is not loaded. Load it and try again.")
        voice = request.conditioning.payload
        assert isinstance(voice, SherpaVoice), "conditioning of another backend"
        language = self._language(request, voice)
        preset = self._preset_of(voice, language)
        own = self._own.list().get(preset)
        model = self._own.open(own, self._free_cores) if own else self._model
        if model is None:
            raise SpeechFailed(
                f"{self.title} has no voice here any more. Add one, or install {self.title}."
            )
        if own and not own.reads_as:
            pieces = own.split(request.text)
        else:
            pieces = self._split(request.text, own.read_language(language) if own else language)
        if not pieces:
            raise SpeechFailed(
                "There is nothing to speak in this line. Write at least one word, or name the "
                "language its letters belong to."
            )
        if self._catalogued.family in GRAPH_FAMILIES and request.priority().ahead == 0:
            pieces = [*cut_at_clauses(pieces)]
        voice_id = own.presets[preset] if own else self._catalogued.voice_ids.get(preset, 0)
        line = replace(self._line(request, voice, language), preset=preset, voice_id=voice_id)
        spoken = self._speak_pieces(model, pieces, line)
        return self._level(spoken, preset if request.is_evened else "")

    def _level(self, spoken: Iterator[Samples], preset: str) -> Iterator[Samples]:
        """Bring a voice to `VOICE_LUFS`, where its own loudness is known; none is cut off."""
        own_lufs = self._catalogued.levels_lufs.get(preset, VOICE_LUFS)
        gain = np.float32(10 ** ((VOICE_LUFS - own_lufs) / 20))
        for samples in spoken:
            louder = samples * gain
            yield louder / max(1.0, measure_peak(louder))

    def _speak_pieces(
        self, model: SmallVoiceModel, pieces: Sequence[Piece], line: SmallVoiceLine
    ) -> Iterator[Samples]:
        is_begun = False
        for number, piece in enumerate(pieces):
            samples = model.speak(piece, line, number=number)
            goes_on, is_last = piece.goes_on, number == len(pieces) - 1
            if is_begun or goes_on:
                samples = model.join(samples, line.speed, is_begun=is_begun, goes_on=goes_on)
            yield samples if goes_on or is_last else model.pause_after(samples)
            is_begun = goes_on

    def _line(self, request: SpeechRequest, voice: SherpaVoice, language: str) -> SmallVoiceLine:
        params = {one.name: one.default for one in self.capabilities.params} | dict(request.params)
        seed = secrets.randbelow(_LARGEST_SEED) if request.seed is None else request.seed
        return SmallVoiceLine(
            language=language,
            preset="",
            voice_id=0,
            reference=voice.reference,
            speed=float(params.get("speed", 1.0)),
            steps=int(params.get("steps", 0)),
            seed=seed % _LARGEST_SEED if self._catalogued.family in _SEEDED else None,
            cancelled=request.cancelled,
        )

    def _preset_of(self, voice: SherpaVoice, language: str) -> str:
        if voice.reference is not None or not self._presets:
            return ""
        return voice.preset or self._choose_preset(voice.name, language).preset_id

    @property
    def _presets(self) -> tuple[Preset, ...]:
        return (*self._catalogued_presets, *self._own.presets())

    @property
    def _catalogued_presets(self) -> tuple[Preset, ...]:
        return self._find_presets() if self._offered is None else self._offered

    def _find_presets(self) -> tuple[Preset, ...]:
        model, styles = self._catalogued, self._find_styles()
        if styles is None:
            # Without files, everything that a download brings; but not beside what speaks already.
            return model.presets if find_folders(model) or not self._own.list() else ()
        offered = [one for one in model.presets if styles.has(model.formula(one.preset_id))]
        own = sorted(styles.names - {*model.places}) if self._own_folder else ()
        return (*offered, *(Preset(name, name) for name in own))

    @property
    def _languages(self) -> Mapping[str, str]:
        own = {one.language: one.language_name for one in self._own.list().values()}
        known = self._catalogued.languages
        # Of Kokoro there may be the mixtures alone, which speak English.
        spoken = {code for one in self._catalogued_presets for code in one.languages or known}
        return own | {code: name for code, name in known.items() if code in (spoken or known)}

    def to_fetch(self) -> str | None:
        """What a load would download; nothing where somebody's own voices can speak."""
        return None if self._own.list() else super().to_fetch()

    def _find_styles(self) -> StyleTable | None:
        """Those there are; None of a family without, and where its files aren't here yet."""
        model = self._catalogued.at_hand()
        folders = find_folders(model)
        if not folders or model.family not in STYLE_SHAPES:
            return None
        folders += (self._own_folder,) if self._own_folder and self.name == "kokoro" else ()
        return StyleTable(folders, model.places, *STYLE_SHAPES[model.family])

    def _choose_preset(self, name: str, language: str | None) -> Preset:
        """The voice that a name's key chooses, among those of a language or else among all."""
        presets = self._presets
        # Voices that somebody added speak where they were chosen, or nobody else can: names go on
        # choosing what they chose before.
        known = self._catalogued.languages
        speaking = [one for one in presets if language in (one.languages or known)]
        among: Sequence[Preset]
        among = [one for one in speaking if one.preset_id in self._catalogued.traits] or speaking
        # Mixtures speak with an accent, so a name chooses one only where nothing else is here.
        among = [one for one in among if one.preset_id not in self._catalogued.styles] or among
        among = among or presets
        # Unlike `hash`, this is the same in each run.
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8)
        return among[int.from_bytes(digest.digest(), "big") % len(among)]

    def _describe_builtin(self, name: str, language: str | None = None) -> VoiceTraits:
        code = self._find_language(language) if language else None
        code = code or next(iter(self._languages), None)
        chosen = self._choose_preset(name_key(name), code)
        known = self._catalogued.traits.get(chosen.preset_id)
        return known or VoiceTraits(chosen.label, None, (), "", 0.0)

    def _reference(self, voice: Voice) -> Reference:
        if voice.sample is None:
            raise SampleRejected(
                f"{voice.speaker} has no sample, from which {self.title} takes its voices. Add a "
                "sample, or choose a voice engine with voices of its own."
            )
        clip = voice.sample.clip
        if self._catalogued.family != "zipvoice":
            kept = clip.samples[: round(LONGEST_SAMPLE_S * clip.rate_hz)]
            return Reference(Clip(kept, clip.rate_hz))
        if clip.duration_s > LONGEST_WHOLE_SAMPLE_S:
            raise SampleRejected(
                f"{voice.speaker}'s sample is longer than the {LONGEST_WHOLE_SAMPLE_S:g} s that "
                f"{self.title} takes. Trim it."
            )
        transcript = voice.sample.transcript or ""
        assert self._split is not None, "conditioned before it was loaded"
        spoken = self._split(transcript, self._guess(transcript))
        if not spoken:
            raise SampleRejected(
                f"{self.title} needs to know what {voice.speaker}'s sample says. Add its "
                "transcript, or choose another voice engine."
            )
        return Reference(clip, transcript, " ".join(piece.phonemes for piece in spoken))

    def _language(self, request: SpeechRequest, voice: SherpaVoice) -> str:
        if request.language is not None:
            found = self._find_language(request.language)
            if found is None:
                known = ", ".join(self._languages)
                raise SpeechFailed(
                    f"{self.title} doesn't know the language “{request.language}”. Use one of "
                    f"{known}, or leave the language out."
                )
            return found
        for preset in self._presets if voice.preset else ():
            if preset.preset_id == voice.preset and preset.languages:
                return preset.languages[0]
        return self._guess(request.text)

    def _guess(self, text: str) -> str:
        return self._find_language(language_of_text(text)) or next(iter(self._languages))

    def _find_language(self, code: str) -> str | None:
        """The model's code for a language: the same, or one that differs in its region."""
        code = _CODES.get(code.partition("-")[0], code).replace("_", "-")
        languages = self._languages
        same = [one for one in languages if one.casefold() == code.casefold()]
        wanted = code.partition("-")[0].casefold()
        alike = [one for one in languages if one.partition("-")[0].casefold() == wanted]
        return next(iter(same + alike), None)


def _is_missing() -> bool:
    return find_spec("sherpa_onnx") is None


def _stop_if_cancelled(request: SpeechRequest) -> None:
    if request.cancelled():
        raise Cancelled("The line was stopped before it was finished.")
