"""A new take is another one, or there is none; and old projects keep the sound of their lines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from project_scenes import IDA, ops, rendered, until
from scenes import OpenStudio

from studio.audio.clip import STUDIO_RATE_HZ, Samples
from studio.audio.timeline import read_take
from studio.backends.base import VARIED_SEEDS, Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.document import Document, ProjectLine
from studio.project.history import Author, EntryKind, History, Journal, Marks
from studio.project.line_states import LineState
from studio.project.session import ProjectSession
from studio.services.previews import Sentence
from studio.storage.disk import Disk

SCRIPT = "Ida: The ferry leaves before the museum opens.\nTom: Nobody told me."
SAME = "Fixed says this line the same way every time. Change the speed, the words or the voice."


class Fixed(DraftBackend):
    """Says a line the same way each time; `knows` whether it says so."""

    title = "Fixed"

    def __init__(self, *, knows: bool) -> None:
        super().__init__()
        self.knows = knows
        self.evened: list[bool] = []

    @property
    def capabilities(self) -> Capabilities:
        seeds = VARIED_SEEDS if self.knows else (0, 2**31)
        return replace(super().capabilities, seeded=not self.knows, take_seeds=seeds)

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        self.evened.append(request.is_evened)
        yield from super().speak(replace(request, seed=None))


def again(session: ProjectSession, line_id: str) -> None:
    session.render([line_id], again=True)
    until(lambda: not session.busy)


def sounds_of(session: ProjectSession, line_id: str) -> list[bytes]:
    paths = map(session.take_store.get_audio_path, session.list_takes(line_id))
    return [path.read_bytes() for path in paths]


def test_a_new_take_of_a_voice_that_never_varies_is_another_one(open_studio: OpenStudio) -> None:
    studio = open_studio(Fixed(knows=True))
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    line_id = session.document.order[0]
    for _ in range(3):
        again(session, line_id)
    assert len(set(sounds_of(session, line_id))) == 4
    chosen = session.document.lines[line_id].chosen
    assert chosen == session.list_takes(line_id)[-1].take_id
    # A take whose audio was freed sounds as it did.
    [*_, before] = sounds_of(session, line_id)
    session.take_store.free(session.take_store.find(chosen))
    rendered(session)
    assert sounds_of(session, line_id)[-1] == before


def test_a_take_that_sounds_as_another_is_not_kept(open_studio: OpenStudio) -> None:
    studio = open_studio(Fixed(knows=False))
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    line_id = session.document.order[0]
    chosen, rev = session.document.lines[line_id].chosen, session.rev
    again(session, line_id)
    assert len(sounds_of(session, line_id)) == 1
    assert (session.document.lines[line_id].chosen, session.rev) == (chosen, rev)
    assert session.render_progress.message == SAME
    folder = session.take_store.get_audio_path(session.list_takes(line_id)[0]).parent
    assert len(list(folder.glob("*.wav"))) == 1
    assert not list((session.folder.root / "segments").glob("*"))
    # Other words have a take of their own, even if they sound alike.
    edit = {"op": "set", "line_ids": [line_id], "fields": {"text": "The ferry leaves  before …"}}
    session.edit(ops(edit), IDA, session.rev)
    rendered(session)
    assert len(sounds_of(session, line_id)) == 2


def test_a_project_from_before_keeps_the_sound_of_its_lines(open_studio: OpenStudio) -> None:
    voice = Fixed(knows=True)
    studio = open_studio(voice)
    line = ProjectLine("0" * 12, speaker="Ida", text="The lamp is still burning.")
    root = studio.options.workspace / "projects" / "0123456789ab"
    root.mkdir(parents=True)
    journal = Journal(root / "edits.jsonl", Disk())
    document = Document("Old", {line.line_id: line}, (line.line_id,))
    # As the latest studio before did it.
    History(journal, Document(), Marks()).record(
        document, Author("Tableread 0.1.0"), 1_000.0, EntryKind.MADE
    )
    journal.close()
    old = studio.projects.open(root.name)
    new = studio.projects.create("New", read_dialog_text(f"Ida: {line.text}").dialog)
    copy = studio.projects.duplicate(old.project_id)
    samples = []
    for session in (old, new, copy):
        rendered(session)
        [take] = session.list_takes(session.document.order[0])
        samples.append(read_take(session.take_store.get_audio_path(take)).samples)
    assert voice.evened == [False, True, False]
    assert np.array_equal(samples[0], samples[2])
    loud = [np.flatnonzero(np.abs(one) > 0.01 * np.abs(one).max()) for one in samples]
    tails_s = [(len(one) - at[-1]) / STUDIO_RATE_HZ for one, at in zip(samples, loud, strict=True)]
    assert tails_s[0] > 0.1
    assert tails_s[1] < 0.06
    # Who casts by ear hears what the lines will be.
    for session in (old, new):
        asyncio.run(studio.auditions.say(session, "Ida", "automatic", Sentence("Yes.")))
    assert voice.evened[3:] == [False, True]


def test_a_seed_that_a_line_asks_for_has_its_take_though_it_changes_nothing(
    open_studio: OpenStudio,
) -> None:
    studio = open_studio(Fixed(knows=True))
    session = studio.projects.create("Scene", read_dialog_text(SCRIPT).dialog)
    rendered(session)
    line_id = session.document.order[0]
    session.edit(ops({"op": "set", "line_ids": [line_id], "fields": {"seed": 7}}), IDA, session.rev)
    rendered(session)
    assert [one.seed for one in session.list_takes(line_id)][-1] == 7
    assert session.list_views()[0].state is LineState.READY
