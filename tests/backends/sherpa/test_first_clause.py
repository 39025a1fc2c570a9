"""A line that somebody waits for begins with its first clause alone; any other is left whole."""

from itertools import pairwise

import numpy as np
import pytest
import sherpa_models
from contract import request_for
from hypothesis import given
from hypothesis import strategies as st
from scenes import finish
from sherpa_backends import make

from studio.backends.base import Priority
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.backends.sherpa.graph_model import GRAPH_FAMILIES
from studio.backends.sherpa.line_pieces import Piece, cut_at_clauses
from studio.dialog.model import Dialog, Speech
from studio.services.studio import RenderOptions

pytest.importorskip("onnxruntime")
pytest.importorskip("espeakng_loader")

LINE = (
    "While the carpenter was looking for the second hinge, somebody had opened the kitchen window, "
    "and the wind carried his drawings, one after the other, into the pond behind the garden wall. "
    "He laughed."
)


def spell(*clauses: int) -> Piece:
    """A sentence of clauses, of so many letters each, with its mark."""
    return Piece("", " ".join("a" * (size - 1) + "," for size in clauses)[:-1] + ".")


def sizes(*sentences: Piece) -> list[int]:
    return [len(one.phonemes) for one in cut_at_clauses(sentences)]


@pytest.mark.parametrize(
    ("clauses", "pieces"),
    [
        ((60, 60, 240), [60, 60, 240]),
        ((30, 20, 20, 200), [30, 41, 200]),
        ((10, 13, 40), [65]),
        ((10, 13, 40, 40), [65, 40]),
        ((10, 14, 40), [25, 40]),
        ((80, 20), [101]),
        ((24, 300), [325]),
        ((40, 40, 40, 40, 40), [40, 81, 81]),
        ((200,), [200]),
    ],
)
def test_the_first_clause_is_a_piece_and_each_other_sounds_while_the_next_is_computed(
    clauses, pieces
):
    assert sizes(spell(*clauses)) == pieces


def test_a_sentence_is_cut_where_what_is_before_it_is_shorter_than_half():
    assert sizes(spell(5), spell(60, 200)) == [5, 60, 200]
    assert sizes(spell(140), spell(60, 200)) == [140, 261]


@given(st.lists(st.lists(st.integers(2, 90), min_size=1, max_size=9), min_size=1, max_size=4))
def test_nothing_is_lost_and_no_clause_is_cut_short(clauses):
    sentences = [spell(*one) for one in clauses]
    pieces = [*cut_at_clauses(sentences)]
    assert " ".join(one.phonemes for one in pieces) == " ".join(one.phonemes for one in sentences)
    for one, behind in pairwise(pieces):
        assert one.goes_on == (one.phonemes[-1] == ",")
        assert not one.goes_on or min(len(one.phonemes), len(behind.phonemes)) >= 25
    assert not pieces[-1].goes_on


def speak(backend, text=LINE, *, ahead=0, **fields):
    waits = {} if ahead is None else {"priority": lambda: Priority(ahead)}
    return [*backend.speak(request_for(backend, text, language="en-US", **waits, **fields))]


def test_a_line_that_somebody_waits_for_sounds_after_its_first_clause(loaded):
    pieces, sentences = speak(loaded), speak(loaded, ahead=None)
    assert len(sentences) == 2
    if CATALOGUE[loaded.name].family not in GRAPH_FAMILIES:
        assert all(map(np.array_equal, pieces, sentences))  # by its seed, or from a sample
        return
    assert len(pieces) == 4
    assert len(pieces[0]) < len(sentences[0]) / 3
    assert np.array_equal(pieces[-1], sentences[-1])


def test_a_line_that_is_only_next_is_spoken_whole(loaded):
    assert all(map(np.array_equal, speak(loaded, ahead=1), speak(loaded, ahead=None)))


def test_the_pause_at_a_join_has_the_pace_of_the_line(serve):
    serve(sherpa_models.kokoro())
    backend = make("kokoro")
    backend.load(lambda _progress: None)
    pauses_s = []
    for speed in (1.0, 2.0):
        first, *_ = speak(backend, params={"speed": speed})
        pauses_s.append((len(first) - np.flatnonzero(first)[-1]) / 24_000)
    backend.unload()
    assert pauses_s == pytest.approx([0.28, 0.14], abs=0.01)


def test_a_scene_says_who_is_waited_for(serve, open_studio):
    serve(sherpa_models.kokoro())
    backend = make("kokoro")
    sounds = {}
    for listen in (True, False):
        options = RenderOptions(listen=listen)
        job = open_studio(backend).render(Dialog((Speech("Ada", LINE),)), options)
        finish(job)
        assert job.list_failures() == ()
        sounds[listen] = job.records[0].samples
    assert sounds[True] != sounds[False]
