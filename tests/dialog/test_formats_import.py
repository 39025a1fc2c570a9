"""Encodings, wrong suffixes, foreign JSON and files that are no dialogs."""

import contextlib
import time
from functools import cache

import pytest
from dialog_strategies import scripts
from growth import assert_linear, count_calls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import Format, ImportOptions, export_dialog, import_dialog
from studio.dialog.model import Audio, Dialog, Silence, Speech, Unspoken, UnspokenKind
from studio.errors import ScriptError

GERMAN = "Anna: Grüß Gott, schöne Grüße.\nBen: „Ja“ – natürlich.\n"
FRENCH = "Élodie: Où est-il allé ?\nRené: Là-bas, près de la forêt.\n"
RUSSIAN = "Анна: Добрый вечер, как дела?\nБорис: Хорошо, спасибо.\n"
POLISH = "Łukasz: Dzień dobry, gdzie jest żółw?\nZofia: Nie wiem, może śpi.\n"
JAPANESE = "花子: こんばんは、元気ですか。\n太郎: はい、元気です。\n"
CHINESE = "小明: 你好,今天天气怎么样?\n小红: 很好。\n"


def texts(imported):
    return [line.text for line in imported.dialog if isinstance(line, Speech)]


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"],
)
def test_unicode_is_read_with_or_without_its_mark_and_needs_no_notice(encoding):
    imported = import_dialog(GERMAN.encode(encoding), "a.txt")
    assert texts(imported) == texts(import_dialog(GERMAN.encode(), "a.txt"))
    assert imported.notices == ()


@pytest.mark.parametrize(
    ("text", "encoding", "title"),
    [
        (GERMAN, "cp1252", "Windows-1252"),
        (FRENCH, "cp1252", "Windows-1252"),
        ("Anna: ok.\nBen: Un café.", "cp1252", "Windows-1252"),
        (POLISH, "cp1250", "Windows-1250"),
        (RUSSIAN, "cp1251", "Windows-1251"),
        (JAPANESE, "cp932", "CP932"),
        (CHINESE, "gb18030", "GB18030"),
    ],
)
def test_older_code_pages_are_guessed_and_told(text, encoding, title):
    imported = import_dialog(text.encode(encoding), "a.txt")
    assert texts(imported) == texts(import_dialog(text.encode(), "a.txt"))
    [notice] = imported.notices
    assert title in notice.message
    assert "save it as UTF-8" in notice.message


def test_lines_in_another_encoding_are_read_and_named():
    parts = [b"Anna: caf\xc3\xa9", b"Ben: na\xefve", b"Anna: plain", b"Ben: gr\xc3\xbc\xc3\x9f"]
    imported = import_dialog(b"\n".join(parts), "a.txt")
    assert texts(imported) == ["café", "naïve", "plain", "grüß"]
    assert [notice.line_number for notice in imported.notices] == [2]


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("1\n00:00:01,000 --> 00:00:02,000\nAnna: Hi.\n", "a.txt", Format.SRT),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Anna>Hi.\n", "a.srt", Format.VTT),
        ("speaker,text\nAnna,Hi.\n", "a.txt", Format.CSV),
        ("speaker\ttext\nAnna\tHi.\n", "a.fountain", Format.TSV),
        ('[{"type": "speech", "speaker_id": "Anna", "text": "Hi."}]', "a.csv", Format.JSON),
        ('{"type": "speech", "speaker_id": "Anna", "text": "Hi."}', "a.vtt", Format.JSON_LINES),
        ("Anna: Hi.\n", "a.srt", Format.SCRIPT),
        ("Anna: Hi, you.\nAnna: Hi.\n", "a.csv", Format.SCRIPT),
    ],
)
def test_a_wrong_suffix_is_seen_and_told(text, name, found):
    imported = import_dialog(text.encode(), name)
    assert imported.format is found
    assert imported.dialog.lines[-1].speaker == "Anna"
    assert any(f"“{name}” holds {found.label}" in notice.message for notice in imported.notices)


@pytest.mark.parametrize("name", ["a", "a.docx", "a.xyz"])
def test_a_suffix_that_promises_nothing_needs_no_notice(name):
    assert import_dialog(b"speaker,text\nAnna,Hi.\n", name).notices == ()


def test_clock_times_in_a_script_are_no_subtitles():
    imported = import_dialog(b"Anna: Meet me 10:30 --> 11:00.\n10:30 -> 11:00\n", "a.txt")
    assert imported.format is Format.SCRIPT


