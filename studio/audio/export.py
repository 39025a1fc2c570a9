"""Export of a scene: one audio file, or a zip of its segments."""

from __future__ import annotations

import io
import json
import shutil
import tempfile
import unicodedata
import wave
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from string import Formatter
from typing import BinaryIO

import numpy as np
import regex

from studio.audio.clip import STUDIO_RATE_HZ, Samples, resample, to_pcm16
from studio.audio.encode import (
    STUDIO_MP3,
    Mp3Settings,
    encode_blocks,
    encode_tagged,
    mp3_settings,
    parse_format,
)
from studio.audio.file_tags import (
    FileTags,
    append_to_wav,
    encode_wav_tags,
    write_id3,
    write_riff_head,
)
from studio.audio.formats import AudioFormat
from studio.audio.mastering import NO_MASTERING, Master, Mixdown, open_mixdown
from studio.audio.timeline import FailedPart, Timeline, TimelineEntry
from studio.dialog.directions import find_said
from studio.dialog.model import ParamValue
from studio.dialog.planning import FILE_NAME, LINE_ID
from studio.errors import BadInput, DiskFull
from studio.storage.disk import open_atomic, storage_errors
from studio.storage.zip_members import ZipWriter, build_zip_info

_MAX_WAV_BYTES = 0xFFFF_FF00  # its header counts in 32 bits


def _add_file(archive: zipfile.ZipFile, name: str, source: BinaryIO, chunks: bytes = b"") -> None:
    """Copy a file from its beginning, stored as it is; a WAV with these chunks at its end."""
    info = _build_public_info(name)
    # Known beforehand, so a file above 2 GB gets large fields.
    info.file_size = source.seek(0, 2) + len(chunks)
    source.seek(0)
    with archive.open(info, "w") as target:
        if chunks:
            source.seek(target.write(write_riff_head(info.file_size)))
        shutil.copyfileobj(source, target, 1 << 20)
        target.write(chunks)


def check_wav_size(size_bytes: int) -> None:
    """Check that a WAV file can hold so many bytes.

    Raises:
        BadInput: It can't.
    """
    if size_bytes > _MAX_WAV_BYTES:
        raise BadInput("The scene is too long for a WAV file. Save it as FLAC, or in parts.")


def add_wav(
    archive: zipfile.ZipFile,
    name: str,
    pieces: Iterable[bytes],
    n_samples: int,
    chunks: bytes = b"",
    *,
    deflated: bool = False,
) -> None:
    """Write mono 16-bit WAV at the studio's rate.

    Args:
        archive: The zip.
        name: Of the member.
        pieces: s16le, together `n_samples`.
        n_samples: Known beforehand, since nothing can be completed in a zip.
        chunks: Behind the sound.
        deflated: Worth its time where most of it is silence.

    Raises:
        BadInput: It is longer than a WAV can be.
    """
    check_wav_size(2 * n_samples)
    info = _build_public_info(name)
    info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    head = io.BytesIO()
    with wave.open(head, "wb") as sound:
        sound.setparams((1, 2, STUDIO_RATE_HZ, n_samples, "NONE", ""))
        sound.writeframesraw(b"")
        header = head.getvalue()
    info.file_size = len(header) + 2 * n_samples + len(chunks)
    begin = write_riff_head(info.file_size)
    with archive.open(info, "w") as target:
        for piece in chain((begin, header[len(begin) :]), pieces, (chunks,)):
            target.write(piece)


def _build_public_info(name: str) -> zipfile.ZipInfo:
    info = build_zip_info(name)
    info.external_attr = 0o644 << 16
    return info


MANIFEST_VERSION = 1

_SCENE_FILE = "scene.wav"
"""The name of the joined audio inside a zip."""

MAX_SILENCE_S = 24 * 3600.0
"""More pauses are a mistake or malice: a few kilobytes of script can ask for weeks of them."""

_MAX_LABEL_CHARS = 40  # of at most 4 bytes: with number and suffix below every system's limit

