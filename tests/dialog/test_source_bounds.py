"""Foreign sources that would take seconds or hundreds of megabytes are refused, or read at once."""

import contextlib

import pytest
from growth import assert_linear, count_calls
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.dialog.formats.dialog_file import import_dialog, read_dialog_text
from studio.dialog.markup import strip_markup
from studio.errors import ScriptError

SUBTITLES = "[Script Info]\n[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,"
MARKDOWN = "# Scene\n\n**Ida:** Hello.\n\n---\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n".join(["Ida: " + "**a** *b* " * 100] * 400), "240,000 marks of Markdown.*Divide"),
        ("\n".join(["Ida: " + "*a " * 200] * 400), "80,000 marks of Markdown.*Divide"),
        ("\n".join(["Ida: " + "[a](b) " * 100] * 200), "100,000 marks of Markdown.*Divide"),
        (("[INST] " + "*a " * 200 + "[/INST] b\n") * 400, "80,000 marks of Markdown.*Divide"),
        (MARKDOWN + "- a\n" * 20_001, "more than 20,000 headings.*Divide"),
        (MARKDOWN + ("> " * 100 + "a\n\n") * 300, "more than 20,000 headings.*Divide"),
        (MARKDOWN + "a\n\n" * 40_001, "more than 20,000 headings.*Divide"),
        (MARKDOWN + "a &amp; b < c\n" * 40_000, "more than 20,000 headings.*Divide"),
        ("<html>" + "<h2>a</h2>" * 100_001, "holds 100,001 tags.*Divide"),
        ("<html></p>" + "<" * 1_000_001, "holds 1,000,003 tags.*Divide"),
        ("<html>" + "<p>a</p>" * 120_002, "holds more than 120,000 lines.*Divide"),
        ("- speaker: Ida\n  text: a\n" * 20_001, "at most 20,000 lines.*Divide"),
        ("speaker,text\n" + ("Ida,a" + ",b" * 100 + "\n") * 5_000, "500,000 cells.*Divide"),
        ("[S1] a " * 20_002, "at most 20,000 lines.*Divide"),
        ("[ida] a [/ida] " * 20_002, "at most 20,000 lines.*Divide"),
        ("[INST] a [/INST] b " * 10_001, "at most 20,000 lines.*Divide"),
        ("INT. HOUSE - DAY\n\nIDA\nHello.\n\n" + "[[a]] " * 20_001, "at most 20,000 lines.*Divide"),
        ("Ida: a" + "\r" * 120_001, "more than 120,000 lines.*Divide"),
        ("Ida: a\n" + "b\n\n" + "c\n" * 59_999, "holds more than 60,000 lines.*Divide"),
        ('[{"text": "[S1] ' + "a\\n" * 60_001 + '"}]', "holds more than 60,000 lines.*Divide"),
        ("INT. HOUSE - DAY\n\nIDA\n" + "a\n" * 59_999, "holds more than 60,000 lines.*Divide"),
        (SUBTITLES + "a\\N" * 120_001, "holds more than 120,000 lines.*Divide"),
    ],
)
def test_what_would_take_seconds_is_refused_with_the_remedy(text, said):
    with pytest.raises(ScriptError, match=said):
        read_dialog_text(text)


@pytest.mark.slow
def test_long_scripts_of_word_and_of_language_models_come_in():
    span = "<b><span lang=EN-GB>{}</span></b><span style='color:\"a > b\"'> {}<o:p></o:p></span>"
    row = f"<p class=MsoNormal>{span.format('Ida:', 'Hi.')}{'<i></i>' * 5}</p>\n"
    assert len(read_dialog_text("<html><body>" + row * 20_000).dialog) == 20_000
    said = "**Ida:** *(softly)* The *river* is quiet.\n\n"
    read = read_dialog_text(MARKDOWN + said * 19_990).dialog.lines[-1]
    assert read.text == "(softly) The river is quiet."


@pytest.mark.parametrize(
    ("before", "row"),
    [
        ("=== knot ===\n-> knot\n", "a{}b"),
        ("=== knot ===\n-> knot\n", "a{}#"),
        (":: Start\n", "(a{}"),
    ],
)
def test_a_long_row_of_a_game_takes_linear_time(before, row):
    filler = "a" if row.startswith("(") else " "
    assert_linear(
        lambda size: import_dialog((before + row.format(filler * size)).encode(), "a"), 8_000
    )


