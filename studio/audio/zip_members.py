"""Members of a zip that come as they are made: whole files, and 16-bit WAV of a known length."""

from __future__ import annotations

import shutil
import time
import wave
import zipfile
from collections.abc import Iterable
from typing import BinaryIO

from studio.audio.clip import STUDIO_RATE_HZ
from studio.errors import BadInput

_MAX_WAV_BYTES = 0xFFFF_FF00  # its header counts in 32 bits


def add_file(archive: zipfile.ZipFile, name: str, source: BinaryIO) -> None:
    """Copy a file from its beginning, stored as it is."""
    info = _member(name)
    info.file_size = source.seek(0, 2)  # known beforehand, so a file above 2 GB gets large fields
    source.seek(0)
    with archive.open(info, "w") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def add_wav(
    archive: zipfile.ZipFile,
    name: str,
    pieces: Iterable[bytes],
    n_samples: int,
    *,
    deflated: bool = False,
) -> None:
    """Write mono 16-bit WAV at the studio's rate.

    Args:
        archive: The zip.
        name: Of the member.
        pieces: s16le, together `n_samples`.
        n_samples: Known beforehand, since nothing can be completed in a zip.
        deflated: Worth its time where most of it is silence.

    Raises:
        BadInput: It is longer than a WAV can be.
    """
    if 2 * n_samples > _MAX_WAV_BYTES:
        raise BadInput("The scene is too long for a WAV file. Save it as FLAC, or in parts.")
    info = _member(name)
    info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    info.file_size = 2 * n_samples
    with archive.open(info, "w") as target, wave.open(target, "wb") as sound:
        sound.setparams((1, 2, STUDIO_RATE_HZ, n_samples, "NONE", ""))
        for piece in pieces:
            sound.writeframesraw(piece)


def _member(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, date_time=time.localtime()[:6])
    info.external_attr = 0o644 << 16
    return info
