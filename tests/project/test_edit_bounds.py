"""What an edit or an import may bring in: bounded before it is built, and in linear time."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from time import thread_time

import pytest
from growth import assert_linear

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.items import parse_items
from studio.errors import BadInput, ScriptError, StudioError
from studio.project.document import Document, ProjectLine, parse_fields
from studio.project.document_editor import EditFootprint
from studio.project.edits import EditLookups, apply_edits
from studio.project.ops import OPS_ADAPTER
from studio.project.project_file import write_archive
from studio.project.script_merge import merge_script


class AnyTake:
    """A take of the line with the same number."""

    seed = 1

    def __init__(self, take_id: str) -> None:
        self.take_id, self.line_id = take_id, take_id[4:]


TAKES = EditLookups(AnyTake, lambda _: None)
NOBODY = EditLookups(lambda _: pytest.fail("no take is looked for"), lambda _: None)


def dialog_of(*texts: str) -> Document:
    lines = {
        f"{number:012x}": ProjectLine(f"{number:012x}", speaker="Ida", text=text)
        for number, text in enumerate(texts)
    }
    return Document("Scene", lines, tuple(lines))


def edited(document: Document, *edits: dict) -> Document:
    return apply_edits(document, OPS_ADAPTER.validate_python(list(edits)), NOBODY)


def test_a_replacement_that_would_be_too_long_is_never_built() -> None:
    document = dialog_of("a" * 100_000)
    tracemalloc.start()
    with pytest.raises(ScriptError, match="characters"):
        edited(document, {"op": "replace", "find": "a", "with": "😀" * 10_000})
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 10_000_000


def test_replacements_in_many_lines_are_bounded_together() -> None:
    document = dialog_of(*["a" * 10] * 2_000)
    with pytest.raises(BadInput, match="too long"):
        edited(document, {"op": "replace", "find": "a", "with": "b" * 1_000})


def test_a_long_line_may_become_shorter() -> None:
    document = edited(dialog_of("ab" * 50_000), {"op": "replace", "find": "ab", "with": "c"})
    assert next(iter(document)).text == "c" * 50_000


EACH_OP: dict[str, Callable[[int, list[str]], dict]] = {
    "rename_speaker": lambda n, _: {"from": f"Ida {n % 3}", "to": f"Ida {(n + 1) % 3}"},
    "delete": lambda n, ids: {"line_ids": [ids[n]]},
    "move": lambda n, ids: {"line_ids": [ids[n]], "after": ids[-1 - n]},
    "insert": lambda n, ids: {
        "after": ids[n],
        "lines": [{"line_id": f"a{n:011x}", "speaker": "Ida", "text": "Yes."}],
    },
    "cast": lambda n, _: {"speaker": f"Ida {n}", "voice": "0" * 12},
    "set": lambda n, ids: {"line_ids": [ids[n]], "fields": {"text": f"Now {n}."}},
    "join": lambda n, ids: {"line_ids": ids[2 * n : 2 * n + 2]},
    "split": lambda n, ids: {"line_id": ids[n], "at": 3, "new_line_id": f"a{n:011x}"},
    "choose": lambda n, ids: {"line_id": ids[n], "take_id": f"0000{ids[n]}"},
    "delete_take": lambda n, ids: {"take_id": f"0000{ids[n]}"},
    "lock_take": lambda n, ids: {"take_id": f"0000{ids[n]}", "locked": True},
    "accept_take": lambda n, ids: {"take_id": f"0000{ids[n]}", "accepted": True},
    "star_take": lambda n, ids: {"take_id": f"0000{ids[n]}", "starred": True},
    "pronounce": lambda n, _: {"put": [{"written": f"word{n}"}], "remove": [f"word{n - 1}"]},
    "rename": lambda n, _: {"name": f"Scene {n}"},
    "settings": lambda n, _: {"fields": {"seed": n}},
}


@pytest.mark.parametrize("kind", EACH_OP)
def test_operations_take_linear_time(kind: str) -> None:
    document = dialog_of(*["Yes, now."] * 12_000)
    ids = list(document.order)

    def work(count: int) -> None:
        made = [{"op": kind, **EACH_OP[kind](number, ids)} for number in range(count)]
        apply_edits(document, OPS_ADAPTER.validate_python(made), TAKES)

    assert_linear(work, 6_000)


def test_renaming_a_speaker_and_changing_lines_in_turn_takes_linear_time() -> None:
    document = dialog_of(*["Yes, now."] * 12_000)
    ids = list(document.order)

    def work(count: int) -> None:
        made: list[dict] = []
        for n in range(count):
            made.append({"op": "set", "line_ids": [ids[n]], "fields": {"speaker": "Ben"}})
            made.append({"op": "rename_speaker", "from": f"Ida {n}", "to": f"Ida {n + 1}"})
            made.append({"op": "cast", "speaker": f"Ida {n}", "voice": "0" * 12})
        apply_edits(document, OPS_ADAPTER.validate_python(made), NOBODY)

    assert_linear(work, 3_000)


def test_lines_stay_where_edits_in_turn_put_them() -> None:
    document = dialog_of("One.", "Two.", "Three.", "Four.")
    one, two, three, four = document.order
    after = edited(
        document,
        {"op": "move", "line_ids": [three, one], "after": four},
        {"op": "insert", "after": one, "lines": [{"line_id": "a" * 12, "kind": "silence"}]},
        {"op": "delete", "line_ids": [two]},
        {"op": "move", "line_ids": [three], "after": None},
        {"op": "rename_speaker", "from": "Ida", "to": "Ben"},
        {"op": "set", "line_ids": [one], "fields": {"speaker": "Ida"}},
        {"op": "rename_speaker", "from": "BEN", "to": "Maud"},
    )
    assert list(after.order) == [three, four, one, "a" * 12]
    assert [line.speaker for line in after] == ["Maud", "Maud", "Ida", None]


@pytest.mark.parametrize(
    "edit",
    [
        {"op": "set", "fields": {"text": "x" * 100_000}},
        {"op": "set", "fields": {"params": {f"p{n}": "x" * 2_000 for n in range(40)}}},
    ],
    ids=["text", "params"],
)
def test_a_small_edit_makes_no_huge_project(edit) -> None:
    document = dialog_of(*["Yes."] * 100)
    with pytest.raises(BadInput, match="at most 5,000,000 characters"):
        edited(document, {**edit, "line_ids": list(document.order)})


def test_a_project_that_is_larger_already_may_become_smaller() -> None:
    document = dialog_of(*["x" * 100_000] * 60)
    after = edited(document, {"op": "delete", "line_ids": [document.order[0]]})
    assert len(after.order) == 59


def test_so_many_replacements_are_refused() -> None:
    document = dialog_of(*["The river is quiet."] * 1_000)
    swap = [{"op": "replace", "find": "river", "with": "pond"}] * 10_000
    begun_s = thread_time()
    with pytest.raises(BadInput, match="too much for one edit"):
        edited(document, *swap)
    assert thread_time() - begun_s < 3


def test_a_script_of_other_lines_is_merged_in_linear_time() -> None:
    def work(count: int) -> None:
        document = dialog_of(*[f"She went to house {n} at night." for n in range(count)])
        text = "\n".join(f"Ben: Nobody saw what car {n} did there" for n in range(count))
        merge_script(document, read_dialog_text(text).dialog)

    assert_linear(work, 2_000)


def test_a_script_of_equal_lines_is_merged_in_linear_time() -> None:
    def work(count: int) -> None:
        text = "\n".join(["Ida: Yes."] * (count - 1))
        merged = merge_script(dialog_of(*["Yes."] * count), read_dialog_text(text).dialog)
        assert len(merged.order) == count - 1

    assert_linear(work, 4_000)


def test_who_deleted_many_lines_is_remembered_in_linear_time() -> None:
    def delete(count: int) -> None:
        lines = {f"{number:012x}": [{"text": "Hi."}, None] for number in range(count)}
        footprint = EditFootprint()
        footprint.add_entry({"rev": 1, "client": "ida", "kind": "edit", "delta": {"lines": lines}})
        # Of the last 5,000, which are sooner sent back to somebody than earlier ones.
        assert len(footprint.find_changes_by_others(0, "tom")) == 5_000

    assert_linear(delete, 80_000)


def test_the_last_cast_of_a_name_counts() -> None:
    document = edited(
        dialog_of("Hello."),
        {"op": "cast", "speaker": "Ida", "voice": "a"},
        {"op": "cast", "speaker": "Ben", "voice": "b"},
        {"op": "cast", "speaker": "IDA", "voice": "c"},
        {"op": "cast", "speaker": "ben", "voice": None},
    )
    assert document.cast == {"IDA": "c"}


@pytest.mark.parametrize(
    "fields",
    [
        {"params": {f"p{n}": 1 for n in range(100_000)}},
        {"params": {"speed": "x" * 5_000_000}},
        {"speaker": "I" * 5_000_000},
        {"speaker": "\u200b" * 5_000_000},
        {"text": "x" * 5_000_000},
    ],
    ids=["many params", "long param", "long name", "invisible name", "long text"],
)
def test_a_line_takes_nothing_huge(fields) -> None:
    begun_s = thread_time()
    with pytest.raises((BadInput, ScriptError)) as refused:
        parse_fields(fields)
    assert thread_time() - begun_s < 0.5
    assert len(str(refused.value)) < 300


REFUSED: dict[str, dict] = {
    "name of 1 MB": {"speaker": "I" * 1_000_000},
    "long text": {"text": "x" * 100_001},
    "many params": {"params": {f"p{n}": 1 for n in range(41)}},
    "long param": {"params": {"mood": "x" * 2_001}},
    "reserved param": {"params": {"text": "x"}},
    "huge seed": {"seed": 2**63},
    "no language": {"language": "x" * 100},
    "half a character": {"params": {"mood": "\ud800"}},
}
"""What no line may have, wherever it comes from."""


def by_edit(fields: dict) -> None:
    line = {"line_id": "b" * 12, "speaker": "Ida", "text": "Hello.", **fields}
    edited(dialog_of("Yes."), {"op": "insert", "after": None, "lines": [line]})


def by_script(fields: dict) -> None:
    line = {"speaker": "Ida", "text": "Hello.", "params": {}, **fields}
    own = {"lang": line.get("language"), "seed": line.get("seed")}
    written = [f"{name}:{value}" for name, value in own.items() if value is not None]
    written += [f"{name}:{json.dumps(value)}" for name, value in line["params"].items()]
    read_dialog_text(f"[{' | '.join([line['speaker'], *written])}] {line['text']}")


def by_items(fields: dict) -> None:
    line = {"speaker": "Ida", "text": "Hello.", **fields}
    item = {"type": "speech", "speaker_id": line.pop("speaker"), **line}
    parse_items(json.dumps([item]))


@pytest.mark.parametrize("door", [by_edit, by_script, by_items])
@pytest.mark.parametrize("what", REFUSED)
def test_every_door_refuses_the_same(door: Callable[[dict], None], what: str) -> None:
    with pytest.raises(StudioError):
        door(REFUSED[what])


def test_a_file_of_many_small_items_is_refused_before_it_is_parsed() -> None:
    items = ",".join(['{"":1}'] * 600_000)
    tracemalloc.start()
    with pytest.raises(ScriptError, match="values"):
        read_dialog_text(f"[{items}]")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 30_000_000


def test_the_doors_take_what_is_right() -> None:
    for door in (by_edit, by_script, by_items):
        door({"language": "de", "seed": 7, "params": {"speed": 1.2}})


def archive_with(session_file: bytes, **fields) -> BytesIO:
    """The same project with other values in its first line."""
    packed = BytesIO()
    with zipfile.ZipFile(BytesIO(session_file)) as source, zipfile.ZipFile(packed, "w") as target:
        record = json.loads(source.read("project.json"))
        record.pop("sum", None)
        record["lines"][0] |= fields
        record["history"] |= {"journal_bytes": 0, "undo": None, "redo": None}
        target.writestr("project.json", json.dumps(record))
    packed.seek(0)
    return packed


OUTSIDE = [
    "../bell.wav",
    "a/../../bell.wav",
    "/etc/passwd",
    "..\\bell.wav",
    "C:/bell.wav",
    "~/x.wav",
]


@pytest.mark.parametrize(
    "fields",
    [
        *({"kind": "audio", "path": path, "speaker": None} for path in OUTSIDE),
        *({"kind": "audio", "path": f"a{char}b.wav", "speaker": None} for char in "\r\n\0"),
        {"kind": "audio", "path": "x" * 1_001, "speaker": None},
        *({"speaker": f"I{char}da"} for char in "\r\n\0"),
        *(REFUSED[what] for what in REFUSED),
    ],
    ids=lambda fields: str(fields)[:50],
)
def test_an_imported_project_is_held_to_the_same(studio, tmp_path, fields) -> None:
    session = studio.projects.create("Scene", read_dialog_text("Ida: Hello.").dialog)
    write_archive(session, tmp_path / "scene.tableread.zip")
    exported = (tmp_path / "scene.tableread.zip").read_bytes()
    before = len(studio.projects.list_summaries())
    assert studio.projects.import_file(archive_with(exported, text="Good evening."))
    with pytest.raises(BadInput):
        studio.projects.import_file(archive_with(exported, **fields))
    assert len(studio.projects.list_summaries()) == before + 1


def records(count: int, text: str = "Yes.", speaker: str = "Ida") -> list[dict]:
    return [
        {"line_id": f"{number:012x}", "speaker": speaker.format(number), "text": text}
        for number in range(count)
    ]


def journal_line(delta: str) -> bytes:
    body = b'{"version":1,"rev":1,"at":1.0,"client":"ida","kind":"edit","below":null,"delta":%b}'
    body %= delta.encode()
    return b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + b"}\n"


def archive_of(others: dict[str, bytes], **fields) -> BytesIO:
    """A project's file with these values in its snapshot, and with other files."""
    history = {"journal_bytes": 0, "rev": 0, "undo": None, "redo": None, "last": None, "at_s": 0.0}
    record = {"version": 1, "name": "Scene", "cast": {}, "first_names": {}, "lines": records(1)}
    record |= {"settings": {}, "locked_takes": [], "deleted_takes": [], "accepted_takes": []}
    record |= {"audio_s": 0.0, "history": {**history, "seen": [], "gone": []}, **fields}
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in {"project.json": json.dumps(record).encode(), **others}.items():
            archive.writestr(name, data)
    packed.seek(0)
    return packed