OnProgress = Callable[[float], None]
"""Called with the share written so far, 0 to 1; an error it raises ends the export cleanly."""


@dataclass(frozen=True, slots=True)
class Caption:
    """What the manifest says of a segment besides its position.

    Attributes:
        line_number: 1-based place in the script, when known.
        line_id: Of the project's line, when it is one.
        speaker: None for a silence or reused audio.
        text: What is said, None likewise.
        issues: What may not be right about its sound, in sentences.
        at_s: When each step of its render was reached, by name, in seconds since the render
            started; empty when unknown.
        number: As the page numbers its line, without pauses, headings and notes; None where there
            is no page, so that the lines of the timeline are counted.
        written: The whole line's text, of which `text` may be a part, with pronunciations.
        is_whole: Whether `text` is said of that whole line.
        params: What the line sets for itself, such as its id and the name of its file.
        engine: What spoke it: its name, in a described scene for people; empty for a recording.
        model: The engine's model and revision; empty where another one may have spoken.
        voice: Whose voice that was, likewise.
    """

    line_number: int | None = None
    speaker: str | None = None
    text: str | None = None
    issues: tuple[str, ...] = ()
    at_s: Mapping[str, float] = field(default_factory=dict)
    line_id: str | None = None
    number: int | None = None
    written: str | None = None
    is_whole: bool = False
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    engine: str = ""
    model: str = ""
    voice: str = ""

    @property
    def own_id(self) -> str:
        """The line's id in another program; empty for none."""
        return str(self.params.get(LINE_ID, ""))

    @property
    def shown(self) -> str:
        """Its text as it is written, so far as that is known: of a whole line."""
        return (self.written if self.is_whole else None) or self.text or ""

    @property
    def said(self) -> str:
        """What is heard of it, in written words: no pauses, sounds and stage directions."""
        return find_said(self.shown).text


NO_CAPTION = Caption()

FILE_NAMES = "{segment}-{speaker}"
"""How the files of lines are named by default."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """How a file is encoded and what it says of itself.

    Attributes:
        tags: What it says of itself.
        mp3: How an MP3 is encoded where no bit rate is given.
        kbps: Bit rate of MP3, AAC and Opus; None for the usual one.
        names: How the files of lines in a zip are named, with the fields of `check_names`.
        documents: Further files of a zip by name, such as captions.
        wav_tags: Whether the scene's WAV says it, too.
    """

    tags: FileTags = field(default_factory=FileTags)
    mp3: Mp3Settings = STUDIO_MP3
    kbps: int | None = None
    names: str = FILE_NAMES
    documents: Mapping[str, bytes] = field(default_factory=dict)
    wav_tags: bool = True

    def encode_wav_tags(self) -> bytes:
        """What stands behind the sound of the scene's WAV."""
        return encode_wav_tags(self.tags, STUDIO_RATE_HZ) if self.wav_tags else b""

    def encode_part_tags(self, *captions: Caption) -> bytes:
        """The same of the WAV of what one speaker says."""
        engines = tuple(dict.fromkeys(one.engine for one in captions if one.engine))
        if not engines or not self.wav_tags:
            return b""
        return _encode_part_tags(self.tags.title, captions[0].speaker or "", engines)

    def rate_hz(self, audio_format: AudioFormat) -> int:
        """The sample rate of a file."""
        if audio_format is AudioFormat.MP3:
            return self.mp3_settings.rate_hz
        is_large = audio_format.encoding.codec == "aac" and (self.kbps or 0) > 128
        return 44_100 if is_large else STUDIO_RATE_HZ

    @property
    def mp3_settings(self) -> Mp3Settings:
        """How an MP3 is encoded."""
        return self.mp3 if self.kbps is None else mp3_settings(self.kbps)


@lru_cache(maxsize=1_000)  # a speaker's lines have the same
def _encode_part_tags(title: str, speaker: str, engines: tuple[str, ...]) -> bytes:
    return encode_wav_tags(FileTags(title, (speaker,), engines=engines), STUDIO_RATE_HZ)


