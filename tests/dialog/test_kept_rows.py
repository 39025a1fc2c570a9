"""What nobody says in a file of another program stands between the lines, and is kept."""

import pytest

from studio.dialog.formats.dialog_file import Format, export_dialog, import_dialog, read_dialog_text
from studio.dialog.model import Speech, Unspoken

ASS = """[Script Info]
Title: The Weir
[V4+ Styles]
[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:00.00,0:00:01.00,Default,Anna,0,0,0,,{\\i1}Is this too long?
Dialogue: 0,0:00:01.00,0:00:02.00,Default,Anna,0,0,0,,Hello.
"""
SRT = """1
00:00:01,000 --> 00:00:02,000
ANNA: Who is there?

2
00:00:03,000 --> 00:00:04,000
[door slams]

3
00:00:05,000 --> 00:00:06,000
♪ a song of weirs ♪
"""
FILES = [
    (ASS, ["note: Is this too long?", "Anna: Hello."]),
    (SRT, ["ANNA: Who is there?", "action: door slams", "action: ♪ a song of weirs ♪"]),
    (
        "=== weir ===\n// does she know?\nAnna: See http://weir.example // her best line\n-> END\n",
        [
            "heading: weir", "note: does she know?", "note: her best line",
            "Anna: See http://weir.example", "note: -> END",
        ],
    ),
    (
        "title: Weir\n---\n// does she know?\nAnna: See http://weir.example\n===\n",
        ["heading: Weir", "note: does she know?", "Anna: See http://weir.example"],
    ),
    (
        'label weir:\n    # does she know?\n    "Anna" "Hello."\n    "Ben" "Hi."\n    return\n',
        ["heading: weir", "note: does she know?", "Anna: Hello.", "Ben: Hi.", "note: return"],
    ),
    (
        "INT. WEIR - NIGHT\n\nANNA\nHello. [[louder]]\n\n/* Cut:\n\nBEN\nHi. */\n\nANNA\nBye.\n",
        [
            "heading: INT. WEIR - NIGHT", "ANNA: Hello.", "note: louder", "note: Cut:",
            "note: BEN", "note: Hi.", "ANNA: Bye.",
        ],
    ),
    (
        "# Weir\n\n**Anna:** Hello <!-- softer --> there.\n\n<!-- a door,\nfar away -->\n\n"
        "**Ben:** I <3 you <!-- without an end.\n",
        [
            "heading: Weir", "Anna: Hello there.", "note: softer", "note: a door,",
            "note: far away", "Ben: I <3 you <!-- without an end.",
        ],
    ),
    (
        "Anna: Hello.\n\nSETTING: The weir.\n\nNOTE: louder\n\nBen: Hi.\n",
        ["Anna: Hello.", "action: SETTING: The weir.", "note: NOTE: louder", "Ben: Hi."],
    ),
]  # fmt: skip


def shown(dialog):
    return [
        f"{line.kind}: {line.text}"
        if isinstance(line, Unspoken)
        else f"{line.speaker}: {line.text}"
        for line in dialog
        if isinstance(line, Speech | Unspoken)
    ]


@pytest.mark.parametrize(("text", "rows"), FILES)
def test_what_a_file_holds_besides_its_lines_is_kept_by_every_format_that_can(text, rows):
    dialog = read_dialog_text(text).dialog
    assert shown(dialog) == rows
    for format_ in (Format.SCRIPT, Format.FOUNTAIN, Format.CSV, Format.TSV, Format.JSON):
        again = import_dialog(export_dialog(dialog, format_), f"scene.{format_}")
        assert again.dialog == dialog, format_


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (ASS, "The Weir"),
        (ASS.replace("The Weir", "Default Aegisub file"), None),
        ("WEBVTT - The Weir\n\n00:01.000 --> 00:02.000\n<v Anna>Hello.\n", "The Weir"),
        ("WEBVTT\nKind: captions\n\n00:01.000 --> 00:02.000\n<v Anna>Hello.\n", None),
    ],
)
def test_subtitles_name_a_project(text, title):
    assert read_dialog_text(text).title == title
