"""Panned voices: the equal-power law, in every format, with loudness and limiter in stereo."""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pyloudnorm
import pytest
import rpp
import soundfile

from studio.audio.clip import STUDIO_RATE_HZ, Clip, write_wav
from studio.audio.encode import encode_stream
from studio.audio.export import Caption
from studio.audio.formats import AudioFormat
from studio.audio.kept_loudness import identify_scene
from studio.audio.loudness import measure_file_loudness, measure_loudness
from studio.audio.mastering import Master, Mastering, parse_target
from studio.audio.scene_file import AS_RENDERED, ExportOptions, Scene
from studio.audio.timeline import SilencePart, TakePart, Timeline, lay_out, pan_samples
from studio.errors import BadInput

PANS = (-1.0, -0.4, 0.0, 0.7, 1.0)
FILES = ("wav", "flac", "mp3", "opus", "m4a", "m4b", "aiff")
RATE_HZ = STUDIO_RATE_HZ


def tone(duration_s: float = 1.5, level: float = 0.25, hz: float = 440.0) -> np.ndarray:
    t = np.arange(round(duration_s * RATE_HZ)) / RATE_HZ
    return (level * np.sin(2 * np.pi * hz * t)).astype(np.float32)


def lay(folder: Path, pans: tuple[float, ...], level: float = 0.25) -> Scene:
    """A tone for each pan, each of a speaker of its own, with pauses between them."""
    parts: list[TakePart | SilencePart] = []
    for number, pan in enumerate(pans):
        path = folder / f"{number}.wav"
        write_wav(path, Clip(tone(level=level)))
        parts += [TakePart(2 * number, path, pan=pan), SilencePart(2 * number + 1, 0.5)]
    captions = {2 * one: Caption(one + 1, f"Voice {one}", "La.") for one in range(len(pans))}
    return Scene(lay_out(parts), captions)


def read_file(path: Path) -> tuple[np.ndarray, int]:
    """float32 [channels, samples] by FFmpeg, and the rate."""
    with av.open(str(path)) as container:
        rate_hz = container.streams.audio[0].rate
        frames = [frame.to_ndarray() for frame in convert(container)]
    return np.concatenate(frames, axis=1), rate_hz


def convert(container: av.container.InputContainer):
    layout = container.streams.audio[0].layout
    as_floats = av.AudioResampler(format="fltp", layout=layout)
    for frame in container.decode(audio=0):
        yield from as_floats.resample(frame)


def find_levels_db(sound: np.ndarray, rate_hz: int, timeline: Timeline) -> list[list[float]]:
    """The level of each entry's middle on each channel, at least -100 dB."""
    found = []
    for entry in timeline.entries[::2]:
        start = round((entry.start_s + 0.4) * rate_hz)
        middle = sound[:, start : start + round(0.7 * rate_hz)].astype(np.float64)
        found.append([max(-100.0, 10 * math.log10(np.mean(one**2) + 1e-12)) for one in middle])
    return found


@pytest.mark.parametrize("suffix", FILES)
def test_every_format_has_the_level_of_each_side(tmp_path: Path, suffix: str) -> None:
    scene = lay(tmp_path, PANS)
    scene.write(tmp_path / f"scene.{suffix}")
    sound, rate_hz = read_file(tmp_path / f"scene.{suffix}")
    assert len(sound) == 2
    # As rendered, LAME makes an MP3 quieter, both sides alike.
    tone_db = -15.05 + (20 * math.log10(0.95) if suffix == "mp3" else 0.0)
    for pan, levels_db in zip(PANS, find_levels_db(sound, rate_hz, scene.timeline), strict=True):
        angle = (pan + 1) * math.pi / 4
        for share, level_db in zip((math.cos(angle), math.sin(angle)), levels_db, strict=True):
            if share < 1e-6:
                assert level_db < tone_db - 45
            else:
                assert level_db == pytest.approx(tone_db + 20 * math.log10(share), abs=0.1)


def test_equal_power_keeps_the_sum_of_both_sides() -> None:
    for pan in np.linspace(-1, 1, 41):
        sides = pan_samples(np.ones(3, dtype=np.float32), float(pan))
        assert sides.dtype == np.float32
        assert np.sum(sides.astype(np.float64) ** 2, axis=1) == pytest.approx(np.ones(3), abs=1e-6)
    middle = pan_samples(np.ones(1, dtype=np.float32), 0.0)[0]
    assert 20 * np.log10(middle) == pytest.approx([-3.01, -3.01], abs=0.01)
    left = pan_samples(np.ones(1, dtype=np.float32), -0.4)[0]
    assert left == pytest.approx([0.8910, 0.4540], abs=1e-4)


