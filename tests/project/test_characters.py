"""Settings of characters: what lines inherit, kept by undo, files and every door."""

from __future__ import annotations

import json
import wave
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from project_scenes import Bench, document_of, ops, rendered
from test_damage import IDA

from studio.backends.registry import create, describe_engines
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.errors import BadInput
from studio.project.characters import PLAIN, Character, change_character
from studio.project.document import Document, ProjectLine, encode_document, read_document
from studio.project.scene_export import build_scene
from studio.services.studio import Studio


def character(speaker: str, **fields: object) -> dict[str, object]:
    return {"op": "character", "speaker": speaker, "fields": fields}


def edit(session, *changes: dict[str, object]) -> None:
    session.edit(ops(*changes), IDA, session.rev)


def scene(bench: Bench):
    lines = [
        ProjectLine("00000000000a", speaker="Ida", text="One."),
        ProjectLine("00000000000b", speaker="IDA", text="Two.", params={"speed": 2}),
        ProjectLine("00000000000c", speaker="Tom", text="Three."),
    ]
    by_id = {line.line_id: line for line in lines}
    return bench.make(Document("Scene", by_id, tuple(by_id)))


def test_a_line_inherits_what_it_doesnt_say_itself(bench: Bench) -> None:
    session = scene(bench)
    before = [session.render_context.compute_key(line) for line in session.document]
    edit(session, character("ida", params={"speed": 1.5, "mood": "calm"}))
    context = session.render_context
    params = [context.inherit(line).params for line in session.document]
    assert params == [{"speed": 1.5, "mood": "calm"}, {"speed": 2, "mood": "calm"}, {}]
    after = [context.compute_key(line) for line in session.document]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True, True]
    session.undo(IDA, session.rev)
    assert session.document.characters == {}
    assert [session.render_context.compute_key(line) for line in session.document] == before
    session.redo(IDA)
    assert session.document.characters == {"ida": Character(params={"speed": 1.5, "mood": "calm"})}
    bench.kill(session)
    again = bench.open(session.project_id)
    assert list(again.document.characters) == ["ida"]
    bench.kill(again)


def test_a_script_gives_a_character_a_voice_by_its_name(bench: Bench) -> None:
    session = scene(bench)
    script = "[Ida | voice:Low 1 | speed:2] One.\n[IDA | voice:Low 2] Two.\n[Tom | voice:Heart] No."
    _, notices = session.merge_script(script, IDA, session.rev)
    ida, tom = (session.document.characters[key].voices for key in ("ida", "tom"))
    assert (ida, tom) == ({"draft": "robert"}, {"kokoro": "af_heart"})
    params = [dict(line.params) for line in session.document]
    assert params == [{"speed": 2}, {}, {"voice": "Heart"}], "another engine's is still said"
    assert session.cast.load_voice("Ida").preset == "robert"
    told = " ".join(one.message for one in notices)
    assert "“Low 2” is left out" in told
    assert "“Heart (woman)” is a voice of Kokoro" in told
    _, _, notices = session.format_script()
    assert [one.line_number for one in notices if "Kokoro" in one.message] == [3]
    session.undo(IDA, session.rev)
    assert session.document.characters == {}
    bench.kill(session)


def test_a_script_says_how_old_a_character_is(bench: Bench) -> None:
    session = scene(bench)
    script = "CARL: One.\nCARL (CHILD, 8): Two.\nBERT: Three."
    session.merge_script(script, IDA, session.rev)
    assert [line.speaker for line in session.document] == ["CARL", "CARL", "BERT"]
    described, *_ = describe_engines(create("draft"))
    chosen = session.document.first_names
    carl, bert = (described(chosen.get(name, name)) for name in ("CARL", "BERT"))
    assert carl.pitch_hz > 180 > bert.pitch_hz
    bench.kill(session)


def test_two_people_undo_their_own_settings(bench: Bench) -> None:
    session = scene(bench)
    edit(session, character("Ida", level_db=-3))
    other = type(IDA)("tom")
    session.edit(ops(character("Tom", level_db=2)), other, session.rev)
    session.undo(IDA, session.rev, own=True)
    assert {key: one.level_db for key, one in session.document.characters.items()} == {"tom": 2.0}
    bench.kill(session)


def test_a_renamed_character_keeps_its_settings(bench: Bench) -> None:
    session = scene(bench)
    edit(session, character("Ida", level_db=-3, voices={"draft": "f1"}))
    edit(session, {"op": "rename_speaker", "from": "Ida", "to": "Eva"})
    assert list(session.document.characters) == ["eva"]
    edit(session, {"op": "rename_speaker", "from": "Eva", "to": "Tom"})
    assert session.document.characters == {}, "Tom's lines sound as before"
    bench.kill(session)


def test_an_engines_voice_is_one_voice_whoever_has_it(bench: Bench) -> None:
    session = scene(bench)
    both = [character(name, voices={"draft": "f1"}) for name in ("Ida", "Tom")]
    edit(session, *both)
    voices = [session.cast.load_voice(name) for name in ("ida", "Tom")]
    assert [(one.preset, one.builtin_name) for one in voices] == [("f1", "f1")] * 2
    context = session.render_context
    assert context.find_voice("Ida").digest == context.find_voice("Tom").digest
    assert context.find_voice("Ida").title == "High 2"
    edit(session, character("Ida", voices={"draft": "nobody", "kokoro": "af_x"}))
    assert session.render_context.find_voice("Ida").title.startswith("Auto: ")
    bench.kill(session)


