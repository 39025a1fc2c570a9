"""Subtitles in TTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring

from studio.dialog.documents.document_text import DocumentText, UnreadableDocument

_CLOCK = re.compile(r"(\d+):(\d\d):(\d\d)(?:([.:])(\d+))?")
_OFFSET = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|f|t)")
_TTML = "{http://www.w3.org/ns/ttml%s}"


def read_ttml(data: bytes) -> DocumentText:
    """TTML's cues as WebVTT, with the names of its agents."""
    root = fromstring(data)
    rates = {
        "f": float(root.get(_TTML % "#parameter" + "frameRate", "30")),
        "t": float(root.get(_TTML % "#parameter" + "tickRate", "10000000")),
    }
    agents = {}
    for one in root.iter(_TTML % "#metadata" + "agent"):
        name = one.find(_TTML % "#metadata" + "name")
        agents[one.get("{http://www.w3.org/XML/1998/namespace}id")] = (
            "".join(name.itertext()) if name is not None else ""
        )
    rows = ["WEBVTT"]
    for cue in root.iter(_TTML % "" + "p"):
        start = _seconds(cue.get("begin", "0s"), rates)
        end = (
            _seconds(cue.get("end"), rates)
            if cue.get("end")
            else start + _seconds(cue.get("dur", "0s"), rates)
        )
        who = agents.get(cue.get(_TTML % "#metadata" + "agent"), "")
        words = " ".join(_ttml_words(cue).split())
        voice = f"<v {who}>" if who else ""
        rows += ["", f"{_stamp(start)} --> {_stamp(end)}", f"{voice}{words}"] if words else []
    return DocumentText("\n".join(rows), ".vtt")


def _ttml_words(part: Element) -> str:
    words = [" " if part.tag.endswith("}br") else part.text or ""]
    for child in part:
        words += ["" if "#metadata" in child.tag else _ttml_words(child), child.tail or ""]
    return "".join(words)


def _seconds(written: str | None, rates: Mapping[str, float]) -> float:
    if clock := _CLOCK.fullmatch(written or ""):
        hours, minutes, seconds = (int(clock[idx]) for idx in (1, 2, 3))
        parts = clock[5] or "0"
        rest = int(parts) / rates["f"] if clock[4] == ":" else float(f"0.{parts}")
        return hours * 3600 + minutes * 60 + seconds + rest
    if offset := _OFFSET.fullmatch(written or ""):
        units = {
            "h": 3600.0,
            "m": 60.0,
            "s": 1.0,
            "ms": 0.001,
            **{key: 1 / one for key, one in rates.items()},
        }
        return float(offset[1]) * units[offset[2]]
    raise UnreadableDocument("“{}” has a time that can't be read.")


def _stamp(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms % 1000:03}"
