"""Doubtful takes: kept with the take, told with the line, accepted, and made again."""

from __future__ import annotations

import json
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from project_scenes import IDA, FullDisk, QuickDisk, ops, rendered, until
from prometheus_client.parser import text_string_to_metric_families
from scenes import OpenStudio
from wandering import WanderingDraft

from studio.audio.clip import STUDIO_RATE_HZ, Clip
from studio.backends.base import VARIED_SEEDS
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.engine.renderer import derive_quality_retry_seed
from studio.errors import BadInput, FileDamaged, StorageFailed
from studio.project.line_states import LineState, VoiceOutliers
from studio.project.project_renderer import choose_retry_seed, is_retry
from studio.project.scene_export import build_scene
from studio.project.session import ProjectSession
from studio.project.takes import (
    Take,
    TakeStore,
    build_voice_key,
    encode_take,
    read_take_record,
)
from studio.quality.checks import QualityIssue, TakeMetrics
from studio.server.routes.bodies import project_body
from studio.server.routes.monitoring import Metrics
from studio.services.studio import Studio
from studio.storage.disk import Disk

SCRIPT = "Ida: All is well here.\nTom: I saw a heron in the marsh.\nIda: Good night."


@pytest.fixture
def voice() -> WanderingDraft:
    return WanderingDraft()


@pytest.fixture
def studio(open_studio: OpenStudio, voice: WanderingDraft) -> Studio:
    return open_studio(voice)


def project(studio: Studio, text: str = SCRIPT) -> ProjectSession:
    return studio.projects.create("Scene", read_dialog_text(text).dialog)


def kinds(session: ProjectSession) -> list[list[str]]:
    return [[doubt.kind for doubt in view.issues] for view in session.list_views()]


def tries(session: ProjectSession, tries: int) -> None:
    session.edit(ops({"op": "settings", "fields": {"tries": tries}}), IDA, session.rev)


def write_take(root: Path, number: int, words: list[tuple[int, int, int, int]]) -> Path:
    line = root / f"{number % 20:012x}"
    line.mkdir(exist_ok=True)
    names = {"take_id": f"{number:016x}", "line_id": line.name, "key": "", "backend": "draft"}
    record = {"version": 1, **names, "seed": 1, "text": "Yes.", "voice": "Ida", "samples": 0}
    path = line / f"{number:016x}.json"
    path.write_text(json.dumps({**record, "created_at": "", "words": words}), encoding="utf-8")
    return path


def test_a_hundred_thousand_words_take_three_megabytes(tmp_path: Path) -> None:
    for number in range(200):
        rows = [(6 * at, 6 * at + 5, 300 * at + number, 300 * at + 280) for at in range(500)]
        write_take(tmp_path, number, rows)
    tracemalloc.start()
    try:
        store = TakeStore(tmp_path, Disk())
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 3_000_000
    words = store.find(f"{199:016x}").words
    assert words is not None
    assert (len(words), list(words)[1]) == (500, (6, 11, 499, 580))


def test_a_take_with_a_word_in_no_text_is_left_out(tmp_path: Path) -> None:
    write_take(tmp_path, 1, [(0, 2**31 - 1, 0, 1)])
    write_take(tmp_path, 2, [(0, 2**31, 0, 1)])
    write_take(tmp_path, 3, [(0, 1, 0)])  # type: ignore[list-item]
    store = TakeStore(tmp_path, Disk())
    assert [take.take_id for take in store] == [f"{1:016x}"]
    assert [why for _, why in store.problems] == ["The record of its take is damaged."] * 2


def test_what_is_doubtful_stands_in_the_takes_record_and_comes_back(studio: Studio) -> None:
    session = project(studio)
    rendered(session)
    assert kinds(session) == [[], ["tail"], []]
    take = session.list_views()[1].take
    record = json.loads(session.take_store.get_audio_path(take).with_suffix(".json").read_bytes())
    [doubt] = record["doubts"]
    assert doubt["kind"] == "tail"
    assert doubt["message"] == f"It goes on for {doubt['figure']:.1f} s after the last word."
    assert record["figures"]["speech_s"] > 0
    shelf = TakeStore(session.folder.root / "takes", Disk())
    found = shelf.find(take.take_id)
    assert replace(found, words=take.words, phonemes=take.phonemes) == take  # timed meanwhile


