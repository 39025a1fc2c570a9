"""Versions of files: older ones open and are kept, newer ones are refused as such, untouched."""

from __future__ import annotations

import errno
import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest
from project_scenes import Bench, document_of, ops, text_edit
from test_damage import IDA, projects_of

from studio.audio.kept_loudness import LoudnessStore
from studio.errors import FileDamaged, FormatNewer, StorageFailed
from studio.project.folder import LastPosition, read_last_position
from studio.project.judgement import read_judgement
from studio.project.takes import read_take_record
from studio.storage.disk import Disk
from studio.storage.records import Record, RecordFormat
from studio.voices.library import SpeakerLibrary

LINES = ["00000000000a", "00000000000b"]
FIRST_SNAPSHOT: Record = {
    "version": 1,
    "name": "First",
    "cast": {"Ida": None},
    "settings": {"backend": None, "seed": 3},
    "lines": [
        {"line_id": LINES[0], "speaker": "Ida", "text": "One."},
        {"line_id": LINES[1], "speaker": "Tom", "text": "Two."},
    ],
    "locked_takes": [],
    "deleted_takes": [],
    "audio_s": 0.0,
    "history": {
        "journal_bytes": 0, "rev": 0, "undo": None, "redo": None, "last": None, "at_s": 5.0,
        "seen": [],
    },
}  # fmt: skip
"""As the first studio wrote it: without first names, checksum and removed steps."""

FIRST_TAKE: Record = {
    "take_id": "0123456789abcdef", "line_id": LINES[0], "key": "0" * 32, "seed": 1,
    "backend": "draft", "text": "One.", "voice": "Ida", "samples": 10,
    "created_at": "2026-01-01T00:00:00.000+00:00", "language": None, "params": {},
}  # fmt: skip
"""As the first studio wrote it: without version, checksums, quality and cuts."""

FIRST_SPEAKER = b'{\n  "version": 1,\n  "name": "Ida",\n  "colour": "#046bd0"\n}\n'


def journal_line(entry: Record) -> bytes:
    body = json.dumps(entry, separators=(",", ":")).encode()
    return b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + b"}\n"


def first_entry(order: list[Any]) -> Record:
    """An edit as the first studios appended it, without a version."""
    line = {"line_id": "00000000000c", "speaker": "Ida", "text": "Three."}
    delta = {"lines": {"00000000000c": [None, line]}, "order": order}
    return {
        "rev": 1, "at": 6.0, "client": "ida", "kind": "edit", "joined": False, "below": None,
        "delta": delta,
    }  # fmt: skip


def first_project(bench: Bench, **changes: Any) -> Path:
    root = bench.root / "0123456789ab"
    root.mkdir()
    record = {**FIRST_SNAPSHOT, **changes}
    stated = {name: value for name, value in record.items() if value is not None}
    (root / "project.json").write_text(json.dumps(stated, indent=1) + "\n")
    (root / "edits.jsonl").write_bytes(b"")
    return root


