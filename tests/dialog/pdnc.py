"""The quotations of the Project Dialogism Novel Corpus: whole novels, with who says what.

The corpus (Vishnubhotla and others) states no licence: nothing of it is here, it is only measured.
"""

from __future__ import annotations

import ast
import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

from litbank import Measured, plain

from studio.dialog.prose.pieces import FIRST_PERSON
from studio.dialog.prose.speakers import split_prose


def measure_novel(folder: Path) -> Measured:
    """Each quotation once, by the surest of its parts."""
    text = (folder / "novel_text.txt").read_text("utf-8")
    aliases = defaultdict(set)
    with (folder / "character_info.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            names = {row["Main Name"], *_listed(row["Aliases"])}
            aliases[row["Main Name"]] = {plain(name) for name in names}
    with (folder / "quotation_info.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    tells = Counter(
        row["speaker"] for row in rows if re.search(r"\bI\b", row["referringExpression"] or "")
    )
    narrator = next((name for name, _ in tells.most_common(1)), None)
    starts = {
        piece.start + shift: piece for piece in split_prose(text).quotations for shift in (0, 1)
    }
    result = Measured(annotated=len(rows))
    for row in rows:
        spans = _listed(row["quoteByteSpans"])
        parts = [starts[start] for start, _ in spans if start in starts]
        if not parts:
            continue
        result.found += 1
        best = max(parts, key=lambda one: one.confidence)
        speaker = plain(row["speaker"])
        names = aliases.get(row["speaker"]) or {speaker}.union(
            *(one for one in aliases.values() if speaker in one)
        )
        said = plain(best.speaker or "")
        is_right = best.speaker == FIRST_PERSON and row["speaker"] == narrator
        is_right |= bool(said) and any(f" {said} " in f" {name} " for name in names)
        tag = plain(row["referringExpression"] or "")
        is_right |= bool(said) and best.speaker[0].islower() and said in tag
        result.rights.append((best.confidence, is_right))
    return result


def _listed(written: str) -> list:
    try:
        return list(ast.literal_eval(written))
    except (ValueError, SyntaxError):
        return []