def test_takes_of_older_studios_and_of_newer_ones_are_read(studio: Studio) -> None:
    session = project(studio)
    rendered(session)
    take = session.list_views()[1].take
    path = session.take_store.get_audio_path(take).with_suffix(".json")
    record = json.loads(path.read_bytes())
    older = {name: value for name, value in record.items() if name not in ("doubts", "figures")}
    path.write_text(json.dumps(older))
    assert read_take_record(path) == replace(take, doubts=(), figures=None)
    newer = record | {"doubts": [{"kind": "mumbled", "figure": 0.5, "message": "Mumbled."}]}
    path.write_text(json.dumps(newer | {"mood": "new"}))
    assert read_take_record(path).doubts == (QualityIssue("mumbled", 0.5, "Mumbled."),)


def test_a_wav_with_a_longer_header_is_held_to_its_length_too(studio: Studio) -> None:
    session = project(studio)
    rendered(session)
    take = session.get_view(session.document.order[0]).take
    path = session.take_store.get_audio_path(take)
    whole = path.read_bytes()
    longer = whole[:36] + b"LIST" + (100).to_bytes(4, "little") + bytes(100) + whole[36:]
    path.write_bytes(longer)
    assert read_take_record(path.with_suffix(".json")).samples == take.samples
    path.write_bytes(longer[:-500])
    with pytest.raises(FileDamaged, match="isn't as long as it was"):
        read_take_record(path.with_suffix(".json"))


def test_a_take_says_when_it_reached_each_step(studio: Studio, tmp_path: Path) -> None:
    session = project(studio)
    rendered(session)
    steps = ["planned", "queued", "started", "generated", "saved"]
    wall_s = session.render_progress.wall_s
    rows = manifest(session, tmp_path / "new.zip")
    for row in rows:
        at_s = list(row["at_s"].values())
        assert list(row["at_s"]) == steps
        assert at_s == sorted(at_s)
        assert 0 <= at_s[0] < at_s[3] <= wall_s
    take = session.list_views()[1].take
    path = session.take_store.get_audio_path(take).with_suffix(".json")
    record = json.loads(path.read_bytes())
    assert record["at_s"] == rows[1]["at_s"]
    del record["at_s"], record["sum"]
    path.write_text(json.dumps(record))
    assert read_take_record(path).at_s == {}


def test_accepting_a_take_is_kept_and_is_a_step_of_undo(
    studio: Studio, open_studio: OpenStudio, tmp_path: Path
) -> None:
    session = project(studio)
    rendered(session)
    take_id = session.list_views()[1].take.take_id
    accept = {"op": "accept_take", "take_id": take_id, "accepted": True}
    session.edit(ops(accept), IDA, session.rev)
    session.edit(ops(accept), IDA, session.rev)
    assert project_body(session)["accepted_takes"] == [take_id]
    assert manifest(session, tmp_path / "accepted.zip")[1]["doubtful"] == []
    session.undo(IDA, session.rev)
    assert session.document.accepted_takes == ()
    assert "after the last word" in manifest(session, tmp_path / "doubted.zip")[1]["doubtful"][0]
    session.redo(IDA)
    project_id = session.project_id
    studio.projects.close()
    again = open_studio(WanderingDraft())
    assert again.projects.open(project_id).document.accepted_takes == (take_id,)


def test_a_take_is_told_that_is_longer_than_its_line_may_be(studio: Studio) -> None:
    session = project(studio)
    rendered(session)
    first = session.list_views()[0]
    assert first.issues == ()
    fields = {"params": {"max_duration": 0.25, "file": "a/b.wav"}}
    session.edit(ops({"op": "set", "line_ids": [first.line.line_id], "fields": fields}), IDA, 0)
    view = session.list_views()[0]
    lasts_s = round(view.take.samples / 24_000, 2)
    assert (view.state, view.take) == ("ready", first.take)  # none of them is heard
    assert [one.message for one in view.issues] == [f"{lasts_s:g} s, 0.25 allowed."]
    assert session.find_issues(view.take) == view.issues


