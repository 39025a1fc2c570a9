"""Studio: the use cases that page, HTTP API and command line share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from studio.audio.clip import write_wav
from studio.audio.file_tags import find_common_language
from studio.audio.kept_loudness import LoudnessStore
from studio.audio.scene_file import Scene
from studio.backends.base import Backend, ManagesWeights, canonical_name
from studio.backends.hub.weights import lacks_best
from studio.backends.options import OWN_VOICES
from studio.backends.registry import first_voices
from studio.backends.sherpa.own_voices import OWN_SUFFIXES, add_voices, remove_voice
from studio.backends.sherpa.public_voices import VoiceDownload, read_public_voices
from studio.dialog.model import Dialog
from studio.engine.engine import Engine, SpeechEngine
from studio.engine.event_log import StateChange
from studio.engine.job import Job
from studio.engine.model_manager import EvictionPolicy
from studio.engine.model_pool import ModelPool
from studio.engine.renderer import SaveClip
from studio.engine.speech_speed import SpeechSpeeds
from studio.engine.weight_downloads import WeightDownloads
from studio.errors import ModelInUse
from studio.hearing.hearing_models import HearingModels
from studio.hearing.model_catalogue import HEARING_MODELS, HearingModel
from studio.hearing.word_aligner import WordAligner
from studio.project.projects import Projects
from studio.quality.checks import check_take
from studio.services.auditions import Auditions
from studio.services.line_patches import LinePatches
from studio.services.line_recordings import LineRecordings
from studio.services.pending_takes import PendingTakes
from studio.services.previews import VoicePreviews
from studio.services.proposals import Proposals
from studio.services.render_jobs import RenderJobs, RenderOptions
from studio.services.sample_listening import SampleListener
from studio.services.speed_probe import SpeedProbe
from studio.services.spoken_files import SpokenFiles
from studio.services.voice_library import VoiceLibrary
from studio.storage.disk import storage_errors
from studio.storage.workspace import DiskQuota, ensure_writable
from studio.voices.library import SpeakerLibrary
from studio.voices.samples import SampleUploads

__all__ = ["RenderOptions", "Studio", "StudioOptions"]


@dataclass(frozen=True, slots=True)
class StudioOptions:
    """Options that the composition root reads from the settings and the command line.

    Attributes:
        workspace: Folder of speakers, projects and renders.
        backend_name: The backend of a render that doesn't name one.
        backend_names: All backends, the best first.
        backend_reason: Why `auto` chose this one, and how to get a better one.
        voice_names: Voices by the names that programs send, in small letters.
        any_voice: Whether programs may send other names, for the engine's own voice.
        recognisers: The models that listen: those that check the words of takes where they are
            installed, the best first, and others.
    """

    workspace: Path
    backend_name: str
    backend_names: tuple[str, ...] = ("draft",)
    backend_reason: str | None = None
    voice_names: Mapping[str, str] = field(default_factory=dict)
    any_voice: bool = False
    recognisers: Mapping[str, HearingModel] = field(default_factory=lambda: HEARING_MODELS)


class Studio:
    """One workspace on an engine. Safe from any thread but the engine's own.

    Attributes:
        backend_name: The backend of a render that doesn't name one.
        backend_reason: Why `auto` chose it, and how to get a better one; None if a person chose it.
        aligner: Times the words of takes and renders.
        pending_takes: Takes that somebody waits for, and may cancel.
        spoken_files: What was spoken for other programs, to be fetched.
        proposals: Edits that programs propose.
        recognisers: The models that listen, to words, voices and noise; None where nothing does.
        public_voices: Downloads of Piper voices into `own_voices`.
        kept_loudness: What was measured of scenes.
    """

    def __init__(
        self,
        options: StudioOptions,
        engine: SpeechEngine,
        disk_quota: DiskQuota | None = None,
        *,
        aligner: WordAligner | None = None,
        recognisers: HearingModels | None = None,
    ) -> None:
        """Open a workspace; `start` starts the engine.

        Args:
            options: The workspace and the backends.
            engine: Renders; may be shared by several studios.
            disk_quota: Limits the workspace's size; None for no limit.
            aligner: Times words, for several studios; None for one of its own.
            recognisers: Check the words of takes, and take noise out of samples; None, as for
                visitors, does neither.
        """
        self.options = options
        self.engine = engine
        self.disk_quota = disk_quota or DiskQuota(options.workspace, None)
        self.speakers = SpeakerLibrary(options.workspace / "speakers")
        self.speakers.watch(lambda: engine.changes.append(StateChange.SPEAKERS))
        self._owns_aligner = aligner is None
        self.aligner = aligner or WordAligner()
        self.recognisers = recognisers
        self.kept_loudness = LoudnessStore(options.workspace / "loudness.json")
        self._jobs = RenderJobs(options.workspace / "renders", engine, self.speakers)
        self.previews = VoicePreviews(self.speakers, engine)
        self.auditions = Auditions(self.speakers, self.previews)
        self._speed_probe = SpeedProbe(self.speakers, engine)
        self.pending_takes = PendingTakes()
        self.patches = LinePatches(
            self.previews,
            self.aligner.align_words,
            lambda clip, said: engine.renderer.check(clip, said),  # which may be replaced later
            self.pending_takes,
        )
        self.recordings = LineRecordings(engine, self.pending_takes)
        self.projects = Projects(
            options.workspace / "projects",
            engine,
            self.speakers,
            lambda: self.backend_name,
            aligner=self.aligner,
            recognisers=recognisers,
        )
        uploads = SampleUploads(options.workspace / "uploads")
        self.listener = SampleListener(recognisers)
        self.own_voices = options.workspace / OWN_VOICES
        create: Any = partial(VoiceDownload, self.own_voices)
        pool = ModelPool(create, EvictionPolicy())
        self.public_voices = WeightDownloads(pool, engine.changes.append)
        self.spoken_files = SpokenFiles(options.workspace, self.disk_quota)
        self.proposals = Proposals(lambda: engine.changes.append(StateChange.PROPOSALS))
        self.voices = VoiceLibrary(
            self.speakers,
            uploads,
            find_colour=self.projects.find_colour,
            denoise=recognisers.denoise if recognisers and recognisers.denoises else None,
            embed=recognisers.embed if recognisers else None,
        )
        self.backend_name = options.backend_name
        self.backend_reason = options.backend_reason

    @classmethod
    def open(
        cls,
        options: StudioOptions,
        create_backend: Callable[[str], Backend],
        *,
        eviction: EvictionPolicy | None = None,
        max_concurrency: int = 3,
        save: SaveClip = write_wav,
        speeds: SpeechSpeeds | None = None,
    ) -> Studio:
        """Open a studio with an engine of its own.

        Args:
            options: The workspace and the backends.
            create_backend: Makes a backend by name; raises `SettingError` for an unknown one.
            eviction: When idle models are unloaded.
            max_concurrency: Segments in flight on a backend without slots of its own.
            save: Writes a clip to a file.
            speeds: How fast each backend speaks; None measures for this process only.
        """
        eviction = eviction or EvictionPolicy()
        engine = Engine(
            create_backend,
            eviction,
            conditioning_folder=ensure_writable(options.workspace) / "conditioning",
            max_concurrency=max_concurrency,
            save=save,
            speeds=speeds,
        )
        engine.downloads.backend_names = options.backend_names
        recognisers = HearingModels(
            eviction, catalogue=options.recognisers, notify=engine.changes.append
        )
        return cls(options, engine, recognisers=recognisers)

    def compare_takes(self) -> None:
        """Check takes by their speakers, too."""
        if self.recognisers is not None:
            self.engine.renderer.check = partial(check_take, embed=self.recognisers.embed)

    def start(self) -> None:
        """Start the engine."""
        self.engine.start()

    def close(self) -> None:
        """Close the projects, then the engine."""
        if self._owns_aligner:
            self.aligner.close()
        self.public_voices.close()
        self.projects.close()
        self.engine.close()

    def __enter__(self) -> Studio:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def render(self, dialog: Dialog, options: RenderOptions | None = None) -> Job:
        """Start to render a dialog, as `RenderJobs.begin`."""
        return self._jobs.begin(dialog, options or RenderOptions(), self.backend_name)

    @property
    def backend(self) -> Backend:
        """The backend of what doesn't name one."""
        return self.engine.models.get_manager(self.backend_name).backend

    def backends(self) -> dict[str, Backend]:
        """All backends by name, the best first, even those that can't run here."""
        return {
            name: self.engine.models.get_manager(name).backend
            for name in self.options.backend_names
        }

    def describe_scene(self, scene: Scene, title: str) -> Scene:
        """A scene as its files describe it: a title, its engines by their names for people.

        Where no line and no setting names a language, it is the one that the engine took the texts
        for.
        """
        backends = self.backends()
        used = [backends[name] for name in scene.tags.engines if name in backends]
        titles = {name: one.title for name, one in backends.items()}
        described = scene.described(title, titles, {one.name: one.revision for one in used})
        if described.tags.language is not None or not used:
            return described
        texts = [caption.text for caption in scene.captions.values() if caption.text]
        language = _find_language(used[0], texts)
        return replace(described, tags=replace(described.tags, language=language))

    def load_model(self, *, measure: bool = True) -> None:
        """Load the voice engine's model now, and measure its speed if it hasn't spoken here yet.

        Args:
            measure: False where somebody may soon want to hear a line, for which the lines of the
                measurement would be in the way; that line measures as well.
        """
        self.engine.load(self.backend_name)
        if measure:
            self._speed_probe.start(self.backend_name)

    def unload_model(self) -> None:
        """Unload the voice engine's model now."""
        self._speed_probe.stop()
        self.engine.unload(self.backend_name)

    def download_voice(self, name: str, *, choose: bool = False) -> None:
        """Start or resume the download of a backend, a model that listens or a public voice.

        Args:
            name: A recogniser checks the takes of open projects once it is here.
            choose: Whether a backend speaks then.
        """
        downloads = self.downloads_with(name)
        then: Callable[[], None] | None = None
        if downloads is self.engine.downloads:
            self.engine.check_choice(name)
            then = partial(self.choose_backend, name) if choose else None
        elif downloads is not self.public_voices:
            then = self.projects.check_words
        downloads.start(name, then)

    def list_first_voices(self) -> list[str]:
        """The voices to offer to somebody whom `auto` gave the draft voice, the best fit first."""
        if self.backend_reason is None or self.backend_name != "draft":
            return []
        return list(first_voices(self.backends().values(), self.engine.speeds.device))

    def bring_voice(self) -> None:
        """Download the first of them in the background; it speaks once it is here.

        Where a natural voice is here with less than its best files, those are looked for.
        """
        for name in self.list_first_voices()[:1]:
            self.engine.downloads.start(name, partial(self._take_over, name))
        sources = self.backend.weight_sources if isinstance(self.backend, ManagesWeights) else ()
        if any(map(lacks_best, sources)):
            self.engine.downloads.start(self.backend_name, None)

    def _take_over(self, name: str) -> None:
        if self.backend_reason is not None:  # nobody has chosen one meanwhile
            self.choose_backend(name)

    def downloads_with(self, name: str) -> WeightDownloads:
        """The downloads to which that of a backend, a model that listens or a voice belongs."""
        if recognisers := self._recognisers_with(name):
            return recognisers.downloads
        return self.public_voices if name in read_public_voices() else self.engine.downloads

    def remove_voice(self, name: str) -> None:
        """Unload a backend or a model that listens, and delete its weights; or an own voice's file.

        Raises:
            ModelInUse: It is the studio's voice engine, or a render uses it.
            Conflict: It is being downloaded.
        """
        if recognisers := self._recognisers_with(name):
            recognisers.remove(name)
            return
        if Path(name).suffix in OWN_SUFFIXES:
            remove_voice(name, self.own_voices)
            self.engine.retire("kokoro")
            self.public_voices.tell_changed()
            return
        backend = self.engine.models.get_manager(name).backend
        if backend.name == self.backend_name:
            raise ModelInUse(
                f"{backend.title} is the voice engine now. Choose another one, then remove it."
            )
        self._speed_probe.stop()
        self.engine.remove_weights(backend.name)

    def add_own_voices(self, files: Mapping[str, BinaryIO]) -> list[str]:
        """Add voices by the contents of their files, as `add_voices`."""
        uploads = ensure_writable(self.options.workspace / "uploads")
        with storage_errors(self.own_voices), TemporaryDirectory(dir=uploads) as folder:
            for name, content in files.items():
                with (Path(folder) / name).open("xb") as file:
                    copyfileobj(content, file, 1 << 20)
            presets = add_voices([Path(folder) / name for name in files], self.own_voices)
        self.engine.retire("kokoro")  # which reads its styles when it is loaded
        self.public_voices.tell_changed()
        return presets

    def set_idle_timeout(self, idle_timeout_s: float) -> None:
        """Change after how many idle seconds voices and what listens are unloaded; 0 keeps them."""
        self.engine.set_idle_timeout(idle_timeout_s)
        if self.recognisers is not None:
            self.recognisers.models.set_idle_timeout(idle_timeout_s)

    def choose_backend(self, name: str) -> None:
        """Change the backend; the previous one's model is unloaded unless it is in use."""
        name = canonical_name(name)
        self.engine.check_choice(name)
        previous, self.backend_name, self.backend_reason = self.backend_name, name, None
        self.engine.changes.append(StateChange.MODELS)
        if previous != name:
            self._speed_probe.stop()
            self.engine.retire(previous)

    def _recognisers_with(self, name: str) -> HearingModels | None:
        """The models that listen, if one has this name; backends are called otherwise."""
        found = self.recognisers
        return found if found is not None and name in found.catalogue else None


def _find_language(backend: Backend, texts: Sequence[str]) -> str | None:
    """The language in which an engine speaks texts that nobody gave one for, if that is known."""
    can = backend.capabilities
    if len(can.languages) == 1:
        return next(iter(can.languages))
    return find_common_language(map(can.guess, texts)) if can.guess else None
