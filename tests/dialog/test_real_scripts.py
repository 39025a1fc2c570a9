"""Scripts that other people and models wrote; `real_scripts/SOURCES.md` says whose they are."""

from pathlib import Path

import pytest
import regex
from told_rows import told_rows

from studio.dialog.directions import find_directions
from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    export_dialog,
    import_dialog,
    read_dialog_text,
)
from studio.dialog.model import Speech, SpeechLimits, Unspoken
from studio.dialog.planning import FailedSegment, SpeechSegment, plan

FOLDER = Path(__file__).parent / "real_scripts"
NAMES = sorted(path.name for path in FOLDER.iterdir() if path.name != "SOURCES.md")

SPEAKERS = {
    "audio_drama.txt": {"IVO": 3, "ANNA": 2},
    "chat.txt": {"Mara": 2, "Tomas": 2},
    "dia.txt": {"S1": 2, "S2": 2},
    "dialogue.md": {"Emma": 2, "Tom": 2},
    "dolls_house.txt": {"NORA": 10, "HELMER": 8, "PORTER": 1},
    "dolls_house_inline.txt": {"Nora": 4, "Porter": 1, "Helmer": 2},
    "ducks.ass": {"Narrator": 9, "Speaker 1": 1, "Speaker 2": 1},
    "earnest.fountain": {"ALGERNON": 2, "LANE": 2, "CECILY": 1},
    "earnest.txt": {"ALGERNON": 8, "LANE": 8},
    "earnest_inline.txt": {"Algernon": 4, "Lane": 3},
    "earnest_pasted.txt": {"ALGERNON": 2, "LANE": 2, "CECILY": 1},
    "game.csv": {"Bob": 1, "Ann": 1},
    "gemini.txt": {"Joe": 1, "Jane": 1},
    "hamlet_folio.txt": {"Barnardo": 1, "Fran": 4, "Bar": 3},
    "interview.txt": {"INTERVIEWER": 3, "KEEPER": 2},
    "podcast.md": {"Maya": 6, "Raj": 3},
    "podcastfy.txt": {"Person1": 2, "Person2": 2},
    "pride.txt": {"Narrator": 16},
    "romeo.txt": {"SAMPSON": 10, "GREGORY": 10},
    "sally.yarn": {"Player": 3, "Sally": 10},
    "vibevoice.txt": {"Narrator": 1},
    "voice_over.csv": {"Bob": 2, "Ann": 1},
}
TITLES = {
    "dolls_house.txt": "A Doll’s House",
    "earnest.fountain": "The Importance of Being Earnest",
    "earnest.txt": "The Importance of Being Earnest",
    "earnest_inline.txt": "THE IMPORTANCE OF BEING EARNEST",
    "hamlet_folio.txt": "The Tragedie of Hamlet",
    "interview.txt": "The Last Lighthouse Keeper",
    "podcast.md": "🎙️ Slow Tides — Why the Sea Comes Back",
}
NOT_SAID = (
    "whispering", "softly", "sighs", "laughs", "aside", "beat", "politely", "coughs", "Enter",
    "Hands them", "Inspects them", "taking two", "calls out", "putting her hands", "PORTER",
    "They pass", "INTRO MUSIC", "waves breaking", "SFX", "Sure!", "Would you like", "Let me know",
    "TTS the", "end-to-end", "#line", "<<", "**", "](", "Person1", "[S2]", "bob_001", "angrily",
    "V.O.", "CONT'D", "ACT", "SCENE", "Gutenberg", "Dialogue:", "thoughtfully", "turning to",
)  # fmt: skip
WORD = regex.compile(r"[\p{L}\p{N}]{3,}")


def read(name, narrator=None):
    return import_dialog((FOLDER / name).read_bytes(), name, ImportOptions(narrator=narrator))


def spoken(dialog):
    """What a voice without any abilities says."""
    segments = plan(dialog, SpeechLimits(100_000)).segments
    assert not any(isinstance(one, FailedSegment) for one in segments)
    return " ".join(one.text for one in segments if isinstance(one, SpeechSegment))


def test_there_are_twenty():
    assert len(NAMES) >= 20
    assert set(NAMES) == set(SPEAKERS)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_dialog_pasted_and_imported(name):
    imported = read(name)
    pasted = read_dialog_text((FOLDER / name).read_text("utf-8"))
    assert pasted.dialog == imported.dialog
    assert (pasted.title, pasted.unspoken) == (imported.title, imported.unspoken)
    # Only a file has a name that may promise another format.
    about = [one.message for one in imported.notices if f"“{name}” holds" not in one.message]
    assert [notice.message for notice in pasted.notices] == about


