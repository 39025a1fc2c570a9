import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.dialog.model import MAX_NAME_CHARS, Dialog, Speech, clean_name, name_key, same_name
from studio.dialog.script import parse_script, write_script
from studio.errors import NameRejected


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Anna", "Anna"),
        ("  The \t Old\u00a0Man\n", "The Old Man"),
        ("A\u200bn\u202ena\ufeff", "Anna"),
        ("Zoe\u0308", "Zoë"),
        ("Zoe\u200b\u0308", "Zoë"),
        ("The \u200b Man", "The Man"),
        ("ليلى", "ليلى"),
        ("👻", "👻"),
        ("a" * MAX_NAME_CHARS, "a" * MAX_NAME_CHARS),
    ],
)
def test_names_are_kept_in_one_form(written, name):
    assert clean_name(written) == name


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "at least one visible"),
        (" \u200b\u200d ", "at least one visible"),
        ("a" * (MAX_NAME_CHARS + 1), "61 characters; 60 are the most"),
        ("A[1]", "holds \\["),
        ("A|B", "holds \\|"),
    ],
)
def test_what_cannot_be_a_name_is_refused_with_the_reason(written, said):
    with pytest.raises(NameRejected, match=said):
        clean_name(written)


@pytest.mark.parametrize(
    ("one", "other"), [("Anna", "ANNA"), ("Straße", "STRASSE"), ("Éva", "e\u0301va")]
)
def test_case_does_not_tell_names_apart(one, other):
    assert same_name(clean_name(one), clean_name(other))
    assert not same_name("Anna", "Anne")


@given(st.text(max_size=70) | st.text("ae \u200b\u0301\t", max_size=12))
def test_cleaning_twice_changes_nothing(written):
    try:
        name = clean_name(written)
    except NameRejected:
        return
    assert clean_name(name) == name
    assert name_key(name_key(name)) == name_key(name)


def test_an_age_behind_a_name_in_capitals_is_said_of_the_same_speaker():
    script = """TAM (CHILD, 8): Wait for me.
MARY: No.
TAM: Please.
MARY, 70s: Go.
GUARD (2): Halt.
GUARD (3): Halt."""
    lines = parse_script(script).dialog.lines
    speakers = [(line.speaker, line.params.get("about")) for line in lines]
    assert speakers == [
        ("TAM", "CHILD, 8"), ("MARY", None), ("TAM", None), ("MARY", "70s"),
        ("GUARD (2)", None), ("GUARD (3)", None),
    ]  # fmt: skip
    assert parse_script(write_script(Dialog(lines))).dialog.speakers() == Dialog(lines).speakers()
    kept = Dialog((Speech("TAM (CHILD, 8)", "An earlier project's name."),))
    assert parse_script(write_script(kept)).dialog.speakers() == kept.speakers()