NO_FORM = FileForm()


def export_audio(
    path: Path,
    timeline: Timeline,
    *,
    master: Master = NO_MASTERING,
    form: FileForm = NO_FORM,
    on_progress: OnProgress | None = None,
) -> None:
    """Write the joined audio; the suffix chooses the format.

    It is stereo where any line is panned, else mono. The file is whole or not there; an earlier one
    stays as it was after any error.

    Raises:
        BadInput: The suffix is another one, or the timeline holds no audio, or pauses without end.
        StorageFailed: A take can't be read, or the file can't be written, or has no room.
    """
    audio_format, channels = parse_format(path), timeline.n_channels
    check_size(timeline, path, channels * audio_format.encoding.least_bytes_per_sample)
    chunks = form.encode_wav_tags() if audio_format is AudioFormat.WAV else b""
    if audio_format is AudioFormat.WAV:
        check_wav_size(2 * channels * timeline.n_samples + len(chunks))
    blocks = report_progress(master.blocks(timeline), timeline, on_progress)
    rate_hz = form.rate_hz(audio_format)
    if rate_hz != STUDIO_RATE_HZ:
        blocks = resample(blocks, STUDIO_RATE_HZ, rate_hz)
    with open_atomic(path) as file:
        if audio_format is AudioFormat.WAV:
            _write_wav(file, blocks, chunks)
        elif audio_format is AudioFormat.MP3:
            mp3 = form.mp3_settings
            if master != NO_MASTERING:
                scale = np.float32(mp3.scale)
                blocks = (block / scale for block in blocks)
            write_id3(file, form.tags)
            encode_blocks(
                file, blocks, audio_format, rate_hz=rate_hz, mp3_compression=mp3.compression
            )
        else:
            encode_tagged(file, blocks, audio_format, form.tags, rate_hz=rate_hz, kbps=form.kbps)


def export_zip(
    path: Path,
    timeline: Timeline,
    captions: Mapping[int, Caption],
    *,
    master: Master = NO_MASTERING,
    form: FileForm = NO_FORM,
    on_progress: OnProgress | None = None,
) -> None:
    """Write a zip: a WAV for every take, the joined audio as `scene.wav`, and `manifest.json`.

    File names are made of letters and digits, so they are safe on every system. Silences are in the
    joined audio and the manifest only. Memory holds one block. Takes are copied as they are; where
    the scene is mastered, they are cut out of it. They are mono, and the joined audio is as that of
    `export_audio`.

    Args:
        path: The zip; whole or not there, as in `export_audio`.
        timeline: What is exported.
        captions: By `segment_idx`, for taken and skipped segments alike.
        master: What becomes of the level.
        form: Its chapters, and how the files of lines are named.
        on_progress: Told while the joined audio is written, which takes nearly all the time.

    Raises:
        BadInput: The timeline holds no audio, or too much for a WAV, or pauses without end.
        StorageFailed: A take can't be read, or there is no room, or the zip can't be written.
    """
    channels = timeline.n_channels
    copies = (2 if master == NO_MASTERING else 4) + 2 * (channels - 1)
    check_size(timeline, path, copies * AudioFormat.WAV.encoding.least_bytes_per_sample)
    chunks = form.encode_wav_tags()
    check_wav_size(2 * channels * timeline.n_samples + len(chunks))
    named = name_files(timeline, captions, form.names)
    part_tags = {idx: form.encode_part_tags(one) for idx, one in captions.items()}
    with open_atomic(path) as file, ZipWriter(file) as archive:
        add_joined = partial(_add_joined, archive, path.parent, chunks)
        if master == NO_MASTERING:
            add_joined(report_progress(timeline.blocks(), timeline, on_progress))
            _add_takes(archive, timeline, named, part_tags)
        else:
            first = scale_progress(on_progress, 0.0, 1 / channels)
            with open_mixdown(
                timeline, master, path.parent, lambda it: report_progress(it, timeline, first)
            ) as mix:
                add_joined(_read_joined(mix, timeline, master, on_progress))
                for entry in iter_audible(timeline):
                    part = mix.part(entry), entry.n_samples, part_tags.get(entry.segment_idx, b"")
                    add_wav(archive, named[entry.segment_idx], *part)
        manifest = _build_manifest(timeline, captions, named)
        if notices := describe_names(timeline, captions, form.names):
            manifest["notices"] = notices
        _add_json(archive, "manifest.json", manifest)
        add_documents(archive, form)


