"""Recordings that become samples: uploaded, checked, and loaded as a voice."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

import soundfile

from studio.audio.analysis import Levels, find_silences, measure_background_tones, measure_levels
from studio.audio.clip import STUDIO_RATE_HZ, Clip, write_wav
from studio.audio.decode import DEFAULT_LIMITS, AudioInfo, DecodeLimits, decode, probe
from studio.audio.guarded_decode import decode_guarded
from studio.audio.repair import LONG_SILENCE_S
from studio.audio.voice_count import find_two_voices
from studio.errors import AudioRejected, BadInput, NotFound, SampleRejected
from studio.storage.disk import hash_file, storage_errors
from studio.voices.speaker import Sample

MIN_SAMPLE_S = 1.0
GOOD_SAMPLE_S = 3.0
MAX_SAMPLE_S = 60.0
"""Seconds of a recording that the voice is made from; the rest is ignored."""

MAX_BACKGROUND_TONES = 0.6
"""Above it, background tones count as music; tests/audio/test_background_music.py: how surely."""

_GOOD_RATE_HZ = 16_000
_MIN_SPEECH_SHARE = 0.4
_MAX_CLIPPED_SHARE = 0.001
_MIN_SPEECH_DB = -38.0
_AUDIBLE_NOISE_DB = -60.0
_MIN_SPEECH_TO_NOISE_DB = 18.0  # speech above the noise
_MANY_SILENCES = 2
# Below it the quietest moments are the sound itself, not noise between words.
_MIN_NOISE_DISTANCE_DB = 3.0


class SampleProblemCode(StrEnum):
    """Kinds of problems, for pages that show an icon with the message."""

    TOO_SHORT = "too_short"
    SHORT = "short"
    LONG = "long"
    LOW_RATE = "low_rate"
    CHANNELS = "channels"
    SILENT = "silent"
    MOSTLY_SILENCE = "mostly_silence"
    CLIPPING = "clipping"
    QUIET = "quiet"
    NOISY = "noisy"
    SILENCES = "silences"
    MUSIC = "music"
    SPEAKERS = "speakers"


@dataclass(frozen=True, slots=True)
class SampleProblem:
    """A problem of a sample; one that is not `fatal` is advice.

    `message` has the figure and what to do, as full sentences.
    """

    code: SampleProblemCode
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class SampleReport:
    """A checked recording; `clip` is the part that is used, mono at the studio's rate."""

    info: AudioInfo | None
    levels: Levels
    problems: tuple[SampleProblem, ...]
    clip: Clip

    @property
    def fatal(self) -> SampleProblem | None:
        """Why the recording can't serve as a sample; None when it can."""
        return next((problem for problem in self.problems if problem.fatal), None)

    def get_usable_clip(self) -> Clip:
        """The clip of a recording that can serve as a sample.

        Raises:
            SampleRejected: It can't; says why.
        """
        if self.fatal:
            raise SampleRejected(self.fatal.message)
        return self.clip


def check_sample(
    path: Path, *, limits: DecodeLimits = DEFAULT_LIMITS, display_name: str | None = None
) -> SampleReport:
    """Decode a recording from anywhere, in a child process, and find its problems as a sample.

    Args:
        path: The recording, in any format `decode` takes.
        limits: What is decoded at all.
        display_name: What messages call the file, where its own name means nothing to a person.
    """
    info, clip = decode_guarded(path, limits=limits, display_name=display_name)
    return check_clip(clip, info)


CountVoices = Callable[[Clip], tuple[float, ...] | None]
"""For how many seconds each voice of a recording speaks, by a model; None where it can't tell."""


def check_clip(
    whole: Clip, info: AudioInfo | None = None, *, count_voices: CountVoices | None = None
) -> SampleReport:
    """Find the problems of a decoded recording as a sample.

    Args:
        whole: All of what may be used; its first `MAX_SAMPLE_S` are.
        info: What the recording's header said; None when its form is no matter any more.
        count_voices: None, or where it can't tell, lets pitch decide.
    """
    clip = Clip(whole.samples[: round(MAX_SAMPLE_S * whole.rate_hz)], whole.rate_hz)
    levels = measure_levels(clip)
    problems = [*_find_problems(info, whole.duration_s, levels, clip)]
    if levels.speech_share:
        problems += _check_speakers(clip, count_voices)
    return SampleReport(info, levels, tuple(problems), clip)


def load_sample(path: Path, *, transcript: str | None = None, speaker: str | None = None) -> Sample:
    """Read a recording as a sample of a voice.

    Args:
        path: The recording, in any format `decode` takes.
        transcript: What it says, when known.
        speaker: Whose sample messages call it; the file's name stands in for it.

    Raises:
        SampleRejected: It is missing, can't be decoded, or has a fatal problem.
    """
    whose = f"The sample of {speaker}" if speaker else f"The sample “{path.name}”"
    if not path.exists():
        raise SampleRejected(f"{whose} can't be found at {path}. Choose a recording again.")
    try:
        report = check_clip(decode(path), probe(path))
        sha256 = hash_file(path)
    except (AudioRejected, OSError) as error:
        raise SampleRejected(f"{whose} can't be used. {error}") from error
    if report.fatal:
        raise SampleRejected(f"{whose} can't be used. {report.fatal.message}")
    return Sample(report.clip, sha256, transcript)


