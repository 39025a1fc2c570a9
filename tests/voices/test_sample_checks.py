import hashlib

import numpy as np
import pytest
import soundfile

from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.decode import DecodeLimits
from studio.errors import AudioRejected, SampleRejected
from studio.voices.samples import SampleProblemCode, check_sample, load_sample


def _write(path, samples, rate_hz=STUDIO_RATE_HZ):
    soundfile.write(path, samples, rate_hz, subtype="FLOAT")
    return path


def _messages(report):
    return {problem.code: problem.message for problem in report.problems}


def test_a_good_recording_has_no_problems(recording):
    report = check_sample(recording())
    assert report.problems == ()
    assert report.fatal is None
    assert report.info.duration_s == 4.0
    assert len(report.clip) == 4 * STUDIO_RATE_HZ


@pytest.mark.parametrize(("duration_s", "fatal"), [(0.6, True), (1.2, False), (2.9, False)])
def test_a_short_recording_is_told_its_length(tmp_path, make_clip, duration_s, fatal):
    path = _write(tmp_path / "a.wav", make_clip(duration_s).samples)
    (problem,) = check_sample(path).problems
    assert problem.code is (SampleProblemCode.TOO_SHORT if fatal else SampleProblemCode.SHORT)
    assert problem.fatal is fatal
    assert f"{duration_s} s" in problem.message


def test_the_first_minute_of_a_long_recording_is_used(tmp_path, make_clip):
    report = check_sample(_write(tmp_path / "a.wav", make_clip(75.0).samples))
    assert "75 s" in _messages(report)[SampleProblemCode.LONG]
    assert "first 60 s" in _messages(report)[SampleProblemCode.LONG]
    assert report.clip.duration_s == 60.0
    assert report.fatal is None


def test_telephone_sound_is_told(tmp_path, make_clip):
    report = check_sample(_write(tmp_path / "a.wav", make_clip(4.0, rate_hz=8_000).samples, 8_000))
    assert list(_messages(report)) == [SampleProblemCode.LOW_RATE]
    assert "8,000" in _messages(report)[SampleProblemCode.LOW_RATE]


def test_channels_are_said_to_be_mixed(tmp_path, make_clip):
    stereo = np.stack([make_clip(4.0).samples] * 2, axis=1)
    report = check_sample(_write(tmp_path / "a.wav", stereo))
    assert "2 channels" in _messages(report)[SampleProblemCode.CHANNELS]


@pytest.mark.parametrize("level", [0.0, 1e-5])
def test_silence_is_fatal(tmp_path, make_clip, level):
    report = check_sample(_write(tmp_path / "a.wav", make_clip(4.0).samples * level))
    assert report.fatal is not None
    assert report.fatal.code is SampleProblemCode.SILENT
    assert "Check the microphone" in report.fatal.message


def test_a_recording_that_is_mostly_silence_says_how_much(tmp_path, make_clip):
    samples = np.concatenate([make_clip(2.0).samples, np.zeros(8 * STUDIO_RATE_HZ, np.float32)])
    message = _messages(check_sample(_write(tmp_path / "a.wav", samples)))
    assert list(message) == [SampleProblemCode.MOSTLY_SILENCE]
    assert "Only 15%" in message[SampleProblemCode.MOSTLY_SILENCE]


def test_clipping_is_told(tmp_path, make_clip):
    report = check_sample(_write(tmp_path / "a.wav", make_clip(4.0).samples * 8))
    assert list(_messages(report)) == [SampleProblemCode.CLIPPING]


def test_a_quiet_recording_is_told_its_level(tmp_path, make_clip):
    report = check_sample(_write(tmp_path / "a.wav", make_clip(4.0).samples * 0.02))
    assert list(_messages(report)) == [SampleProblemCode.QUIET]
    assert "-46 dB" in _messages(report)[SampleProblemCode.QUIET]


@pytest.mark.parametrize(("signal_to_noise_db", "noisy"), [(8, True), (14, True), (24, False)])
def test_noise_between_the_words_is_told(tmp_path, make_clip, signal_to_noise_db, noisy):
    samples = make_clip(4.0).samples
    speech_rms = np.sqrt(np.mean(samples[samples != 0] ** 2))
    noise = np.random.default_rng(5).normal(size=len(samples))
    mixed = samples + noise * speech_rms * 10 ** (-signal_to_noise_db / 20)
    codes = list(_messages(check_sample(_write(tmp_path / "a.wav", np.clip(mixed, -1, 1)))))
    assert codes == ([SampleProblemCode.NOISY] if noisy else [])


def test_what_cannot_be_decoded_is_refused_under_its_display_name(tmp_path):
    (tmp_path / "tmp123").write_bytes(b"no sound")
    with pytest.raises(AudioRejected, match="“Anna"):
        check_sample(tmp_path / "tmp123", display_name="Anna.wav")


def test_limits_apply(recording):
    with pytest.raises(AudioRejected, match="longer"):
        check_sample(recording(), limits=DecodeLimits(max_duration_s=2))


def test_load_gives_the_clip_and_the_hash_of_the_file(recording):
    path = recording()
    sample = load_sample(path, transcript="Hello there.")
    assert sample.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert sample.transcript == "Hello there."
    assert sample.clip.duration_s == 4.0


def test_load_refuses_with_the_speaker_and_the_remedy(tmp_path, make_clip):
    with pytest.raises(SampleRejected, match=r"sample of Anna can't be found at .*gone\.wav"):
        load_sample(tmp_path / "gone.wav", speaker="Anna")
    (tmp_path / "broken.wav").write_bytes(b"no sound")
    with pytest.raises(SampleRejected, match=r"sample of Anna can't be used.*Use wav"):
        load_sample(tmp_path / "broken.wav", speaker="Anna")
    with pytest.raises(SampleRejected, match=r"“short\.wav” can't be used.*Record"):
        load_sample(_write(tmp_path / "short.wav", make_clip(0.5).samples))