@pytest.mark.parametrize(
    "text",
    [
        '[{"speaker": "Anna", "text": "Hi.", "lang": "de", "id": 1, "instruct": "calm"}]',
        '{"character": "Anna", "dialogue": "Hi.", "language": "de", "instruct": "calm"}\n\n',
        '[{"name": "Anna", "line": "Hi.", "language": "de", "index": 3, "instruct": "calm"}]',
    ],
)
def test_json_of_other_programs(text):
    imported = import_dialog(text.encode(), "a.json")
    assert list(imported.dialog) == [Speech("Anna", "Hi.", "de", None, {"instruct": "calm"})]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"speaker": "A", "text": "x"}, {"speaker": "B"}]', 'Item 2: An item has a "type"'),
        ('{"speaker": "A", "text": "x"}\n{"text": 7, "speaker": "A"}', "Line 2: .*“text”"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_json_that_is_wrong_is_explained_as_any_other(text, said):
    with pytest.raises(ScriptError, match=said):
        import_dialog(text.encode(), "a.json")


EVERY_BYTE = bytes(range(256))


@pytest.mark.parametrize(
    ("data", "name", "said"),
    [
        (b"", "a.srt", "“a.srt” is empty"),
        (b" \r\n\n", "a.csv", "is empty"),
        (b"\xef\xbb\xbf", "a.txt", "is empty"),
        (b"\xff\xfe", "a.vtt", "is empty"),
        (b"%PDF-1.7\n%abc", "a.txt", "is damaged"),
        (b"PK\x03\x04\x14\x00", "a.docx", "an archive, or a document.*plain text"),
        (b"{\\rtf1 }", "a.txt", "has no text"),
        (b"<?xml version='1.0'?><FinalDraft>", "a.fdx", "is damaged"),
        (b"<?xml version='1.0'?><score>", "a.xml", "Export the script as Fountain"),
        (b"\x89PNG\r\n\x1a\n" + EVERY_BYTE, "a.txt", "not a text file"),
        (b"\xff\xd8\xff\xe0\x01" + EVERY_BYTE[1:] * 9, "a.csv", "not a text file"),
        (b"RIFF\x24\x80\x00\x00WAVEfmt ", "a.srt", "not a text file"),
        (EVERY_BYTE * 100, "a.json", "not a text file"),
        (b"Anna: a\0b", "a.txt", "not a text file"),
        (b"Anna: hi.\n" * 1_000_000, "a.txt", r"more than 5 MB.*Divide"),
        (b"x\n" * 300_000, "a.srt", "more than 120,000 lines"),
    ],
)
def test_what_is_no_dialog_gets_one_message_with_the_remedy(data, name, said):
    with pytest.raises(ScriptError, match=said):
        import_dialog(data, name)


LONG = Dialog(
    tuple(
        Silence(0.5) if idx % 5 == 0 else Speech(f"Voice {idx % 7}", f"Line {idx} of many.", "en")
        for idx in range(5_000)
    )
)


@cache
def seconds_for(format_):
    """The best of three, to write and read 5,000 lines."""
    took = []
    for _ in range(3):
        begin_s = time.process_time()
        imported = import_dialog(export_dialog(LONG, format_), f"a.{format_}")
        took.append(time.process_time() - begin_s)
        assert len(texts(imported)) == 4_000
    return min(took)


@pytest.mark.parametrize("format_", Format)
def test_5000_lines_take_no_more_than_ten_times_a_script_s_time(format_):
    assert seconds_for(format_) < 10 * seconds_for(Format.SCRIPT) + 0.1


@pytest.mark.campaign
@pytest.mark.parametrize("format_", Format)
def test_5000_lines_are_written_and_read_in_a_second(format_):
    took_s = seconds_for(format_)
    print(f"{format_}: {took_s:.2f} s")
    assert took_s < 1.0


PIECES = [
    "WEBVTT\n", "1\n", "00:00:01,000 --> 00:00:02,000\n", "00:01.000 --> 00:02.000", "xx --> yy",
    "-->", "<v Anna>", "</v>", "<lang de>", "&lt;", "Anna: hi", "- Yes", "[door]", "\n\n", "\n",
    "ANNA\n", "@Ben", "(softly)", "[[", "]]", "/*", "*/", "[[pause:1s]]", "[[voice | lang:de]]",
    "[[audio: x]]", "INT. X\n", "**", "_", "\\", ",", ";", "\t", '"', "speaker,text\n",
    "speaker\ttext\tpause\n", "sep=;", "{", '[{"', '"type"', "=", "'", "NOTE", "  \n", "é", "5",
    "[pause:x]", "\u2028", "\0",
]  # fmt: skip
sources = st.one_of(
    st.binary(max_size=300),
    st.tuples(
        st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), scripts),
        st.sampled_from(["utf-8", "utf-16", "utf-16-le", "cp1252", "cp932", "utf-32"]),
    ).map(lambda source: source[0].encode(source[1], "replace")),
)
file_names = st.sampled_from([*(f"a.{format_}" for format_ in Format), "a", "a.docx"])