def _find_problems(
    info: AudioInfo | None, duration_s: float, levels: Levels, clip: Clip
) -> Iterator[SampleProblem]:
    yield from _check_length(duration_s)
    if info is not None:
        yield from _check_format(info)
    if levels.speech_share == 0:
        message = (
            f"The recording is silent: its loudest moment has {levels.peak_db:.0f} dB. Check the"
            " microphone and record again."
        )
        yield SampleProblem(SampleProblemCode.SILENT, message, fatal=True)
    else:
        yield from _check_speech(levels)
        yield from _check_background(levels, clip)


def _check_length(duration_s: float) -> Iterator[SampleProblem]:
    if duration_s < MIN_SAMPLE_S:
        message = (
            f"The recording lasts {duration_s:.1f} s; a voice needs {MIN_SAMPLE_S:g} s at least."
            " Record one or two sentences."
        )
        yield SampleProblem(SampleProblemCode.TOO_SHORT, message, fatal=True)
    elif duration_s < GOOD_SAMPLE_S:
        message = f"The recording lasts only {duration_s:.1f} s. 5 to 15 s give a better likeness."
        yield SampleProblem(SampleProblemCode.SHORT, message)
    elif duration_s > MAX_SAMPLE_S:
        message = (
            f"The recording lasts {duration_s:.0f} s. Its first {MAX_SAMPLE_S:g} s are used; cut it"
            " yourself to choose another part."
        )
        yield SampleProblem(SampleProblemCode.LONG, message)


def _check_format(info: AudioInfo) -> Iterator[SampleProblem]:
    if info.rate_hz < _GOOD_RATE_HZ:
        message = (
            f"The recording has {info.rate_hz:,} samples a second, as on the telephone, and sounds"
            f" dull. Record with {_GOOD_RATE_HZ:,} or more."
        )
        yield SampleProblem(SampleProblemCode.LOW_RATE, message)
    if info.channels > 1:
        message = f"The recording has {info.channels} channels. They are mixed into one."
        yield SampleProblem(SampleProblemCode.CHANNELS, message)


def _check_speech(levels: Levels) -> Iterator[SampleProblem]:
    if levels.speech_share < _MIN_SPEECH_SHARE:
        message = (
            f"Only {levels.speech_share:.0%} of the recording is speech, the rest is silence. Cut"
            " the silence away."
        )
        yield SampleProblem(SampleProblemCode.MOSTLY_SILENCE, message)
    if levels.clipped_share > _MAX_CLIPPED_SHARE:
        message = (
            f"The recording is clipping: {levels.clipped_share:.1%} of it is at full scale."
            " Turn the microphone down and record again."
        )
        yield SampleProblem(SampleProblemCode.CLIPPING, message)
    if levels.speech_db < _MIN_SPEECH_DB:
        message = (
            f"The recording is quiet: its speech has {levels.speech_db:.0f} dB; around -20 dB is"
            " good. Move closer to the microphone."
        )
        yield SampleProblem(SampleProblemCode.QUIET, message)


def _check_background(levels: Levels, clip: Clip) -> Iterator[SampleProblem]:
    """Noise, silences that the voice may take over, and music."""
    above_noise_db = levels.speech_db - levels.noise_db
    if (
        _MIN_NOISE_DISTANCE_DB < above_noise_db < _MIN_SPEECH_TO_NOISE_DB
        and levels.noise_db > _AUDIBLE_NOISE_DB
    ):
        message = (
            f"The recording is noisy: speech is only {above_noise_db:.0f} dB louder than the"
            " background. Record in a quieter place."
        )
        yield SampleProblem(SampleProblemCode.NOISY, message)
    number = len(find_silences(clip, min_s=LONG_SILENCE_S))
    if number >= _MANY_SILENCES:
        message = (
            f"The recording holds {number} silences longer than {LONG_SILENCE_S:g} s, which"
            " the voice may take over. Clean up cuts them short."
        )
        yield SampleProblem(SampleProblemCode.SILENCES, message)
    if measure_background_tones(clip) > MAX_BACKGROUND_TONES:
        message = (
            "There seem to be notes in the background or a voice that sings: music would be spoken"
            " along. Take a part without it; if you hear none, go on."
        )
        yield SampleProblem(SampleProblemCode.MUSIC, message)


def _check_speakers(clip: Clip, count_voices: CountVoices | None) -> Iterator[SampleProblem]:
    counted = count_voices(clip) if count_voices else None
    if counted is not None:
        if len(counted) > 1:
            lengths = " and ".join(f"{length_s:.0f} s" for length_s in counted)
            message = (
                f"Two people are speaking in it, for {lengths}. Choose a part in which one of them"
                " speaks."
            )
            yield SampleProblem(SampleProblemCode.SPEAKERS, message)
        return
    voices = find_two_voices(clip)
    if voices is None:
        return
    low, high = (f"{one.speech_s:.0f} s near {one.pitch_hz:.0f} Hz" for one in voices)
    message = (
        f"Two people may be speaking in it: {low}, {high}. Only their pitch was compared, which"
        " can take one lively voice for two. Choose a part in which one of them speaks."
    )
    yield SampleProblem(SampleProblemCode.SPEAKERS, message)


