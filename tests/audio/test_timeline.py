import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.audio.clip import BLOCK_SAMPLES, STUDIO_RATE_HZ, Clip, to_pcm16, write_wav
from studio.audio.encode import encode_blocks
from studio.audio.formats import AudioFormat
from studio.audio.timeline import (
    FailedPart,
    SilencePart,
    TakePart,
    TimelineEntry,
    lay_out,
    read_take,
)
from studio.errors import StorageFailed

part_kinds = st.one_of(
    st.tuples(st.just("take"), st.sampled_from([0, 1, 2, 999, 24_000, BLOCK_SAMPLES + 1])),
    st.tuples(st.just("silence"), st.floats(0, 4)),
    st.tuples(st.just("failed"), st.none()),
)


@pytest.fixture
def take(tmp_path):
    """The path of a take with so many samples, none of them zero."""

    def make(n_samples):
        path = tmp_path / f"take{n_samples}.wav"
        if not path.exists():
            ramp = np.linspace(0.1, 0.9, n_samples, dtype=np.float32)
            write_wav(path, Clip(ramp))
        return path

    return make


@settings(max_examples=60)
@given(kinds=st.lists(part_kinds, max_size=12))
def test_the_joined_file_is_the_sum_of_its_parts_to_the_sample(tmp_path, take, kinds):
    parts, wanted = [], []
    for segment_idx, (kind, size) in enumerate(kinds):
        if kind == "take":
            parts.append(TakePart(segment_idx, take(size)))
            wanted.append(soundfile.read(take(size), dtype="int16")[0])
        elif kind == "silence":
            parts.append(SilencePart(segment_idx, size))
            wanted.append(np.zeros(len(Clip.silence(size)), dtype=np.int16))
        else:
            parts.append(FailedPart(segment_idx, "too long a word"))
    timeline = lay_out(parts)
    with (tmp_path / "joined.wav").open("wb") as file:
        written = encode_blocks(file, timeline.blocks(), AudioFormat.WAV)
    joined, _ = soundfile.read(tmp_path / "joined.wav", dtype="int16")
    assert written == timeline.n_samples == sum(map(len, wanted))
    assert np.array_equal(joined, np.concatenate([np.zeros(0, dtype=np.int16), *wanted]))
    assert timeline.duration_s == written / STUDIO_RATE_HZ


def test_a_gap_is_between_what_sounds_and_not_before_the_first(take):
    parts = [FailedPart(0, "no"), *(TakePart(idx, take(999), gap_s=0.5) for idx in (1, 2))]
    assert [one.start_sample for one in lay_out(parts).entries] == [0, 999 + 12_000]


def starting(idx, path, start_s=None, gap_s=0.0):
    return TakePart(idx, path, gap_s=gap_s, start_s=start_s)


def test_a_take_begins_at_its_start_and_not_before(take):
    second = take(24_000)
    timeline = lay_out([starting(0, second, 0.5), starting(1, second, 4.0, gap_s=2.0)])
    assert [one.start_s for one in timeline.entries] == [0.5, 4.0]
    assert len(np.concatenate(list(timeline.blocks()))) == timeline.n_samples == 5 * 24_000
    assert timeline.late_s == {}


def test_what_would_end_too_late_is_spoken_faster(take):
    parts = [starting(0, take(48_000), 1.0), SilencePart(1, 0.5), starting(2, take(999), 3.0)]
    timeline = lay_out(parts)
    first, pause, second = timeline.entries
    assert (first.start_s, pause.end_sample, second.start_s) == (1.0, 72_000, 3.0)
    assert first.pace == pytest.approx(1.25)
    assert first.duration_s == pytest.approx(1.6, abs=1e-4)
    assert pause.duration_s == pytest.approx(0.4, abs=1e-4)
    assert timeline.late_s == {}


def test_what_ends_too_late_even_so_moves_what_follows_and_is_named(take):
    long, short = take(96_000), take(12_000)
    timeline = lay_out([starting(0, long, 0.0), starting(1, short, 2.0), starting(2, short, 8.0)])
    assert [one.pace for one in timeline.entries] == [1.3, 1.0, 1.0]
    assert timeline.late_s == {0: pytest.approx(4 / 1.3 - 2, abs=1e-3)}
    assert timeline.entries[1].start_s == pytest.approx(4 / 1.3, abs=1e-3)
    assert timeline.entries[2].start_s == 8.0


def test_a_take_that_is_missing_leaves_its_time_to_others(take, tmp_path):
    gone, second = tmp_path / "gone.wav", take(24_000)
    parts = [starting(0, second, 0.0), starting(1, gone, 5.0), starting(2, second, 4.0)]
    timeline = lay_out(parts)
    assert [one.start_s for one in timeline.entries] == [0.0, 4.0]
    assert [one.segment_idx for one in timeline.skipped] == [1]
    assert timeline.late_s == {}


def test_a_hundredth_of_a_second_makes_no_take_faster(take):
    timeline = lay_out([starting(0, take(24_000), 0.0), starting(1, take(999), 0.99)])
    assert [one.pace for one in timeline.entries] == [1.0, 1.0]
    assert timeline.late_s == {}


