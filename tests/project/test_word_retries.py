"""Among several tries the words count: once they are checked, a line is said again or goes back.

The recogniser here is told by the voice what it said, so that no model's mistakes count.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from project_scenes import IDA, ops, rendered, until
from scenes import OpenStudio, finish

from studio.audio.clip import Clip, Samples
from studio.audio.line_edges import trim_edges
from studio.backends.base import Capabilities, SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.dialog.model import Dialog, Speech
from studio.hearing.hearing_models import HearingModels
from studio.hearing.model_catalogue import HEARING_MODELS
from studio.hearing.recognition import RecognisedWord, Transcript
from studio.project.session import ProjectSession
from studio.services.studio import RenderOptions, Studio

LAMP = "The lamp is still burning in the tower."
SAILOR = "The sailor carried water to the village."
MISSING = "The lamp is burning in the tower."
UNLIKE = "Bring seven chickens with yellow feathers please."


class ForgetfulDraft(DraftBackend):
    """Says something else the first times that a line is spoken.

    Attributes:
        spoken: What it said, by the number of samples that are left of it.
    """

    def __init__(self, said: Mapping[str, tuple[str, ...]]) -> None:
        super().__init__()
        self._said = said
        self._times: Counter[str] = Counter()
        self.spoken: dict[int, str] = {}

    def speak(self, request: SpeechRequest) -> Iterator[Samples]:
        said = self._said.get(request.text, ())
        number = self._times[request.text]
        self._times[request.text] += 1
        text = said[number] if number < len(said) else request.text
        samples = np.concatenate(list(super().speak(replace(request, text=text))))
        self.spoken[sum(map(len, trim_edges(iter([samples]))))] = text
        yield samples

    @property
    def capabilities(self) -> Capabilities:
        """Its tries differ by themselves, so the studio varies none."""
        return replace(super().capabilities, seeded=True)


@pytest.fixture
def open_forgetful(
    open_studio: OpenStudio, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Studio]:
    """Opens a studio that says this of the lamp, and has a recogniser that makes no mistake."""

    def open_it(*lamp: str) -> Studio:
        backend = ForgetfulDraft({LAMP: lamp})

        def transcribe(self: object, clip: Clip, *_: object, **__: object) -> Transcript:
            # What isn't a take is the reading that it is held against, which says all.
            text = backend.spoken.get(len(clip), LAMP)
            return Transcript(text, tuple(map(RecognisedWord, text.split())), "en")

        model = next(iter(HEARING_MODELS.values()))
        monkeypatch.setattr(HearingModels, "find", lambda self, language: model)
        monkeypatch.setattr(HearingModels, "transcribe", transcribe)
        return open_studio(backend, recognisers={model.name: model})

    return open_it


def project(studio: Studio, tries: int) -> ProjectSession:
    session = studio.projects.create(
        "Scene", read_dialog_text(f"Ida: {SAILOR}\nIda: {LAMP}").dialog
    )
    session.edit(ops({"op": "settings", "fields": {"tries": tries}}), IDA, session.rev)
    rendered(session)
    return session


def settled(session: ProjectSession, takes: int) -> tuple[list[list[str]], int]:
    """The kinds of issues of each take of the lamp's line once all are checked, and the chosen."""
    lamp = session.document.order[1]

    def is_done() -> bool:
        found = session.list_takes(lamp)
        return len(found) == takes and not session.busy and all(one.recognised for one in found)

    until(is_done)
    found = session.list_takes(lamp)
    chosen = session.list_views()[1].take
    return [[issue.kind for issue in one.issues] for one in found], found.index(chosen)


def test_a_line_that_lacks_a_word_is_said_again(open_forgetful: Callable[..., Studio]) -> None:
    session = project(open_forgetful(MISSING), 3)
    assert settled(session, 2) == ([["missing"], []], 1)
    assert len(session.list_takes(session.document.order[0])) == 1


def test_a_try_that_is_worse_than_the_one_before_is_put_back(
    open_forgetful: Callable[..., Studio],
) -> None:
    session = project(open_forgetful(MISSING, UNLIKE), 2)
    kinds, chosen = settled(session, 2)
    assert (kinds[0], kinds[1], chosen) == (["missing"], ["unlike"], 0)


@pytest.mark.parametrize(("doubtful", "takes"), [(MISSING, 1), (UNLIKE, 2)])
def test_the_words_of_a_line_that_was_locked_change_nothing(
    open_forgetful: Callable[..., Studio],
    monkeypatch: pytest.MonkeyPatch,
    doubtful: str,
    takes: int,
) -> None:
    """Locked after its first take, or after another try, of which the words are worse."""
    studio, may_hear = open_forgetful(MISSING, UNLIKE), threading.Event()
    hear = HearingModels.transcribe

    def wait(*given: Any, **named: Any) -> Transcript:
        heard = hear(*given, **named)
        assert heard.text != doubtful or may_hear.wait(60)
        return heard

    monkeypatch.setattr(HearingModels, "transcribe", wait)
    dialog = read_dialog_text(f"Ida: {LAMP}").dialog
    session = studio.projects.create("Scene", dialog)
    session.edit(ops({"op": "settings", "fields": {"tries": 2}}), IDA, session.rev)
    session.render(None)
    (lamp,) = session.document.order
    until(lambda: len(session.list_takes(lamp)) == takes and not session.busy)
    chosen = session.get_view(lamp).take
    lock = {"op": "set", "line_ids": [lamp], "fields": {"locked": True}}
    session.edit(ops(lock), IDA, session.rev)
    may_hear.set()
    until(lambda: not session.busy and all(one.recognised for one in session.list_takes(lamp)))
    assert len(session.list_takes(lamp)) == takes
    assert session.get_view(lamp).take.take_id == chosen.take_id


def test_without_further_tries_it_is_marked_only(open_forgetful: Callable[..., Studio]) -> None:
    session = project(open_forgetful(MISSING), 1)
    assert settled(session, 1) == ([["missing"]], 0)


def test_a_render_for_programs_chooses_by_words_too(open_forgetful: Callable[..., Studio]) -> None:
    job = open_forgetful(MISSING).render(
        Dialog((Speech("Ida", LAMP),)), RenderOptions(seed=5, tries=3)
    )
    finish(job)
    [record] = job.records
    assert [[issue.kind for issue in one.issues] for one in record.tries] == [["missing"], []]
    assert record.best_try == 1