MAX_UPLOADS = 20
"""Recordings kept at once; the oldest makes room for the next."""

MAX_UPLOAD_NAME_CHARS = 200

_ORPHANED_AFTER_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class SampleUpload:
    """A decoded recording; `name` is what the person's file was called."""

    upload_id: str
    name: str
    info: AudioInfo
    duration_s: float


class SampleUploads:
    """Recordings in a folder of their own; safe from many threads.

    Other processes may use the same folder: what is older than a day there is what one of them
    left behind.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        # Guards the table; files are named by ids that never come again.
        self._lock = threading.Lock()
        self._kept: dict[str, SampleUpload] = {}

    @contextmanager
    def open_writer(self, *, max_bytes: int = DEFAULT_LIMITS.max_bytes) -> Iterator[UploadWriter]:
        """A file into which a body is written as it arrives; deleted when the block ends."""
        path = self._root / f"{secrets.token_hex(8)}.part"
        with storage_errors(path):
            self._root.mkdir(parents=True, exist_ok=True)
            self._sweep()
            try:
                with path.open("xb") as file:
                    yield UploadWriter(path, file, max_bytes)
            finally:
                path.unlink(missing_ok=True)

    def add(self, path: Path, name: str) -> SampleUpload:
        """Decode a recording and store it; the file itself isn't needed afterwards.

        Args:
            path: In any format `decode` takes.
            name: What messages call it.
        """
        name = name[:MAX_UPLOAD_NAME_CHARS] or "recording"
        info, clip = decode_guarded(path, display_name=name)
        upload = SampleUpload(secrets.token_hex(8), name, info, clip.duration_s)
        self._root.mkdir(parents=True, exist_ok=True)
        write_wav(self._path(upload.upload_id), clip)
        with self._lock:
            self._kept[upload.upload_id] = upload
            old = list(self._kept)[:-MAX_UPLOADS]
        for upload_id in old:
            self.drop(upload_id)
        return upload

    def get(self, upload_id: str) -> SampleUpload:
        """A kept recording.

        Raises:
            NotFound: It was taken, dropped, or made room for newer ones.
        """
        with self._lock:
            upload = self._kept.get(upload_id)
        if upload is None:
            raise NotFound("This recording isn't here any more. Choose it again.")
        return upload

    def find_path(self, upload_id: str) -> Path:
        """The file of a kept recording: a WAV as `write_wav` makes it."""
        return self._path(self.get(upload_id).upload_id)

    def read_part(self, upload_id: str, start_s: float = 0.0, end_s: float | None = None) -> Clip:
        """A recording from `start_s` to `end_s`; None is its end.

        Raises:
            NotFound: As for `get`.
            BadInput: Nothing lies between the two.
        """
        upload = self.get(upload_id)
        end_s = upload.duration_s if end_s is None else min(end_s, upload.duration_s)
        first, after = round(max(0.0, start_s) * STUDIO_RATE_HZ), round(end_s * STUDIO_RATE_HZ)
        if after <= first:
            raise BadInput("The chosen part is empty. Move its end behind its start.")
        try:
            samples, _ = soundfile.read(
                self._path(upload_id), start=first, stop=after, dtype="float32"
            )
        except (OSError, RuntimeError) as error:
            raise NotFound("This recording isn't here any more. Choose it again.") from error
        return Clip(samples)

    def drop(self, upload_id: str) -> None:
        """Delete a recording; no error if it doesn't exist."""
        with self._lock:
            known = self._kept.pop(upload_id, None)
        if known is not None:
            self._path(upload_id).unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Delete what an ended process left behind."""
        with self._lock:
            known = {f"{upload_id}.wav" for upload_id in self._kept}
        for path in self._root.iterdir():
            with suppress(FileNotFoundError):
                if (
                    path.name not in known
                    and time.time() - path.stat().st_mtime > _ORPHANED_AFTER_S
                ):
                    path.unlink()

    def _path(self, upload_id: str) -> Path:
        return self._root / f"{upload_id}.wav"


@dataclass(slots=True)
class UploadWriter:
    """Writes a body to disk, within a limit."""

    path: Path
    file: BinaryIO
    max_bytes: int
    size_bytes: int = 0

    def write(self, chunk: bytes) -> None:
        """Add a piece.

        Raises:
            AudioRejected: The whole is larger than is taken.
        """
        self.size_bytes += len(chunk)
        if self.size_bytes > self.max_bytes:
            raise AudioRejected(
                f"The file has more than {self.max_bytes / 1e6:g} MB, the most that is taken. Cut"
                " out the part that is needed, or save it as flac or mp3."
            )
        self.file.write(chunk)

    def finish(self) -> Path:
        """Flush the file; returns its path."""
        self.file.flush()
        return self.path
