"""The formats of sound: whatever offers, writes or names one follows this table.

Standard library only, as the launcher reads the command line by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Self

BIT_RATES_KBPS = (64, 96, 128, 192)
"""What can be asked for of a format that loses something; 192 has 44,100 samples a second."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a format is written.

    Attributes:
        container: FFmpeg's name for it, as that of the codec.
        options: The container's in a file.
        live: Those in a stream; None where all bytes come at its end, as readers rely on the length
            in the header.
        kbps: Usual bit rate of all channels together, if it loses something.
        live_kbps: That of a stream, where it is another one.
        has_cover: Whether people can choose a cover for it.
        is_file: Whether a scene can be saved in it.
    """

    title: str
    container: str
    codec: str
    media_type: str
    options: Mapping[str, str]
    live: Mapping[str, str] | None
    kbps: int = 0
    live_kbps: int = 0
    has_cover: bool = True
    is_file: bool = True

    @property
    def least_bytes_per_sample(self) -> float:
        """Of one channel: an export that can't fit is refused before it begins."""
        return 2.0 if self.codec.startswith("pcm_") else 0.2


# Of streams: MP3 without the Xing header, which would have to be completed at the end, and MP4 in
# fragments, as only a seekable file can have its index completed; WAV states the largest length
# there is, which readers take for "to the end". The brand of an M4B is what makes it an audiobook.
_PLAIN = {"write_xing": "0", "id3v2_version": "0"}
_PARTS = {"movflags": "empty_moov+default_base_moof", "frag_duration": "250000"}
_M4A, _M4B, _EXACT = {"brand": "M4A "}, {"brand": "M4B "}, {"fflags": "+bitexact"}
_OPUS, _ID3 = {"page_duration": "20000"}, {"write_id3v2": "1"}
_NO: dict[str, str] = {}
_BOOK = "M4B, audiobook with chapters"


class AudioFormat(StrEnum):
    """The formats that the studio writes; the value is a file's suffix without the dot."""

    __qualname__ = "StreamFormat"  # as documents of the API have always called it

    encoding: Encoding

    def __new__(cls, suffix: str, *row: Any) -> Self:
        """Make a member of a row of the table."""
        one = str.__new__(cls, suffix)
        one._value_, one.encoding = suffix, Encoding(*row)
        return one

    WAV = "wav", "WAV", "wav", "pcm_s16le", "audio/wav", _NO, _EXACT, 0, 0, False
    FLAC = "flac", "FLAC", "flac", "flac", "audio/flac", _NO, None
    MP3 = "mp3", "MP3", "mp3", "libmp3lame", "audio/mpeg", _NO, _PLAIN, 128
    M4A = "m4a", "M4A (AAC)", "mp4", "aac", "audio/mp4", _M4A, _PARTS, 96
    M4B = "m4b", _BOOK, "mp4", "aac", "audio/mp4", _M4B, _PARTS, 96
    OPUS = "opus", "Opus", "ogg", "libopus", "audio/ogg", _NO, _OPUS, 64, 48
    AIFF = "aiff", "AIFF", "aiff", "pcm_s16be", "audio/aiff", _ID3, None, 0, 0, False
    AAC = "aac", "AAC", "adts", "aac", "audio/aac", _NO, _NO, 96, 0, False, False
    PCM = "pcm", "PCM", "s16le", "pcm_s16le", "audio/pcm", _NO, _NO, 0, 0, False, False


FILE_FORMATS = tuple(one for one in AudioFormat if one.encoding.is_file)
FILE_SUFFIXES = tuple(one.value for one in FILE_FORMATS)

if TYPE_CHECKING:
    FileSuffix = str
else:
    FileSuffix = Literal[FILE_SUFFIXES]  # as a type of arguments and bodies
