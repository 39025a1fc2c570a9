"""The rows that notices name."""

from collections.abc import Iterable

import regex

from studio.dialog.model import Notice


def told_rows(notices: Iterable[Notice]) -> set[int]:
    """The numbers of rows, those of “(Also in lines …)” too."""
    return {
        int(number)
        for notice in notices
        for number in [
            notice.line_number, *regex.findall(r"\d+", notice.message.partition("(Also")[2])
        ]
    }  # fmt: skip
