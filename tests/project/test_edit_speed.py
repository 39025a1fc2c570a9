"""How long edits take; printed with `-s`, held to nothing, since machines differ."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from project_scenes import IDA, Bench, document_of, ops, text_edit

from studio.server.routes.bodies import edit_body, project_body
from studio.storage.disk import Disk

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("lines", [500, 5_000])
def test_the_pace_of_edits(bench: Bench, lines: int) -> None:
    bench.disk = Disk()
    session = bench.make(document_of(lines))
    ids = list(session.document.order)
    script = session.format_script()[1]

    def edit(*edits: dict[str, object]) -> None:
        edit_body(session, session.edit(ops(*edits), IDA, session.rev))

    def insert(idx: int) -> None:
        new = {"line_id": f"{10**9 + idx:012x}", "speaker": "Ida", "text": "New."}
        edit({"op": "insert", "after": ids[idx], "lines": [new]})

    work: dict[str, Callable[[int], object]] = {
        "text": lambda idx: edit(text_edit(ids[idx], f"New {idx}.")),
        "insert": insert,
        "move": lambda idx: edit({"op": "move", "line_ids": [ids[idx]], "after": ids[-1]}),
        "delete": lambda idx: edit({"op": "delete", "line_ids": [ids[idx]]}),
        "undo": lambda _: edit_body(session, session.undo(IDA, session.rev)),
        "whole project": lambda _: project_body(session),
        "script": lambda idx: session.merge_script(
            script.replace("line 33.", f"line {idx}!"), IDA, session.rev
        ),
    }
    for name, once in work.items():
        took_ms = sorted(timed_ms(once, idx) for idx in range(3))
        print(f"{lines:,} lines, {name}: median {took_ms[1]:.1f} ms, slowest {took_ms[-1]:.1f} ms")
    session.close()


def timed_ms(once: Callable[[int], object], idx: int) -> float:
    began_s = time.perf_counter()
    once(idx)
    return (time.perf_counter() - began_s) * 1_000