def test_a_line_that_speaks_of_columns_is_no_heading():
    said = Dialog((Speech("Ida", ",speaker,text", line_number=1),))
    for format_ in (Format.SCRIPT, Format.FOUNTAIN, Format.CSV, Format.TSV, Format.JSON):
        written = export_dialog(said, format_)
        assert import_dialog(written, f"a.{format_}").dialog == said
    table = import_dialog(b"Speaker:\tText:\nIda\tHello.\n", "a.tsv")
    assert table.dialog == Dialog((Speech("Ida", "Hello.", line_number=2),))


@pytest.mark.parametrize("kind", UnspokenKind)
@pytest.mark.parametrize("text", ["speaker,text", 'Name; "Line"', "speaker|text|pause"])
def test_a_note_that_speaks_of_columns_is_no_heading(kind, text):
    notes = (Unspoken(text, kind), Unspoken("Speaker;text", kind))
    for above in (notes[:1], notes):
        for below in (Speech("A", ""), Speech("A", "x, y; z|a"), Silence(1.0), Audio("a,b.wav")):
            noted = Dialog((*above, below, Speech("Ida", "Yes.")))
            written = export_dialog(noted, Format.SCRIPT)
            assert import_dialog(written, "a.txt").dialog == noted
    table = import_dialog(b"# speaker,text\nIda,Hello.\n", "a.csv")
    assert table.dialog == Dialog((Speech("Ida", "Hello."),))
    table = import_dialog(b"# | Speaker | Text\n1 | Ida | Hello.\n", "a.txt")
    assert table.dialog == Dialog((Speech("Ida", "Hello."),))


@pytest.mark.parametrize("format_", [Format.JSON, Format.JSON_LINES])
def test_an_item_with_a_speaker_may_begin_as_turns_do(format_):
    said = Dialog((Speech("Ida", "[S1] Yes."), Speech("Ben", "[S2]")))
    assert import_dialog(export_dialog(said, format_), f"a.{format_}").dialog == said


def test_a_comment_that_is_said_is_none():
    for said in ("<!---->", "So <!-- he --> says.", "\\<!-- x -->"):
        dialog = Dialog((Speech("Ida", said), Speech("Ben", "-->")))
        written = export_dialog(dialog, Format.SCRIPT)
        assert import_dialog(written, "a.txt").dialog == dialog


def test_a_name_with_half_of_a_closing_mark_ends_no_turn():
    dialog = Dialog((Speech("Ida", "Yes."), Speech("/x>", "No.")))
    written = export_dialog(dialog, Format.SCRIPT)
    assert import_dialog(written, "a.txt").dialog == dialog


def test_a_script_whose_rows_all_have_a_semicolon_is_no_table():
    said = (Speech("Ida", ";"), Unspoken(";"), Speech("Ida", "Yes; no."))
    written = export_dialog(Dialog(said), Format.SCRIPT)
    assert import_dialog(written, "a.txt").dialog == Dialog(said)


def test_a_name_like_a_time_of_many_hours_is_a_name():
    said = Dialog((Speech("500:00:01", "A"),))
    assert import_dialog(export_dialog(said, Format.SCRIPT), "a.txt").dialog == said


def test_a_comment_of_signs_alone_says_nothing():
    read = import_dialog(b"Ida: Yes.\n//\t/\n////\n###\n", "a.txt")
    assert list(read.dialog) == [Speech("Ida", "Yes.")]


@given(sources, file_names, st.sampled_from([None, "Reader"]))
def test_any_bytes_are_read_or_refused(data, name, narrator):
    with contextlib.suppress(ScriptError):
        imported = import_dialog(data, name, ImportOptions(narrator=narrator))
        assert len(imported.dialog) > 0


@pytest.mark.campaign
@pytest.mark.timeout(3600)
@settings(max_examples=50_000, suppress_health_check=list(HealthCheck))
@given(sources, file_names, st.sampled_from([None, "Reader"]))
def test_any_bytes_are_read_or_refused_and_what_is_read_can_be_written(data, name, narrator):
    try:
        imported = import_dialog(data, name, ImportOptions(narrator=narrator))
    except ScriptError:
        return
    for format_ in (Format.SCRIPT, Format.FOUNTAIN, Format.CSV, Format.TSV, Format.JSON):
        written = export_dialog(imported.dialog, format_)
        assert import_dialog(written, f"a.{format_}").dialog == imported.dialog


