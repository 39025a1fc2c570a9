"""Who says the quotations of 100 excerpts and of 28 novels: campaigns over folders with copies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from litbank import Measured, measure, read_books
from pdnc import measure_novel


def folder_of(environ: str, repository: str) -> Path:
    folder = os.environ.get(environ)
    if not folder:
        pytest.skip(f"{environ} names no copy of github.com/{repository}")
    return Path(folder)


def show(title: str, result: Measured) -> dict[int, float]:
    curve = result.curve()
    shown = "  ".join(f"{share} %: {100 * right:.1f}" for share, right in curve.items())
    found = f"{result.found} of {result.annotated} quotations found"
    print(f"\n{title}: {found}, {result.false} others; right of the surest {shown}")
    return curve


@pytest.mark.campaign
@pytest.mark.parametrize("half", [0, 1], ids=["developed_on", "kept_unseen"])
def test_excerpts(half):
    books = read_books(folder_of("TABLEREAD_LITBANK", "dbamman/litbank"))
    result = measure(books[half::2])
    curve = show("LitBank, books from the " + ("first", "second")[half], result)
    assert curve[20] > 0.97
    assert curve[40] > 0.9
    assert result.found > 0.95 * result.annotated
    assert result.false < 0.08 * result.annotated


@pytest.mark.campaign
def test_novels():
    """Rules of others were right on 94 % of the surest fifth of these."""
    folder = folder_of("TABLEREAD_PDNC", "Priya22/project-dialogism-novel-corpus")
    result = Measured()
    for novel in sorted((folder / "data").iterdir()):
        one = measure_novel(novel)
        show(novel.name, one)
        result.annotated += one.annotated
        result.found += one.found
        result.rights += one.rights
    curve = show("PDNC", result)
    assert curve[20] > 0.97
    assert curve[40] > 0.94
