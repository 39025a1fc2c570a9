"""Which lines of a project a changed script keeps, by their ids."""

from __future__ import annotations

import pytest

from studio.dialog.formats.dialog_file import read_dialog_text
from studio.project.document import Document
from studio.project.script_merge import create_lines, merge_script


def document_of(text: str) -> Document:
    lines = create_lines(read_dialog_text(text).dialog)
    return Document(
        "Scene", {line.line_id: line for line in lines}, tuple(x.line_id for x in lines)
    )


def kept(before: str, after: str) -> list[int | None]:
    """For each line of the new script its number in the old one; None for a new line.

    Each letter is a line; in capitals it is changed, but similar.
    """
    words = "went over to the old house at night, said nothing, and looked for a lantern"

    def script(letters: str) -> str:
        return "\n".join(
            f"Ida: {letter.lower() * 9} {words}{'' if letter.islower() else ' again'}."
            for letter in letters
        )

    document = document_of(script(before))
    merged = merge_script(document, read_dialog_text(script(after)).dialog)
    return [
        document.order.index(line_id) if line_id in document.order else None
        for line_id in merged.order
    ]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("abc", "cab", [2, 0, 1]),
        ("abcd", "aBCd", [0, 1, 2, 3]),
        ("abcde", "ABCDE", [0, 1, 2, 3, 4]),
        ("abc", "ac", [0, 2]),
        ("abab", "abab", [0, 1, 2, 3]),
        ("aab", "aaab", [0, 1, None, 2]),
        ("abbc", "abbbc", [0, 1, 2, None, 3]),
        ("aaab", "aab", [0, 1, 3]),
        ("baaa", "baa", [0, 1, 2]),
        ("aaba", "aba", [0, 2, 3]),
    ],
)
def test_lines_keep_their_ids(before: str, after: str, lines: list[int | None]) -> None:
    assert kept(before, after) == lines