def iter_audible(timeline: Timeline) -> Iterator[TimelineEntry]:
    """The entries that aren't silence."""
    return (entry for entry in timeline.entries if entry.source is not None)


def check_silence(silence_s: float) -> None:
    """Check that the pauses of a scene aren't absurdly long.

    Raises:
        BadInput: They are more than `MAX_SILENCE_S` together.
    """
    if silence_s > MAX_SILENCE_S:
        raise BadInput(
            f"The pauses last {silence_s / 3600:,.0f} hours; {MAX_SILENCE_S / 3600:.0f} are the "
            "most. Shorten them."
        )


def check_size(timeline: Timeline, path: Path, bytes_a_sample: float) -> None:
    """Check that there is audio to write, that it isn't too long, and that it fits on the disk."""
    if timeline.n_samples == 0:
        raise BadInput("There is no audio to save yet. Render at least one line first.")
    check_silence(timeline.silence_s)
    size_bytes = timeline.n_samples * bytes_a_sample
    with storage_errors(path):
        free_bytes = shutil.disk_usage(path.parent).free
    if size_bytes > free_bytes:
        raise DiskFull(
            f"The audio takes {max(1, size_bytes / 1e6):,.0f} MB and the disk has "
            f"{free_bytes / 1e6:,.0f} MB left. Free some space, then save it again."
        )


def report_progress(
    blocks: Iterable[Samples],
    timeline: Timeline,
    on_progress: OnProgress | None,
    *,
    rate_hz: int = STUDIO_RATE_HZ,
) -> Iterator[Samples]:
    """Yield a timeline's blocks, resampled to `rate_hz`, and report the progress."""
    whole = timeline.n_samples * rate_hz / STUDIO_RATE_HZ
    done = 0
    for block in blocks:
        yield block
        done += len(block)
        if on_progress is not None:
            on_progress(min(1.0, done / whole))


def scale_progress(on_progress: OnProgress | None, begin: float, end: float) -> OnProgress | None:
    """Where one pass of several reports its progress, which is a part of the whole's."""
    if on_progress is None:
        return None
    return lambda share: on_progress(begin + (end - begin) * share)


def _write_wav(file: BinaryIO, blocks: Iterable[Samples], chunks: bytes) -> None:
    encode_blocks(file, blocks, AudioFormat.WAV)
    if chunks:
        append_to_wav(file, chunks)


def _add_joined(
    archive: zipfile.ZipFile, folder: Path, chunks: bytes, blocks: Iterable[Samples]
) -> None:
    with tempfile.TemporaryFile(dir=folder) as joined:
        _write_wav(joined, blocks, chunks)
        _add_file(archive, _SCENE_FILE, joined)


def _read_joined(
    mix: Mixdown, timeline: Timeline, master: Master, on_progress: OnProgress | None
) -> Iterable[Samples]:
    """The mastered scene; its lines are cut out of the mixdown, which is mono."""
    if timeline.n_channels == 1:
        return mix.blocks()
    second = scale_progress(on_progress, 0.5, 1.0)
    return report_progress(master.blocks(timeline), timeline, second)


