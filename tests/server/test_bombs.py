"""Small bodies that want to become large, at every door that takes a file."""

from __future__ import annotations

import base64
import io
import json
import random
import re
import socket
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import soundfile
from project_scenes import until
from request_costs import CostMeter
from serving import serving

pytestmark = pytest.mark.slow

_GROWTH_BYTES = 150_000_000
"""What the server may have more than before; every bomb wants more."""

_FILE_BYTES = 500_000_000
_BODY_BYTES = 300_000_000


@dataclass(frozen=True)
class Studio:
    client: httpx.Client
    process: psutil.Process
    workspace: Path
    project: str
    speaker: str


@pytest.fixture(scope="module")
def studio(tmp_path_factory) -> Iterator[Studio]:
    workspace = tmp_path_factory.mktemp("bombs") / "workspace"
    with serving(workspace) as (client, process):
        project = client.post("/studio/projects", json={"text": "Ida: Hello."}).json()
        speaker = client.post("/studio/speakers", json={"name": "Ida"}).json()
        ids = (workspace, project["project_id"], speaker["speaker_id"])
        yield Studio(client, psutil.Process(process.pid), *ids)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory) -> dict[str, bytes]:
    """Recordings of a silence that is longer than anything that is taken."""
    folder = tmp_path_factory.mktemp("sounds")
    made = {}
    for suffix, rate_hz, channels in (("flac", 48_000, 2), ("ogg", 16_000, 1)):
        path = folder / f"bomb.{suffix}"
        block = np.zeros((10 * rate_hz, channels), dtype=np.int16)
        with soundfile.SoundFile(path, "w", rate_hz, channels) as file:
            for _ in range(61):
                file.write(block)
        made[suffix] = path.read_bytes()
        assert len(made[suffix]) < 2_000_000
    return made


