"""Scenes come to the level that was wished, measured by another meter in the file itself."""

from __future__ import annotations

import tracemalloc

import av
import numpy as np
import psutil
import pytest
import soundfile
from independent_meter import lufs
from spoken_scenes import laid, read, spoken, true_peak_db

from studio.audio.clip import STUDIO_RATE_HZ, Clip, write_wav
from studio.audio.export import Caption, export_audio
from studio.audio.loudness import Loudness, find_acx_faults, measure_loudness
from studio.audio.mastering import Master, Mastering, parse_target, plan_master
from studio.audio.scene_file import (
    ExportOptions,
    Scene,
    check_export_options,
    describe_result,
)
from studio.audio.timeline import SilencePart, TakePart, lay_out
from studio.errors import BadInput, Cancelled, Conflict

LSB = 1 / 32_768


@pytest.fixture(scope="module")
def clips():
    return spoken()


@pytest.fixture
def scene(tmp_path, clips):
    return laid(tmp_path, clips)


def choice(loudness, *, even=False, tracks=False, measured=True):
    return ExportOptions(Mastering(parse_target(loudness), even), tracks, measured)


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3"])
@pytest.mark.parametrize(
    ("loudness", "wanted", "ceiling_db"),
    [("podcast", -16.0, -1.0), ("broadcast", -23.0, -1.0), ("-28.5", -28.5, -1.0)],
)
def test_the_decoded_file_is_at_its_target(tmp_path, scene, suffix, loudness, wanted, ceiling_db):
    timeline, captions = scene
    path = tmp_path / f"scene.{suffix}"
    found = Scene(timeline, captions).write(path, choice(loudness))
    samples = read(path)
    assert len(samples) == timeline.n_samples
    assert lufs(samples) == pytest.approx(wanted, abs=0.5)
    assert found.lufs == pytest.approx(lufs(samples), abs=0.2)
    if suffix != "mp3":  # its encoder moves peaks; the ceiling leaves it a decibel for that
        assert np.abs(samples).max() <= 10 ** (ceiling_db / 20)
        assert true_peak_db(samples) <= ceiling_db + 0.1


def test_a_level_that_needs_the_limiter_is_met(tmp_path, scene):
    timeline, captions = scene
    found = Scene(timeline, captions).write(tmp_path / "scene.wav", choice("-14"))
    samples = read(tmp_path / "scene.wav")
    assert lufs(samples) == pytest.approx(-14, abs=0.5)
    assert np.abs(samples).max() <= 10 ** (-1 / 20)
    assert found.true_peak_db <= -1.0 + 0.05
    assert describe_result(found, choice("-14")) == ()


def test_the_limiter_is_made_up_for_by_three_decibels_at_most(scene):
    timeline, _ = scene
    found = measure_loudness(Master().blocks(timeline))
    for wished, most_db in ((-14.0, 3.0), (-9.0, 3.0)):
        master = plan_master(timeline, {}, Mastering(parse_target(f"{wished:g}")))
        beyond_db = master.gain_db - (wished - found.lufs)
        assert 1.0 < beyond_db < most_db + 0.01, wished


def test_a_level_that_would_flatten_the_voices_is_not_forced(tmp_path, scene):
    timeline, captions = scene
    found = Scene(timeline, captions).write(tmp_path / "scene.wav", choice("-9"))
    assert np.abs(read(tmp_path / "scene.wav")).max() <= 10 ** (-1 / 20)
    assert found.lufs <= -9 + 0.5
    if found.lufs < -9.5:
        (told,) = describe_result(found, choice("-9"))
        assert "choose a lower loudness" in told


@pytest.mark.parametrize("suffix", ["wav", "mp3"])
def test_an_audiobook_keeps_the_three_limits(tmp_path, scene, suffix):
    timeline, captions = scene
    path = tmp_path / f"scene.{suffix}"
    found = Scene(timeline, captions).write(path, choice("audiobook"))
    samples, rate_hz = soundfile.read(path)
    assert rate_hz == (44_100 if suffix == "mp3" else STUDIO_RATE_HZ)
    assert len(samples) == pytest.approx(timeline.n_samples * rate_hz / STUDIO_RATE_HZ, abs=1)
    assert 20 * np.log10(np.sqrt(np.square(samples).mean())) == pytest.approx(-20, abs=0.5)
    assert np.abs(samples).max() <= 10 ** (-3 / 20)
    assert find_acx_faults(found) == ()
    assert describe_result(found, choice("audiobook")) == (
        "It keeps ACX’s limits of level, peak and noise.",
    )


