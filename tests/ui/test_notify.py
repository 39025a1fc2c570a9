"""Every error of the tree has words of its own on the page."""

from collections.abc import Iterator

import pytest

from studio import errors
from studio.ui.notify import Message, message_for


def leaves(kind: type[errors.StudioError] = errors.StudioError) -> Iterator[type]:
    children = kind.__subclasses__()
    if not children:
        yield kind
    for child in children:
        yield from leaves(child)


def made(kind: type[errors.StudioError]) -> errors.StudioError:
    extras = {
        errors.EngineBusy: {"retry_after_s": 3.0},
        errors.EditConflict: {"rev": 3, "conflicts": ()},
    }
    extra = next((given for base, given in extras.items() if issubclass(kind, base)), {})
    return kind("The lamp is out. Light it again.", **extra)


STUDIO_LEAVES = [kind for kind in leaves() if kind.__module__ == "studio.errors"]


@pytest.mark.parametrize("kind", STUDIO_LEAVES)
def test_every_leaf_has_a_title_of_its_own(kind):
    parent_titles = {message_for(made(base)).title for base in kind.__mro__[1:-3]}
    message = message_for(made(kind))
    assert message.text == "The lamp is out. Light it again."
    assert message.title not in parent_titles


def test_an_unlisted_error_takes_its_parents_title():
    class Newer(errors.SampleRejected):
        pass

    assert message_for(Newer("x")).title == message_for(errors.SampleRejected("x")).title


def test_the_studios_faults_are_told_from_refusals():
    assert message_for(errors.StorageFailed("x")).kind == "fault"
    assert message_for(errors.NameRejected("x")).kind == "refused"


def test_a_script_error_names_its_line():
    error = errors.ScriptError("There is no speaker.", line=7)
    expected = Message("refused", "The script can't be read", "Line 7: There is no speaker.")
    assert message_for(error) == expected