def test_spoken_faster_the_pitch_stays_and_the_length_is_exact(tmp_path):
    tone = np.sin(2 * np.pi * 440 * np.arange(48_000) / STUDIO_RATE_HZ).astype(np.float32)
    path = tmp_path / "tone.wav"
    write_wav(path, Clip(tone * np.float32(0.5)))
    timeline = lay_out([starting(0, path, 0.0), starting(1, path, 1.6)])
    entry = timeline.entries[0]
    samples = np.concatenate(list(timeline.read(entry)))
    assert len(samples) == entry.n_samples == round(1.6 * STUDIO_RATE_HZ)
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    assert np.argmax(spectrum) * STUDIO_RATE_HZ / len(samples) == pytest.approx(440, abs=2)
    assert np.abs(samples[2_000:-2_000]).max() == pytest.approx(0.5, abs=0.1)


@given(kinds=st.lists(st.floats(0, 100), max_size=30))
def test_entries_lie_end_to_end_in_the_order_given(kinds):
    timeline = lay_out(SilencePart(index, duration) for index, duration in enumerate(kinds))
    at_sample = 0
    for index, entry in enumerate(timeline.entries):
        assert (entry.segment_idx, entry.start_sample) == (index, at_sample)
        assert entry.start_s == at_sample / STUDIO_RATE_HZ
        at_sample = entry.end_sample
    assert at_sample == timeline.n_samples


def test_blocks_are_short_and_long_silence_costs_nothing(take):
    timeline = lay_out([SilencePart(0, 60.0), TakePart(1, take(200_000))])
    lengths = [len(block) for block in timeline.blocks()]
    assert max(lengths) <= BLOCK_SAMPLES
    assert sum(lengths) == 60 * STUDIO_RATE_HZ + 200_000
    assert timeline.entries[1] == TimelineEntry(1, 60 * STUDIO_RATE_HZ, 200_000, take(200_000))


def test_blocks_hold_the_samples_of_the_take(tmp_path):
    clip = Clip(np.random.default_rng(2).uniform(-1, 1, 100_000).astype(np.float32))
    write_wav(tmp_path / "a.wav", clip)
    blocks = list(lay_out([TakePart(0, tmp_path / "a.wav")]).blocks())
    assert blocks[0].dtype == np.float32
    assert np.array_equal(to_pcm16(np.concatenate(blocks)), to_pcm16(clip.samples))


def test_failed_segments_are_skipped_and_named(take):
    failed = FailedPart(1, "The line is empty.")
    timeline = lay_out([TakePart(0, take(10)), failed, TakePart(2, take(20))])
    assert timeline.skipped == (failed,)
    assert [entry.start_sample for entry in timeline.entries] == [0, 10]


@pytest.mark.parametrize("content", [None, b"", b"RIFF", b"no audio at all", "stereo", "rate"])
def test_a_take_that_is_lost_or_something_else_is_skipped(tmp_path, take, content):
    path = tmp_path / "lost.wav"
    if content == "stereo":
        soundfile.write(path, np.zeros((100, 2)), STUDIO_RATE_HZ)
    elif content == "rate":
        soundfile.write(path, np.zeros(100), 48_000)
    elif content is not None:
        path.write_bytes(content)
    timeline = lay_out([TakePart(0, path), TakePart(1, take(10))])
    assert timeline.n_samples == 10
    assert timeline.skipped[0].segment_idx == 0
    assert "lost.wav can't be read" in timeline.skipped[0].message
    assert "Render it again." in timeline.skipped[0].message


def test_a_take_that_would_fill_the_memory_is_not_read(tmp_path, take):
    assert len(read_take(take(24_000))) == 24_000
    path = tmp_path / "long.wav"
    write_wav(path, Clip.silence(0.0))
    size_bytes = 2 * 24_000 * 7_201
    with path.open("r+b") as file:  # most of it is a hole
        for at, size in ((4, size_bytes + 36), (40, size_bytes)):
            file.seek(at)
            file.write(size.to_bytes(4, "little"))
        file.truncate(44 + size_bytes)
    with pytest.raises(StorageFailed, match="two hours"):
        read_take(path)
    soundfile.write(path, np.zeros(100), 1)
    with pytest.raises(StorageFailed, match="24,000 Hz"):
        read_take(path)


@pytest.mark.parametrize("change", ["gone", "shorter", "longer"])
def test_a_take_that_changes_later_is_an_error_not_a_wrong_length(tmp_path, change):
    path = tmp_path / "a.wav"
    write_wav(path, Clip.silence(1.0))
    timeline = lay_out([TakePart(0, path)])
    if change == "gone":
        path.unlink()
    elif change == "shorter":
        path.write_bytes(path.read_bytes()[:1_000])
    else:
        write_wav(path, Clip.silence(2.0))
    with pytest.raises(StorageFailed, match=r"a\.wav"):
        list(timeline.blocks())
