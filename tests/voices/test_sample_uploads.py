import os
import time

import numpy as np
import pytest
import soundfile

from studio.errors import AudioRejected, BadInput, NotFound
from studio.voices.samples import SampleUploads


@pytest.fixture
def uploads(tmp_path):
    return SampleUploads(tmp_path / "uploads")


def test_a_recording_is_kept_decoded_and_cut(uploads, recording):
    upload = uploads.add(recording(), "my voice.wav")
    assert (upload.name, upload.duration_s, upload.info.rate_hz) == ("my voice.wav", 4.0, 24_000)
    assert uploads.read_part(upload.upload_id).duration_s == 4.0
    whole = uploads.read_part(upload.upload_id).samples
    part = uploads.read_part(upload.upload_id, 1.0, 2.5)
    assert np.array_equal(part.samples, whole[24_000:60_000])
    assert uploads.read_part(upload.upload_id, 3.0, 99.0).duration_s == 1.0


@pytest.mark.parametrize(("start_s", "end_s"), [(2.0, 2.0), (3.0, 1.0), (9.0, None)])
def test_an_empty_part_is_refused(uploads, recording, start_s, end_s):
    upload = uploads.add(recording(), "a.wav")
    with pytest.raises(BadInput, match="chosen part is empty"):
        uploads.read_part(upload.upload_id, start_s, end_s)


def test_a_dropped_recording_is_gone_with_its_file(tmp_path, uploads, recording):
    upload = uploads.add(recording(), "a.wav")
    uploads.drop(upload.upload_id)
    uploads.drop(upload.upload_id)
    assert list((tmp_path / "uploads").iterdir()) == []
    with pytest.raises(NotFound, match="Choose it again"):
        uploads.read_part(upload.upload_id)


@pytest.mark.parametrize("upload_id", ["", "../speakers/x", "a" * 16, "..", "\0"])
def test_ids_from_outside_lead_nowhere(uploads, upload_id):
    with pytest.raises(NotFound):
        uploads.read_part(upload_id)
    uploads.drop(upload_id)


@pytest.mark.slow
def test_the_oldest_make_room(tmp_path, uploads, recording):
    path = recording(duration_s=1.0)
    kept = [uploads.add(path, "a.wav") for _ in range(22)]
    assert len(list((tmp_path / "uploads").iterdir())) == 20
    with pytest.raises(NotFound):
        uploads.get(kept[1].upload_id)
    assert uploads.get(kept[2].upload_id) == kept[2]


def test_a_body_is_written_up_to_a_limit_and_gone_afterwards(tmp_path, uploads):
    with uploads.open_writer(max_bytes=10) as arriving:
        arriving.write(b"12345")
        assert arriving.finish().read_bytes() == b"12345"
        with pytest.raises(AudioRejected, match="the most that is taken"):
            arriving.write(b"678901")
    assert list((tmp_path / "uploads").iterdir()) == []


def test_what_another_run_left_behind_goes_after_a_day(tmp_path, uploads, recording):
    folder = tmp_path / "uploads"
    folder.mkdir()
    for name, age_s in (("old.wav", 2 * 24 * 3600), ("new.wav", 60)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age_s,) * 2)
    with uploads.open_writer():
        pass
    assert [path.name for path in folder.iterdir()] == ["new.wav"]


def test_eight_channels_at_192_khz_come_in(tmp_path, uploads, make_clip):
    clip = make_clip(2.0, rate_hz=192_000)
    soundfile.write(tmp_path / "a.wav", np.stack([clip.samples] * 8, axis=1), 192_000)
    upload = uploads.add(tmp_path / "a.wav", "a.wav")
    assert (upload.info.channels, upload.info.rate_hz) == (8, 192_000)
    assert uploads.read_part(upload.upload_id).duration_s == pytest.approx(2.0, abs=0.001)


def test_a_recording_whose_file_is_gone_is_dropped_too(tmp_path, uploads, recording):
    upload = uploads.add(recording(), "a.wav")
    for file in (tmp_path / "uploads").iterdir():
        file.unlink()
    uploads.drop(upload.upload_id)
    with pytest.raises(NotFound, match="Choose it again"):
        uploads.read_part(upload.upload_id)
