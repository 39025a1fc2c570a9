"""Every text of the page goes through the catalogue, and each catalogue has them all."""

import re

import pytest
from page_texts import PAGE, languages, page_texts, read_catalogue, texts_of_html, texts_of_script

_PLACES = re.compile(r"\{\d\}")
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
