"""Chats and transcripts become lines of those who wrote them; a script stays a script."""

from __future__ import annotations

import pytest
from growth import assert_linear

from studio.dialog.formats.dialog_file import import_dialog, read_dialog_text
from studio.dialog.model import Speech
from studio.dialog.reading.forms.chat import find_chat

SAID = [("Mara", "Are you up?"), ("Tomas", "Since five.")]
CHATS = {
    "a phone's, with seconds": "[3/9/24, 10:02:11\u202fAM] Mara: Are you up?\n"
    "\u200e[3/9/24, 10:02:40\u202fAM] ~\u202fTomas: Since five.",
    "a phone's, with a dash": "03.09.24, 10:01 - Messages are encrypted end to end.\n"
    "03.09.24, 10:02 - Mara: Are\nyou up?\n03.09.24, 10:03 - Tomas: Since five.",
    "with the time first": "00:00:01 Mara: Are you up?\n00:00:05.250 Tomas: Since five.",
    "with the time behind the name": "Mara (0:01): Are you up?\n\nTomas (0:05): Since five.",
    "with a row for the name": "Mara  10:02 AM\nAre you up?\nTomas  10:03 AM\nSince five.",
    "with a row for name and day": "Mara — Today at 10:02\nAre you up?\n"
    "Tomas — Today at 10:03\nSince five.",
    "with angle brackets": "[10:02] <@Mara> Are you up?\n[10:02] <Tomas> Since five.",
    "a list": "- Mara: Are you up?\n- Tomas: Since five.",
    "a list with numbers": "1. Mara: Are you up?\n2. Tomas: Since five.",
    "with dashes": "Mara - Are you up?\nTomas – Since five.",
    "without a space": "Mara:Are you up?\nTomas:Since five.",
    "two columns": "Mara\tAre you up?\nTomas\tSince five.",
}
STAMPS = [
    "10:02, 09/03/2024",
    "10:02, 3/9/24",
    "10:02 AM, 3/9/2024",
    "10:02 pm, 09/03/2024",
    "10:02 a.\u00a0m., 9/3/2024",
    "10:02\u202fp.m., 2024-03-09",
    "10:02, 9.3.2024",
    "10.02, 9.3.2024",
    "10:02:11, 09-03-2024",
    "10:02, 2024. 3. 9.",
    "오전 10:02, 2024. 3. 9.",
    "上午10:02, 2024/3/9",
    "10:02, 2024年3月9日",
    "10:02 π.μ., 9/3/2024",
    "10 h 02, 2024-03-09",
    "09/03/2024, 10:02",
    "3/9/24, 10:02:11 AM",
    "10:02",
]
OTHERS = {
    "a script": "Mara: Are you up?\nTomas: Since five.\n[pause:1s]\n"
    "[Mara | lang:de] Um 10:30 - wie immer.",
    "a script in another writing": "安娜：你好\n本：再见",
    "brackets": "[Mara] 10:30 it is.\n[Tomas] At last: ten.",
    "times at the beginning": "10:30 we leave\n11:30 we arrive",
    "a list of things": "Bread - two\nMilk - one\nEggs - ten\nHam - some",
    "addresses": "http://a.example/b\nhttps://c.example/d",
    "a table with a head": "speaker\ttext\nMara\tAre you up?\nTomas\tSince five.",
    "prose": "It was late - very late.\nHe said: come in. Then, at 10:30, she came.",
    "a screenplay": "MARA\nAre you up?\n\nTOMAS\nSince five.",
    "subtitles": "1\n00:00:01,000 --> 00:00:02,000\nMara: Up?\n\n"
    "2\n00:00:03,000 --> 00:00:04,000\nTomas: Yes.",
    "one row": "10:02 Mara: Are you up?",
    "nothing": "",
}


def _spoken(text: str, name: str = "chat.txt") -> list[tuple[str, str]]:
    dialog = import_dialog(text.encode(), name).dialog
    return [(line.speaker, line.text) for line in dialog if isinstance(line, Speech)]


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
def test_a_chat_is_read_by_its_names(chat):
    assert _spoken(chat) == SAID


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_is_no_chat_stays_what_it_is(text):
    assert find_chat(text) is None


@pytest.mark.parametrize("stamp", STAMPS)
def test_a_copied_chat_is_read_whatever_the_order_of_date_and_time(stamp):
    chat = f"[{stamp}] Mara: Are\nyou up?\n\n[{stamp}] Tomas: Since five."
    assert _spoken(chat) == SAID
    typed = read_dialog_text(chat).dialog
    assert [(line.speaker, line.text) for line in typed] == SAID


def test_one_copied_message_is_enough():
    assert _spoken("[10:02, 09/03/2024] Mara: Are you up?") == SAID[:1]
    assert find_chat("[10:02] Mara: Are you up?") is None


def test_it_is_told_once():
    (notice,) = import_dialog(CHATS["a list"].encode(), "chat.txt").notices
    assert "read as a chat" in notice.message
    assert notice.line_number == 1


def test_a_number_in_place_of_a_name_is_a_speaker():
    chat = "10:02 +49 170 0000: Up?\n10:03 Mara: Yes.\n10:04 +49 170 0000: Good."
    assert _spoken(chat) == [("+49 170 0000", "Up?"), ("Mara", "Yes."), ("+49 170 0000", "Good.")]


def test_another_suffix_says_what_a_file_is():
    assert _spoken("speaker,text\nMara,Are you up?\nTomas,Since five.", "chat.csv") == SAID


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (lambda size: "10:02 Mara: Are you up?\n" * size, 40_000),
        (lambda size: ("a " * size + "\n") * 20, 25_000),
        (lambda size: "10:02 " + "x" * size + "\n10:03 Mara: a", 2_000_000),
        (lambda size: "Mara " + "- " * size + "\nTomas - Hi", 500_000),
    ],
    ids=["long", "wide", "one word", "dashes"],
)
def test_it_is_quick_on_a_large_text(text, size):
    assert_linear(lambda size: find_chat(text(size)), size)
