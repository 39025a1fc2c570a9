"""Tags, chapters and covers, as other programs read them; file names, podcast files and Reaper."""

from __future__ import annotations

import io
import json
import shutil
import struct
import subprocess
import tracemalloc
import wave
import zipfile
import zlib
from contextlib import nullcontext
from dataclasses import replace

import av
import mutagen
import mutagen.id3
import mutagen.mp3
import numpy as np
import pytest
import rpp
import soundfile
from PIL import Image
from spoken_scenes import laid, spoken

from studio.audio.decode import decode
from studio.audio.export import check_names
from studio.audio.file_tags import Chapter, Cover, FileTags, read_cover, write_id3
from studio.audio.scene_file import ExportOptions, Scene
from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Dialog, Speech
from studio.errors import BadInput

TAGGED = ["wav", "mp3", "flac", "opus", "m4a", "m4b", "aiff"]


def image(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (48, 32), (200, 10, 10)).save(file, kind)
    return file.getvalue()


@pytest.fixture(scope="module")
def clips():
    return spoken()


@pytest.fixture
def scene(tmp_path, clips) -> Scene:
    """Four lines in two sections; the heading of an empty one stands at the end."""
    timeline, captions = laid(tmp_path, clips)
    tags = FileTags("Thé Lamp", ("Ida", "Tom"), "en", ("Kokoro",), cover=Cover(image("JPEG")))
    return Scene(timeline, captions, ((0, "One — the lamp"), (3, "Two"), (99, "Empty")), tags)


def told(path) -> dict[str, str]:
    """The tags as FFmpeg reads them, those of the only stream in Ogg."""
    with av.open(str(path)) as container:
        return dict(container.metadata) | dict(container.streams.audio[0].metadata)


def decoded(path):
    """Mono samples at 24,000 Hz, by FFmpeg."""
    with av.open(str(path)) as container:
        convert = av.AudioResampler(format="flt", layout="mono", rate=24_000)
        frames = [*container.decode(audio=0), None]
        return np.concatenate([f.to_ndarray()[0] for one in frames for f in convert.resample(one)])


@pytest.mark.parametrize("suffix", TAGGED)
@pytest.mark.parametrize("has_cover", [True, False])
def test_a_file_says_what_it_is(tmp_path, scene, suffix, has_cover):
    path = tmp_path / f"a.{suffix}"
    if not has_cover:
        scene = replace(scene, tags=replace(scene.tags, cover=None), sections=())
    scene.write(path)
    found = {name.lower(): value for name, value in told(path).items()}
    assert found["title"] == "Thé Lamp"
    assert found["artist"] == "Ida; Tom"
    assert "Synthetic speech, made with Kokoro." in (found.get("comment"), found.get("description"))
    assert any(value.startswith("Tableread ") for value in found.values())
    assert found["language"][:2] == "en"


def test_an_mp3_has_its_comment_and_language_where_players_look(tmp_path, scene):
    scene.write(tmp_path / "a.mp3")
    tags = mutagen.mp3.MP3(tmp_path / "a.mp3").tags
    (comment,) = tags.getall("COMM")
    assert (comment.text, comment.lang, comment.desc) == (
        ["Synthetic speech, made with Kokoro."],
        "eng",
        "",
    )
    assert tags["TLAN"].text == ["eng"]
    assert not any("comment" in key.lower() for key in tags)


@pytest.mark.parametrize(("n_chapters", "n_tables"), [(255, 1), (256, 3), (600, 4)])
def test_an_mp3_lists_all_of_its_chapters(n_chapters, n_tables):
    chapters = tuple(Chapter(f"CTOC {n}", n, n + 1) for n in range(n_chapters))
    written = io.BytesIO()
    write_id3(written, FileTags("CTOC", engines=("Kokoro",), chapters=chapters))
    written.seek(0)
    tags = mutagen.id3.ID3(written)
    tables = {one.element_id: one for one in tags.getall("CTOC")}
    assert len(tables) == n_tables

    def listed(name):
        if name not in tables:
            return [name]
        return [one for child in tables[name].child_element_ids for one in listed(child)]

    titles = {one.element_id: one.sub_frames["TIT2"].text[0] for one in tags.getall("CHAP")}
    assert [titles[name] for name in listed("toc")] == [one.title for one in chapters]
    assert [name for name, one in tables.items() if one.flags & 2] == ["toc"]
    assert tags["TIT2"].text == ["CTOC"]
    (comment,) = tags.getall("COMM")
    assert comment.text == ["Synthetic speech, made with Kokoro."]


