import json

import pytest
from dialog_strategies import dialogs
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.items import parse_items, write_items, write_json_lines
from studio.dialog.model import MAX_LINE_CHARS, Audio, Dialog, Silence, Speech
from studio.errors import ScriptError

ITEMS = [
    {"type": "speech", "speaker_id": "Anna", "text": "Hi\n there.", "exaggeration": 0.5},
    {"type": "silence", "duration": 1.5},
    {"type": "audio", "path": "x.wav"},
    {
        "type": "speech",
        "speaker_id": " Ben ",
        "text": "",
        "language": "de",
        "seed": 7,
        "params": {"speed": 2, "calm": True},
        "pitch": None,
    },
]
LINES = [
    Speech("Anna", "Hi there.", params={"exaggeration": 0.5}),
    Silence(1.5),
    Audio("x.wav"),
    Speech("Ben", "", "de", 7, {"speed": 2, "calm": True}),
]


def item(**keys):
    return {"type": "speech", "speaker_id": "Anna", "text": "Hi."} | keys


def test_a_list_is_read_and_numbered_by_item():
    dialog = parse_items(json.dumps(ITEMS, indent=2)).dialog
    assert list(dialog) == LINES
    assert [line.line_number for line in dialog] == [1, 2, 3, 4]


def test_json_lines_are_read_and_numbered_by_line():
    text = "\ufeff\n" + "\r\n\n".join(json.dumps(entry) for entry in ITEMS)
    dialog = parse_items(text).dialog
    assert list(dialog) == LINES
    assert [line.line_number for line in dialog] == [2, 4, 6, 8]


def test_unescaped_unicode_line_breaks_stay_inside_a_json_line():
    dialog = parse_items('{"type": "audio", "path": "a\u2028b"}').dialog
    assert list(dialog) == [Audio("a\u2028b")]


def test_one_item_a_line_is_written():
    dialog = Dialog((Speech("Åsa", "Hej", "sv", 3, {"speed": 1.5}), Silence(2.0), Audio("a.wav")))
    written = write_items(dialog).splitlines()
    assert written[0] == "["
    assert json.loads(written[1].rstrip(",")) == {
        "type": "speech", "speaker_id": "Åsa", "text": "Hej", "language": "sv", "seed": 3,
        "speed": 1.5,
    }  # fmt: skip
    assert written[2:] == [
        '{"type": "silence", "duration": 2.0},',
        '{"type": "audio", "path": "a.wav"}',
        "]",
    ]
    assert write_json_lines(dialog).splitlines()[1] == '{"type": "silence", "duration": 2.0}'


@given(dialogs)
def test_every_dialog_reads_back_from_both_forms(dialog):
    assert parse_items(write_items(dialog)).dialog == dialog
    assert parse_items(write_json_lines(dialog)).dialog == dialog


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("text", "JSON object"),
        ({"speaker_id": "Anna", "text": "Hi."}, '"speech", "silence", "audio", "heading", "note"'),
        ({"type": "song"}, '"speech", "silence", "audio", "heading", "note"'),
        ({"type": "speech", "text": "Hi."}, "lacks “speaker_id”"),
        (item(text=5), "“text” can't be used: it should be a valid string"),
        (item(style="\ud800"), "“style” holds"),
        (item(speaker_id="A]"), "holds ]"),
        (item(speaker_id=""), "name"),
        (item(text="[pause:10h]"), "0 to 300 seconds"),
        (item(text="x" * (MAX_LINE_CHARS + 1)), "100,000"),
        (item(seed="7"), "“seed” can't be used"),
        (item(seed=True), "“seed” can't be used"),
        (item(seed=-1), "whole number"),
        (item(seed=2**63), "whole number"),
        (item(language="klingon"), "language code"),
        (item(speed=[1]), "“speed” can't be used"),
        (item(speed=10**30), "not a number"),
        (item(params={"a b": 1}), "setting's name"),
        (item(params={"text": 1}), "setting's name"),
        (item(duration=1), "setting's name"),
        ({"type": "silence", "duration": -1}, "0 to 300 seconds"),
        ({"type": "silence", "duration": 36000}, "0 to 300 seconds"),
        ({"type": "silence", "duration": "1"}, "“duration” can't be used"),
        ({"type": "silence"}, "lacks “duration”"),
        ({"type": "silence", "duration": 1, "loud": 1}, "unknown “loud”"),
        ({"type": "audio", "path": " "}, "path"),
        ({"type": "audio", "path": "a\0b"}, "path"),
    ],
)
def test_errors_name_the_item_or_line(entry, said):
    with pytest.raises(ScriptError, match=said) as caught:
        parse_items(json.dumps([item(), entry]))
    assert str(caught.value).startswith("Item 2: ")
    assert caught.value.line == 2
    if isinstance(entry, dict):
        with pytest.raises(ScriptError, match=said) as caught:
            parse_items(f"{json.dumps(item())}\n\n{json.dumps(entry)}")
        assert str(caught.value).startswith("Line 3: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no items"),
        ("", "holds no items"),
        ("[{},", "no valid JSON"),
        ("[\n{},\n}", "line 3, column 1"),
        ("{}\n{", "Line 1: An item has"),
        ("Anna: hi", "Line 1: This is no valid JSON"),
        ('[{"type": "silence", "duration": NaN}]', "NaN"),
        ("[" + "1" * 5000 + "]", "too long"),
        ("[" * 50_000, "nested too deeply|no valid JSON"),
        ('{"a":' * 50_000, "nested too deeply|no valid JSON"),
        ("[" + "1," * 2_600_000, "5 MB"),
        (json.dumps([{"type": "silence", "duration": 0}] * 20_001), "20,000"),
    ],
)
def test_what_is_no_list_of_items_is_refused(text, said):
    with pytest.raises(ScriptError, match=said):
        parse_items(text)


def test_spellings_that_differ_in_case_are_noticed():
    parsed = parse_items(json.dumps([item(), item(speaker_id="ANNA")]))
    assert "“ANNA” (line 2)" in parsed.notices[0].message


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["speech", "silence", "audio"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["type", "speaker_id", "text", "duration", "path", "seed", "params", "x"]),
        inner,
    ),
    max_leaves=20,
)  # fmt: skip


@given(st.one_of(st.text(max_size=80), _json.map(json.dumps), st.lists(_json).map(json.dumps)))
def test_any_json_reads_back_or_is_refused(text):
    try:
        dialog = parse_items(text).dialog
    except ScriptError:
        return
    assert parse_items(write_items(dialog)).dialog == dialog