@pytest.mark.parametrize("name", NAMES)
def test_everybody_says_their_lines(name):
    lines = [line for line in read(name).dialog if isinstance(line, Speech)]
    assert {one: sum(line.speaker == one for line in lines) for one in SPEAKERS[name]} == SPEAKERS[
        name
    ]
    assert len(lines) == sum(SPEAKERS[name].values())
    assert read(name).title == TITLES.get(name)


@pytest.mark.parametrize("name", NAMES)
def test_no_direction_is_spoken(name):
    said = spoken(read(name).dialog)
    assert [words for words in NOT_SAID if words in said] == []
    assert not regex.search(r"[\[\]<>]|_\w|\w_", said)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_but_with_a_notice_that_names_it(name):
    """Every row is in the dialog with a narrator, or a notice quotes it or has its number."""
    imported = read(name, narrator="Reader")
    kept = " ".join(
        [f"{line.speaker} {line.text}" for line in imported.dialog if isinstance(line, Speech)]
        + [notice.message for notice in imported.notices]
        + [imported.title or ""]
    )
    known = set(map(str.casefold, WORD.findall(kept)))
    numbers = told_rows(imported.notices)
    rows = (FOLDER / name).read_text("utf-8").splitlines()
    lost = {
        number: missing
        for number, row in enumerate(rows, 1)
        if number not in numbers
        and (missing := [one for one in WORD.findall(row) if one.casefold() not in known])
    }
    for number in _outside(rows, imported.format):
        lost.pop(number, None)
    assert lost == {}


OF_FORMATS = regex.compile(
    r"\*\*\* |Section 1\.|\[(?:Script|V4|Events|Illus|_Copyr)|;|Format:|Style:|WrapStyle|Scaled"
    r"|Collisions|ScriptType|Dialogue:|tags:|title:|colorID|position|<<|Title:|Credit:|Author:|.*\[\[|.*<<|\s*->|.*#line|01/12/24"
    r"|.*\(CONT'D\)|.*\]\(https"
)
"""Rows with what a format has for machines, not for readers; a notice says so as a whole."""


def _outside(rows, format_):
    is_table = format_ in (Format.CSV, Format.TSV)
    return [number for number, row in enumerate(rows, 1) if is_table or OF_FORMATS.match(row)]


@pytest.mark.parametrize("narrator", ["Reader", None])
@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_reads_back_as_a_script(name, narrator):
    dialog = read(name, narrator).dialog
    again = import_dialog(export_dialog(dialog, Format.SCRIPT), "scene.txt")
    assert again.dialog == dialog
    assert again.notices == ()


@pytest.mark.parametrize("name", ["earnest.txt", "earnest.fountain", "audio_drama.txt"])
def test_a_narrator_reads_what_is_left_out_otherwise(name):
    silent, read_out = read(name), read(name, narrator="Reader")
    is_read = [isinstance(line, Speech) and line.speaker == "Reader" for line in read_out.dialog]
    assert sum(is_read) == silent.unspoken > 0
    assert read_out.unspoken in (0, silent.unspoken)
    others = [line for line, read in zip(read_out.dialog, is_read, strict=True) if not read]
    assert [one for one in others if isinstance(one, Speech)] == [
        one for one in silent.dialog if isinstance(one, Speech)
    ]


@pytest.mark.parametrize("name", ["earnest.txt", "earnest.fountain", "audio_drama.txt"])
def test_what_a_narrator_would_read_stands_between_the_lines(name):
    silent = read(name)
    kept = [line for line in silent.dialog if isinstance(line, Unspoken)]
    assert len(kept) >= silent.unspoken
    said = {line.text for line in read(name, narrator="Reader").dialog if isinstance(line, Speech)}
    assert sum(line.text in said for line in kept) >= silent.unspoken - 1


def test_every_direction_of_a_play_is_kept_for_voices_that_follow_it():
    lines = [line for line in read("dolls_house.txt").dialog if isinstance(line, Speech)]
    directions = [one.words for line in lines for one in find_directions(line.text)]
    assert "calls out from his room" in directions
    assert "A little later, he opens the door and looks into the room, pen in hand" in directions
    assert len(directions) == 9