@pytest.mark.parametrize("suffix", [one for one in TAGGED if one != "aiff"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_the_cover_is_the_image_as_it_was(tmp_path, scene, suffix, kind):
    cover = image(kind)
    path = tmp_path / f"a.{suffix}"
    replace(scene, tags=replace(scene.tags, cover=Cover(cover))).write(path)
    file = mutagen.File(path)
    match suffix:
        case "mp3" | "wav":
            data = file.tags.getall("APIC")[0].data
        case "flac":
            data = file.pictures[0].data
        case "opus":
            from base64 import b64decode

            data = mutagen.flac.Picture(b64decode(file["metadata_block_picture"][0])).data
        case _:
            data = bytes(file["covr"][0])
    assert data == cover


@pytest.mark.parametrize("suffix", ["wav", "mp3", "opus", "m4a", "m4b", "aiff"])
def test_sections_are_chapters(tmp_path, scene, suffix):
    path = tmp_path / f"a.{suffix}"
    scene.write(path)
    with av.open(str(path)) as container:
        chapters = container.chapters()
    second_s = next(one.start_s for one in scene.timeline.entries if one.segment_idx == 3)
    assert [one["metadata"]["title"] for one in chapters] == ["One — the lamp", "Two"]
    starts_s = [float(one["start"] * one["time_base"]) for one in chapters]
    assert starts_s == pytest.approx([0.0, second_s], abs=0.002)
    assert float(chapters[1]["end"] * chapters[1]["time_base"]) == pytest.approx(
        scene.timeline.duration_s, abs=0.05
    )


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe isn't installed")
@pytest.mark.parametrize("suffix", ["wav", "mp3", "m4a", "m4b"])
def test_ffprobe_tells_tags_cover_and_chapters(tmp_path, scene, suffix):
    path = tmp_path / f"a.{suffix}"
    scene.write(path)
    asked = ["ffprobe", "-v", "error", "-of", "json", "-show_format", "-show_streams"]
    done = subprocess.run([*asked, "-show_chapters", path], capture_output=True, check=True)
    assert done.stderr == b""
    probed = json.loads(done.stdout)
    assert probed["format"]["tags"]["title"] == "Thé Lamp"
    assert [one["tags"]["title"] for one in probed["chapters"]] == ["One — the lamp", "Two"]
    covers = [one for one in probed["streams"] if one["disposition"]["attached_pic"]]
    assert [(one["codec_name"], one["width"], one["height"]) for one in covers] == [
        ("mjpeg", 48, 32)
    ]


def test_flac_has_chapters_as_comments(tmp_path, scene):
    scene.write(tmp_path / "a.flac")
    file = mutagen.File(tmp_path / "a.flac")
    assert (file["CHAPTER000"], file["CHAPTER000NAME"]) == (["00:00:00.000"], ["One — the lamp"])


@pytest.mark.parametrize("suffix", ["flac", "opus", "m4a", "m4b", "mp3"])
def test_the_sound_is_that_of_the_scene(tmp_path, scene, suffix):
    scene.write(tmp_path / "a.wav")
    scene.write(tmp_path / f"a.{suffix}")
    whole, coded = (decoded(tmp_path / f"a.{one}") for one in ("wav", suffix))
    assert abs(len(coded) - len(whole)) <= 0.1 * 24_000
    n = min(len(whole), len(coded))
    error = coded[:n] - whole[:n] * (0.95 if suffix == "mp3" else 1.0)
    assert np.mean(error**2) <= (0 if suffix == "flac" else 0.02) * np.mean(whole**2) + 1e-12


def read_chunks(wav: bytes) -> list[tuple[bytes, bytes]]:
    """The chunks of a WAV in their order, by a reader that trusts nothing but the sizes."""
    assert (wav[:4], wav[8:12]) == (b"RIFF", b"WAVE")
    assert int.from_bytes(wav[4:8], "little") == len(wav) - 8
    found, at = [], 12
    while at < len(wav):
        end = at + 8 + int.from_bytes(wav[at + 4 : at + 8], "little")
        found.append((wav[at : at + 4], wav[at + 8 : end]))
        at = end + end % 2
    assert at == len(wav)
    return found


@pytest.mark.parametrize("title", ["Thé Lamp", "灯台", "odd", ""])
def test_tags_of_a_wav_stand_behind_its_sound(tmp_path, scene, title):
    scene = replace(scene, tags=replace(scene.tags, title=title))
    replace(scene, wav_tags=False).write(tmp_path / "plain.wav")
    scene.write(tmp_path / "a.wav")
    scene.write(tmp_path / "a.zip")
    plain, tagged = (tmp_path / name for name in ("plain.wav", "a.wav"))
    whole = tagged.read_bytes()
    assert whole[8 : plain.stat().st_size] == plain.read_bytes()[8:]
    assert [name for name, _ in read_chunks(plain.read_bytes())] == [b"fmt ", b"data"]
    assert [name for name, _ in read_chunks(whole)] == [
        *(b"fmt ", b"data", b"LIST", b"cue ", b"LIST", b"id3 "),
    ]
    assert unpacked(tmp_path / "a.zip")["scene.wav"] == whole
    with wave.open(str(plain)) as before, wave.open(str(tagged)) as after:
        assert after.getparams() == before.getparams()
    assert np.array_equal(decode(tagged).samples, decode(plain).samples)
    with soundfile.SoundFile(tagged) as file:
        assert file.frames == scene.timeline.n_samples
        assert (file.title, file.artist) == (title, "Ida; Tom")
        assert file.comment == "Synthetic speech, made with Kokoro."
        assert file.software.startswith("Tableread ")
    assert mutagen.File(tagged).tags.getall("TIT2") == ([title] if title else [])


def test_markers_of_a_wav_are_its_sections(tmp_path, scene):
    scene.write(tmp_path / "a.wav")
    chunks = read_chunks((tmp_path / "a.wav").read_bytes())
    (points,) = (body for name, body in chunks if name == b"cue ")
    second = next(one for one in scene.timeline.entries if one.segment_idx == 3).start_sample
    rows = [struct.unpack_from("<II4sIII", points, 4 + 24 * at) for at in range(2)]
    assert rows == [(1, 0, b"data", 0, 0, 0), (2, second, b"data", 0, 0, second)]
    assert len(points) == 4 + 2 * 24
    (labels,) = (body for _, body in chunks if body.startswith(b"adtl"))
    assert labels.endswith(b"labl\x08\0\0\0\x02\0\0\0Two\0")


@pytest.mark.parametrize("suffix", ["mp3", "m4a", "opus"])
@pytest.mark.parametrize("kbps", [64, 96, 128, 192])
def test_a_bit_rate_is_kept(tmp_path, scene, suffix, kbps):
    path = tmp_path / f"a.{suffix}"
    replace(scene, tags=FileTags()).write(path, ExportOptions(kbps=kbps))
    with av.open(str(path)) as container:
        stream = container.streams.audio[0]
        rate_kbps = sum(packet.size for packet in container.demux(stream)) * 8 / 1000
        rate_kbps /= scene.timeline.duration_s
        assert stream.rate == (44_100 if kbps > 128 and suffix != "opus" else stream.rate)
    if suffix == "mp3":  # of constant rate; the others spend what speech needs
        assert rate_kbps == pytest.approx(kbps, rel=0.05)
    else:
        assert rate_kbps < 1.3 * kbps


@pytest.mark.parametrize(("suffix", "kbps"), [("mp3", 128), ("opus", 64), ("m4a", 96), ("m4b", 96)])
def test_the_usual_bit_rate_of_each_form(tmp_path, scene, suffix, kbps):
    sizes = []
    for chosen in (None, kbps):
        path = tmp_path / f"{chosen}.{suffix}"
        replace(scene, tags=FileTags()).write(path, ExportOptions(kbps=chosen))
        sizes.append(path.stat().st_size)
    assert sizes[0] == sizes[1]


def test_a_bit_rate_that_no_format_has_is_refused(tmp_path, scene):
    with pytest.raises(BadInput, match="64, 96, 128, 192"):
        scene.write(tmp_path / "a.mp3", ExportOptions(kbps=100))


@pytest.mark.parametrize("data", [b"", b"no image", image("GIF"), image("PNG")[:40]])
def test_what_is_no_cover_is_refused(tmp_path, data):
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(BadInput, match="cover"):
        read_cover(tmp_path / "c")
    with pytest.raises(BadInput, match="cover"):
        read_cover(tmp_path / "none")


def drawn(kind: str, mode: str = "RGB", **options: object) -> bytes:
    data = io.BytesIO()
    picture = Image.new(mode, (37, 21))
    picture.save(data, kind, **options)
    return data.getvalue()


def two_pictures() -> bytes:
    """What phones and 3D cameras call a JPEG: a second picture lies behind the first."""
    data = io.BytesIO()
    first = Image.new("RGB", (37, 21))
    first.save(data, "MPO", save_all=True, append_images=[Image.new("RGB", (9, 9))])
    return data.getvalue()


@pytest.mark.parametrize(
    "cover",
    [
        drawn("JPEG", progressive=True, exif=bytes.fromhex("4578696600004d4d002a000000080000")),
        drawn("JPEG", "CMYK", comment=b"\xff\xc0 is no frame"),
        drawn("PNG", "I;16"),
        drawn("PNG", "P", transparency=0),
        two_pictures(),
    ],
    ids=["progressive", "four inks", "16 bit", "palette", "two pictures"],
)
def test_every_kind_of_image_says_its_size(cover):
    kind, *size = Cover(cover).image
    assert (kind, size) == ("PNG" if cover[:2] == b"\x89P" else "JPEG", [37, 21])
    assert Cover(cover).media_type in ("image/png", "image/jpeg")


def heavy_jpeg() -> bytes:
    """64 KB whose EXIF says that each of 5,000 values is all of it."""
    entries = b"".join(struct.pack(">HHII", number, 7, 60_000, 8) for number in range(5_000))
    exif = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">H", 5_000) + entries
    segment = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    plain = drawn("JPEG")
    return plain[:2] + segment + plain[2:]


def large_png(width: int = 50_000, height: int = 50_000) -> bytes:
    plain = drawn("PNG")
    head = b"IHDR" + struct.pack(">II", width, height) + plain[24:29]
    return plain[:12] + head + struct.pack(">I", zlib.crc32(head)) + plain[33:]


def test_an_image_that_would_fill_the_memory_takes_none():
    cover, large = heavy_jpeg(), large_png()
    tracemalloc.start()
    assert Cover(cover).image == ("JPEG", 37, 21)
    with pytest.raises(BadInput, match="50,000 × 50,000"):
        _ = Cover(large).image
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


def long_jpeg(width: int, height: int) -> bytes:
    plain = drawn("JPEG")
    sides = plain.index(b"\xff\xc0") + 5
    return plain[:sides] + struct.pack(">HH", height, width) + plain[sides + 4 :]


@pytest.mark.parametrize(
    ("cover", "taken"),
    [
        (long_jpeg(65_500, 1), True),
        (large_png(1, 65_500), True),
        (long_jpeg(65_501, 1), False),
        (long_jpeg(1, 65_535), False),
        (large_png(65_536, 1), False),
        (large_png(1, 179_000_000), False),
    ],
    ids=["jpeg", "png", "wide jpeg", "high jpeg", "wide png", "high png"],
)
def test_what_is_a_cover_can_be_put_into_every_file(tmp_path, scene, cover, taken):
    scene = replace(scene, tags=replace(scene.tags, cover=Cover(cover)))
    for suffix in TAGGED if taken else []:
        scene.write(tmp_path / f"a.{suffix}")
    (tmp_path / "c").write_bytes(cover)
    with nullcontext() if taken else pytest.raises(BadInput, match=r"pixels.* Make it smaller"):
        read_cover(tmp_path / "c")


def unpacked(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("{number}-{speaker}", ["0001-Ida.wav", "0002-Tom.wav"]),
        ("{segment}-{speaker}", ["0001-Ida.wav", "0003-Tom.wav"]),
        ("{speaker} {number} {words}", ["Ida 0001 The_lamp_is_still_burning_and.wav"]),
    ],
)
def test_files_of_lines_are_named_by_a_pattern(tmp_path, scene, names, first):
    scene.write(tmp_path / "a.zip", ExportOptions(names=names))
    contents = unpacked(tmp_path / "a.zip")
    listed = [row["file"] for row in json.loads(contents["manifest.json"])["segments"]]
    assert [name for name in listed if name][: len(first)] == first
    assert set(filter(None, listed)) < set(contents)