def _add_takes(
    archive: zipfile.ZipFile,
    timeline: Timeline,
    named: Mapping[int, str],
    part_tags: Mapping[int, bytes],
) -> None:
    for entry in iter_audible(timeline):
        assert entry.source is not None
        name, chunks = named[entry.segment_idx], part_tags.get(entry.segment_idx, b"")
        if entry.gain_db or entry.pace != 1:
            pieces = (to_pcm16(block).tobytes() for block in timeline.read(entry))
            add_wav(archive, name, pieces, entry.n_samples, chunks)
            continue
        with entry.source.open("rb") as take:
            _add_file(archive, name, take, chunks)


def _add_json(archive: zipfile.ZipFile, name: str, content: object) -> None:
    written = json.dumps(content, ensure_ascii=False, indent=2)
    archive.writestr(name, written, zipfile.ZIP_DEFLATED)


_MAX_WORDS = 6
_NAME_FIELDS = ("number", "segment", "id", "file", "speaker", "words")
_MAX_PART_BYTES = 200
_FOLDER = regex.compile(r"[/\\]")
_UNSAFE = regex.compile(r"""[<>:"|?*\p{C}]""")
_SUFFIX = regex.compile(r"\.(?:wav|wave|aiff?|flac|mp3|og[ga]|opus|m4a|aac|wem)$", regex.IGNORECASE)
_DEVICE = regex.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?![^.])", regex.IGNORECASE)
_MAX_NOTICES = 10


def check_names(pattern: str) -> str:
    """Check a pattern for the names of files, which is returned.

    `{number}` is the line's number as the page has it, without the pauses, and `{segment}` that
    with them; `{id}` is the line's id in another program, without one that in the project or its
    number, `{file}` the name of its file there, which may have folders, without one its id or
    number and speaker; `{speaker}` is its speaker, `{words}` its first words.

    Raises:
        BadInput: It has other fields, or none that tells lines apart.
    """
    try:
        fields = {name for _, name, how, to in Formatter().parse(pattern) if name is not None}
        is_plain = all(not how and not to for _, _, how, to in Formatter().parse(pattern))
    except ValueError:
        fields, is_plain = set(), False
    if not is_plain or not fields <= set(_NAME_FIELDS) or fields <= {"speaker", "words"}:
        raise BadInput(
            "The files' names are made of {number}, {segment}, {id}, {file}, {speaker} and "
            f"{{words}}, with one of the first four among them; “{pattern[:60]}” can't be used."
        )
    return pattern


def name_files(
    timeline: Timeline, captions: Mapping[int, Caption], pattern: str = FILE_NAMES
) -> dict[int, str]:
    """The name of each line's file, by `segment_idx`: a path below the folder it is put into."""
    return {idx: name for idx, name, _ in _iter_names(timeline, captions, pattern)}


def describe_names(
    timeline: Timeline, captions: Mapping[int, Caption], pattern: str
) -> tuple[str, ...]:
    """Notices of files that are named otherwise, as their names are taken."""
    notices = [
        f"Two files would be “{wanted}”; one is saved as “{name}”."
        for _, name, wanted in _iter_names(timeline, captions, pattern)
        if name != wanted
    ]
    more = len(notices) - _MAX_NOTICES
    further = [f"So are {more} further files."] if more > 0 else []
    return (*notices[:_MAX_NOTICES], *further)


def _iter_names(
    timeline: Timeline, captions: Mapping[int, Caption], pattern: str
) -> Iterator[tuple[int, str, str]]:
    """Each file's `segment_idx`, its name, and the name that the pattern gives."""
    audible = [entry.segment_idx for entry in iter_audible(timeline)]
    order = sorted({*audible, *(part.segment_idx for part in timeline.skipped)})
    numbers = {segment_idx: number for number, segment_idx in enumerate(order, start=1)}
    taken = {_SCENE_FILE}
    for segment_idx in audible:
        caption = captions.get(segment_idx, NO_CAPTION)
        words = caption.said.split()
        line_number = f"{caption.number or numbers[segment_idx]:04d}"
        speaker = build_file_label(caption.speaker or "audio")
        file, own_id = str(caption.params.get(FILE_NAME, "")), _FOLDER.sub("_", caption.own_id)
        name = pattern.format(
            number=line_number,
            segment=f"{segment_idx + 1:04d}",
            id=own_id or caption.line_id or line_number,
            file=_SUFFIX.sub("", file) or own_id or f"{line_number}-{speaker}",
            speaker=speaker,
            words=build_file_label(" ".join(words[:_MAX_WORDS])) if words else "",
        ).rstrip(" -_")
        safe = _build_safe_path(name) or line_number
        number, unique = 1, f"{safe}.wav"
        while unique.lower() in taken:
            number += 1
            unique = f"{safe}-{number}.wav"
        taken.add(unique.lower())
        yield segment_idx, unique, f"{safe}.wav"