def spoken_scene(studio: Studio):
    text = "Ida: One.\nIDA: Two.\nTom: Three."
    session = studio.projects.create("Scene", read_dialog_text(text).dialog)
    rendered(session)
    return session


def test_a_level_is_laid_out_and_needs_no_take(studio: Studio) -> None:
    session = spoken_scene(studio)
    plain = np.concatenate(list(build_scene(session).timeline.blocks()))
    takes = {one.take_id for line in session.document for one in session.list_takes(line.line_id)}
    edit(session, character("Tom", level_db=-6))
    assert {view.state for view in session.list_views()} == {"ready"}
    timeline = build_scene(session).timeline
    quieter = np.concatenate(list(timeline.blocks()))
    start = timeline.entries[2].start_sample
    np.testing.assert_array_equal(quieter[:start], plain[:start])
    np.testing.assert_allclose(quieter[start:], plain[start:] * 10 ** (-6 / 20), atol=1e-6)
    edit(session, character("Tom", level_db=12))
    loud = np.concatenate(list(build_scene(session).timeline.blocks()))
    assert np.abs(loud).max() <= 1
    edit(session, character("Tom", level_db=None))
    np.testing.assert_array_equal(
        np.concatenate(list(build_scene(session).timeline.blocks())), plain
    )
    now = {one.take_id for line in session.document for one in session.list_takes(line.line_id)}
    assert now == takes


def test_only_files_with_characters_state_the_newer_version(bench: Bench) -> None:
    session = scene(bench)
    edit(session, {"op": "settings", "fields": {"seed": 3}})
    edit(session, character("Ida", gap_s=0.5))
    session.save(now=True)
    root = bench.root / session.project_id
    snapshot = json.loads((root / "project.json").read_bytes())
    assert (snapshot["version"], snapshot["characters"]) == (2, {"ida": {"gap_s": 0.5}})
    versions = [
        json.loads(line)["entry"]["version"]
        for line in (root / "edits.jsonl").read_bytes().splitlines()
    ]
    assert versions == [1, 1, 2]
    edit(session, character("Ida", gap_s=None))
    session.save(now=True)
    snapshot = json.loads((root / "project.json").read_bytes())
    assert snapshot["version"] == 1
    assert "characters" not in snapshot
    bench.kill(session)


def test_a_document_is_read_as_it_was_written() -> None:
    kept = Character({"draft": "f1"}, {"speed": 1.5, "mood": "calm"}, -3.0, 0.5)
    document = Document("Scene", characters={"ida": kept})
    assert read_document(encode_document(document)).characters == {"ida": kept}


@pytest.mark.parametrize(
    "fields",
    [
        {"colour": "red"},
        {"level_db": 40},
        {"level_db": "loud"},
        {"level_db": float("nan")},
        {"gap_s": -1},
        {"gap_s": True},
        {"voices": ["f1"]},
        {"voices": {"draft": ""}},
        {"voices": {"draft": 3}},
        {"voices": dict.fromkeys(map(str, range(51)), "x")},
        {"params": "fast"},
        {"params": {"speed": [1]}},
        {"params": {"speed": None}},
    ],
    ids=str,
)
def test_a_value_that_cant_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        change_character(PLAIN, fields)


@pytest.mark.parametrize("known", [9_998, 10_000])
def test_new_characters_take_no_name_more_than_an_import_may_have(bench: Bench, known: int) -> None:
    first_names = {f"Renamed {number}": f"First {number}" for number in range(known)}
    session = bench.make(replace(document_of(3), first_names=first_names))
    lines = [
        {"line_id": f"00000000ff{number:02}", "speaker": f"New {number}", "text": "Hello."}
        for number in range(24)
    ]
    edit(session, {"op": "insert", "after": None, "lines": lines})
    assert len(session.document.order) > 24
    assert len(session.document.first_names) == 10_000
    bench.kill(session)


def test_new_characters_of_an_old_project_leave_the_others_their_voices(bench: Bench) -> None:
    session = bench.make(document_of(3))
    names = {line.speaker for line in session.document}
    titles = {name: session.render_context.find_voice(name).digest for name in names}
    assert session.document.first_names == {}
    for number in range(8):
        line = {"line_id": f"00000000ff0{number}", "speaker": f"New {number}", "text": "Hello."}
        edit(session, {"op": "insert", "after": None, "lines": [line]})
    context = session.render_context
    assert {name: context.find_voice(name).digest for name in names} == titles
    voices = [context.find_voice(f"New {number}").title for number in range(8)]
    assert len(set(voices)) == 8
    chosen = dict(session.document.first_names)
    assert not names & set(chosen)
    for _ in range(8):
        session.undo(IDA, session.rev)
    assert session.document.first_names == {}
    bench.kill(session)


def test_files_of_lines_have_the_level_too(studio: Studio, tmp_path) -> None:
    session = spoken_scene(studio)
    edit(session, character("Tom", level_db=-20))
    path = tmp_path / "lines.zip"
    build_scene(session).write(path)
    with zipfile.ZipFile(path) as archive:
        names = sorted(one for one in archive.namelist() if one.endswith(".wav"))
        peaks = {}
        for name in names:
            with archive.open(name) as file, wave.open(file) as sound:
                pcm = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2")
                peaks[name] = int(np.abs(pcm.astype(np.int32)).max())
    tom = next(peak for name, peak in peaks.items() if "Tom" in name)
    ida = max(peak for name, peak in peaks.items() if "Ida" in name)
    assert 0 < 4 * tom < ida
