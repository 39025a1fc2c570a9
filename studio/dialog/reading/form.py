"""A form of text: how well it explains a text, and how it reads it. The best explanation wins."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module

from studio.dialog.model import ParsedScript
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.lexer import Source
from studio.dialog.reading.tables import Columns
from studio.dialog.reading_limits import check_reading

_WHOLE = 0.9
"""What the share of rows that a form explains adds to its certainty, where it is all."""
_NEAR = 0.03
_HOLDS = 4.0
_NEAR_TIE = "This was read as {}; it may as well be {}. Change it where that is wrong."


@dataclass(frozen=True, slots=True)
class Read:
    """What a form has read.

    Attributes:
        parsed: The dialog, with the notices that aren't among the import's.
        title: What the text calls itself.
        unspoken: How much of it a narrator could read.
        format: The suffix of the format; "" for that of its form.
        form: The form, once its claim is read.
        chat: Whether it was a chat or a list of who says what.
        quoted: How many quotations of a story characters say, which a narrator could read.
        timed: Whether it was subtitles, whose times can be kept.
        columns: How the columns of a table were read; None for other text.
    """

    parsed: ParsedScript
    title: str | None = None
    unspoken: int = 0
    format: str = ""
    form: Form | None = None
    chat: bool = False
    quoted: int = 0
    timed: bool = False
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A form's claim to a text: of how many rows it explains how many, and what reads them."""

    read: Callable[[ImportNotices], Read]
    explained: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True)
class Form:
    """A form of text, as its module registers it in `FORMS`.

    Attributes:
        name: As a notice has it: “a chat”.
        certainty: How seldom text of another form has the form's signs, on one scale for all: 0 for
            what any text has, 1 for names such as people write, 2 for signs of turns that no
            sentence has, 3 for a file that begins as no other, 4 for what holds another text.
        explain: Explains a text, or gives None for one that isn't of the form.
        signs: One of them stands in each text of the form; none stands for any text.
        format: The suffix of the format that it is read as.
        is_file: Whether a file of it has a suffix that says so, and a notice if it hasn't.
    """

    name: str
    certainty: float
    explain: Callable[[Source], Explanation | None]
    signs: tuple[str, ...] = ()
    format: str = "txt"
    is_file: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """A form with its explanation of a text."""

    form: Form
    explanation: Explanation

    @property
    def score(self) -> float:
        share = self.explanation.explained / max(1, self.explanation.of)
        return self.form.certainty + _WHOLE * min(1.0, share)

    def rank(self) -> tuple[float, str]:
        """Sorts the best first."""
        return -self.score, self.form.name

    def read(self, remarks: ImportNotices) -> Read:
        """Read the text by the form."""
        read = self.explanation.read(remarks)
        format_ = read.format or self.form.format
        return replace(read, format=format_, form=read.form or self.form)


@cache
def list_forms() -> tuple[Form, ...]:
    """All forms of the modules in `forms/`; each lists its own."""
    folder = import_module("studio.dialog.reading.forms")
    names = (one.name for one in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."))
    return tuple(form for name in names for form in import_module(name).FORMS)


def find_claim(source: Source, forms: Iterable[Form], remarks: ImportNotices) -> Claim:
    """The form that explains a text best; of two alike the first by name, with a notice."""
    best: list[Claim] = []
    for form in sorted(forms, key=lambda form: (-form.certainty, form.name)):
        check_reading()
        # What follows can't explain it as well as what was found: a list of cues is no play.
        if best and form.certainty + _WHOLE < best[0].score - _NEAR:
            break
        is_possible = not form.signs or any(sign in source.text for sign in form.signs)
        is_possible &= form.certainty < _HOLDS or source.budget.may_hold
        if is_possible and (explanation := form.explain(source)) is not None:
            best = sorted([*best, Claim(form, explanation)], key=Claim.rank)[:2]
    if len(best) > 1 and best[1].score > best[0].score - _NEAR:
        remarks.add(_NEAR_TIE.format(best[0].form.name, best[1].form.name), 1)
    return best[0]


def read_source(source: Source, remarks: ImportNotices) -> Read:
    """Read a text by the form that explains it best.

    Raises:
        ScriptError: It holds no dialog, or a row of it is invalid.
    """
    return find_claim(source, list_forms(), remarks).read(remarks)
