"""Subtitles of Advanced SubStation Alpha, Yarn dialogs, and items that hold turns."""

import pytest

from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.model import Silence, Speech, Unspoken, UnspokenKind
from studio.errors import ScriptError

ASS = """[Script Info]
Title: x

[V4+ Styles]
Format: Name, Fontname
Style: Default,Arial

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,Ben: Hi, and {\\i1}bye{\\i0}.
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Anna,0,0,0,,Hello,\\Nyou.
Comment: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,a note
Dialogue: 0,0:00:05.00,0:00:06.00,Default,,0,0,0,,{\\p1}m 0 0 l 1 1{\\p0}
"""
YARN = """title: Start
tags:
position: 10,20
---
<<if visited("Sally")>>
Player: Hey, Sally. #line:794945
Sally: Oh! [b]Hi[/b]. // a comment
-> What is this?
    Sally: It's a ship.
<<endif>>
[[See you.|Exit]]
===
title: Exit
---
Bye, then.
===
"""


@pytest.mark.parametrize("name", ["a.ass", "a.txt", "a"])
def test_ass_is_read_in_the_order_of_time(name):
    imported = import_dialog(ASS.encode(), name)
    assert list(imported.dialog) == [
        Silence(1.0), Speech("Anna", "Hello, you."), Silence(1.0), Speech("Ben", "Hi, and bye."),
        Unspoken("a note"),
    ]  # fmt: skip
    assert "only draw" in imported.notices[0].message


def test_ass_without_words_is_refused():
    with pytest.raises(ScriptError, match="Dialogue:"):
        import_dialog(ASS.partition("Dialogue")[0].encode(), "a.ass")


@pytest.mark.parametrize("name", ["a.yarn", "a.txt", "a"])
def test_yarn_is_read_and_says_what_it_cant_follow(name):
    imported = import_dialog(YARN.encode(), name)
    assert list(imported.dialog) == [
        Unspoken("Start", UnspokenKind.HEADING),
        Unspoken('<<if visited("Sally")>>'),
        Speech("Player", "Hey, Sally.", params={"id": 794945}),
        Unspoken("a comment"),
        Speech("Sally", "Oh! Hi."),
        Unspoken("-> What is this?"),
        Speech("Sally", "It's a ship."),
        Unspoken("<<endif>>"),
        Unspoken("[[See you.|Exit]]"),
        Unspoken("Exit", UnspokenKind.HEADING),
        Speech("Narrator", "Bye, then."),
    ]
    said = imported.notices[0].message
    assert "<<if visited" in said
    assert "“-> What is this?”" in said


@pytest.mark.parametrize(
    "text",
    ['{"text": "[S1] Hi. [S2] Ho."}\n{"text": "[S1] Hu."}',
     '[{"text": "[S1] Hi. [S2] Ho."}, {"text": "[S1] Hu."}]'],
)  # fmt: skip
def test_items_that_hold_turns(text):
    said = [(line.speaker, line.text) for line in import_dialog(text.encode(), "a.jsonl").dialog]
    assert said == [("S1", "Hi."), ("S2", "Ho."), ("S1", "Hu.")]
