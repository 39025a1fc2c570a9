import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.analysis import estimate_fundamental_hz
from studio.audio.clip import Clip
from studio.audio.decode import DecodeLimits, decode, probe
from studio.errors import AudioRejected

ENCODINGS = {
    "wav": ("wav", "pcm_s16le"),
    "flac": ("flac", "flac"),
    "mp3": ("mp3", "libmp3lame"),
    "ogg": ("ogg", "libopus"),
    "m4a": ("ipod", "aac"),
    "aac": ("adts", "aac"),
    "webm": ("webm", "libopus"),
}


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("channels", [1, 2])
def test_every_format_gives_the_sound_at_the_studio_rate(
    tmp_path, harmonic, encode_with_av, kind, channels
):
    container, codec = ENCODINGS[kind]
    clip = harmonic(180, duration_s=2.0, rate_hz=48_000)
    path = encode_with_av(
        tmp_path / f"a.{kind}", clip, container=container, codec=codec, channels=channels
    )
    decoded = decode(path)
    info = probe(path)
    assert decoded.rate_hz == 24_000
    assert decoded.duration_s == pytest.approx(2.0, abs=0.05)
    assert estimate_fundamental_hz(decoded) == pytest.approx(180, rel=0.01)
    rms = np.sqrt(np.mean(clip.samples**2))
    assert np.sqrt(np.mean(decoded.samples**2)) == pytest.approx(rms, rel=0.1)
    assert (info.rate_hz, info.channels) == (48_000, channels)
    assert info.size_bytes == path.stat().st_size
    assert info.duration_s == pytest.approx(2.0, abs=0.05)


def test_vorbis_is_decoded_too(tmp_path, harmonic):
    clip = harmonic(180, duration_s=2.0)
    soundfile.write(tmp_path / "a.ogg", clip.samples, clip.rate_hz, subtype="VORBIS")
    decoded = decode(tmp_path / "a.ogg")
    assert probe(tmp_path / "a.ogg").codec == "vorbis"
    assert decoded.duration_s == pytest.approx(2.0, abs=0.05)
    assert estimate_fundamental_hz(decoded) == pytest.approx(180, rel=0.01)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
def test_every_width_of_wav_has_the_same_level(tmp_path, harmonic, subtype):
    clip = harmonic(200)
    soundfile.write(tmp_path / "a.wav", clip.samples, clip.rate_hz, subtype=subtype)
    decoded = decode(tmp_path / "a.wav")
    assert np.abs(decoded.samples - clip.samples).max() < (0.01 if subtype == "PCM_U8" else 1e-4)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "FLOAT"])
@pytest.mark.parametrize("left_out", [0.0, 0.02])
def test_a_recording_with_one_channel_inverted_is_heard(tmp_path, harmonic, subtype, left_out):
    clip = harmonic(200)
    stereo = np.stack([clip.samples, (left_out - 1) * clip.samples], axis=1)
    soundfile.write(tmp_path / "a.wav", stereo, clip.rate_hz, subtype=subtype)
    decoded = decode(tmp_path / "a.wav")
    assert np.abs(decoded.samples - (1 - left_out / 2) * clip.samples).max() < 0.02


def test_channels_are_averaged(tmp_path):
    left, right = np.full(24_000, 0.6), np.full(24_000, -0.2)
    soundfile.write(tmp_path / "a.wav", np.stack([left, right], axis=1), 24_000, subtype="FLOAT")
    assert decode(tmp_path / "a.wav").samples == pytest.approx(0.2)


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 44_100, 96_000])
def test_resampling_keeps_the_duration(tmp_path, harmonic, rate_hz):
    clip = harmonic(150, duration_s=1.5, rate_hz=rate_hz)
    soundfile.write(tmp_path / "a.wav", clip.samples, rate_hz)
    assert len(decode(tmp_path / "a.wav")) == pytest.approx(36_000, abs=1)
    assert len(decode(tmp_path / "a.wav", rate_hz=rate_hz)) == len(clip)


def test_what_is_louder_than_full_scale_is_held_there(tmp_path, harmonic):
    soundfile.write(tmp_path / "a.wav", harmonic(200).samples * 8, 24_000, subtype="FLOAT")
    assert np.abs(decode(tmp_path / "a.wav").samples).max() == 1.0


def test_the_suffix_does_not_matter_and_metadata_may_be_garbage(tmp_path, harmonic):
    clip = harmonic(150)
    path = tmp_path / "a.txt"
    soundfile.write(path, clip.samples, clip.rate_hz, format="WAV")
    data = path.read_bytes()
    tag = b"LIST" + struct.pack("<I", 16) + b"INFOINAM" + struct.pack("<I", 4) + b"\xff\xfe\xfd\0"
    path.write_bytes(data[:36] + tag + data[36:])
    assert len(decode(path)) == len(clip)


@pytest.mark.parametrize("claimed_bytes", [0, 0x7FFFFFFF, 0xFFFFFFFF, 5_000_000])
def test_a_wav_that_claims_another_size_gives_what_it_holds(tmp_path, harmonic, claimed_bytes):
    path = tmp_path / "a.wav"
    soundfile.write(path, harmonic(150).samples, 24_000)
    data = path.read_bytes()
    path.write_bytes(data[:40] + struct.pack("<I", claimed_bytes) + data[44:])
    assert len(decode(path)) == 24_000