def _hostile(name, before, repeated, times, behind=""):
    last = behind or repeated * 6
    return pytest.param(name, before, repeated, times, behind, id=f"{name}-{last[:6]!r}")


CUE = "1\n00:00:01,000 --> 00:00:02,000\n"


hostile_inputs = pytest.mark.parametrize(
    ("name", "before", "repeated", "times", "behind"),
    [
        _hostile("a.srt", CUE, "<", 1_000_000),
        _hostile("a.srt", CUE, "<v ", 300_000),
        _hostile("a.srt", CUE, "A\n", 100_000),
        _hostile("a.srt", "", "-->\n", 100_000),
        _hostile("a.fountain", "ANNA\n", "[[", 500_000),
        _hostile("a.fountain", "ANNA\n", "/*", 500_000),
        _hostile("a.fountain", "ANNA\n", "*a ", 300_000),
        _hostile("a.fountain", "A", " ", 1_000_000, "B\nx"),
        _hostile("a.fountain", "", "(\n", 190_000),
        _hostile("a.csv", "speaker,text\n", ",", 1_000_000),
        _hostile("a.csv", "speaker,text\n", 'a,"b" c\n', 100_000),
        _hostile("a.txt", "", "é", 1_000_000),
        _hostile("a.txt", "ANNA. Hi.\n\nBEN. Ho.\n\nANNA. Yes.\n\nBEN. No ", "(x) ", 500_000),
    ],
)


@hostile_inputs
def test_no_input_takes_more_than_time_in_proportion(name, before, repeated, times, behind):
    assert_read_in_proportion(name, before, repeated, times // 4, behind)


@pytest.mark.campaign
@hostile_inputs
def test_the_longest_input_takes_time_in_proportion(name, before, repeated, times, behind):
    assert_read_in_proportion(name, before, repeated, times, behind)


def assert_read_in_proportion(name, before, repeated, times, behind):
    def read(times):
        text = before + repeated * times + behind
        with contextlib.suppress(ScriptError):
            import_dialog(text.encode("cp1252"), name)

    assert_linear(read, times)


@pytest.mark.parametrize(
    ("name", "text", "most_calls"),
    [
        ("a.md", "# T\n\n**Anna:** {}\n\n**Ben:** Ho.\n", 100_000),
        ("a.fountain", "ANNA\n{}\n\nBEN\nHo.\n", 5_000),
        ("a.srt", f"{CUE}Anna: {{}}\n", 200_000),
        ("a.vtt", f"WEBVTT\n\n{CUE.replace(',', '.')}<v Anna>{{}}\n", 200_000),
    ],
)
@pytest.mark.parametrize("piece", ["*x* ", "<b>x</b> ", "[a](b) ", "\\*x "])
def test_a_long_line_is_read_in_few_calls(name, text, most_calls, piece):
    written = text.format(piece * (90_000 // len(piece))).encode()
    import_dialog(written, name)
    assert count_calls(lambda: import_dialog(written, name)) < most_calls


def test_a_long_row_of_markdown_keeps_its_name_and_its_words():
    words = "*Well*, " + "so it is, and *so* it stays. " * 1_000
    read = import_dialog(f"# T\n\n**Anna:** {words}\n\n**Ben:** *No*.\n".encode(), "a.md")
    (anna, ben) = (line for line in read.dialog if isinstance(line, Speech))
    assert (anna.speaker, ben.text) == ("Anna", "No.")
    assert anna.text.startswith("Well, so it is, and so it stays. ")
    assert anna.text.endswith("so it is, and *so* it stays.")
    assert anna.text.replace("*", "") == words.replace("*", "").strip()


@pytest.mark.parametrize(
    ("format_", "piece", "most_calls"),
    [
        (Format.FOUNTAIN, "*x* ", 1_000),
        (Format.FOUNTAIN, "[[x]] ", 80_000),
        (Format.SRT, "日本語 ", 1_000),
        (Format.VTT, "<b>x</b> ", 5_000),
        (Format.SRT, "Well [pause:1s] ", 800_000),
    ],
)
def test_a_long_line_is_written_in_few_calls(format_, piece, most_calls):
    dialog = Dialog((Speech("Anna", (piece * (90_000 // len(piece))).strip()),))
    export_dialog(dialog, format_)
    assert count_calls(lambda: export_dialog(dialog, format_)) < most_calls
