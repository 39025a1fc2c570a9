"""A project's pronunciations: the lines they touch are made again, and undo unmakes that."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from hearing import HearingDraft
from project_scenes import IDA, TOM, Bench, document_of, ops, rendered, text_edit
from scenes import OpenStudio

from studio.dialog.formats.dialog_file import Format, read_dialog_text
from studio.dialog.model import SpeechLimits
from studio.dialog.pronunciation import MAX_PRONUNCIATIONS, Pronunciation
from studio.errors import BadInput
from studio.project.history import Author
from studio.project.project_file import write_archive
from studio.project.scene_export import export_script
from studio.project.session import ProjectSession
from studio.services.line_checks import find_pronunciation_effects
from studio.services.studio import Studio

SCRIPT = "Ida: Mr Hoxha is here.\nTom: Who?\nIda: Hoxha, hoxha!\n[pause:1s]\nTom: The Hoxhas?"
HOXHA = {"written": "Hoxha", "spoken": "hodja"}


@pytest.fixture
def voice() -> HearingDraft:
    return HearingDraft()


@pytest.fixture
def studio(open_studio: OpenStudio, voice: HearingDraft) -> Studio:
    return open_studio(voice)


@pytest.fixture
def session(studio: Studio, voice: HearingDraft) -> ProjectSession:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    voice.heard.clear()
    return session


def pronounce(
    session: ProjectSession, *put: dict[str, Any], by: Author = IDA, **more: object
) -> Any:
    edit = {"op": "pronounce", "put": list(put), **more}
    return session.edit(ops(edit), by, session.rev)


def states(session: ProjectSession) -> list[str]:
    return [view.state for view in session.list_views()]


def takes(session: ProjectSession) -> list[str | None]:
    return [view.take and view.take.take_id for view in session.list_views()]


def test_exactly_the_touched_lines_are_made_again(
    session: ProjectSession, voice: HearingDraft
) -> None:
    before = takes(session)
    news = pronounce(session, HOXHA)
    assert states(session) == ["stale", "ready", "stale", "ready", "ready"]
    first, third = session.document.order[0], session.document.order[2]
    assert set(news.line_ids) == {first, third}
    assert news.fields == ("pronunciations",)
    rendered(session)
    assert sorted(voice.heard) == ["Mister hodja is here.", "hodja, hodja!"]
    assert set(states(session)) == {"ready"}
    changed = [one != other for one, other in zip(before, takes(session), strict=True)]
    assert changed == [True, False, True, False, False]


def test_the_words_stay_as_they_are_written(session: ProjectSession) -> None:
    pronounce(session, HOXHA)
    rendered(session)
    view = session.list_views()[0]
    assert (view.line.text, view.spoken_text) == ("Mr Hoxha is here.", "Mister hodja is here.")
    assert view.take is not None
    assert view.take.text == "Mr Hoxha is here."
    assert [one.spoken_text for one in session.list_views()][1] is None
    for format_ in (Format.SRT, Format.SCRIPT, Format.FOUNTAIN, Format.CSV):
        written = export_script(session, format_)[0].decode()
        assert "Hoxha, hoxha!" in written
        assert "hodja" not in written


@pytest.mark.parametrize("way", ["undo", "remove", "switch off"])
def test_the_former_takes_come_back_without_being_made(
    session: ProjectSession, voice: HearingDraft, way: str
) -> None:
    before = takes(session)
    pronounce(session, HOXHA)
    rendered(session)
    between = takes(session)
    voice.heard.clear()
    if way == "undo":
        session.undo(IDA, session.rev)
    elif way == "remove":
        pronounce(session, remove=["Hoxha"])
    else:
        pronounce(session, HOXHA | {"enabled": False})
    assert takes(session) == before
    assert set(states(session)) == {"ready"}
    rendered(session)
    assert voice.heard == []
    if way == "undo":
        session.redo(IDA)
    else:
        pronounce(session, HOXHA)
    assert takes(session) == between
    assert set(states(session)) == {"ready"}
    assert voice.heard == []


def test_an_entry_that_matches_nothing_touches_nothing(session: ProjectSession) -> None:
    news = pronounce(session, {"written": "Zog", "spoken": "zogg"})
    assert news.line_ids == ()
    assert set(states(session)) == {"ready"}


def test_takes_of_a_project_without_pronunciations_keep_fitting(session: ProjectSession) -> None:
    """Their keys are those of before there were any."""
    ground, line = session.render_context, next(iter(session.document))
    digest = [view.take.key for view in session.list_views() if view.take]
    assert digest[0] == ground.compute_key(line)
    pronounce(session, HOXHA)
    assert session.render_context.compute_key(line) != digest[0]
    second = session.document.lines[session.document.order[1]]
    assert session.render_context.compute_key(second) == digest[1]


def test_a_line_of_which_nothing_is_left_fails_and_says_why(
    session: ProjectSession, voice: HearingDraft
) -> None:
    pronounce(session, {"written": "Who", "spoken": ""})
    assert session.list_views()[1].spoken_text == "?"
    rendered(session)
    view = session.list_views()[1]
    assert view.state == "failed"
    assert "The pronunciations leave nothing of this line to speak" in (view.message or "")
    assert voice.heard == []
    pronounce(session, remove=["Who"])
    assert set(states(session)) == {"ready"}


def test_two_people_add_to_one_list(bench: Bench) -> None:
    session = bench.make(document_of(2))
    rev = session.rev
    for author, word in ((IDA, "one"), (TOM, "two")):
        edit = {"op": "pronounce", "put": [{"written": word, "spoken": "x"}]}
        session.edit(ops(edit), author, rev)
    assert set(session.document.pronunciations) == {"one", "two"}
    session.undo(IDA, session.rev, own=True)
    assert set(session.document.pronunciations) == {"two"}


def test_the_list_outlives_the_studio_and_so_does_its_undo(bench: Bench) -> None:
    session = bench.make(document_of(2))
    pronounce(session, HOXHA)
    bench.kill(session)
    session = bench.open()
    assert session.document.pronunciations == {"Hoxha": Pronunciation("Hoxha", "hodja")}
    session.save(now=True)
    session.close()
    session = bench.open()
    assert session.document.pronunciations == {"Hoxha": Pronunciation("Hoxha", "hodja")}
    session.undo(IDA, session.rev)
    assert session.document.pronunciations == {}
    session.redo(IDA)
    assert set(session.document.pronunciations) == {"Hoxha"}


def test_a_step_holds_the_entries_it_changed_and_no_others(bench: Bench) -> None:
    session = bench.make(document_of(1))
    pronounce(session, *({"written": f"w{n}", "spoken": "x"} for n in range(MAX_PRONUNCIATIONS)))
    before = session._state.journal.size_bytes
    pronounce(session, {"written": "w7", "spoken": "y"})
    assert session._state.journal.size_bytes - before < 1_000
    with pytest.raises(BadInput, match="at most 2,000 pronunciations"):
        pronounce(session, {"written": "one more"})
    assert len(session.document.pronunciations) == MAX_PRONUNCIATIONS


def test_a_word_gets_another_spelling(bench: Bench) -> None:
    session = bench.make(document_of(1))
    pronounce(session, HOXHA)
    pronounce(session, HOXHA | {"written": "Hoxa"}, remove=["Hoxha"])
    assert list(session.document.pronunciations) == ["Hoxa"]
    session.undo(IDA, session.rev)
    assert list(session.document.pronunciations) == ["Hoxha"]


def test_a_line_that_is_being_edited_is_heard_by_the_same_list(session: ProjectSession) -> None:
    pronounce(session, HOXHA)
    session.edit(ops(text_edit(session.document.order[1], "Who, Hoxha?")), IDA, session.rev)
    assert session.list_views()[1].spoken_text == "Who, hodja?"


def packed(session: ProjectSession, path: Path) -> dict[str, bytes]:
    write_archive(session, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def brought(studio: Studio, files: dict[str, bytes]) -> ProjectSession:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    file.seek(0)
    return studio.projects.import_file(file)


def test_a_project_takes_its_list_along(
    studio: Studio, session: ProjectSession, tmp_path: Path
) -> None:
    pronounce(session, HOXHA)
    rendered(session)
    other = brought(studio, packed(session, tmp_path / "x.zip"))
    assert other.document.pronunciations == session.document.pronunciations
    assert set(states(other)) == {"ready"}
    other.undo(IDA, other.rev)
    assert other.document.pronunciations == {}


SPOILED_LISTS: list[object] = [
    [{"written": "", "spoken": "x"}],
    [{"written": "a" * 201}],
    [{"written": "a", "spoken": "b" * 201}],
    [{"written": " a"}],
    [{"written": "a", "spoken": None}],
    [{"spoken": "a"}],
    [{"written": f"w{n}"} for n in range(MAX_PRONUNCIATIONS + 1)],
    {"a": "b"},
    "a",
    7,
    None,
]


def test_a_spoiled_list_from_elsewhere_is_refused(studio: Studio, tmp_path: Path) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    files = packed(session, tmp_path / "x.zip")
    (snapshot,) = [name for name in files if name.endswith("project.json")]
    record = json.loads(files[snapshot])
    for spoiled in SPOILED_LISTS:
        files[snapshot] = json.dumps(record | {"pronunciations": spoiled}).encode()
        with pytest.raises(BadInput):
            brought(studio, files)


SPOILED_STEPS: list[object] = [
    {"Hoxha": {"written": "Other", "spoken": ""}},
    {"Hoxha": {"written": "Hoxha", "spoken": "x" * 201}},
    {"Hoxha": 7},
    ["Hoxha"],
    None,
]


def test_a_spoiled_step_from_elsewhere_is_refused(studio: Studio, tmp_path: Path) -> None:
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    pronounce(session, HOXHA)
    files = packed(session, tmp_path / "x.zip")
    (journal,) = [name for name in files if name.endswith("edits.jsonl")]
    whole = files[journal]
    for side in SPOILED_STEPS:
        with pytest.raises(BadInput):
            brought(studio, files | {journal: spoilt(whole, side)})


def spoilt(journal: bytes, side: object) -> bytes:
    """A journal whose last step puts something else into the list."""
    *others, last = journal.splitlines(keepends=True)
    entry = json.loads(last)["entry"]
    entry["delta"]["fields"]["pronunciations"][1] = side
    body = json.dumps(entry, separators=(",", ":")).encode()
    return b"".join([*others, b'{"sum":"%08x","entry":' % zlib.crc32(body) + body + b"}\n"])


def test_what_a_list_reaches_is_told(session: ProjectSession) -> None:
    pronounce(session, HOXHA, {"written": "Zog", "spoken": "zogg"})
    pronounce(session, {"written": "Who", "spoken": "[wobble] hoo", "enabled": False})
    wording = find_pronunciation_effects(session.document, SpeechLimits(200))
    assert wording.lines == {"Hoxha": 2, "Zog": 0, "Who": 1}
    assert list(wording.hints) == ["Who"]
    assert "[wobble] would be read aloud" in wording.hints["Who"][0]
    asked = find_pronunciation_effects(
        session.document, SpeechLimits(200), Pronunciation("here", "there")
    )
    assert asked.lines["here"] == 1
    assert asked.example == ("Mr Hoxha is here.", "Mr hodja is there.")