@pytest.mark.parametrize("suffix", FILES)
def test_a_scene_that_isnt_panned_stays_mono(tmp_path: Path, suffix: str) -> None:
    plain = lay(tmp_path, (0.0, 0.0))
    path = tmp_path / f"scene.{suffix}"
    plain.write(path)
    sound, _ = read_file(path)
    assert len(sound) == 1
    before = path.read_bytes()
    parts = [
        TakePart(entry.segment_idx, entry.source)
        for entry in plain.timeline.entries
        if entry.source is not None
    ]
    scene = replace(plain, timeline=lay_out([parts[0], SilencePart(1, 0.5), parts[1]]))
    scene.write(path)
    assert len(read_file(path)[0]) == 1
    plain.write(path)
    assert path.read_bytes() == before


def test_panning_doesnt_change_the_loudness(tmp_path: Path) -> None:
    mono = measure_loudness(lay(tmp_path, (0.0, 0.0)).timeline.blocks())
    for pans in [(-1.0, 0.0), (0.3, -0.3), (1.0, 1.0)]:
        stereo = measure_loudness(lay(tmp_path, pans).timeline.blocks())
        assert stereo.lufs == pytest.approx(mono.lufs, abs=0.05)
    hard = measure_loudness(lay(tmp_path, (1.0, 1.0)).timeline.blocks())
    assert (hard.true_peak_db, hard.peak_db) == pytest.approx(
        (mono.true_peak_db, mono.peak_db), abs=0.01
    )
    assert hard.rms_db == pytest.approx(mono.rms_db - 3.01, abs=0.01)


@pytest.mark.parametrize("suffix", ["wav", "mp3", "m4a"])
def test_a_target_is_met_on_both_channels_together(tmp_path: Path, suffix: str) -> None:
    scene = lay(tmp_path, (-0.8, 0.5, 0.0))
    wish = ExportOptions(Mastering(parse_target("podcast")), is_measured=True)
    path = tmp_path / f"scene.{suffix}"
    found = scene.write(path, wish)
    assert found is not None
    assert found.lufs == pytest.approx(-16, abs=0.2)
    sound, rate_hz = read_file(path)
    heard = pyloudnorm.Meter(rate_hz).integrated_loudness(sound.T.astype(np.float64))
    assert heard == pytest.approx(-16, abs=0.3)
    assert measure_file_loudness(path).lufs == pytest.approx(found.lufs, abs=0.01)


def test_an_audiobook_has_its_level_on_each_channel_as_those_who_check_measure(
    tmp_path: Path,
) -> None:
    scene = lay(tmp_path, (-0.2, 0.2))
    wish = ExportOptions(Mastering(parse_target("audiobook")))
    scene.write(tmp_path / "scene.wav", wish)
    sound, _ = read_file(tmp_path / "scene.wav")
    assert 10 * math.log10(np.mean(sound.astype(np.float64) ** 2)) == pytest.approx(-20, abs=0.2)


def test_the_limiter_moves_nothing_to_a_side(tmp_path: Path) -> None:
    scene = lay(tmp_path, (-0.9, 0.6), level=0.5)
    blocks = Master(9.0, ceiling_db=-1.0).blocks(scene.timeline)
    limited = np.concatenate(list(blocks))
    assert limited.shape == (scene.timeline.n_samples, 2)
    levels_db = find_levels_db(limited.T, RATE_HZ, scene.timeline)
    for pan, (left_db, right_db) in zip((-0.9, 0.6), levels_db, strict=True):
        angle = (pan + 1) * math.pi / 4
        wanted = 20 * math.log10(math.cos(angle) / math.sin(angle))
        assert left_db - right_db == pytest.approx(wanted, abs=0.01)
        assert max(left_db, right_db) < 9 - 9.03 - 0.5
    assert measure_loudness([limited]).true_peak_db <= -1.0


def test_matched_voices_are_as_loud_wherever_they_are(tmp_path: Path) -> None:
    scene = lay(tmp_path, (-1.0, 0.0, 0.5))
    write_wav(tmp_path / "1.wav", Clip(tone(level=0.1)))
    scene.write(tmp_path / "a.wav", ExportOptions(Mastering(None, even_voices=True)))
    sound, rate_hz = read_file(tmp_path / "a.wav")
    powers = [
        sum(10 ** (one / 10) for one in sides)
        for sides in find_levels_db(sound, rate_hz, scene.timeline)
    ]
    assert 10 * np.log10(powers) == pytest.approx([10 * math.log10(powers[0])] * 3, abs=0.1)


