"""What a file says of itself: title, speakers, chapters, cover, and that its speech is synthetic.

MP3 has it in an ID3 tag, FLAC and Opus in Vorbis comments, M4A and M4B in atoms, WAV in chunks
behind its sound.
"""

from __future__ import annotations

import base64
import io
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import av
import regex
from av.stream import Disposition

from studio import __version__
from studio.dialog.model import name_key
from studio.errors import BadInput

PRODUCT = "Tableread"
SOFTWARE = f"{PRODUCT} {__version__}"
MAX_COVER_BYTES = 10_000_000
_MAX_COVER_PIXELS = 180_000_000
"""Of more than that, players may run out of memory."""
_LONGEST_SIDE = 65_500  # which FFmpeg takes of a JPEG; of a PNG an MP4 takes 65,535
_COVER_CODECS = {"JPEG": ("mjpeg", "image/jpeg", "yuvj420p"), "PNG": ("png", "image/png", "rgb24")}
_FRONT_COVER = 3
_CODES = """
ar:ara bg:bul bn:ben ca:cat cs:ces da:dan de:deu el:ell en:eng es:spa et:est fa:fas fi:fin fr:fra
gu:guj he:heb hi:hin hr:hrv hu:hun id:ind is:isl it:ita ja:jpn ka:kat kk:kaz ko:kor lt:lit lv:lav
mk:mkd ms:msa nb:nob nl:nld no:nor pl:pol pt:por ro:ron ru:rus sk:slk sl:slv sq:sqi sr:srp sv:swe
sw:swa ta:tam te:tel th:tha tr:tur uk:ukr ur:urd vi:vie zh:zho cmn:zho
"""
_THREE_LETTERS = dict(pair.split(":") for pair in _CODES.split())
"""ISO 639-2 codes, which an MP4 has; of the languages that voices here speak."""
_MS = Fraction(1, 1000)
_ID3_HEAD_BYTES = 10
_MOST_IN_CONTENTS = 255
_CONTENTS = regex.compile(rb"CTOC(?P<size>.{4})..(?=toc\0)", regex.DOTALL)
_TOP_LEVEL, _ORDERED = 2, 1
_UTF_16_NOTHING = "".encode("utf-16") + b"\0\0"
_INFO_CHUNKS = {
    **{"title": b"INAM", "artist": b"IART", "comment": b"ICMT"},
    **{"language": b"ILNG", "encoded_by": b"ISFT"},
}


@dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter mark: from `start_s` to `end_s` of the file."""

    title: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class Cover:
    """A JPEG or PNG image, as it is stored."""

    data: bytes

    @cached_property
    def image(self) -> tuple[str, int, int]:
        """Its format and its width and height in pixels.

        Raises:
            BadInput: It is no such image, or too large.
        """
        if len(self.data) > MAX_COVER_BYTES:
            raise BadInput(f"A cover has at most {MAX_COVER_BYTES / 1e6:.0f} MB.")
        kind, width, height = _read_png_size(self.data) or _read_jpeg_size(self.data) or ("", 0, 0)
        if not width or not height:
            raise BadInput("A cover is a JPEG or PNG image; this one can't be read.")
        if width * height > _MAX_COVER_PIXELS or max(width, height) > _LONGEST_SIDE:
            raise BadInput(
                f"This image has {width:,} × {height:,} pixels, which is too large for a cover. "
                "Make it smaller."
            )
        return kind, width, height

    @property
    def media_type(self) -> str:
        return _COVER_CODECS[self.image[0]][1]


_PNG_HEAD = struct.Struct(">8s4x4sII")
_PNG_SIGNS = b"\x89PNG\r\n\x1a\n", b"IHDR"
_JPEG_MARKER = regex.compile(rb"\xff([\xc0-\xfe])")
_JPEG_SCAN = b"\xff\xda"
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = frozenset(range(0xD0, 0xD9))
_MOST_MARKERS = 4_000


# The sizes stand at the beginning of both kinds. Pillow reads more to tell them, such as all of the
# EXIF data, of which 64 KB may say to be 300 MB.


def _read_png_size(data: bytes) -> tuple[str, int, int] | None:
    """What the header of a PNG says. Source: the PNG specification, third edition, 11.2.1."""
    if len(data) < _PNG_HEAD.size or b"IDAT" not in data:
        return None
    *signs, width, height = _PNG_HEAD.unpack_from(data)
    return ("PNG", width, height) if tuple(signs) == _PNG_SIGNS else None


def _read_jpeg_size(data: bytes) -> tuple[str, int, int] | None:
    """What the first frame of a JPEG says. Source: ITU-T T.81, annex B."""
    if not data.startswith(b"\xff\xd8\xff") or _JPEG_SCAN not in data:
        return None
    at = 2
    for _ in range(_MOST_MARKERS):
        found = _JPEG_MARKER.search(data, at)
        if found is None or found.end() + 7 > len(data):
            break
        at, marker = found.end(), found[1][0]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return "JPEG", width, height
        if marker not in _WITHOUT_LENGTH:
            at += struct.unpack_from(">H", data, at)[0]
    return None


def find_common_language(languages: Iterable[str | None]) -> str | None:
    """The language that most lines have; None if most have none."""
    counted = Counter(languages).most_common(1)
    return counted[0][0] if counted else None


def list_names(names: Iterable[str]) -> tuple[str, ...]:
    """Each name once, as it is written first; names that differ only in case are one."""
    found: dict[str, str] = {}
    for name in names:
        found.setdefault(name_key(name), name)
    return tuple(found.values())


def read_cover(path: Path) -> Cover:
    """Read a cover from a file.

    Raises:
        BadInput: It can't be read, or is no JPEG or PNG image.
    """
    try:
        with path.open("rb") as file:
            cover = Cover(file.read(MAX_COVER_BYTES + 1))
    except OSError as error:
        raise BadInput(f"The cover {path} can't be read: {error.strerror}.") from error
    _ = cover.image
    return cover


@dataclass(frozen=True, slots=True)
class FileTags:
    """What a file says of itself.

    Attributes:
        title: Of the scene; empty for none.
        speakers: In the order of their first lines.
        language: BCP-47 code, None if unknown.
        engines: What made the speech, for people: engine and model.
        chapters: In order; they cover the file from the first one on.
        cover: None for none.
    """

    title: str = ""
    speakers: tuple[str, ...] = ()
    language: str | None = None
    engines: tuple[str, ...] = ()
    chapters: tuple[Chapter, ...] = ()
    cover: Cover | None = None

    @property
    def comment(self) -> str:
        return f"Synthetic speech, made with {', '.join(self.engines)}." if self.engines else ""

    def fields(self) -> dict[str, str]:
        """The tags as FFmpeg names them, without empty ones."""
        found = {
            "title": self.title,
            "artist": "; ".join(self.speakers),
            "comment": self.comment,
            "language": self.language or "",
            "encoded_by": SOFTWARE,
            "encoding_tool": SOFTWARE,
        }
        return {name: value for name, value in found.items() if value}


def write_id3(file: BinaryIO, tags: FileTags) -> int:
    """Write an ID3 tag, for the head of an MP3; returns its length in bytes."""
    head = io.BytesIO()
    options = {"write_xing": "0", "id3v2_version": "3"}
    with av.open(head, "w", format="mp3", options=options) as container:
        container.add_stream("libmp3lame", rate=24_000, layout="mono")
        set_tags(container, tags)
        container.start_encoding()  # writes the tag, which without a packet nothing else would
    return file.write(_mend_id3(head.getvalue(), tags))


def _mend_id3(tag: bytes, tags: FileTags) -> bytes:
    """An ID3 tag with a comment where players look for it, and all chapters in its contents.

    FFmpeg has no frame for a comment, and counts chapters in one byte. Source: ID3v2.3.0, sections
    3.1 and 4.11, and ID3v2 Chapter Frame Addendum 1.0, section 3.2.
    """
    frames = tag[_ID3_HEAD_BYTES:]
    if len(tags.chapters) > _MOST_IN_CONTENTS and (found := _CONTENTS.search(frames)):
        (size,) = struct.unpack(">I", found["size"])
        contents = b"".join(_list_contents(len(tags.chapters)))
        frames = frames[: found.start()] + contents + frames[found.end() + size :]
    if tags.comment:
        language = (_find_three_letters(tags.language) or "und").encode()
        text = b"\1" + language + _UTF_16_NOTHING + tags.comment.encode("utf-16")
        frames = _frame(b"COMM", text) + frames
    sizes = bytes(len(frames) >> shift & 0x7F for shift in (21, 14, 7, 0))
    return tag[:6] + sizes + frames


def _list_contents(n_chapters: int) -> Iterator[bytes]:
    """Tables of contents of at most 255 entries: of the chapters, of those tables, and so on."""
    names, depth = [f"ch{number}" for number in range(n_chapters)], 0
    while len(names) > _MOST_IN_CONTENTS:
        starts = range(0, len(names), _MOST_IN_CONTENTS)
        tables = [names[start : start + _MOST_IN_CONTENTS] for start in starts]
        names = [f"toc{depth}-{number}" for number in range(len(tables))]
        for name, entries in zip(names, tables, strict=True):
            yield _contents(name, _ORDERED, entries)
        depth += 1
    yield _contents("toc", _TOP_LEVEL | _ORDERED, names)


def _contents(name: str, flags: int, entries: Sequence[str]) -> bytes:
    listed = b"".join(entry.encode() + b"\0" for entry in entries)
    return _frame(b"CTOC", name.encode() + b"\0" + bytes((flags, len(entries))) + listed)


def _frame(name: bytes, body: bytes) -> bytes:
    return struct.pack(f">4sIH{len(body)}s", name, len(body), 0, body)


def _find_three_letters(language: str | None) -> str | None:
    return _THREE_LETTERS.get((language or "").split("-")[0])


def encode_wav_tags(tags: FileTags, rate_hz: int) -> bytes:
    """Tags as chunks for the end of a WAV, where they move no sample.

    Most programs read INFO; taggers read only ID3, which also has the cover. Cue points are the
    markers of audio editors and FFmpeg's chapters, of which it would list those of ID3 once more.
    Text is UTF-8, as FFmpeg and libsndfile read it.

    Source: Multimedia Programming Interface and Data Specifications 1.0 (RIFF), chapters 2 and 3.
    """
    id3 = io.BytesIO()
    write_id3(id3, replace(tags, chapters=()))
    fields = tags.fields().items()
    info = [_text_chunk(_INFO_CHUNKS[name], text) for name, text in fields if name in _INFO_CHUNKS]
    chunks = [_chunk(b"LIST", b"INFO", *info)]
    if tags.chapters:
        starts = [round(chapter.start_s * rate_hz) for chapter in tags.chapters]
        points = [
            struct.pack("<II4sIII", number, start, b"data", 0, 0, start)
            for number, start in enumerate(starts, start=1)
        ]
        labels = [
            _text_chunk(b"labl", chapter.title, struct.pack("<I", number))
            for number, chapter in enumerate(tags.chapters, start=1)
        ]
        chunks += [_chunk(b"cue ", struct.pack("<I", len(points)), *points)]
        chunks += [_chunk(b"LIST", b"adtl", *labels)]
    return b"".join([*chunks, _chunk(b"id3 ", id3.getvalue())])


def append_to_wav(file: BinaryIO, chunks: bytes) -> None:
    """Add chunks to a whole WAV, which is open for writing and begins where the file does."""
    size_bytes = file.seek(0, io.SEEK_END) + len(chunks)
    file.write(chunks)
    file.seek(0)
    file.write(write_riff_head(size_bytes))


def write_riff_head(size_bytes: int) -> bytes:
    """The first bytes of a WAV that is so long."""
    return struct.pack("<4sI", b"RIFF", size_bytes - 8)


def _text_chunk(name: bytes, text: str, head: bytes = b"") -> bytes:
    return _chunk(name, head, text.encode(), b"\0")


def _chunk(name: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack("<4sI", name, len(body)) + body + bytes(len(body) % 2)


def set_tags(container: Any, tags: FileTags) -> None:
    """Put tags into a container that is open for writing, before anything is muxed."""
    name, stream = container.format.name, container.streams[0]
    if name == "ogg":  # where a stream has the comments, and a cover is one of them
        fields = tags.fields() | _vorbis_chapters(tags.chapters)
        if tags.cover is not None:
            fields["METADATA_BLOCK_PICTURE"] = base64.b64encode(_picture_block(tags.cover)).decode()
        stream.metadata.update(fields)
        return
    code = _find_three_letters(tags.language)
    container.metadata.update(tags.fields())
    if name == "flac":
        container.metadata.update(_vorbis_chapters(tags.chapters))
    elif name == "mp3":
        container.metadata.pop("comment", None)  # see `_mend_id3`
        if code:
            container.metadata["language"] = code
    elif name == "mp4" and code:
        stream.metadata["language"] = code
    if tags.chapters and name != "flac":
        container.set_chapters(
            [
                {
                    "id": number,
                    "start": round(chapter.start_s / _MS),
                    "end": round(chapter.end_s / _MS),
                    "time_base": _MS,
                    "metadata": {"title": chapter.title},
                }
                for number, chapter in enumerate(tags.chapters)
            ]
        )
    if tags.cover is not None and name != "aiff":  # in which PyAV puts no image
        _add_picture(container, tags.cover)


def _vorbis_chapters(chapters: Iterable[Chapter]) -> dict[str, str]:
    """Chapters as comments, which most players of FLAC and Opus read."""
    found = {}
    for number, chapter in enumerate(chapters):
        minutes, seconds = divmod(chapter.start_s, 60)
        found[f"CHAPTER{number:03d}"] = (
            f"{minutes // 60:02.0f}:{minutes % 60:02.0f}:{seconds:06.3f}"
        )
        found[f"CHAPTER{number:03d}NAME"] = chapter.title
    return found


def _picture_block(cover: Cover) -> bytes:
    """A FLAC picture block. Source: the FLAC format, RFC 9639, section 8.8."""
    name, width, height = cover.image
    mime = _COVER_CODECS[name][1].encode()
    head = struct.pack(f">II{len(mime)}sI", _FRONT_COVER, len(mime), mime, 0)
    return head + struct.pack(">IIIII", width, height, 24, 0, len(cover.data)) + cover.data


def _add_picture(container: Any, cover: Cover) -> None:
    name, width, height = cover.image
    codec, _, pixels = _COVER_CODECS[name]
    stream = container.add_stream(codec)
    stream.width, stream.height, stream.pix_fmt = width, height, pixels
    stream.disposition = Disposition.attached_pic
    packet = av.Packet(cover.data)
    packet.stream = stream
    packet.pts = packet.dts = 0
    packet.is_keyframe = True
    container.mux(packet)