def test_an_audiobooks_mp3_is_as_its_shops_take_it(tmp_path, scene):
    timeline, captions = scene
    shares = []
    found = Scene(timeline, captions).write(
        tmp_path / "chapter.mp3",
        choice("audiobook"),
        on_progress=shares.append,
    )
    with av.open(tmp_path / "chapter.mp3") as container:
        (stream,) = container.streams.audio
        assert (stream.rate, stream.channels, stream.bit_rate) == (44_100, 1, 192_000)
        sizes = {packet.size for packet in container.demux(stream) if packet.size}
        length_s = float(container.duration / av.time_base)
    assert max(sizes) - min(sizes) <= 1  # a constant bit rate
    assert length_s == pytest.approx(timeline.n_samples / STUDIO_RATE_HZ, abs=0.1)
    samples, rate_hz = soundfile.read(tmp_path / "chapter.mp3", dtype="float32")
    assert lufs(samples, rate_hz) == pytest.approx(found.lufs, abs=0.2)
    assert (shares, shares[-1]) == (sorted(shares), 1.0)


def test_what_breaks_a_limit_of_audiobooks_is_named_with_a_remedy():
    found = Loudness(-12.0, 3.0, -0.2, -0.5, -15.0, -48.0)
    level, peak, noise = find_acx_faults(found)
    assert "-15.0 dB RMS" in level
    assert "-0.5 dB" in peak
    assert "save it as WAV" in peak
    assert "-48.0 dB" in noise


@pytest.mark.parametrize("suffix", ["wav", "flac", "mp3"])
def test_as_rendered_changes_no_byte(tmp_path, scene, suffix):
    timeline, captions = scene
    export_audio(tmp_path / f"plain.{suffix}", timeline)
    Scene(timeline, captions).write(tmp_path / f"scene.{suffix}", choice("rendered"))
    plain, scene = (tmp_path / f"{name}.{suffix}" for name in ("plain", "scene"))
    assert plain.read_bytes() == scene.read_bytes()


def test_a_gain_is_one_gain_and_nothing_moves(tmp_path, scene):
    timeline, captions = scene
    Scene(timeline, captions).write(tmp_path / "scene.wav", choice("broadcast"))
    plain, samples = np.concatenate(list(timeline.blocks())), read(tmp_path / "scene.wav")
    loud = np.abs(plain) > 0.1
    gain = np.median(samples[loud] / plain[loud])
    assert np.abs(samples - plain * gain).max() <= 1.5 * LSB


def heard(timeline, captions, samples, speaker):
    return np.concatenate(
        [
            samples[one.start_sample : one.end_sample]
            for one in timeline.entries
            if one.segment_idx in captions and captions[one.segment_idx].speaker == speaker
        ]
    )


def test_voices_are_brought_to_one_loudness(tmp_path, clips):
    timeline, captions = laid(tmp_path, clips, gains_db={"Ida": -10, "Tom": -3})
    Scene(timeline, captions).write(tmp_path / "scene.wav", choice("broadcast", even=True))
    samples = read(tmp_path / "scene.wav")
    ida, tom = (lufs(heard(timeline, captions, samples, one)) for one in ("Ida", "Tom"))
    assert ida == pytest.approx(tom, abs=0.3)
    assert lufs(samples) == pytest.approx(-23, abs=0.5)


def test_a_whisper_stays_as_far_below_its_speaker_as_it_was(tmp_path, clips):
    timeline, captions = laid(tmp_path, clips, gains_db={"Ida": -6})
    write_wav(timeline.entries[4].source, Clip(clips[2].samples * np.float32(0.1)))
    before = np.concatenate(list(timeline.blocks()))
    Scene(timeline, captions).write(tmp_path / "scene.wav", choice("rendered", even=True))
    after = read(tmp_path / "scene.wav")
    gains = []
    for entry in (timeline.entries[0], timeline.entries[4]):
        place = slice(entry.start_sample, entry.end_sample)
        gains.append(np.linalg.norm(after[place]) / np.linalg.norm(before[place]))
    assert gains[0] == pytest.approx(gains[1], rel=0.01)
    assert gains[0] > 1


def test_a_voice_is_moved_by_twelve_decibels_at_most(tmp_path, clips):
    timeline, captions = laid(tmp_path, clips, gains_db={"Ida": -34})
    speakers = {idx: one.speaker for idx, one in captions.items()}
    moved = plan_master(timeline, speakers, Mastering(even_voices=True)).voices_db
    assert {round(abs(gain_db), 3) for gain_db in moved.values()} & {12.0}
    assert max(abs(gain_db) for gain_db in moved.values()) <= 12.0


def test_recordings_are_not_evened(tmp_path, clips):
    timeline, captions = laid(tmp_path, clips, gains_db={"Ida": -9})
    captions[6] = Caption(4)
    Scene(timeline, captions).write(tmp_path / "scene.wav", choice("rendered", even=True))
    place = slice(timeline.entries[6].start_sample, timeline.entries[6].end_sample)
    plain = np.concatenate(list(timeline.blocks()))
    assert (read(tmp_path / "scene.wav")[place] == plain[place]).all()


