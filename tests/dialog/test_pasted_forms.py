"""Forms that other programs, pages and models put on the clipboard, each as it is found there."""

from pathlib import Path

import pytest

from studio.dialog.formats.dialog_file import (
    Format,
    export_dialog,
    import_dialog,
    read_dialog_text,
)
from studio.dialog.model import Speech, Unspoken
from studio.dialog.script import parse_header

FOLDER = Path(__file__).parent / "pasted_forms"
NAMES = sorted(path.name for path in FOLDER.iterdir())

SAID = {
    "captions.sbv": ["Narrator: Are you there?", "IVO: Yes."],
    "deposition.txt": [
        "Q: Good morning. Would you state your name for the record?",
        "A: Ellen Marsh.",
        "Q: And where do you live, Ms. Marsh?",
        "A: At the weir. The old lock house, by the river.",
        "MR. DOYLE: Objection. Form.",
        "THE WITNESS: I don't recall.",
        "Q: How long have you lived there?",
        "A: Two years.",
    ],
    "deposition_numbered.txt": [
        "Q: Good morning.",
        "A: Good morning.",
        "Q: Where do you live?",
        "A: By the river.",
        "MR. DOYLE: Objection.",
        "Q: You can answer.",
        "A: Two years.",
    ],
    "elevenlabs.json": ["abc: How long?", "def: Long."],
    "french_play.txt": [
        "ANNA: Combien de temps ?",
        "IVO: [direction: à part] Assez longtemps. [direction: Haut] Rien.",
        "ANNA: Attends !",
    ],
    "gemini_prompt.md": ["Anna: Yes, massive vibes in the studio!", "Ivo: Indeed."],
    "gutenberg_cast.txt": [
        "Nora: Hide the Christmas Tree carefully, Helen. Be sure the children do not see it until "
        "this evening, when it is dressed. [direction: To the PORTER, taking out her purse] How "
        "much?",
        "Porter: Sixpence.",
        "Nora: There is a shilling. No, keep the change. [direction: The PORTER thanks her, and "
        "goes out. NORA shuts the door]",
        "Helmer: [direction: calls out from his room] Is that my little lark twittering out there?",
        "Nora: [direction: busy opening some of the parcels] Yes, it is!",
        "Helmer: Is it my little squirrel bustling about?",
    ],
    "interview_times.txt": [
        "INTERVIEWER: How did you start?",
        "RESPONDENT: (laughs) By accident, really. [pause] I was [inaudible 00:01:20] then.",
        "INTERVIEWER: [crosstalk] Sorry, go on.",
        "RESPONDENT: It was nineteen ninety.",
    ],
    "list_of_lines.md": [
        "Anna: How long?",
        "Ivo: Long enough.",
        "Anna: Then we wait.",
    ],
    "numbered_podcast.md": [
        "Host (Anna): Good evening.",
        "Guest (Dr. Ivo Kern): Thank you for having me.",
        "Host (Anna): Tell us about weirs.",
        "Narrator (voice-over): And so the night began.",
    ],
    "otter.txt": [
        "Anna Berg: Good morning, everyone. Shall we begin?",
        "Ivo Kern: Yes, please.",
        "Unknown Speaker: I can't hear you.",
    ],
    "page.html": ["ANNA: How long?", "IVO: Long enough & more.", "IVO: They wait."],
    "radio_columns.txt": [
        "ANNA: How long has that been on?",
        "IVO: (TIRED) Since you asked for tea.",
        "ANNA: That was yesterday.",
    ],
    "radio_numbered.txt": [
        "ANNCR: The Weir! Tonight, part one.",
        "IVO: (OFF) Who's there?",
        "ANNA: It is only me.",
    ],
    "sharegpt.json": ["human: How long?", "gpt: Long enough."],
    "song.lrc": ["Narrator: Rain over the weir", "Narrator: How long have you been here"],
    "speech.ssml": ['Anna: How long? <break time="500ms"/>', "Ivo: Long enough."],
    "table.md": ["Ivo: (whispering) How long?", "Anna: Long enough.", "Ivo: (tired) Then we wait."],
    "weir.ink": [
        "Narrator: Rain over the weir.",
        "IVO: How long have you been here?",
        "IVO: A minute.",
        "ANNA: You are wet through.",
        'Narrator: "Since six," I said.',
        "ANNA: Go on.",
        "ANNA: Come in, then.",
        "ANNA: Tea?",
    ],
    "weir.rpy": [
        "Narrator: Rain over the weir.",
        "Anna: How long have you been here?",
        "Ivo: Since six.",
        "Anna: As you like.",
    ],
    "weir.twee": [
        "IVO: How long have you been here?",
        "ANNA: A minute.",
        "ANNA: Tea?",
        "IVO: Please.",
    ],
    "whatsapp_android.txt": [
        "Anna: Are you awake?",
        "Ivo: Always. Nearly always.",
        "Anna: Happy new year! 🎉",
        "Tom: Same to you https://example.com/x",
    ],
    "whatsapp_iphone.txt": ["Anna: Bist du wach?", "Ivo: Immer.", "Anna: Frohes neues Jahr!"],
    "whisper.txt": ["Narrator: How long?", "Narrator: Long enough."],
    "whisperx.json": ["SPEAKER_00: How long?", "SPEAKER_01: Long."],
}
TITLES = {
    "numbered_podcast.md": "Rivers at Night",
    "gutenberg_cast.txt": "A DOLL'S HOUSE",
    "table.md": "Episode 3: The Weir",
    "weir.twee": "The Weir",
}
NOTED = {
    "gemini_prompt.md": "Style: bright.",
    "gutenberg_cast.txt": "Torvald Helmer.",
    "radio_columns.txt": "KETTLE BOILS",
    "radio_numbered.txt": "RAIN ON A TIN ROOF",
    "song.lrc": "[ti:The Weir]",
    "weir.ink": "VAR met_anna",
    "weir.rpy": "scene bg weir",
    "weir.twee": "ifid",
    "whatsapp_android.txt": "What the chat itself tells",
}
"""What isn't spoken, in the words of a notice."""