LISTS = f"[{','.join(['[]'] * 300_000)}]"
RECORD = "takes/000000000000/{:016x}.json"


@pytest.mark.parametrize(
    ("others", "fields"),
    [
        ({}, {"lines": records(20_001)}),
        ({}, {"lines": records(51, text="x" * 99_999)}),
        ({}, {"lines": records(5_001, speaker="Ida {}")}),
        ({}, {"cast": {f"Ida {number}": None for number in range(10_001)}}),
        ({}, {"characters": {f"ida {n}": {"level_db": 1} for n in range(5_001)}}),
        ({}, {"more": json.loads(LISTS)}),
        ({"edits.jsonl": journal_line(f'{{"more":{LISTS}}}')}, {}),
        ({RECORD.format(1): b" " * 4_000_001}, {}),
        ({RECORD.format(number): LISTS.encode() for number in range(9)}, {}),
        ({RECORD.format(number): b" " * 3_900_000 for number in range(17)}, {}),
        ({}, {"settings": {"seed": 2**63}}),
        ({}, {"settings": {"language": "x" * 1_000_000}}),
        ({}, {"settings": {"backend": "x" * 1_000_000}}),
        ({"edits.jsonl": journal_line('{"fields":{"settings":[{},{"seed":-1}]}}')}, {}),
        ({}, {"lines": [{**records(1)[0], "chosen": "x" * 1_000_000}]}),
        ({}, {"locked_takes": ["x" * 1_000_000]}),
        ({}, {"lines": records(1, text="Yes.\nTom: No.")}),
        *(({f"audio/{name}": b"x"}, {}) for name in ("aux.wav", "CON", "Com1 .wav")),
    ],
    ids=[
        *("lines", "text", "speakers", "cast", "characters", "values", "history"),
        *("a take", "takes", "long takes", "seed", "language", "backend", "earlier seed"),
        *("chosen", "locked", "line break", "aux", "con", "com"),
    ],
)
def test_a_project_file_is_as_small_as_edits_leave_one(studio, others, fields) -> None:
    assert studio.projects.import_file(archive_of({}, lines=records(200, speaker="Ida {}")))
    with pytest.raises(BadInput):
        studio.projects.import_file(archive_of(others, **fields))
    assert len(studio.projects.list_summaries()) == 1