def files_of(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("version", [1, 0, None])
@pytest.mark.parametrize("order", [[2, [], ["00000000000c"]], [2, [], ["00000000000c"], LINES[1]]])
def test_the_first_projects_open(bench: Bench, version: int | None, order: list[Any]) -> None:
    root = first_project(bench, version=version)
    (root / "edits.jsonl").write_bytes(journal_line(first_entry(order)))
    before = (root / "project.json").read_bytes()
    session = bench.open(root.name)
    assert [line.text for line in session.document] == ["One.", "Two.", "Three."]
    assert session.folder.notices == []
    session.undo(IDA, session.rev)
    session.edit(ops(text_edit(LINES[0], "Changed.")), IDA, session.rev)
    session.close()
    assert json.loads((root / "project.json").read_bytes())["version"] == 1
    kept = root / "project.version-0.json"
    assert (kept.read_bytes() == before) if version != 1 else not kept.exists()
    again = bench.open(root.name)
    assert [line.text for line in again.document] == ["Changed.", "Two."]
    bench.kill(again)


def test_the_first_takes_and_positions_are_read(tmp_path: Path) -> None:
    path = tmp_path / LINES[0] / "0123456789abcdef.json"
    path.parent.mkdir()
    path.write_text(json.dumps(FIRST_TAKE, indent=2))
    take = read_take_record(path)
    assert (take.text, take.audio_crc32, take.cut) == ("One.", None, False)
    place = {"line_id": LINES[0], "heard": None, "by": "ida", "number": 3}
    (tmp_path / "place.json").write_text(json.dumps(place))
    assert read_last_position(tmp_path) == LastPosition(**place)


def test_the_first_lists_of_lines_to_render_are_read(bench: Bench) -> None:
    root = first_project(bench)
    (root / "pending.json").write_text(json.dumps({"lines": {LINES[1]: None, LINES[0]: 7}}))
    session = bench.open(root.name)
    assert dict(session.folder.read_pending()) == {LINES[1]: None, LINES[0]: 7}
    assert session.folder.notices == []
    bench.kill(session)


@pytest.mark.parametrize("head", [b'  "version": 1,\n', b""])
def test_the_first_voices_are_read_and_kept(tmp_path: Path, head: bytes) -> None:
    library = SpeakerLibrary(tmp_path)
    path = tmp_path / "0123456789ab" / "speaker.json"
    path.parent.mkdir()
    first = FIRST_SPEAKER.replace(b'  "version": 1,\n', head)
    path.write_bytes(first)
    assert library.list_problems() == ()
    library.update("Ida", language="de")
    assert json.loads(path.read_bytes())["version"] == 1
    kept = path.with_name("speaker.version-0.json")
    assert (kept.read_bytes() == first) if not head else not kept.exists()


EARLIER = json.loads(Path(__file__).with_name("earlier_studios.json").read_text("utf-8"))
"""Files by studio: each format that ever was, and the current one at last."""


@pytest.mark.parametrize("studio", EARLIER)
@pytest.mark.parametrize("is_saved", [True, False], ids=["saved", "from its history"])
def test_every_earlier_format_opens(bench: Bench, studio: str, is_saved: bool) -> None:
    for name, content in EARLIER[studio].items():
        path = bench.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, "utf-8")
    root = bench.root / "0123456789ab"
    if not is_saved:
        (root / "project.json").unlink()
    session = bench.open(root.name)
    assert session.folder.notices == []
    assert session.document.name == "Old scene"
    assert [(line.speaker, line.text) for line in session.document] == [
        ("Thomas", "This is line 1."),
        ("Ida", "New."),
        ("Ida", "One, changed."),
        ("Ida", "This is line 2."),
    ]
    document, is_newer = session.document, studio in ("studio 8", "studio 9")
    assert document.settings.seed == 7
    (take,) = session.take_store
    assert (take.text, take.voice) == ("One, changed.", "Ida")
    assert take.source == ("recording" if is_newer else None)
    assert [one.text for one in document.comments.values()] == ["Slower."] * is_newer
    assert document.starred_takes == (take.take_id,) * is_newer
    assert document.settings.gap_s == 0.25 * is_newer
    assert {name: (one.gap_s, one.pan) for name, one in document.characters.items()} == (
        {"ida": (0.5, -0.5 if studio == "studio 9" else 0.0)} if is_newer else {}
    )
    assert (read_last_position(root) is not None) == is_newer
    judgement = read_judgement(root)
    level = LoudnessStore(bench.root / "loudness.json").find("k" * 32)
    assert (judgement and judgement.report.too_few) == ((("Tom", None, 4),) if is_newer else None)
    assert (level and level.find_loudness("mp3 128").lufs) == (-16.0 if is_newer else None)
    assert dict(session.folder.read_pending()) == {f"{2:012x}": None, f"{0:012x}": 5}
    while session.can_undo:
        session.undo(IDA, session.rev)
    assert [line.text for line in session.document] == [f"This is line {n}." for n in range(3)]
    session.close()
    (voice,) = SpeakerLibrary(bench.root / "speakers").list()
    assert (voice.name, voice.transcript, voice.tags) == ("Ida", "Said.", ("low",))


def test_every_file_states_its_version(bench: Bench) -> None:
    session = bench.make(document_of(2))
    session.edit(ops(text_edit(session.document.order[0], "New.")), IDA, session.rev)
    session.folder.write_pending({LINES[0]: None})
    session.close()
    root = bench.root / "abc"
    for name in ("project.json", "pending.json"):
        assert json.loads((root / name).read_bytes())["version"] == 1
    for line in (root / "edits.jsonl").read_bytes().splitlines():
        assert json.loads(line)["entry"]["version"] == 1


def newer_snapshot(root: Path) -> None:
    path = root / "project.json"
    record = {**json.loads(path.read_bytes()), "version": 4, "more": [1]}
    record.pop("sum", None)
    path.write_text(json.dumps(record))


def newer_entry(root: Path) -> None:
    lines = (root / "edits.jsonl").read_bytes().splitlines()
    entry = {**json.loads(lines[-1])["entry"], "version": 4}
    data = b"".join(line + b"\n" for line in lines[:-1]) + journal_line(entry)
    (root / "edits.jsonl").write_bytes(data)


@pytest.mark.parametrize("make_newer", [newer_snapshot, newer_entry])
def test_a_newer_project_is_refused_and_not_touched(bench: Bench, make_newer) -> None:
    session = bench.make(document_of(2), "0123456789ab")
    session.edit(ops(text_edit(session.document.order[0], "New.")), IDA, session.rev)
    session.close()
    root = bench.root / "0123456789ab"
    make_newer(root)
    (root / ".making").mkdir(exist_ok=True)
    before = files_of(root)
    projects = projects_of(bench.root)
    with pytest.raises(FormatNewer, match="newer studio"):
        projects.open(root.name)
    with pytest.raises(FormatNewer, match="newer studio"):
        bench.open(root.name)
    assert files_of(root) == {**before, ".lock": b""}
    assert (root / ".making").is_dir()