@pytest.mark.parametrize("wish", [AS_RENDERED, ExportOptions(Mastering(parse_target("-23")))])
def test_a_zip_has_the_scene_in_stereo_and_lines_in_mono(
    tmp_path: Path, wish: ExportOptions
) -> None:
    scene = lay(tmp_path, (-0.4, 0.0))
    shares: list[float] = []
    scene.write(tmp_path / "scene.zip", wish, on_progress=shares.append)
    assert shares == sorted(shares)
    with zipfile.ZipFile(tmp_path / "scene.zip") as archive:
        names = {name for name in archive.namelist() if name.endswith(".wav")}
        sounds = {name: soundfile.read(io.BytesIO(archive.read(name)))[0] for name in names}
        segments = json.loads(archive.read("manifest.json"))["segments"]
    assert sounds.pop("scene.wav").shape == (scene.timeline.n_samples, 2)
    assert [sound.ndim for sound in sounds.values()] == [1, 1]
    assert [one.get("pan") for one in segments] == [-0.4, None, None, None]


def test_the_project_of_tracks_pans_them(tmp_path: Path) -> None:
    scene = lay(tmp_path, (-0.4, 0.0))
    scene.write(tmp_path / "t.zip", ExportOptions(tracks=True))
    scene.write(tmp_path / "scene.wav")
    with zipfile.ZipFile(tmp_path / "t.zip") as archive:
        project = rpp.loads(archive.read("scene.rpp").decode())
        files = {name: archive.read(name) for name in archive.namelist()}
    mixed = np.zeros((scene.timeline.n_samples, 2))
    for track in project.findall("TRACK"):
        (placed,) = [row for row in track if isinstance(row, list) and row[0] == "VOLPAN"]
        volume, pan, law = map(float, placed[1:4])
        assert (volume, law) == pytest.approx((1, math.sqrt(0.5)))
        (source,) = track.find("ITEM").findall("SOURCE")
        sound, _ = soundfile.read(io.BytesIO(files[dict(source.children)["FILE"]]))
        assert sound.ndim == 1
        mixed += pan_samples(sound.astype(np.float32), pan)
    joined, _ = soundfile.read(tmp_path / "scene.wav")
    assert np.abs(mixed - joined).max() <= 1.5 / 32_768
    lay(tmp_path, (0.0, 0.0)).write(tmp_path / "mono.zip", ExportOptions(tracks=True))
    with zipfile.ZipFile(tmp_path / "mono.zip") as archive:
        assert b"VOLPAN" not in archive.read("scene.rpp")


@pytest.mark.parametrize("audio_format", ["pcm", "wav", "aac", "flac", "mp3", "opus"])
def test_a_finished_scene_is_sent_in_stereo(tmp_path: Path, audio_format: str) -> None:
    scene = lay(tmp_path, (-1.0,))
    chosen = AudioFormat(audio_format)
    data = b"".join(encode_stream(scene.mastered_blocks(Mastering()), chosen))
    if audio_format == "pcm":
        sound = np.frombuffer(data, dtype="<i2").reshape(-1, 2).T / 32_768
    else:
        (tmp_path / f"a.{audio_format}").write_bytes(data)
        sound, _ = read_file(tmp_path / f"a.{audio_format}")
    left, right = np.sqrt(np.mean(sound.astype(np.float64) ** 2, axis=1))
    assert right < left / 100


def test_what_was_measured_holds_for_the_same_panning_and_level_only(tmp_path: Path) -> None:
    timeline = lay(tmp_path, (0.0, 0.0)).timeline
    podcast = Mastering(parse_target("podcast"))

    def identify(**changed: float) -> str:
        first, *rest = timeline.entries
        laid = replace(timeline, entries=(replace(first, **changed), *rest))
        return identify_scene(laid, {}, podcast)

    plain = identify()
    known = {plain, identify(pan=0.4), identify(pan=-0.4), identify(gain_db=0.4)}
    assert len(known) == 4
    assert identify(pan=0.0, gain_db=0.0) == plain


def test_a_wav_that_is_too_long_in_stereo_is_refused(tmp_path: Path) -> None:
    """13 hours: 2.2 GB in mono, and beyond what a WAV's header counts in stereo."""
    write_wav(tmp_path / "a.wav", Clip(tone(0.1)))
    pauses = [SilencePart(one, 3600.0) for one in range(1, 14)]
    with pytest.raises(BadInput, match="FLAC"):
        Scene(lay_out([TakePart(0, tmp_path / "a.wav", pan=0.1), *pauses]), {}).write(
            tmp_path / "long.wav"
        )