@pytest.mark.parametrize("voices", [{"\ud800": "ef"}, {"draft": "\udfff"}])
def test_no_edit_gives_a_character_a_voice_that_no_file_can_hold(voices: dict) -> None:
    with pytest.raises(BadInput, match="ids of voices"):
        edited(
            dialog_of("Yes."), {"op": "character", "speaker": "Ida", "fields": {"voices": voices}}
        )


def test_takes_of_very_long_lines_come_in_again(studio) -> None:
    """Twenty takes of as many words as the longest line has, with their times."""
    take = {"line_id": "0" * 12, "key": "0" * 32, "seed": 1, "backend": "draft", "voice": "Ida"}
    take |= {"text": "a " * 16_000, "samples": 100, "created_at": "2026-01-01T00:00:00Z"}
    take["words"] = [[2 * number, 2 * number + 1, number, number] for number in range(16_000)]
    takes = {
        RECORD.format(number): json.dumps({"version": 1, "take_id": f"{number:016x}", **take})
        for number in range(20)
    }
    session = studio.projects.import_file(archive_of(takes))
    assert len(session.list_takes("0" * 12)) == 20


def test_no_edit_chooses_a_backend_by_a_name_of_megabytes() -> None:
    with pytest.raises(BadInput, match="by its name"):
        edited(dialog_of("Yes."), {"op": "settings", "fields": {"backend": "x" * 1_000_000}})


@pytest.mark.parametrize("char", ["\r", "\n", "\0", "\x1b"])
def test_an_edit_brings_no_control_characters_into_a_path(char: str) -> None:
    with pytest.raises((BadInput, ScriptError)):
        parse_fields({"path": f"a{char}b.wav"})