@pytest.mark.parametrize(
    "names", ["", "{speaker}", "{words}", "{number", "{number!r}", "{number:9}", "{0}", "{line}"]
)
def test_a_pattern_that_names_no_line_is_refused(names):
    with pytest.raises(BadInput, match=r"\{number\}"):
        check_names(names)


@pytest.mark.parametrize("tracks", [False, True])
def test_podcasts_get_chapters_and_a_transcript(tmp_path, scene, tracks):
    scene.write(tmp_path / "a.zip", ExportOptions(tracks=tracks, podcast=True))
    contents = unpacked(tmp_path / "a.zip")
    chapters = json.loads(contents["chapters.json"])
    assert chapters["version"] == "1.2.0"
    assert [one["title"] for one in chapters["chapters"]] == ["One — the lamp", "Two"]
    transcript = json.loads(contents["transcript.json"])["segments"]
    assert [one["speaker"] for one in transcript] == ["Ida", "Tom", "Ida", "Tom"]
    assert transcript[0]["body"].startswith("The lamp")
    assert transcript[0]["endTime"] <= transcript[1]["startTime"]
    scene.write(tmp_path / "b.zip", ExportOptions(tracks=tracks))
    assert set(contents) - set(unpacked(tmp_path / "b.zip")) == {"chapters.json", "transcript.json"}


