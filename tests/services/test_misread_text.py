"""Text in another language than the one it is read in: what is found, and what raises no doubt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from project_scenes import IDA, ops

from studio.backends.espeak.backend import DraftBackend
from studio.dialog.formats.dialog_file import read_dialog_text
from studio.services.misread_text import find_misread_lines, find_misread_text
from studio.services.studio import Studio

ENGLISH = (
    "Good morning, Bob.",
    "Did you hear the storm last night?",
    "It took the roof off the old barn.",
)
GERMAN = ("Guten Morgen, ich habe gestern den Zug verpasst.", "Das macht doch nichts.")
FRENCH = ("Bonjour, comment allez-vous ce matin ?", "Je n’ai pas dormi de la nuit.")


def backend(*languages):
    """The draft voice, with no more than these of its languages."""
    made = DraftBackend()
    if languages:
        known = {code: code for code in languages}
        found = replace(made.capabilities, languages=known, guess=lambda _: languages[0])
        made.__dict__["capabilities"] = found
    return made


def judge(*texts, of=(), named=(), speakers=("Ida",)):
    lines = [(speakers[n % len(speakers)], text, None) for n, text in enumerate(texts)]
    return find_misread_text(lines, lambda _: named, backend(*of))


@pytest.mark.parametrize("of", [(), ("en-US", "fr"), ("en-US",)])
def test_plain_english_raises_no_question(of):
    for lines in (ENGLISH, ENGLISH[:1], ["Yes."], ["Hm?", "Shh.", "Oh."], ["Bob!", "Ann!"], []):
        assert judge(*lines, of=of, speakers=("Ann", "Bob", "Maria")) is None


@pytest.mark.parametrize(("texts", "language"), [(GERMAN, "de"), (FRENCH, "fr")])
def test_a_text_of_another_language_is_found_by_its_words(texts, language):
    found = judge(*texts)
    assert (found.language, found.read_as, found.is_known) == (language, "en-US", True)
    assert found.speakers == ()
    assert judge(*texts, named=[language]) is None
    assert judge(*texts, of=["en-US"]).is_known is False


def test_a_language_that_the_engine_lacks_is_found_though_somebody_names_it():
    assert judge(*GERMAN, of=["en-US", "fr"], named=["de"]).is_known is False
    assert judge(*GERMAN, of=["en-US", "fr"], named=["en"]) is None


def test_other_letters_are_found_where_words_are_too_few():
    assert judge("Привет.", of=["en-US", "fr"]).language == "ru"
    assert judge("Привет.") is None, "read as what it is"
    assert judge("你好。", of=["en-US", "fr"]).language == "zh"


def test_one_speaker_may_speak_another_language_than_the_others():
    texts = [line for pair in zip(ENGLISH * 3, GERMAN * 9, strict=False) for line in pair]
    found = judge(*texts, of=["en-US"], speakers=("Ann", "Otto"))
    assert (found.language, found.speakers) == ("de", ("Otto",))
    notice = found.describe("Kokoro")
    assert "Otto" in notice
    assert "Kokoro has no German" in notice
    brief = judge(*ENGLISH, "Oui, mon capitaine.", of=["en-US"], speakers=("A", "B", "C", "D"))
    assert brief is None, "a short line is as the scene is"


def test_a_projects_question_goes_once_its_language_is_named(studio: Studio) -> None:
    script = "\n".join(f"Mara: {line}" for line in GERMAN)
    session = studio.projects.create("Scene", read_dialog_text(script).dialog)
    found = find_misread_lines(session)
    assert found is not None
    assert found.language == "de"
    session.edit(ops({"op": "settings", "fields": {"language": "de"}}), IDA, session.rev)
    assert find_misread_lines(session) is None


def test_who_renders_a_script_is_told(studio: Studio) -> None:
    told = studio.render(read_dialog_text(f"Mara: {GERMAN[0]}").dialog).spec.plan.notices
    assert any("seems to be German and is read as English" in one.message for one in told)
    told = studio.render(read_dialog_text(f"Mara: {ENGLISH[1]}").dialog).spec.plan.notices
    assert told == ()