def manifest(session: ProjectSession, path: Path) -> list[dict]:
    build_scene(session).write(path)
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))["segments"]


def test_the_page_gets_the_doubts_of_a_take_and_nothing_it_was_measured_by(
    studio: Studio,
) -> None:
    session = project(studio)
    rendered(session)
    take = project_body(session)["lines"][1]["take"]
    assert [doubt["kind"] for doubt in take["doubts"]] == ["tail"]
    assert "figures" not in take


def test_doubts_are_counted_by_kind(studio: Studio) -> None:
    metrics = Metrics(studio)
    rendered(project(studio))
    counted = {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        if sample.name == "tableread_doubts_total"
    }
    assert counted == {("tail",): 1.0}


def test_a_doubtful_line_is_made_again_until_it_is_good_and_all_takes_stay(
    studio: Studio, voice: WanderingDraft
) -> None:
    session = project(studio, "Ida: Follow the brook.\nTom: I will.")
    tries(session, 3)
    rendered(session)
    first, second = session.list_takes(session.document.order[0])
    assert ([one.kind for one in first.doubts], second.doubts) == (["tail"], ())
    assert second.seed == derive_quality_retry_seed(first.seed, VARIED_SEEDS[0])
    view = session.list_views()[0]
    assert (view.take.take_id, view.state) == (second.take_id, LineState.READY)
    assert session.render_progress.total == session.render_progress.done == 3
    assert voice.seeds["I will."] == [session.list_takes(session.document.order[1])[0].seed]
    session.undo(IDA, session.rev)
    assert session.document.settings.tries == 1, "a better try is no step of undo"
    assert session.list_views()[0].take.take_id == second.take_id


def test_a_line_that_stays_doubtful_is_made_so_often_and_no_more(
    studio: Studio, voice: WanderingDraft
) -> None:
    session = project(studio, "Ida: The marsh, again.\n[Tom | seed:7] The marsh is mine.")
    tries(session, 3)
    rendered(session)
    own, named = session.document.order
    takes = session.list_takes(own)
    assert len(takes) == 3
    heard_id = session.list_views()[0].take.take_id
    assert heard_id == takes[0].take_id, "none is better than the first"
    assert voice.seeds["The marsh is mine."] == [7], "a line that names its seed has that one"
    assert len(session.list_takes(named)) == 1
    rendered(session)
    assert len(session.list_takes(own)) == 3
    session.render([own], again=True)
    until(lambda: not session.busy)
    assert len(session.list_takes(own)) == 6
    heard_id = session.list_views()[0].take.take_id
    assert heard_id == session.list_takes(own)[3].take_id, "asked for, so it is heard"


@pytest.mark.parametrize("value", [0, 5, "2", 1.5])
def test_tries_are_one_to_four(studio: Studio, value: object) -> None:
    session = project(studio)
    with pytest.raises(BadInput, match="1 to 4 times"):
        tries(session, value)
    assert session.document.settings.tries == 1


def take_of(n: int, seed: int, **fields: object) -> Take:
    values = {"take_id": f"{n:016x}", "line_id": f"{n:012x}", "key": "k", "seed": seed}
    told = {"backend": "draft", "text": "Hello.", "voice": "Ida", "samples": 24_000}
    return Take(**values, **told, created_at=f"2026-01-01T00:00:{n:02d}", **fields)


def test_seeds_of_tries_follow_from_the_first_and_end() -> None:
    takes = [take_of(0, 5)]
    seeds = []
    while (seed := choose_retry_seed(takes[-1], takes, 4)) is not None:
        seeds.append(seed)
        takes.append(take_of(len(takes), seed))
    assert len(seeds) == len(set(seeds)) == 3
    assert [is_retry(take, takes) for take in takes] == [False, True, True, True]
    assert choose_retry_seed(takes[0], takes, 4) is None, "it was made already"
    assert choose_retry_seed(take_of(9, 6), [*takes, take_of(9, 6)], 2) is not None


