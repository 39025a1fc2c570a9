"""Every word of a text is said, or stands between the lines.

What counts as a word of a source, and what belongs to its form:

- text of people and models: all letters and figures but marks of Markdown, with the addresses of
  links and the language of a block of code; the time of a turn beside the speaker's name; the
  numbers of a list, of a radio script's cues and of a screenplay's scenes; where a voice comes
  from, beside a name (`V.O.`, `CONT'D`);
- chats and subtitles: the times, and the numbers of cues, belong to the form, too;
- tables, JSON and YAML: what stands in cells and values that are words, not headings and keys, nor
  columns of figures, and of translations the one that is read;
- pages and games: what a reader or a player is shown, not tags, styles and names of commands.

A text that is refused loses nothing: its author is told why.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
import regex

from studio.dialog.formats.dialog_file import Imported, import_dialog
from studio.dialog.model import Audio, Speech, Unspoken
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.encoding import decode_text
from studio.errors import ScriptError

WORD = regex.compile(r"[\p{L}\p{N}]+")


def words_of(text: str) -> set[str]:
    return set(WORD.findall(text.casefold()))


def kept_words(read: Imported) -> set[str]:
    kept = [read.title or ""]
    for line in read.dialog:
        if isinstance(line, Speech):
            settings = (line.language or "", *map(str, line.params.values()))
            kept += [line.speaker, line.text, *settings]
        elif isinstance(line, Unspoken):
            kept.append(line.text)
        elif isinstance(line, Audio):
            kept.append(line.path)
    return words_of(" ".join(kept))


ROWS = [
    "{name}: {w} and more.", "{name}: {w}", "{name}:", "**{name}:** {w}", "**{name}**",
    "[{name}] {w}", "{name} (softly): {w}", "{caps}. {w}.", "{caps}", "{caps} {w}", "{w} is here.",
    "{w}", "I hope you like {w}.", "Would you like {w}?", "This is the story of {w}.",
    "Here is the {w}:", "Sure! Here's a script about {w}:", "Certainly!", "Let me know if {w}.",
    "Enjoy! {w}", "This dialogue is {w}.", "{clock}", "[{clock}]", "[{clock}] {w}",
    "({clock}) The {w}", "{clock} - The {w}", "{number}.", "{number}", "Page {number}",
    "- {number} -", "(MORE)", "CONTINUED: ({number})", "(CONTINUED)", "INT. {w} - DAY", "CUT TO:",
    "* * *", "---", "***", "# {w}", "## The {w}", "### {name}", "// {w}", "#> {w}", "[SFX: {w}]",
    "MUSIC: {w}", "[{w}]", "({w})", "*{w}*", "**{w}**", "<!-- {w} -->", "[[{w}]]", "/* {w} */",
    "/* {w}", "> {w}", "> {w} <", "- {w}", "- {name}: {w}", "```", "Title: {w}", "Duration: {w}",
    "Characters:", "NOTE: {w}", "SETTING: {w}", "Word count: {number}", "Production notes:",
    "Running time: {number} minutes", "{name} — {w}", "“{w},” said {name}.", "“{w}” – {name}",
    "{name}「{w}」", "=== {w} ===", "=====", "<think>", "</think>", "Copyright 2024 {w}", "Q. {w}",
    "A. {w}", "[S1] {w} [S2] {w}", "\\{w}", "Enter {name} and {w}.", "[Illustration: {w}]",
    "[pause:1s]", "[audio: {w}.wav]", "~~{w}~~ `{w}`",
    "*** START OF THE PROJECT GUTENBERG EBOOK {w} ***", "{name}, {w}: yes", "{caps}, HOST: {w}",
    "[{name}]: {w}", "Transcript", "# Transcript", "The End", "[1] {w}", "{w}.  {w}", "By {name}",
    "BY MR. {caps}:", "({name}) {w}", "[/{name}] {w}", "<{name}> {w}", "@{name}", "!{w}", "~{w}",
    "= {w}", "user: {w}", "### User: {w}", "Style instructions: {w}", "({caps} {w}.)",
    "{number} {w}",
]  # fmt: skip
FOLDERS = ("real_scripts", "written_forms", "pasted_forms")
SAMPLES = sorted(
    path
    for folder in FOLDERS
    for path in (Path(__file__).parent / folder).iterdir()
    if path.name not in ("SOURCES.md", "expected.json")
)
FILES = ["The clipboard", "scene.txt", "The clipboard", "scene.fountain"]
NAMES = ["Anna", "Ben", "Dr. Vale"]


def make_text(seed: int) -> str:
    """A text of rows that some reader may take for its own, each with words of its own."""
    draw = random.Random(seed)
    few = draw.sample(ROWS, draw.randint(1, 6))
    written = ""
    for idx in range(draw.randint(1, 14)):
        row = draw.choice(few if draw.random() < 0.7 else ROWS)
        name = draw.choice(NAMES)
        facts = {"name": name, "caps": name.upper(), "clock": f"{idx + 1}:{draw.randint(10, 59)}"}
        facts |= {"number": str(101 + idx), "w": f"lantern{idx}"}
        written += row.format(**facts) + draw.choice(["\n", "\n\n"])
    return written


def lost_words(text: str, name: str) -> set[str] | None:
    """Words of a text that are nowhere in what is read of it; None for a text that is refused."""
    try:
        read = import_dialog(text.encode(), name)
    except ScriptError:
        return None
    return words_of(OF_FORM.sub(" ", text)) - kept_words(read)


OF_FORM = regex.compile(
    r"\[S\d\]|\[/[^\]]*\]|</?think>|\[pause:1s\]|\[audio:|\.wav\]"  # marks of turns and settings
    r"|(?m:^\W*\d{1,4}[.)] )|(?m:^)title:"  # numbers of a list, the key of the title
    r"|(?m:^)[\[(]\d+:\d\d[\])](?=\s[^:\n]+:\s)",  # the time of a turn
    regex.IGNORECASE,
)


_TIMES = (
    r"\d+(?:\.\d+)?h?(?:[:.,/]\s?\d+)+(?:\s?[APap]\.?\s?[Mm]\b\.?)?|Today at|\bà (?=\d)"
    r"|\(edited\)|<[^<>]*(?:edited|modificato)>"
)
_BESIDE = (
    r"\((?i:v\.?o\.?|o\.?[sc]\.?|off|on|cont['’]?d)\.?\)|(?m:^\W*\d{1,4}[.):]?\s|\s\d{1,3}$|^\d+$)"
)
_MARKDOWN = r"\]\([^)]*\)|<[^<>]*>|```json|\[x\]|\[pause\]|(?m:^\W*Title(?=:))"
_TAGS = r"<style.*?</style>|<script.*?</script>|<tw-storydata[^>]*>|<[^<>]*>|&\w+;"
_GAMES = (
    r"#\S+|\{\"(?:position|ifid).*?\}|(?m:^(?:title|tags|colorID|position):.*)|\bStory(?:Title|Data)\b"
    r"|(?m:^define.*$)|\blabel\b|(?m: with \w+$)|\{/?i\}|(?m:^(:: \w+) \[\w+\])|\bangry(?= \")"
)
_SUBTITLES = (
    r"(?m:^(?:WEBVTT|NOTE|Kind|Language|STYLE|Format:|Style:|Scr|Title|;|\[|Wrap|Scaled|Colli).*$)"
    r"|::cue.*|(?m:^.*-->.*$)|(?m:^[\w/-]+$)|(?m:^(?:Dialogue|Comment): (?:[^,]*,){9})"
    r"|\{[^{}]*\}|<[^<>]*>|&\w+;"
)
FORMS = {
    ".txt": (_TIMES, _BESIDE, _MARKDOWN, r"<\|[^|]*\|>(?:system\b)?"),
    ".md": (_TIMES, _BESIDE, _MARKDOWN),
    ".fountain": (_BESIDE, r"\(CONT'D\)"),
    ".html": (_TAGS,), ".xml": (_TAGS,), ".ssml": (_TAGS,),
    ".yarn": (_GAMES,), ".rpy": (_GAMES,), ".twee": (_GAMES,), ".ink": (),
    ".srt": (_SUBTITLES,), ".vtt": (_SUBTITLES,), ".ass": (_SUBTITLES,), ".sbv": (_TIMES,),
    ".lrc": (_TIMES,), ".yaml": (r"(?m:^[\s-]*\w+:)",),
    ".json": (r"\"[^\"]*\"\s*:", r"(?<=:\s*)[\d.]+"),
}  # fmt: skip
"""What of a source is its form, by the suffix of the file."""

FORM_WORDS = {
    "radio_columns.txt": "F X",  # a column of effects, which stand as SFX
    "table.md": "speaker line notes", "llm_table_shots.md": "speaker dialogue tone",  # headings
    "weir.rpy": "a i", "jetty.rpy": "j",  # keys of characters
    "ducks.ass": "n nfell nreleasing", "two.ass": "nthe",  # \\N breaks a row
    "earnest.fountain": "title", "fountain_plain.fountain": "title", "sp_full.fountain": "title on",
    "chatml.txt": "system", "teams.vtt": "39", "md_extensions.md": "1",  # roles, ids, footnotes
    "llm_dash_quotes.txt": "o v", "zh_script.txt": "vo",  # off screen
    "llm_json_fence.md": "title dialogue speaker text",  # keys
    "llm_stage_brackets.txt": "pause", "playscript_tab.txt": "pause",
}  # fmt: skip

TRANSLATED = ("game.csv", "t_loc.tsv")
"""Tables with the text in several languages, of which one is read."""


def list_cells(text: str) -> str:
    """The cells of a table that hold words, apart from the names of recordings to be made."""
    rows = csv.reader(text.splitlines()[1:], delimiter=max(",;\t", key=text.count))
    return " ".join(
        cell for row in rows for cell in row if regex.search(r"\p{L}(?!.*\.wav$)", cell)
    )


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_no_word_of_a_sample_vanishes(path: Path) -> None:
    text = decode_text(path.read_bytes(), path.name, ImportNotices())
    kept = kept_words(import_dialog(path.read_bytes(), path.name))
    if path.suffix in (".csv", ".tsv"):
        words = list_cells(text) if path.name not in TRANSLATED else ""
    else:
        words = regex.sub("|".join(FORMS[path.suffix]) or "$^", " ", text)
    assert words_of(words) - kept == words_of(FORM_WORDS.get(path.name, ""))


@pytest.mark.parametrize(
    "seeds", [range(400), pytest.param(range(400, 10_400), marks=pytest.mark.campaign)]
)
def test_no_word_of_a_generated_text_vanishes(seeds: range) -> None:
    texts = {seed: (make_text(seed), FILES[seed % len(FILES)]) for seed in seeds}
    lost = {seed: lost_words(*text) for seed, text in texts.items()}
    assert {seed: (words, *texts[seed]) for seed, words in lost.items() if words} == {}
    assert 3 * list(lost.values()).count(None) < len(seeds)