def test_a_line_of_several_parts_is_one_segment_of_the_transcript(scene):
    parts = json.loads(scene.write_podcast_files()["transcript.json"])["segments"][:2]
    one_line = {
        idx: replace(scene.captions[idx], line_number=7) for idx in list(scene.captions)[:2]
    }
    whole = replace(scene, captions={**scene.captions, **one_line})
    segment = json.loads(whole.write_podcast_files()["transcript.json"])["segments"][0]
    assert (segment["startTime"], segment["endTime"]) == (
        parts[0]["startTime"],
        parts[1]["endTime"],
    )
    assert segment["body"] == " ".join(part["body"] for part in parts)


def test_a_transcript_reads_back_as_lines(scene):
    written = scene.write_podcast_files()["transcript.json"]
    segments = json.loads(written)["segments"]
    for name in ("scene.transcript.json", "The clipboard"):
        read = import_dialog(written, name)
        assert read.dialog == Dialog(tuple(Speech(one["speaker"], one["body"]) for one in segments))
        assert (read.notices, read.title) == ((), None)


def test_podcast_files_items_and_names_have_what_is_heard(tmp_path, scene):
    first = replace(scene.captions[0], text="(softly) The [pause:1s] lamp is lit.")
    silent = replace(scene.captions[2], text="(beat)")
    scene = replace(scene, captions={**scene.captions, 0: first, 2: silent})
    transcript = json.loads(scene.write_podcast_files()["transcript.json"])
    bodies = [one["body"] for one in transcript["segments"]]
    assert bodies[0] == "The lamp is lit."
    assert len(bodies) == 3
    scene.write(tmp_path / "a.zip", ExportOptions(names="{number}-{words}"))
    assert {"0001-The_lamp_is_lit.wav", "0002.wav"} <= set(unpacked(tmp_path / "a.zip"))
    scene.write(tmp_path / "b.zip", ExportOptions(tracks=True))
    assert 'NAME "Ida: The lamp is lit."' in unpacked(tmp_path / "b.zip")["scene.rpp"].decode()


def test_another_reader_of_reaper_finds_every_line_where_it_is(tmp_path, scene):
    scene.write(tmp_path / "a.zip", ExportOptions(tracks=True))
    project = rpp.loads(unpacked(tmp_path / "a.zip")["scene.rpp"].decode())
    markers = [row for row in project if isinstance(row, list) and row[0] == "MARKER"]
    assert [row[3] for row in markers] == ["One — the lamp", "Two"]
    found = []
    for track in project.findall(".//TRACK"):
        for item in track.findall("ITEM"):
            values = {row[0]: row[1] for row in item if isinstance(row, list)}
            assert values["POSITION"] == values["SOFFS"]
            found.append((float(values["POSITION"]), float(values["LENGTH"])))
    placed = [one for one in scene.timeline.entries if one.source is not None]
    wanted = [(one.start_s, one.duration_s) for one in placed]
    assert np.allclose(sorted(found), wanted)
