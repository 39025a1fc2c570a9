"""What ends a reading that would go on: time, and that nobody waits for it."""

import contextvars
import itertools
import time

import pytest
import regex

from studio.dialog.formats.dialog_file import import_dialog, read_dialog_text
from studio.dialog.model import Speech, Unspoken
from studio.dialog.reading_limits import PATTERN_S, is_awaited, limited_reading
from studio.errors import Cancelled, ScriptError

TWEE = ":: Weir\n"
INK = "=== weir ===\n-> weir\n"
YARN = "title: Weir\n---\nIda: Hello.\n"
SCRIPT = "Ida: Hello.\nTom: Yes.\n"
WITH_BUILDER = [TWEE + "Ida: Hello.\n", INK + "Ida: Hello.\n", YARN, "speaker,text\nIda,Hello.\n"]


@pytest.mark.parametrize("text", [SCRIPT, *WITH_BUILDER])
def test_a_text_that_takes_too_much_processor_time_is_refused(monkeypatch, text):
    monkeypatch.setattr(time, "thread_time", itertools.count(5.0, 20.1).__next__)
    with pytest.raises(ScriptError, match=r"takes too long to read\. Divide it"):
        read_dialog_text(text)


def test_a_reading_in_a_thread_that_has_worked_before_has_all_its_time(monkeypatch):
    monkeypatch.setattr(time, "thread_time", itertools.count(5_000.0, 1.0).__next__)
    assert len(read_dialog_text(SCRIPT).dialog) == 2


@pytest.mark.parametrize("text", [SCRIPT, *WITH_BUILDER])
def test_nothing_is_read_once_nobody_waits_for_it(text):
    def read():
        is_awaited.set(lambda: False)
        read_dialog_text(text)

    with pytest.raises(Cancelled):
        contextvars.copy_context().run(read)


def test_a_reading_that_begins_to_be_in_vain_ends_at_its_next_line(monkeypatch):
    asked = iter([True, True, True])
    monkeypatch.setattr(time, "monotonic", itertools.count(0.0, 1.0).__next__)

    def read():
        is_awaited.set(lambda: next(asked, False))
        read_dialog_text(SCRIPT * 100)

    with pytest.raises(Cancelled):
        contextvars.copy_context().run(read)
    assert next(asked, None) is None


@pytest.mark.campaign
def test_a_pattern_that_would_take_hours_gives_up():
    slow = regex.compile(r"(?:<|<)*b|<<.*?>>")
    with pytest.raises(ScriptError, match="takes too long to read"), limited_reading():
        slow.search("<<" * 1_000_000, timeout=PATTERN_S)


def test_a_pattern_that_gives_up_refuses_the_text():
    with pytest.raises(ScriptError, match=r"takes too long to read\. Divide it"), limited_reading():
        raise TimeoutError


@pytest.mark.parametrize(
    ("before", "number"),
    [(TWEE, 2), (INK, 3), (YARN, 4), ('label weir:\n    "Hello."\n    ', 3)],
)
def test_a_row_of_a_game_is_measured_before_it_is_read(before, number):
    row = '"' + "river " * 16_667
    with pytest.raises(ScriptError, match=rf"^Line {number}: This line has 100,00\d characters"):
        import_dialog((before + row).encode(), "a")


def test_a_row_of_a_games_code_has_any_length():
    code = ":: Story Script [script]\n" + "a = 1; " * 20_000
    read = import_dialog(f"{TWEE}Ida: Hello.\n\n{code}".encode(), "a.twee")
    assert [line.text for line in read.dialog if isinstance(line, Speech)] == ["Hello."]
    kept = "".join(line.text for line in read.dialog if isinstance(line, Unspoken))
    assert kept.count("a = 1;") == 20_000