def test_a_wav_that_claims_less_gives_what_it_claims(tmp_path, harmonic):
    path = tmp_path / "a.wav"
    soundfile.write(path, harmonic(150).samples, 24_000)
    data = path.read_bytes()
    path.write_bytes(data[:40] + struct.pack("<I", 20_000) + data[44:])
    assert len(decode(path)) == 10_000


UNREADABLE = {
    "text": b"These are words, not sounds.\n" * 50,
    "empty": b"",
    "half a header": b"RIFF\x24\x00\x00\x00WAVEfm",
    "playlist": b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n/etc/hostname\n#EXT-X-ENDLIST\n",
    "list of files": b"ffconcat version 1.0\nfile /etc/hostname\n",
    "zeros": bytes(10_000),
}


@pytest.mark.parametrize("content", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("read", [decode, probe])
def test_what_is_no_recording_is_refused_by_name(tmp_path, content, read):
    path = tmp_path / "upload.wav"
    path.write_bytes(content)
    with pytest.raises(AudioRejected, match=r"“my voice\.wav”"):
        read(path, display_name="my voice.wav")


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(AudioRejected, match=r"“no\.wav” can't be found at"):
        decode(tmp_path / "no.wav")
    with pytest.raises(AudioRejected, match="is not a file"):
        decode(tmp_path)
    with pytest.raises(AudioRejected):
        decode(Path("a\0b.wav"))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_no_numbers_are_refused(tmp_path, value):
    samples = np.zeros((5_000, 2))
    samples[4_000, 1] = value
    soundfile.write(tmp_path / "a.wav", samples, 24_000, subtype="DOUBLE")
    with pytest.raises(AudioRejected, match="aren't numbers"):
        decode(tmp_path / "a.wav")


def test_a_header_without_samples_is_refused(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(0), 24_000)
    with pytest.raises(AudioRejected, match="holds no sound"):
        decode(tmp_path / "a.wav")


@pytest.mark.parametrize("kind", ["flac", "m4a", "webm"])
def test_half_a_file_is_refused(tmp_path, harmonic, encode_with_av, kind):
    container, codec = ENCODINGS[kind]
    clip = harmonic(180, duration_s=3.0, rate_hz=48_000)
    path = encode_with_av(tmp_path / f"a.{kind}", clip, container=container, codec=codec)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(AudioRejected, match="“a"):
        decode(path)


def test_a_video_without_sound_is_refused(tmp_path):
    with av.open(str(tmp_path / "a.webm"), "w") as output:
        stream = output.add_stream("libvpx", rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        output.mux(stream.encode(av.VideoFrame(32, 32, "yuv420p")))
        output.mux(stream.encode(None))
    with pytest.raises(AudioRejected, match="no audio"):
        decode(tmp_path / "a.webm")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (DecodeLimits(max_bytes=1_000_000), r"1 MB are the most"),
        (DecodeLimits(max_duration_s=6), r"longer than 0\.1 minutes"),
        (DecodeLimits(max_channels=1), r"2 channels; 1 are the most"),
        (DecodeLimits(max_rate_hz=44_100), r"48,000 samples a second; 44,100"),
    ],
)
@pytest.mark.parametrize("read", [decode, probe])
def test_limits_hold_for_the_header_already(tmp_path, limits, message, read):
    soundfile.write(tmp_path / "a.wav", np.zeros((480_000, 2)), 48_000)
    with pytest.raises(AudioRejected, match=message):
        read(tmp_path / "a.wav", limits=limits)


def _flac_of_unstated_length(path: Path, *, duration_s: int) -> None:
    with soundfile.SoundFile(path, "w", 48_000, 8, subtype="PCM_16", format="FLAC") as file:
        block = np.zeros((48_000 * 10, 8), dtype=np.int16)
        for _ in range(duration_s // 10):
            file.write(block)
    data = bytearray(path.read_bytes())
    data[21] &= 0xF0  # the 36 bits of the number of samples; zero means unknown
    data[22:26] = bytes(4)
    path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="measures memory by POSIX means")
def test_a_small_file_that_decodes_to_gigabytes_is_stopped_early(tmp_path):
    _flac_of_unstated_length(tmp_path / "bomb.flac", duration_s=620)
    assert (tmp_path / "bomb.flac").stat().st_size < 1_000_000
    script = f"""
import resource
from pathlib import Path
from studio.audio.decode import decode
from studio.errors import AudioRejected
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decode(Path({str(tmp_path / "bomb.flac")!r}))
except AudioRejected as error:
    assert "longer than 10 minutes" in str(error)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100_000, "kilobytes; decoded it has 900,000"


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["wav", "flac", "mp3", "m4a", "webm"]))
def test_damaged_files_decode_or_are_refused(tmp_path, harmonic, encode_with_av, data, kind):
    container, codec = ENCODINGS[kind]
    path = tmp_path / f"whole.{kind}"
    if not path.exists():
        encode_with_av(path, harmonic(150, rate_hz=48_000), container=container, codec=codec)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, min(len(content), 600) - 1))] = data.draw(
            st.integers(0, 255)
        )
    content = content[: data.draw(st.integers(0, len(content)))]
    (tmp_path / "damaged").write_bytes(content)
    with suppress(AudioRejected):
        clip = decode(tmp_path / "damaged")
        assert isinstance(clip, Clip)
        assert np.isfinite(clip.samples).all()