def zipped(*members: tuple[str, int]) -> bytes:
    """A zip of files that hold so many zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, size in members:
            with archive.open(name, "w", force_zip64=True) as member:
                for _ in range(size // 1_000_000):
                    member.write(bytes(1_000_000))
    return file.getvalue()


def refused(studio: Studio, answer: httpx.Response) -> None:
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]["message"]
    assert studio.client.get("/healthz").status_code == 200


@pytest.fixture(autouse=True)
def stays_small(studio: Studio) -> Iterator[None]:
    before_bytes = studio.process.memory_info().rss
    yield
    assert studio.process.memory_info().rss - before_bytes < _GROWTH_BYTES


def upload(studio: Studio, sound: bytes) -> httpx.Response:
    return studio.client.post("/studio/uploads", content=sound)


def audio_line(studio: Studio, sound: bytes) -> httpx.Response:
    files = {"file": ("door.wav", sound)}
    return studio.client.post(f"/studio/projects/{studio.project}/audio", files=files)


def acted(studio: Studio, sound: bytes) -> httpx.Response:
    return studio.client.post(f"/studio/speakers/{studio.speaker}/act", content=sound)


def reference(studio: Studio, sound: bytes) -> httpx.Response:
    recording = f"data:audio/wav;base64,{base64.b64encode(sound).decode()}"
    body = {"input": "Hello.", "ref_audio": recording}
    return studio.client.post("/v1/audio/speech", json=body)


def voice_file(studio: Studio, sound: bytes) -> httpx.Response:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        record = {"name": "Bomb", "has_sample": True, "colour": "#046bd0"}
        archive.writestr("speaker.json", json.dumps(record))
        archive.writestr("sample.wav", sound)
    return studio.client.post("/studio/speakers/import", content=file.getvalue())


@pytest.mark.parametrize("door", [upload, audio_line, acted, reference, voice_file])
@pytest.mark.parametrize("suffix", ["flac", "ogg"])
def test_a_small_recording_of_gigabytes_is_refused(
    studio: Studio,
    sounds: dict[str, bytes],
    door: Callable[[Studio, bytes], httpx.Response],
    suffix: str,
) -> None:
    refused(studio, door(studio, sounds[suffix]))


def bytes_of(
    studio: Studio, door: Callable[[Studio, bytes], httpx.Response], sound: bytes
) -> bytes:
    """What a client sends at a door."""
    sent: list[httpx.Request] = []

    def keep(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200)

    transport = httpx.MockTransport(keep)
    with httpx.Client(base_url=studio.client.base_url, transport=transport) as client:
        door(replace(studio, client=client), sound)
    (request,) = sent
    head = [b"POST %b HTTP/1.1" % request.url.raw_path]
    head += [b"%b: %b" % pair for pair in request.headers.raw]
    return b"\r\n".join([*head, b"", request.read()])


@pytest.mark.parametrize("door", [upload, audio_line, reference, voice_file])
def test_what_a_client_that_leaves_has_brought_is_not_decoded_to_its_end(
    studio: Studio, sounds: dict[str, bytes], door: Callable[[Studio, bytes], httpx.Response]
) -> None:
    address = (studio.client.base_url.host, studio.client.base_url.port)
    children: list[psutil.Process] = []

    def has_begun() -> bool:
        for child in studio.process.children():
            with suppress(psutil.Error):
                if "studio.audio.guarded_decode" in child.cmdline():
                    child.suspend()  # it hangs, and never ends by itself
                    children.append(child)
        return bool(children)

    with socket.create_connection(address) as connection:
        connection.sendall(bytes_of(studio, door, sounds["flac"]))
        until(has_begun)
    _, left = psutil.wait_procs(children, timeout=30)
    for child in left:
        child.kill()
    assert left == []


@pytest.mark.parametrize(
    "members",
    [
        [("project.json", _FILE_BYTES)],
        [("project.json", 1_000_000), ("edits.jsonl", _FILE_BYTES)],
        [("speaker.json", _FILE_BYTES)],
        [("speaker.json", 1_000_000), ("sample.wav", _FILE_BYTES)],
    ],
    ids=["project", "history", "speaker", "sample"],
)
def test_a_small_zip_of_large_files_is_refused(
    studio: Studio, tmp_path: Path, members: list[tuple[str, int]]
) -> None:
    bomb = zipped(*members)
    assert len(bomb) < 2_000_000
    files = {"file": ("scene.tableread.zip", bomb)}
    refused(studio, studio.client.post("/studio/projects/import", files=files))
    refused(studio, studio.client.post("/studio/speakers/import", content=bomb))


def patched(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


def members_in(data: bytes) -> list[int]:
    """Where the directory has its members."""
    return [found.start() for found in re.finditer(b"PK\1\2", data)]


def far_member(data: bytes, place: int) -> bytes:
    """The first member where only 64 bits can say that it is."""
    first, end = members_in(data)[0], data.rindex(b"PK\5\6")
    behind = first + 46 + struct.unpack_from("<H", data, first + 28)[0]
    size = struct.unpack_from("<I", data, end + 12)[0]
    data = patched(data, end + 12, struct.pack("<I", size + 12))
    data = patched(patched(data, first + 42, b"\xff" * 4), first + 30, struct.pack("<H", 12))
    return data[:behind] + struct.pack("<HHQ", 1, 8, place) + data[behind:]


def encrypted(data: bytes) -> bytes:
    for place in members_in(data):
        start = struct.unpack_from("<I", data, place + 42)[0]
        data = patched(patched(data, place + 8, b"\1\0"), start + 6, b"\1\0")
    return data


def overlapping(data: bytes) -> bytes:
    return patched(data, members_in(data)[1] + 42, bytes(4))


DAMAGE: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "spoilt bzip2": (zipfile.ZIP_BZIP2, lambda data: patched(data, 50, bytes(9))),
    "spoilt lzma": (zipfile.ZIP_LZMA, lambda data: patched(data, 50, bytes(9))),
    "spoilt deflate": (zipfile.ZIP_DEFLATED, lambda data: patched(data, 50, b"\xff" * 9)),
    "an unknown method": (0, lambda data: patched(data, members_in(data)[0] + 10, b"\x63")),
    "encrypted": (0, encrypted),
    "a wrong CRC": (0, lambda data: patched(data, members_in(data)[0] + 16, bytes(4))),
    "members that overlap": (0, overlapping),
    "a member far behind the end": (0, lambda data: far_member(data, 1 << 62)),
    "a member no file could hold": (0, lambda data: far_member(data, 1 << 63)),
    "a directory before the file": (0, lambda data: patched(data, len(data) - 6, b"\xf0" * 4)),
    "a spoilt directory": (0, lambda data: patched(data, members_in(data)[0], b"PK\7\x08")),
}


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("door", ["projects", "speakers"])
def test_a_damaged_zip_is_refused_and_leaves_nothing(
    studio: Studio, damage: str, door: str
) -> None:
    method, spoil = DAMAGE[damage]
    record, other = {
        "projects": ("project.json", "edits.jsonl"),
        "speakers": ("speaker.json", "sample.wav"),
    }[door]
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr(record, json.dumps({"name": "Bomb", "has_sample": True, "x": "y" * 999}))
        archive.writestr(other, random.Random(1).randbytes(30_000))
    before = files_in(studio.workspace)
    sent = spoil(file.getvalue())
    answer = (
        studio.client.post("/studio/projects/import", files={"file": ("a.tableread.zip", sent)})
        if door == "projects"
        else studio.client.post("/studio/speakers/import", content=sent)
    )
    refused(studio, answer)
    assert "Errno" not in answer.text
    assert files_in(studio.workspace) == before


def test_a_recording_whose_name_no_disk_takes_is_no_project_s(studio: Studio) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("project.json", "{}")
        archive.writestr(f"audio/{'é' * 200}-00000000.wav", b"")
    files = {"file": ("a.tableread.zip", file.getvalue())}
    refused(studio, studio.client.post("/studio/projects/import", files=files))


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_is_never_unpacked(studio: Studio, encoding: str) -> None:
    packer = zlib.compressobj(wbits=31 if encoding == "gzip" else 15)
    blocks = [packer.compress(b" " * 1_000_000) for _ in range(_BODY_BYTES // 1_000_000)]
    bomb = b"".join(blocks) + packer.compress(b"{}") + packer.flush()
    headers = {"Content-Encoding": encoding, "Content-Type": "application/json"}
    for path in ("/studio/projects", "/v1/audio/speech", "/v1/dialogs"):
        answer = studio.client.post(path, content=bomb, headers=headers)
        assert answer.status_code in {400, 415, 422}, (path, answer.status_code)
    assert studio.client.get("/healthz").status_code == 200


NAMES = b",".join(b'"k%d":1' % number for number in range(400))
MANY_NAMES = b",".join(b'"k%d":1' % number for number in range(400_000))
CHARACTERS = b",".join(b'"Ida %d":{%b}' % (number, NAMES) for number in range(1_000))
NUMBERS = b",".join([b"1"] * 1_000_000)
FEWER_NUMBERS = b",".join([b"1"] * 400_000)
LISTS = b",".join([b"[]"] * 3_900_000)
OP = b'{"op":"delete","line_ids":[%b]}'
EDIT = b'{"base_rev":0,"client":"ida","ops":[%b]}'


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux resets the peak of memory")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("focus", b'{"a":[%b]}' % LISTS),
        ("focus", b"{%b}" % MANY_NAMES),
        ("edits", EDIT % b",".join([OP % b",".join([b"1"] * 20_000)] * 24)),
        ("edits", EDIT % b'{"op":"pronounce","remove":[%b]}' % FEWER_NUMBERS),
        ("pronunciations/read", b"[%b]" % FEWER_NUMBERS),
        ("/v1/dialogs", b'{"input":[%b]}' % NUMBERS),
        ("/v1/dialogs", b'{"input":[%b]}' % FEWER_NUMBERS),
        ("/v1/dialogs", b'{"input":"Ida: Yes.","voices":{%b}}' % MANY_NAMES),
        ("/v1/dialogs", b'{"input":"Ida: Yes.","characters":{%b}}' % CHARACTERS),
        ("/v1/audio/speech", b'{"input":"Yes.",%b}' % MANY_NAMES),
    ],
    ids=lambda value: str(value[:40]),
)
def test_json_of_many_values_takes_little_memory(studio: Studio, path: str, body: bytes) -> None:
    address = path if path.startswith("/") else f"/studio/projects/{studio.project}/{path}"
    answer, cost = CostMeter(studio.process.pid).measure(
        lambda: studio.client.post(
            address, content=body, headers={"Content-Type": "application/json"}
        )
    )
    refused(studio, answer)
    assert cost.memory_bytes < 100_000_000


@pytest.mark.parametrize("door", [upload, audio_line])
def test_a_recording_is_no_json_of_many_values(
    studio: Studio, door: Callable[[Studio, bytes], httpx.Response]
) -> None:
    file = io.BytesIO()
    samples = np.tile(np.frombuffer(b",,[[{{", dtype=np.int16), 200_000)
    soundfile.write(file, samples, 24_000, format="WAV", subtype="PCM_16")
    assert door(studio, file.getvalue()).status_code == 201