def test_a_newer_project_is_listed_as_such(bench: Bench) -> None:
    bench.make(document_of(2), "0123456789ab").close()
    newer_snapshot(bench.root / "0123456789ab")
    projects = projects_of(bench.root)
    (card,) = projects.list_summaries()
    assert (card.name, card.lines) == ("Scene", 2)
    assert "newer studio" in card.problem
    assert "damaged" not in card.problem
    projects.remove(card.project_id)
    (removed,) = projects.list_removed()
    assert "newer studio" in removed.problem
    with pytest.raises(FormatNewer):
        projects.restore(card.project_id)
    assert [one.problem for one in projects.list_removed()] == [removed.problem]


def test_a_newer_take_is_left_out_as_such(bench: Bench) -> None:
    root = first_project(bench)
    path = root / "takes" / LINES[0] / "0123456789abcdef.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**FIRST_TAKE, "version": 3}))
    session = bench.open(root.name)
    (notice,) = session.folder.notices
    assert "Line 1" in notice
    assert "newer studio" in notice
    session.close()
    assert path.is_file()


def test_a_newer_voice_is_left_out_as_such(tmp_path: Path) -> None:
    path = tmp_path / "0123456789ab" / "speaker.json"
    path.parent.mkdir()
    path.write_bytes(FIRST_SPEAKER.replace(b"1", b"2", 1))
    (problem,) = SpeakerLibrary(tmp_path).list_problems()
    assert "newer studio" in problem


@pytest.mark.parametrize("version", ["1.0", "1.5", "true", "-1", '"1"', "null", "1" + 400 * "0"])
def test_what_is_no_version_is_refused(tmp_path: Path, version: str) -> None:
    kind = RecordFormat("This")
    with pytest.raises(ValueError, match="version"):
        kind.decode(b'{"version": %s}' % version.encode())
    path = tmp_path / "0123456789ab" / "speaker.json"
    path.parent.mkdir()
    path.write_bytes(re.sub(rb'("version": )1', rb"\g<1>" + version.encode(), FIRST_SPEAKER))
    assert [one.name for one in SpeakerLibrary(tmp_path).list()] == ["Ida"]
    (problem,) = SpeakerLibrary(tmp_path).list_problems()
    assert "is damaged. The voice is rebuilt" in problem
    take = tmp_path / LINES[0] / "0123456789abcdef.json"
    take.parent.mkdir()
    take.write_text(json.dumps({"version": 0, **FIRST_TAKE}).replace("0", version, 1))
    with pytest.raises(FileDamaged):
        read_take_record(take)


def test_a_record_with_a_field_of_the_newest_version_states_that_version(tmp_path: Path) -> None:
    kind = RecordFormat("This", further=frozenset({"more"}))
    earlier = RecordFormat("This")
    assert json.loads(kind.encode({"a": 1, "more": []}))["version"] == 1
    assert earlier.decode(kind.encode({"a": 1})) == {"a": 1}
    newest = kind.encode({"a": 1, "more": [2]})
    assert kind.decode(newest) == {"a": 1, "more": [2]}
    assert kind.is_current(newest)
    with pytest.raises(FormatNewer, match="version 2 of its format; this one knows 1"):
        earlier.decode(newest)
    path = tmp_path / "one.json"
    path.write_bytes(kind.encode({"a": 1}))
    kind.write(Disk(), path, {"a": 1, "more": [2]})
    kind.write(Disk(), path, {"a": 3})
    assert [one.name for one in tmp_path.iterdir()] == ["one.json"], "neither is another format"


def test_the_copy_of_an_older_file_is_whole_also_after_a_full_disk(tmp_path: Path) -> None:
    class FullOnce(Disk):
        is_full = True

        def _copy(self, source: Path, target: Path) -> None:
            if self.is_full:
                target.write_bytes(source.read_bytes()[:9])
                raise OSError(errno.ENOSPC, "No space left on device")
            super()._copy(source, target)

    kind, path, disk = RecordFormat("This"), tmp_path / "one.json", FullOnce()
    path.write_bytes(b'{"first": "as it was written"}')
    with pytest.raises(StorageFailed, match="No space left"):
        kind.write(disk, path, {"a": 2})
    assert [one.name for one in tmp_path.iterdir()] == ["one.json"]
    disk.is_full = False
    kind.write(disk, path, {"a": 2})
    assert (tmp_path / "one.version-0.json").read_bytes() == b'{"first": "as it was written"}'


def test_older_records_go_through_every_step(tmp_path: Path) -> None:
    steps = tuple(
        lambda record, n=number: {**record, "steps": [*record.get("steps", []), n]}
        for number in range(3)
    )
    kind = RecordFormat("This", steps)
    assert kind.version == 3
    assert kind.decode(b"{}") == {"steps": [0, 1, 2]}
    assert kind.decode(b'{"version": 2}') == {"steps": [2]}
    assert kind.decode(b'{"version": 3}') == {}
    with pytest.raises(FormatNewer, match="This was made by a newer studio"):
        kind.decode(b'{"version": 4}')
    path = tmp_path / "one.json"
    path.write_bytes(RecordFormat("This").encode({"a": 1}))
    first = path.read_bytes()
    kind.write(Disk(), path, {"a": 2})
    assert (tmp_path / "one.version-1.json").read_bytes() == first
    assert kind.decode(path.read_bytes()) == {"a": 2}
