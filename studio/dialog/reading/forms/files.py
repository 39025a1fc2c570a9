"""Files that other programs write and read: subtitles, tables and screenplays."""

from __future__ import annotations

from functools import partial

import regex

from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading.captions import begins_timed, find_vtt_title, is_timed, read_captions
from studio.dialog.reading.form import Explanation, Form, Read
from studio.dialog.reading.fountain import count_cues, read_fountain
from studio.dialog.reading.lexer import Source, has_colon_name
from studio.dialog.reading.tables import is_headless, read_table

_FIRST_ROWS = 200
_VTT = regex.compile(r"\s*WEBVTT(?:\s|$)")


def _explain_vtt(source: Source) -> Explanation | None:
    is_vtt = _VTT.match(source.text) is not None
    if (is_vtt and (source.suffix == "vtt" or is_timed(source.text))) or _is_promised(
        source, "vtt"
    ):
        return Explanation(partial(_read_captions, source, is_vtt=True))
    return None


def _is_promised(source: Source, suffix: str) -> bool:
    """Whether a file's name promises subtitles, and nothing in it says otherwise."""
    return source.suffix == suffix and (is_timed(source.text) or not _count_named(source))


def _explain_srt(source: Source) -> Explanation | None:
    if begins_timed(source.text) or _is_promised(source, "srt"):
        return Explanation(partial(_read_captions, source, is_vtt=False))
    return None


def _read_captions(source: Source, remarks: ImportNotices, *, is_vtt: bool) -> Read:
    title = find_vtt_title(source.text) if is_vtt else None
    read = read_captions(source.text, remarks, is_vtt=is_vtt, fit=source.fit)
    return Read(read, title, timed=True)


def _explain_table(source: Source) -> Explanation | None:
    is_table = source.delimiter is not None or is_headless(source.text)
    if not is_table and source.suffix in ("csv", "tsv"):
        is_table = 2 * _count_named(source) <= min(_FIRST_ROWS, len(source.filled))
    if not is_table:
        return None
    format_ = "tsv" if source.delimiter == "\t" else "csv"

    def read(remarks: ImportNotices) -> Read:
        parsed, columns = read_table(source.text, remarks, fit=source.fit, chosen=source.columns)
        return Read(parsed, format=format_, columns=columns)

    return Explanation(read)


def _count_named(source: Source) -> int:
    return sum(has_colon_name(row) for _, row in source.filled[:_FIRST_ROWS])


def _explain_screenplay(source: Source) -> Explanation | None:
    """Names above the words, and not before them; a scene's heading in a script makes none."""
    rows = source.unprinted.splitlines()[:_FIRST_ROWS]
    filled = [row for row in map(str.strip, rows) if row]
    named = sum(map(has_colon_name, filled))
    if source.suffix not in (None, "txt", "srt", "vtt") or (named and 2 * named >= len(filled)):
        return None
    cues = count_cues("\n".join(rows), has_names=named > 0)
    return Explanation(partial(_read_screenplay, source), cues, len(filled)) if cues else None


def _explain_fountain(source: Source) -> Explanation | None:
    is_promised = source.suffix == "fountain"
    return Explanation(partial(_read_screenplay, source)) if is_promised else None


def _read_screenplay(source: Source, remarks: ImportNotices) -> Read:
    text = source.unprinted
    play = read_fountain(text, source.take(remarks), narrator=source.narrator)
    return Read(play.parsed, play.title, play.unspoken)


FORMS = (
    Form("WebVTT subtitles", 3.2, _explain_vtt, format="vtt"),
    Form("SRT subtitles", 3.1, _explain_srt, format="srt"),
    Form("a table", 3.0, _explain_table, format="csv"),
    Form("a Fountain screenplay", 2.9, _explain_fountain, format="fountain"),
    Form("a Fountain screenplay", 1.4, _explain_screenplay, format="fountain"),
)