def _build_safe_path(name: str) -> str:
    """A path that every system can write and that stays below its folder, without a suffix."""
    parts = (
        _UNSAFE.sub("_", part).encode()[:_MAX_PART_BYTES].decode(errors="ignore").strip(" .")
        for part in _FOLDER.split(name)
    )
    return "/".join(f"_{part}" if _DEVICE.match(part) else part for part in parts if part)


def add_documents(archive: zipfile.ZipFile, form: FileForm) -> None:
    """Add what a zip holds besides its sound."""
    for name, data in form.documents.items():
        archive.writestr(name, data, zipfile.ZIP_DEFLATED)


def build_file_label(speaker: str) -> str:
    """A name's letters, marks and digits; every run of other characters is one underscore."""
    kept = (
        char if unicodedata.category(char)[0] in "LMN" else " "
        for char in unicodedata.normalize("NFC", speaker)
    )
    return "_".join("".join(kept).split())[:_MAX_LABEL_CHARS].strip("_") or "speaker"


def _build_manifest(
    timeline: Timeline, captions: Mapping[int, Caption], named: Mapping[int, str]
) -> dict[str, object]:
    records = {
        entry.segment_idx: _describe_entry(entry, captions, named) for entry in timeline.entries
    }
    records |= {
        part.segment_idx: _describe_failed_part(part, captions) for part in timeline.skipped
    }
    return {
        "version": MANIFEST_VERSION,
        "file": _SCENE_FILE,
        "rate_hz": STUDIO_RATE_HZ,
        "duration_s": timeline.duration_s,
        "n_samples": timeline.n_samples,
        "failed": len(timeline.skipped),
        "segments": [records[segment_idx] for segment_idx in sorted(records)],
    }


def _describe_entry(
    entry: TimelineEntry, captions: Mapping[int, Caption], named: Mapping[int, str]
) -> dict[str, object]:
    is_silence = entry.source is None
    return {
        **_describe_caption(entry.segment_idx, captions),
        "type": "silence" if is_silence else "audio",
        "start_s": entry.start_s,
        "duration_s": entry.duration_s,
        "start_sample": entry.start_sample,
        "n_samples": entry.n_samples,
        "file": named.get(entry.segment_idx),
    } | ({"pan": entry.pan} if entry.pan else {})


def _describe_failed_part(part: FailedPart, captions: Mapping[int, Caption]) -> dict[str, object]:
    return {
        **_describe_caption(part.segment_idx, captions),
        "type": "failed",
        "message": part.message,
        "file": None,
    }


def _describe_caption(segment_idx: int, captions: Mapping[int, Caption]) -> dict[str, object]:
    caption = captions.get(segment_idx, NO_CAPTION)
    made_by = {"engine": caption.engine, "model": caption.model, "voice": caption.voice}
    return {
        "segment": segment_idx,
        "line": caption.line_number,
        "number": caption.number,
        "id": caption.own_id or None,
        "speaker": caption.speaker,
        "text": caption.text,
        "said": caption.said or None,
        "doubtful": list(caption.issues),
        **{name: one for name, one in made_by.items() if one},
    } | ({"at_s": dict(caption.at_s)} if caption.at_s else {})