@pytest.mark.parametrize(
    ("before", "piece", "after"),
    [
        ("<p><b>Ida:</b> ", "<a ", ""),
        ("<p><b>Ida:</b> ", "<break ", ">"),
        ("<p><b>Ida:</b> ", "<!--", ">"),
        ("<p><b>Ida:</b> ", "</", ""),
        ("<p></p>", '<p b="> " ', ""),
        ("<p></p>", "<p ", '"\'>"'),
        ("<p></p>", "<script>", ""),
        ("<p></p><script>", "</", ""),
        ("<speak>", "</", "</speak>"),
        (":: P\n", "[[", ""),
        (":: P\n", "<<", ""),
    ],
)
def test_tags_without_an_end_take_linear_time(before, piece, after):
    assert_linear(lambda size: read_any(before + piece * (size // len(piece)) + after), 48_000)


def test_comments_before_a_page_are_passed_over_once():
    """Twice as many ways for each comment more were tried before a text was no page."""
    assert_linear(lambda count: read_any("<!-- -->" * count + "Ida: </p>"), 4_000)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<p title='a > b'>Ida: Hi.</p>", "Hi."),
        ("<p class=it's>Ida: Hi, don't.</p>", "Hi, don't."),
        ("<p>Ida: <!-- <p>No. <!-- No. -->Hi.</p>", "Hi."),
        ("<p>Ida: Hi <!-- there.</p>", "Hi <!-- there."),
        ("<p>Ida: 1 < 2 &amp;&lt; 3.</p>", "1 < 2 &< 3."),
        ("<script>if (a < '<p>b</p>') c()</script ><p>Ida: Hi.</p>", "Hi."),
        ("<p>Ida: Hi. <a href", "Hi. <a href"),
    ],
)
def test_a_page_is_read_as_a_browser_shows_it(source, shown):
    page = f"<div></div>{source}"
    assert [line.text for line in read_dialog_text(page).dialog] == [shown]


def test_the_names_of_tags_and_attributes_have_any_case_and_any_quotes():
    page = "<SPEAK><Voice Name = 'Ida &amp; Bo'>Hi.</VOICE><line speaker=Tom who=\"X\">Ho.</line>"
    assert [(line.speaker, line.text) for line in read_dialog_text(page).dialog] == [
        ("Ida & Bo", "Hi."),
        ("Tom", "Ho."),
    ]


def read_any(text: str) -> None:
    with contextlib.suppress(ScriptError):
        read_dialog_text(text)


def test_a_long_message_of_a_chat_takes_linear_time():
    begins = "The weir\nIda [10:00] Hello.\nBo [10:01] Yes.\n"

    def read(rows: int) -> None:
        with pytest.raises(ScriptError, match="the most"):
            import_dialog((begins + f"{'river ' * 30}\n" * rows).encode(), "a.txt")

    assert_linear(read, 16_000)


@pytest.mark.parametrize(
    ("before", "row", "after", "most"),
    [
        ("Ida: Hello.\n", "The river is quiet.\n", "", 250),
        ("ALGERNON. Did you hear?\nLANE. No.\n" * 5, "The river is quiet.\n", "", 320),
        ("Ida: Hello.\n", "(softly)\n", "", 400),
        ("Sure:\n```\n", "Ida: *a* b\n", "```\n", 450),
    ],
)
def test_a_row_is_looked_at_few_times(before, row, after, most):
    """A quarter more calls were made for each before rows were told by their first signs."""

    def read(rows: int) -> int:
        return count_calls(lambda: read_dialog_text(before + row * rows + after))

    read(10)  # expressions are compiled
    assert (read(1_000) - read(200)) / 800 < most


def test_a_table_of_too_many_cells_is_refused_before_they_are_read():
    def refuse(rows: int) -> None:
        with pytest.raises(ScriptError, match="500,000 cells"):
            read_dialog_text("| Speaker | Text |\n|---|---|\n" + f"{'|a' * 100}|\n" * rows)

    refuse(5_001)
    assert count_calls(lambda: refuse(5_001)) < 200_000


_WORDS = st.sampled_from(
    ["*", "**", "_", "__", " ", "a", "b c", "softly", "(", ")", ".", ":", "“", "”", "—", "[", "]"]
)


@settings(max_examples=300)
@given(st.lists(_WORDS, min_size=1, max_size=12).map("".join).filter(str.strip))
def test_simple_emphasis_is_read_as_beside_other_marks(text):
    """A row with code in it goes to the library, one with emphasis alone mostly doesn't."""
    text = f"Ida: {text.strip()}"
    assert f"{strip_markup(text)} x" == strip_markup(f"{text} `x`")


ITEM = '{"speaker":"Ida","text":"Hi."}'
JSON_FILES = {
    "an item of 100,000 keys": (
        "{" + ",".join(f'"k{n}":1' for n in range(100_000)) + "}",
        "type",
        300_000,
    ),
    "60,000 items": (
        "[" + ",".join([ITEM] * 60_000) + "]",
        "20,000",
        6_000_000,
    ),
    "60,000 in a list": (
        '{"lines":[' + ",".join([ITEM] * 60_000) + "]}",
        "20,000",
        9_000_000,
    ),
}


@pytest.mark.parametrize("kind", JSON_FILES)
def test_json_that_is_too_much_is_refused_in_few_calls(kind: str) -> None:
    text, said, most_calls = JSON_FILES[kind]

    def read() -> None:
        with pytest.raises(ScriptError, match=said):
            import_dialog(text.encode(), "scene.json")

    read()
    assert count_calls(read) < most_calls