@pytest.mark.parametrize("wish", ["podcast", "audiobook"])
def test_a_scene_without_a_loudness_says_what_to_do(tmp_path, wish):
    write_wav(tmp_path / "0.wav", Clip(np.zeros(STUDIO_RATE_HZ, dtype=np.float32)))
    timeline = lay_out([TakePart(0, tmp_path / "0.wav"), SilencePart(1, 1.0)])
    with pytest.raises(BadInput, match="Save it at the original level"):
        Scene(timeline, {0: Caption(1, "Ida", "…")}).write(tmp_path / "scene.wav", choice(wish))
    assert not (tmp_path / "scene.wav").exists()
    silent = Scene(timeline, {}).write(tmp_path / "scene.wav", choice("rendered", even=True))
    assert silent.lufs is None
    with pytest.raises(Conflict, match="Nothing has been spoken yet"):
        Scene(lay_out([]), {}).write(tmp_path / "none.wav", choice("rendered"))


@pytest.mark.parametrize("text", ["loud", "", "-8.9", "-30.1", "nan", "-inf", "16", "1e400", "--"])
def test_what_is_no_loudness_is_refused(text):
    with pytest.raises(BadInput, match="podcast, audiobook, broadcast"):
        parse_target(text)


@pytest.mark.parametrize(
    ("rms_db", "peak_db", "noise_db", "faults"),
    [
        (-23.0, -3.0, -60.0, 0),
        (-18.0, -3.0, -60.0, 0),
        (-23.1, -3.0, -60.0, 1),
        (-17.9, -3.0, -60.0, 1),
        (-20.0, -2.9, -60.0, 1),
        (-20.0, -3.0, -59.9, 1),
    ],
)
def test_the_limits_of_audiobooks_are_those_of_their_shops(rms_db, peak_db, noise_db, faults):
    loudness = Loudness(-20.0, 3.0, peak_db, peak_db, rms_db, noise_db)
    assert len(find_acx_faults(loudness)) == faults


def test_30_to_9_lufs_can_be_chosen():
    assert parse_target("-30").level_db == -30
    assert parse_target("-9").level_db == -9


@pytest.mark.parametrize("text", ["-16", "−16", " -16.0 "])
def test_a_number_is_a_loudness(text):
    assert parse_target(text).level_db == -16


def test_tracks_take_a_zip(tmp_path):
    with pytest.raises(BadInput, match=r"\.zip"):
        check_export_options(tmp_path / "scene.wav", choice("rendered", tracks=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "tracks"), [("scene.wav", False), ("scene.zip", False), ("scene.zip", True)]
)
def test_progress_grows_to_one_and_can_stop_every_pass(tmp_path, scene, name, tracks):
    timeline, captions = scene
    wish, shares = choice("podcast", even=True, tracks=tracks), []
    Scene(timeline, captions).write(tmp_path / name, wish, on_progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    (tmp_path / name).write_bytes(b"earlier")
    for last in (shares[len(shares) // 2], shares[-2]):

        def stop(share, last=last):
            if share >= last:
                raise Cancelled("stopped")

        with pytest.raises(Cancelled):
            Scene(timeline, captions).write(tmp_path / name, wish, on_progress=stop)
        left = {one.name for one in tmp_path.iterdir() if not one.stem.isdigit()}
        assert left == {name}


def long_scene(folder, clips, lines):
    """Many lines of one take each speaker, as long as a chapter or a book."""
    timeline, captions = laid(folder, clips)
    sources = [entry.source for entry in timeline.entries if entry.source]
    parts = [TakePart(idx, sources[idx % len(sources)]) for idx in range(lines)]
    return lay_out(parts), {idx: captions[2 * (idx % len(sources))] for idx in range(lines)}


@pytest.mark.slow
def test_memory_holds_a_block_however_long_the_scene_is(tmp_path, clips):
    peaks = []
    for lines in (6, 24):
        timeline, captions = long_scene(tmp_path, clips, lines)
        tracemalloc.start()
        Scene(timeline, captions).write(tmp_path / "scene.zip", choice("-14", even=True))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 12_000_000
    assert peaks[1] < peaks[0] * 1.2 + 500_000


@pytest.mark.campaign
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("tracks", [False, True])
def test_an_hour_takes_less_than_50_mb(tmp_path, clips, tracks):
    timeline, captions = long_scene(tmp_path, clips, 1_200)
    assert timeline.duration_s > 3_600
    wish = choice("podcast", even=True, tracks=tracks)
    process, held_bytes = psutil.Process(), [psutil.Process().memory_info().rss]
    Scene(timeline, captions).write(
        tmp_path / "scene.zip",
        wish,
        on_progress=lambda _: held_bytes.append(process.memory_info().rss),
    )
    assert max(held_bytes) - held_bytes[0] < 50_000_000


def test_any_rate_is_measured(tmp_path):
    t = np.arange(44_100 * 3) / 44_100
    soundfile.write(tmp_path / "a.wav", 0.1 * np.sin(2 * np.pi * 997 * t), 44_100)
    samples, rate_hz = soundfile.read(tmp_path / "a.wav", dtype="float32")
    assert measure_loudness([samples], rate_hz=rate_hz).lufs == pytest.approx(
        lufs(samples, rate_hz), abs=0.2
    )
