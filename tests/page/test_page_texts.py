"""Every text of the page goes through the catalogue, and each catalogue has them all."""

import re

import pytest
from page_texts import PAGE, languages, page_texts, read_catalogue, texts_of_html, texts_of_script
from server_texts import list_all_texts, server_texts, texts_of_module

_PLACES = re.compile(r"\{\d\}")
_VALUE = re.compile(r"\{\{(?!\s*icon\().*?\}\}", re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_SENTENCE = re.compile(r"^[A-Z][a-z’']+ [a-z’']+.*|^[a-z’']+( [a-z’']+){2,}.?$")


def test_the_languages_are_those_that_were_promised():
    assert languages() == ["de", "es", "fr", "ja", "zh"]


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_a_catalogue_has_every_text_and_no_other(language):
    assert read_catalogue(language).keys() == page_texts().keys()


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_a_translation_has_the_values_of_its_text(language):
    for text, said in read_catalogue(language).items():
        assert said.strip(), text
        assert set(_PLACES.findall(said)) == set(_PLACES.findall(text)), (text, said)


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_a_catalogue_has_what_people_read_of_the_studio_and_nothing_that_it_does_not_say(language):
    there = read_catalogue(f"server/{language}").keys()
    assert [text for text in server_texts() if text not in there] == []
    assert there - list_all_texts() == set()
    assert there == read_catalogue("server/de").keys()


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
@pytest.mark.parametrize(
    "sentence",
    [
        f"The audio of this line's take {what}. {verb} the line again, or choose another take."
        for what in ("isn't there any more", "has changed on the disk")
        for verb in ("Render", "Record")
    ]
    + [
        "The record of its take is damaged.",
        "{0*} The take is left out; its files are kept.",
        "This project is back already. Open it in the list.",
        "This can't be saved: {0*}. Free some space or choose a folder you may write to.",
    ],
)
def test_what_is_said_of_a_damaged_project_or_disk_is_translated(language, sentence):
    assert sentence in read_catalogue(f"server/{language}")


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_a_translation_has_the_values_of_its_sentence(language):
    for text, said in read_catalogue(f"server/{language}").items():
        assert said.strip(), text
        assert set(_PLACES.findall(said)) == set(_PLACES.findall(text.replace("*}", "}"))), text


@pytest.mark.parametrize("language", ["de", "es", "fr", "ja", "zh"])
def test_the_page_and_the_studio_name_a_line_alike(language):
    ours, theirs = read_catalogue(language), read_catalogue(f"server/{language}")
    assert ours["Line {0}: {1}"] == theirs["Line {0}: {1*}"]


def test_sentences_are_found_wherever_the_studio_makes_them():
    source = """
_HOW = "Write one, such as"
_LABELS = {1: "a script"}

def check(name, n, error):
    \"\"\"A docstring is not shown.\"\"\"
    log.info("a log of %s is not shown.", name)
    again = f"{n} times" if n > 2 else "twice"
    if n:
        raise ScriptError(f"“{name}” is said {again}. {_HOW} “a”.")
    yield f"this voice has no {name:>3}."
    raise BadInput(f"Line {n}: {error}")
    remarks.add("These are left out:")
"""
    assert texts_of_module(source) == [
        "a script",
        "“{0}” is said {1} times. Write one, such as “a”.",
        "“{0}” is said twice. Write one, such as “a”.",
        "This voice has no {0}.",
        "Line {0}: {1*}",
        "These are left out: {0}",
    ]


def test_a_template_fills_no_value_into_its_words():
    # The page looks up what a reader sees, and with a value in it that is in no catalogue.
    filled = [
        text
        for path in PAGE.glob("html/*.html")
        for text in texts_of_html(_VALUE.sub("\0", path.read_text(encoding="utf-8")))
        if "\0" in text
    ]
    assert filled == []


def test_no_sentence_of_a_script_is_outside_of_the_catalogue():
    outside = [
        (path.name, match[1])
        for path in PAGE.rglob("*.js")
        for match in _STRING.finditer(_without_comments(path.read_text(encoding="utf-8")))
        if _SENTENCE.match(match[1])
    ]
    spoken = {"My script", "The lighthouse", "The lamp is still burning, and nobody is home."}
    assert [one for one in outside if one[1] not in spoken] == []


def _without_comments(code: str) -> str:
    return re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", "", code, flags=re.DOTALL)


def test_texts_are_found_wherever_they_stand():
    script = "say(t`Delete ${name || t`Untitled`}?`, formatCount(n, x), `${t`No ${a({})}`}`);"
    assert list(texts_of_script(script)) == ["Delete {0}?", "Untitled", "No {0}"]
    nouns = 'formatCount(lines.filter((x) => x), "line"); formatCount(n, "copy", "copies")'
    assert list(texts_of_script(nouns)) == ["{0} line", "{0} lines", "{0} copy", "{0} copies"]
    html = '<p title="Add\n  a line">{{ icon("x") }} One\n two <kbd>Enter</kbd><b>or</b></p>'
    assert list(texts_of_html(html)) == ["Add a line", "One two", "or"]


def test_no_sentence_of_the_page_names_an_option_of_the_terminal():
    assert [text for text in server_texts() if re.search(r"(?<!\w)--[a-z]|terminal", text)] == []