def test_takes_with_a_stage_direction_are_compared_among_themselves() -> None:
    """A whisper that the script asks for is no drift; neither is it usual for other lines."""
    plain, spoken, door, *whispers = (
        build_voice_key(replace(take_of(0, 1), text=text))
        for text in (
            "Come in.", "Come in (and I mean it).", "[SFX: door] Come in.",
            "(whispering) Come in.", "(Whispering) Who is it?",
        )
    )  # fmt: skip
    assert plain == spoken == door
    assert len({plain, *whispers}) == 2


def test_a_voice_is_compared_with_itself_and_told_when_that_changes(tmp_path: Path) -> None:
    shelf = TakeStore(tmp_path, Disk())
    company = VoiceOutliers(shelf)
    clip = Clip(np.zeros(STUDIO_RATE_HZ, dtype=np.float32))
    usual, quiet = TakeMetrics(3.0, -20.0, 3.0), TakeMetrics(3.0, -35.0, 3.0)
    odd = take_of(0, 1, figures=quiet)
    shelf.add(odd, clip)
    for n in range(1, 7):
        shelf.add(take_of(n, 1, figures=usual), clip)
    assert company.find_issues(odd) == ()
    assert company.refresh() == []
    shelf.add(take_of(7, 1, figures=usual), clip)
    shelf.add(replace(take_of(8, 1, figures=quiet), voice="Tom"), clip)
    assert company.refresh() == [odd.line_id]
    [doubt] = company.find_issues(odd)
    assert doubt.message == "15 dB quieter than Ida’s other lines."
    assert company.find_issues(shelf.find(f"{8:016x}")) == ()
    assert company.refresh() == []
    for n in range(9, 30):
        shelf.add(take_of(n, 1, figures=quiet), clip)
    assert odd.line_id in company.refresh(), "it doesn't stand out any more"
    assert company.find_issues(odd) == ()


def test_how_far_a_take_is_from_its_sample_is_told(tmp_path: Path) -> None:
    company = VoiceOutliers(TakeStore(tmp_path, Disk()))
    higher = TakeMetrics(3.0, -20.0, 3.0, mean_pitch=57.0, sample_mean_pitch=54.5)
    told = company.describe_distance(take_of(0, 1, figures=higher))
    assert told == "From its sample: +2.5 semitones."
    assert company.describe_distance(take_of(1, 1, figures=None)) == ""


@pytest.mark.parametrize("fails_at", range(1, 9))
def test_a_take_whose_record_finds_no_room_leaves_no_audio(tmp_path: Path, fails_at: int) -> None:
    disk = FullDisk(fails_at, for_good=True)
    store = TakeStore(tmp_path / "takes", disk)
    take = take_of(1, 1)
    try:
        store.add(take, Clip.silence(0.5))
    except StorageFailed:
        assert list(tmp_path.rglob("*.wav")) == []
        assert list(TakeStore(tmp_path / "takes", QuickDisk())) == []
    else:
        assert disk.writes < fails_at
        assert [one.take_id for one in store] == [take.take_id]


def test_a_record_is_written_as_it_is_read(tmp_path: Path) -> None:
    take = take_of(
        3, 1, figures=TakeMetrics(1.0, -20.0, 1.0), doubts=(QualityIssue("gap", 2.0, "2 s."),)
    )
    path = tmp_path / take.line_id / f"{take.take_id}.json"
    path.parent.mkdir()
    path.write_bytes(encode_take(take))
    assert read_take_record(path) == take


def test_nothing_of_the_draft_voice_is_marked_as_drift(open_studio):
    long = "The keeper climbed the stairs with a lamp in each hand and counted them aloud"
    lines = [f"Ida: {long}, for the evening number {number}." for number in range(12)]
    session = project(open_studio(), "\n".join(lines))
    rendered(session)
    store = session.take_store
    for view in session.list_views()[:2]:
        figures = view.take.figures
        store.update(
            replace(view.take, figures=replace(figures, mean_pitch=figures.mean_pitch + 9))
        )
    outliers = VoiceOutliers(store)
    assert [one for take in store for one in outliers.find_issues(take)] == []


def test_a_line_without_sound_is_marked(open_studio):
    session = project(open_studio(), "Ida: (gasp)\nTom: All is well here.")
    rendered(session)
    assert [view.samples == 0 for view in session.list_views()] == [True, False]
    assert kinds(session) == [["silent"], []]
