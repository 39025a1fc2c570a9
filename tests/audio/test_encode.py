import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from studio.audio.clip import STUDIO_RATE_HZ, Clip, to_pcm16, write_wav
from studio.audio.encode import encode, encode_blocks, parse_format
from studio.audio.formats import FILE_FORMATS, AudioFormat
from studio.errors import BadInput, StorageFailed
from studio.storage.disk import open_atomic


def _write(path: Path, clip: Clip) -> None:
    if path.suffix == ".wav":
        write_wav(path, clip)
        return
    with open_atomic(path) as file:
        encode_blocks(file, [clip.samples], parse_format(path), rate_hz=clip.rate_hz)


def _decoded_length(data: bytes) -> int:
    with av.open(io.BytesIO(data)) as container:
        return sum(frame.samples for frame in container.decode(audio=0))


@pytest.mark.parametrize("suffix", ["wav", "flac", "aiff"])
def test_lossless_formats_hold_the_16_bit_samples(tmp_path, harmonic, suffix):
    clip = harmonic(200)
    _write(tmp_path / f"a.{suffix}", clip)
    samples, rate_hz = soundfile.read(tmp_path / f"a.{suffix}", dtype="int16")
    info = soundfile.info(tmp_path / f"a.{suffix}")
    assert (rate_hz, info.channels, info.subtype) == (STUDIO_RATE_HZ, 1, "PCM_16")
    assert np.array_equal(samples, to_pcm16(clip.samples))


@pytest.mark.parametrize("n_samples", [100, 576, 577, 1_152, 1_153, 24_000, 50_001])
def test_mp3_has_the_same_number_of_samples_in_two_decoders(n_samples):
    t = np.arange(n_samples) / STUDIO_RATE_HZ
    clip = Clip((0.5 * np.sin(2 * np.pi * 300 * t)).astype(np.float32))
    data = encode(clip, AudioFormat.MP3)
    decoded, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    assert len(decoded) == _decoded_length(data) == n_samples


def test_mp3_keeps_time_and_sound(tmp_path, harmonic):
    clip = harmonic(200, duration_s=2.0)
    _write(tmp_path / "a.mp3", clip)
    decoded, _ = soundfile.read(tmp_path / "a.mp3", dtype="float32")
    error = decoded - clip.samples  # the encoder turns the level down by 5 %
    assert np.mean(error**2) < 0.005 * np.mean(clip.samples**2)


@pytest.mark.parametrize("audio_format", FILE_FORMATS)
def test_blocks_make_the_same_file_as_the_whole(harmonic, audio_format):
    clip = harmonic(120)
    blocks = np.split(clip.samples, [0, 1, 77, 5_000, 5_000, 20_000])
    file = io.BytesIO()
    assert encode_blocks(file, blocks, audio_format) == len(clip)
    assert file.getvalue() == encode(clip, audio_format)


def test_a_wav_without_samples_is_a_valid_file():
    assert soundfile.info(io.BytesIO(encode(Clip.silence(0), AudioFormat.WAV))).frames == 0


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3"])
def test_a_folder_that_is_a_file_is_told_and_the_file_stays(tmp_path, harmonic, suffix):
    (tmp_path / "folder").write_bytes(b"earlier")
    with pytest.raises(StorageFailed, match="can't be written"):
        _write(tmp_path / "folder" / f"a.{suffix}", harmonic(120))
    assert (tmp_path / "folder").read_bytes() == b"earlier"


class _FullDisk(io.BytesIO):
    def write(self, data):
        if self.tell() + len(data) > 20_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


@pytest.mark.parametrize("audio_format", FILE_FORMATS)
@pytest.mark.parametrize("n_blocks", [1, 10])
def test_a_full_disk_ends_the_writing(audio_format, n_blocks):
    noise = np.random.default_rng(1).uniform(-1, 1, 96_000).astype(np.float32)
    with pytest.raises(OSError, match="No space left"):
        encode_blocks(_FullDisk(), [noise] * n_blocks, audio_format)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="bounds a process's memory by POSIX limits")
def test_long_audio_is_written_in_little_memory(tmp_path):
    script = f"""
import resource
import numpy as np
from pathlib import Path
from studio.audio.encode import encode_blocks
from studio.audio.formats import AudioFormat
from studio.audio.clip import STUDIO_RATE_HZ
minute = np.zeros(60 * STUDIO_RATE_HZ, dtype=np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with Path({str(tmp_path / "long.flac")!r}).open("wb") as file:
    assert encode_blocks(file, (minute for _ in range(120)), AudioFormat.FLAC) == 120 * len(minute)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 40_000, "kilobytes; two hours as float32 have 690,000"


@pytest.mark.parametrize(
    ("name", "wanted"), [("a.wav", "wav"), ("A.FLAC", "flac"), ("a.b.mp3", "mp3")]
)
def test_the_suffix_chooses_the_format(name, wanted):
    assert parse_format(Path(name)).value == wanted


@pytest.mark.parametrize("name", ["scene", "scene.ogg", ".wav", "scene.mp3.txt"])
def test_another_suffix_is_refused_with_all_named(name):
    with pytest.raises(BadInput, match=r"\.wav, \.flac, \.mp3"):
        parse_format(Path(name))
