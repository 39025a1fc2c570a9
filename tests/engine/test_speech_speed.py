"""How fast each voice engine speaks here: measured over all lines in flight, and remembered."""

import threading

import pytest

from studio.engine.speech_speed import SpeechSpeeds
from studio.errors import SpeechFailed


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def speeds(tmp_path, clock):
    return SpeechSpeeds(tmp_path / "speeds.json", "cpu", clock=clock)


def speak(speeds, clock, *, audio_s, took_s, name="kitten"):
    with speeds.span(name, lambda: audio_s):
        clock.now_s += took_s


def test_a_line_is_measured(speeds, clock):
    assert speeds.get("kitten") is None
    speak(speeds, clock, audio_s=6.0, took_s=2.0)
    assert speeds.get("kitten") == 3.0
    assert speeds.get("piper") is None


def test_lines_at_once_count_together(speeds, clock):
    with speeds.span("kitten", lambda: 4.0), speeds.span("kitten", lambda: 4.0):
        clock.now_s += 2.0
    assert speeds.get("kitten") == 4.0


def test_lines_without_an_end_are_measured_after_a_while(speeds, clock):
    with speeds.span("kitten", lambda: 0.0):
        for _ in range(2):
            speak(speeds, clock, audio_s=10.0, took_s=5.0)
        assert speeds.get("kitten") == 2.0


def test_short_lines_are_measured_together_and_a_pause_is_not_counted(speeds, clock):
    speak(speeds, clock, audio_s=1.0, took_s=0.5)
    assert speeds.get("kitten") is None
    clock.now_s += 60.0
    speak(speeds, clock, audio_s=1.0, took_s=0.5)
    assert speeds.get("kitten") == 2.0


def test_one_slow_line_changes_little(speeds, clock):
    for took_s in (1.0, 1.0, 50.0, 1.0):
        speak(speeds, clock, audio_s=5.0, took_s=took_s)
    assert speeds.get("kitten") == 5.0


def test_a_line_that_failed_still_counts_what_came(speeds, clock):
    def fail():
        with speeds.span("kitten", lambda: 3.0):
            clock.now_s += 1.0
            raise SpeechFailed("It went on for ever.")

    with pytest.raises(SpeechFailed):
        fail()
    assert speeds.get("kitten") == 3.0


def test_they_are_remembered_on_this_machine_and_device_only(tmp_path, speeds, clock):
    speak(speeds, clock, audio_s=6.0, took_s=2.0)
    path = tmp_path / "speeds.json"
    assert SpeechSpeeds(path, "cpu").get("kitten") == 3.0
    assert SpeechSpeeds(path, "cuda").get("kitten") is None


def test_a_removed_voice_is_forgotten(tmp_path, speeds, clock):
    speak(speeds, clock, audio_s=6.0, took_s=2.0)
    speeds.forget("kitten")
    assert speeds.get("kitten") is None
    assert SpeechSpeeds(tmp_path / "speeds.json", "cpu").get("kitten") is None


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"version": 9}', b'{"speeds": {"a": 3}}', b""])
def test_a_file_that_cannot_be_read_costs_only_measurements(tmp_path, clock, content):
    path = tmp_path / "speeds.json"
    path.write_bytes(content)
    speeds = SpeechSpeeds(path, "cpu", clock=clock)
    speak(speeds, clock, audio_s=6.0, took_s=2.0)
    assert speeds.get("kitten") == 3.0


def test_a_folder_that_cannot_be_written_fails_no_line(tmp_path, clock):
    speeds = SpeechSpeeds(tmp_path / "nowhere" / "speeds.json", "cpu", clock=clock)
    speak(speeds, clock, audio_s=6.0, took_s=2.0)
    assert speeds.get("kitten") == 3.0


def test_only_the_first_speed_is_told(speeds, clock):
    told = []
    speeds.notify = lambda: told.append(speeds.get("kitten"))
    for took_s in (1.0, 2.0, 2.0, 2.0):
        speak(speeds, clock, audio_s=5.0, took_s=took_s)
    assert told == [5.0]


def test_a_speed_that_changes_little_by_little_is_kept(tmp_path, speeds, clock):
    for line in range(40):
        speak(speeds, clock, audio_s=5.0, took_s=1.02**line)
    kept = SpeechSpeeds(tmp_path / "speeds.json", "cpu").get("kitten")
    assert kept == pytest.approx(speeds.get("kitten"), rel=0.3)


def test_the_same_speed_again_is_not_written(tmp_path, speeds, clock):
    speak(speeds, clock, audio_s=5.0, took_s=1.0)
    (tmp_path / "speeds.json").unlink()
    speak(speeds, clock, audio_s=5.0, took_s=1.0)
    assert not (tmp_path / "speeds.json").exists()
    for _ in range(2):
        speak(speeds, clock, audio_s=5.0, took_s=3.0)
    assert (tmp_path / "speeds.json").exists()


def test_lines_of_many_threads_are_all_counted(speeds, clock):
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        for _ in range(50):
            with speeds.span("kitten", lambda: 2.0):
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    speak(speeds, clock, audio_s=0.0, took_s=100.0)
    assert speeds.get("kitten") == 8.0, "800 s of speech"
