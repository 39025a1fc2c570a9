"""Cuts text into what no word of a list begins or ends in, without a step for each character."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache

from studio.dialog.tags import ODD_PAUSE, may_have_tags
from studio.dialog.word_search import is_mark, is_of_word


def cut_atoms(text: str) -> list[str]:
    """Cut text into what no pronunciation begins or ends in: words, tags and other characters.

    Returns:
        Together they are the text. None of text with marks, other pauses than `[pause:1s]`, or
        letters of both kinds that aren't English, which is cut while it is searched.
    """
    kinds = {_AtomKind.ENGLISH} if text.isascii() else set(map(_find_kind, set(text)))
    if _AtomKind.NONE in kinds or kinds >= {_AtomKind.SPACED, _AtomKind.UNSPACED}:
        return []
    has_tags = may_have_tags(text)
    if has_tags and ODD_PAUSE.search(text):
        return []
    return _ATOMS[_AtomKind.SPACED in kinds, has_tags].findall(text)


class _AtomKind(Enum):
    """How a character goes with others: any may stand beside English ones."""

    ENGLISH = "of any text"
    SPACED = "of words with spaces between them"
    UNSPACED = "of words without spaces between them"
    NONE = "of none of these"


@lru_cache(maxsize=65_536)
def _find_kind(char: str) -> _AtomKind:
    if is_mark(char):
        return _AtomKind.NONE
    if _IS_ENGLISH.match(char):
        return _AtomKind.ENGLISH
    if is_of_word(char):
        return _AtomKind.SPACED if _IS_SPACED.match(char) else _AtomKind.NONE
    return _AtomKind.UNSPACED if _IS_SPACED.match(char) else _AtomKind.ENGLISH


# Beside tags as `tags.TAG` has them.
_TAGS = r"\[[^\[\]]{1,40}\]|</?[A-Za-z][^<>]{0,60}>|"
_IS_SPACED = re.compile(r"\w")
_IS_ENGLISH = re.compile(r"[0-9A-Za-z_]")
_ATOMS = {
    (is_spaced, has_tags): re.compile(f"(?s){_TAGS if has_tags else ''}{letter}+|.")
    for is_spaced, letter in ((True, r"\w"), (False, r"[0-9A-Za-z_]"))
    for has_tags in (True, False)
}
