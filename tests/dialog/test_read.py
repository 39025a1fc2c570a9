import contextlib

import pytest
from dialog_strategies import dialogs, scripts
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import import_dialog
from studio.dialog.items import write_items, write_json_lines
from studio.dialog.model import Silence, Speech
from studio.dialog.script import write_script
from studio.errors import ScriptError

SCRIPT = "Anna: Grüß Gott.\n"
LIST = '[{"type": "silence", "duration": 1}]'
JSON_LINES = '{"type": "silence", "duration": 1}\n' * 2


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_unicode_with_or_without_its_mark_is_read(encoding):
    dialog = import_dialog(SCRIPT.encode(encoding), "a.txt").dialog
    assert list(dialog) == [Speech("Anna", "Grüß Gott.")]


def test_utf16_of_either_byte_order_is_read():
    for mark, encoding in [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")]:
        assert len(import_dialog(mark + SCRIPT.encode(encoding), "a.txt").dialog) == 1


@pytest.mark.parametrize("name", ["a.txt", "a.json", "a.JSONL", "a.ndjson", "a"])
@pytest.mark.parametrize(("text", "count"), [(LIST, 1), (JSON_LINES, 2)])
def test_items_are_told_by_content_whatever_the_suffix(name, text, count):
    assert list(import_dialog(text.encode(), name).dialog) == [Silence(1.0)] * count


@pytest.mark.parametrize(
    ("text", "count"),
    [("[Anna] Hi.", 1), ("[ Anna ] Hi.", 1), ("[pause]", 1), ("# {\nAnna: {", 2), ("[{] Hi.", 1)],
)
def test_scripts_that_begin_with_brackets_are_scripts(text, count):
    assert len(import_dialog(text.encode(), "a.txt").dialog) == count


def test_the_suffix_decides_how_a_broken_file_is_explained():
    with pytest.raises(ScriptError, match="JSON"):
        import_dialog(b"Anna: Hi.", "a.json")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "“a.txt” is empty"),
        (b" \r\n\n", "is empty"),
        (b"# only\n// comments", "holds no lines"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"PK\x03\x04\x00\x00", "an archive, or a document of another kind"),
        (b"\x89PNG\r\n\x1a\n", "UTF-8"),
        (b"Anna: a\0b", "not a text file"),
        (b"A: b\n" * 2_000_000, "has more than 5 MB, the most that a dialog may have"),
    ],
)
def test_what_is_no_dialog_gets_one_message(data, said):
    with pytest.raises(ScriptError, match=said):
        import_dialog(data, "a.txt")


@given(st.one_of(st.binary(), scripts.map(str.encode), st.text().map(lambda t: t.encode("utf-16"))))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(ScriptError):
        import_dialog(data, "a.txt")


@given(dialogs.filter(lambda dialog: "\0" not in write_script(dialog)))
def test_every_written_dialog_is_recognised(dialog):
    for text in (write_script(dialog), write_items(dialog), write_json_lines(dialog)):
        assert import_dialog(text.encode(), "scene").dialog == dialog
