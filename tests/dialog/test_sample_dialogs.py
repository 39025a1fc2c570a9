from pathlib import Path

import pytest

from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Silence, Speech
from studio.dialog.planning import FailedSegment, SilenceSegment, SpeechLimits, plan
from studio.dialog.script import parse_script, write_script

FOLDER = Path(__file__).parents[2] / "assets" / "dialogs"
NAMES = sorted(path.name for path in FOLDER.glob("*.txt"))


def dialog(name):
    return import_dialog((FOLDER / name).read_bytes(), name).dialog


@pytest.mark.parametrize("name", NAMES)
def test_samples_are_planned_without_failure_or_notice(name):
    parsed = import_dialog((FOLDER / name).read_bytes(), name)
    result = plan(parsed.dialog, SpeechLimits(max_chars=200))
    assert result.notices == ()
    assert {notice.message.split(":")[0] for notice in parsed.notices} <= {
        "Notes that begin with # or // aren't spoken or kept",
        "The title isn't spoken; a new project is named for it",
    }
    assert not any(isinstance(segment, FailedSegment) for segment in result.segments)
    assert parse_script(write_script(parsed.dialog)).dialog == parsed.dialog


def test_the_opening_scene_is_short():
    lines = dialog("lighthouse.txt")
    assert sum(isinstance(line, Speech) for line in lines) == 8
    assert sum(isinstance(line, Silence) for line in lines) == 1
    assert len(lines.speakers()) == 3


def test_the_night_train_has_40_lines_and_pauses_between_and_inside_them():
    lines = dialog("night-train.txt")
    assert sum(isinstance(line, Speech) for line in lines) == 40
    between = sum(isinstance(line, Silence) for line in lines)
    silences = [
        segment
        for segment in plan(lines, SpeechLimits(max_chars=300)).segments
        if isinstance(segment, SilenceSegment)
    ]
    assert between == 6
    assert len(silences) == between + 4


def test_the_market_speaks_three_languages():
    languages = {
        line.language for line in dialog("three-languages.txt") if isinstance(line, Speech)
    }
    assert languages == {"de", "en", "fr"}