def read(name):
    return import_dialog((FOLDER / name).read_bytes(), name)


def said(dialog):
    return [f"{line.speaker}: {line.text}" for line in dialog if isinstance(line, Speech)]


@pytest.mark.parametrize("name", NAMES)
def test_everybody_says_their_lines(name):
    assert said(read(name).dialog) == SAID[name]
    assert read(name).title == TITLES.get(name)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_same_pasted_and_imported_and_reads_back(name):
    imported = read(name)
    pasted = read_dialog_text((FOLDER / name).read_text("utf-8"))
    assert (pasted.dialog, pasted.title) == (imported.dialog, imported.title)
    again = import_dialog(export_dialog(imported.dialog, Format.SCRIPT), "scene.txt")
    assert again.dialog == imported.dialog


@pytest.mark.parametrize("name", sorted(NOTED))
def test_what_is_not_spoken_is_named(name):
    notices = " ".join(notice.message for notice in read(name).notices)
    assert NOTED[name] in notices


def test_titles_in_capitals_and_in_parentheses_are_part_of_a_name():
    for name in ("MRS. HARTNELL", "DR. KERN", "Guest (Dr. Ivo Kern)", "Mr. Hale"):
        header = parse_header(f"{name}: Hm.")
        assert header is not None
        assert header.speaker == name
    assert parse_header("I said no. And then: nothing.") is None


def test_a_point_in_a_list_is_still_no_speaker():
    text = (
        "**Anna:** Three things.\n\n- **Depth:** how deep it is.\n- **Width:** how wide.\n\n"
        "**Ivo:** Two.\n\n**Anna:** Fine.\n"
    )
    assert {line.split(":")[0] for line in said(read_dialog_text(text).dialog)} == {"Anna", "Ivo"}


def test_music_in_subtitles_is_no_line():
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n♪ soft music ♪\n\n"
        "2\n00:00:03,000 --> 00:00:04,000\nIVO: Come in.\n"
    )
    read_out = import_dialog(text.encode(), "scene.srt")
    assert said(read_out.dialog) == ["IVO: Come in."]
    assert any("“♪ soft music ♪”" in notice.message for notice in read_out.notices)


def test_a_name_that_addresses_somebody_is_no_french_direction():
    text = "IVO.\nAnna, on my word, we wait.\n\nANNA.\nWe do.\n\nIVO.\nStill.\n"
    assert said(read_dialog_text(text).dialog)[0] == "IVO: Anna, on my word, we wait."


@pytest.mark.parametrize(
    "text",
    [
        "Anna: See <b>this</b>.\nIvo: Where?\n",
        "Anna: It is | or it isn't.\nIvo: -- | --\n",
        "Anna: -> there.\nIvo: === Yes ===\n",
        "ANNA: How long?\n\nIVO:        Long enough.\n\nANNA:        Hm.\n",
    ],
)
def test_a_script_with_signs_of_another_form_stays_a_script(text):
    dialog = read_dialog_text(text).dialog
    assert len(said(dialog)) >= 2
    assert not any(isinstance(line, Unspoken) for line in dialog)
    assert {line.speaker.casefold() for line in dialog if isinstance(line, Speech)} == {
        "anna",
        "ivo",
    }


def test_a_page_break_and_an_underlined_title_are_no_knot_of_a_game():
    lyric = "INT. HOUSE - NIGHT\n\nANNA\nHush.\n\n~Down by the weir\n\n===\n\nCUT TO:\n"
    screenplay = read_dialog_text(lyric).dialog
    assert said(screenplay) == ["ANNA: Hush."]
    assert [line.text for line in screenplay if isinstance(line, Unspoken)] == [
        "INT. HOUSE - NIGHT", "Down by the weir", "CUT TO:",
    ]  # fmt: skip
    markdown = "The Weir\n========\n\n**Anna:** We need:\n\n* a lamp\n* a rope\n"
    read = read_dialog_text(markdown)
    assert read.title == "The Weir"
    assert said(read.dialog) == ["Anna: We need:", "Anna: a lamp", "Anna: a rope"]
    assert not any("game" in notice.message for notice in read.notices)


def test_underlined_rows_are_headings():
    read = read_dialog_text(
        "The Weir\n========\n\nAnna: Hi.\nIvo: Yo.\n\n"
        "Later\n=====\n\nAnna: Well.\n=====\nIvo: No.\n"
    )
    assert read.title == "The Weir"
    assert said(read.dialog) == ["Anna: Hi.", "Ivo: Yo.", "Anna: Well.", "Ivo: No."]
    assert [line.text for line in read.dialog if isinstance(line, Unspoken)] == [
        "The Weir",
        "Later",
    ]
