"""The largest request that each route takes, for measuring what it costs."""

from __future__ import annotations

import io
import itertools
import json
import random
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from route_catalogue import CATALOGUE, Body

from studio.dialog.formats.dialog_file import Format, export_dialog, read_dialog_text
from studio.dialog.model import Dialog

LINES = 20_000
SPEAKERS = 5_000
OPS = 10_000
JSON_CHARS = 11_900_000
SOUND_BYTES = 100_000_000
SOURCE_BYTES = 4_990_000


@dataclass(frozen=True, slots=True)
class Scene:
    """What a request finds: the ids in the addresses, and the project of `LINES` lines."""

    values: Mapping[str, str]
    project: Mapping[str, Any]

    @property
    def line_ids(self) -> list[str]:
        return [line["line_id"] for line in self.project["lines"]]


Build = Callable[[Scene], dict[str, Any]]
"""Makes the arguments of a request besides its method and address."""


@dataclass(frozen=True, slots=True)
class Largest:
    """A request of a route.

    Attributes:
        sends_lines: Whether it needs to know the project's lines.
        writes_files: Whether it writes so many files that most of its time is the disk's, which
            isn't counted: a file takes 10 µs in memory, and 30 times that on a full ext4.
        speaks: Whether it asks for speech, from a voice that has spoken before. What counts is the
            time until the response begins, which for sound is when there is some: how long the
            rest takes is up to how much speech was asked for.
    """

    address: str
    name: str
    build: Build = field(default=lambda _: {})
    sends_lines: bool = False
    writes_files: bool = False
    speaks: bool = False


_WORDS = [
    "river",
    "morning",
    "window",
    "letter",
    "garden",
    "stone",
    "quiet",
    "answer",
    "winter",
    "market",
]


def script(lines: int, *, words: int = 10, speakers: int = 3) -> str:
    """A script of so many lines; the same for the same arguments."""
    choose = random.Random(f"{lines} {words}")
    return "\n".join(
        f"Person {line % speakers}: {' '.join(choose.choices(_WORDS, k=words))} {line}."
        for line in range(lines)
    )


_JSON_HEADERS = {"Content-Type": "application/json"}
_TEXT_HEADERS = {"Content-Type": "text/plain"}


def _json(body: object) -> dict[str, Any]:
    return {"content": json.dumps(body, ensure_ascii=False).encode(), "headers": _JSON_HEADERS}


def _full(_: Scene) -> dict[str, Any]:
    """A body as large as any JSON may be."""
    return _json({"text": "x" * JSON_CHARS})


def _sound(_: Scene) -> dict[str, Any]:
    return {"content": bytes(SOUND_BYTES)}


def _author(scene: Scene) -> dict[str, Any]:
    return {"base_rev": scene.project["rev"], "client": "ida-page"}


def _edits(make: Callable[[list[str]], list[dict[str, Any]]]) -> Build:
    return lambda scene: _json({**_author(scene), "ops": make(scene.line_ids)})


def _script(text: Callable[[], str]) -> Build:
    return lambda scene: _json({**_author(scene), "text": text()})


def _changed(scene: Scene) -> dict[str, Any]:
    """A script in which each of 18,000 lines was rewritten, to 220 characters."""
    choose = random.Random(220)
    rows = (f"{line['speaker']}: {line['text'][:-1]}" for line in scene.project["lines"])
    text = "\n".join(
        f"{row}, and {' '.join(choose.choices(_WORDS, k=20))}."[:230]
        for row in itertools.islice(rows, 18_000)
    )
    return _json({**_author(scene), "text": text})


def _new_id(number: int) -> str:
    return f"{0xABC000000000 + number:012x}"


def _each(make: Callable[[int, list[str]], dict[str, Any]], count: int = OPS) -> Build:
    return _edits(lambda ids: [make(number, ids) for number in range(count)])


def archive(files: int) -> dict[str, Any]:
    """An exported project with takes, each of two files."""
    line = {"line_id": "0" * 12, "speaker": "Ida", "text": "Hello."}
    history = {"journal_bytes": 0, "rev": 0, "undo": None, "redo": None, "last": None, "at_s": 0.0}
    record = {"version": 1, "name": "Scene", "cast": {}, "first_names": {}, "lines": [line]}
    record |= {"settings": {}, "locked_takes": [], "deleted_takes": [], "accepted_takes": []}
    record |= {"audio_s": 0.0, "history": {**history, "seen": [], "gone": []}}
    sound = b"RIFF" + bytes(240)
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as packed:
        packed.writestr("project.json", json.dumps(record), zipfile.ZIP_DEFLATED)
        for number in range(files // 2):
            folder, take_id = f"takes/{number // 4:012x}", f"{number:016x}"
            take = {"take_id": take_id, "line_id": folder[-12:], "key": "0" * 32, "seed": 1}
            take |= {"backend": "draft", "text": "Hello.", "voice": "Ida", "samples": 100}
            take |= {"created_at": "2026-01-01T00:00:00Z"}
            packed.writestr(f"{folder}/{take_id}.json", json.dumps(take))
            packed.writestr(f"{folder}/{take_id}.wav", sound)
    return {"content": body.getvalue()}


EDITS = "POST /studio/projects/{project_id}/edits"
_SCRIPT = "PUT /studio/projects/{project_id}/script"
_CREATE = "POST /studio/projects"
_IMPORT = "POST /studio/projects/import"

_EACH_OP: dict[str, Callable[[int, list[str]], dict[str, Any]]] = {
    "rename_speaker": lambda n, _: {"from": f"Person {n % 3}", "to": f"Person {(n + 1) % 3}"},
    "delete": lambda n, ids: {"line_ids": [ids[n]]},
    "move": lambda n, ids: {"line_ids": [ids[n]], "after": ids[-1 - n]},
    "cast": lambda n, _: {"speaker": f"Ida {n}", "voice": "0" * 12},
    "set": lambda n, ids: {"line_ids": [ids[n]], "fields": {"text": f"Now {n}."}},
    "replace": lambda n, _: {"find": "river", "with": "rivers"},
    "join": lambda n, ids: {"line_ids": ids[2 * n : 2 * n + 2]},
    "split": lambda n, ids: {"line_id": ids[n], "at": 20, "new_line_id": _new_id(n)},
    "delete and split": lambda n, ids: (
        {"op": "split", "line_id": ids[n], "at": 20, "new_line_id": _new_id(n)}
        if n % 2
        else {"op": "delete", "line_ids": [ids[n]]}
    ),
    "choose": lambda n, ids: {"line_id": ids[n], "take_id": None},
    "pronounce": lambda n, _: {"put": [{"written": f"word{n}"}], "remove": [f"word{n - 1}"]},
    "rename": lambda n, _: {"name": f"Scene {n}"},
    "settings": lambda n, _: {"fields": {"seed": n}},
}


def _op(kind: str) -> Largest:
    make = _EACH_OP[kind]
    build = _each(lambda number, ids: {"op": kind, **make(number, ids)})
    return Largest(EDITS, f"{OPS:,} × {kind}", build, sends_lines=True)


def _one(name: str, make: Callable[[list[str]], dict[str, Any]], **options: Any) -> Largest:
    return Largest(EDITS, name, _edits(lambda ids: [make(ids)]), sends_lines=True, **options)


def _speech(audio_format: str) -> Largest:
    body = {"input": "All is quiet by the river. " * 740, "response_format": audio_format}
    name = f"20,000 characters, {audio_format}"
    return Largest("POST /v1/audio/speech", name, lambda _: _json(body), speaks=True)


def _raw(address: str, name: str, body: Callable[[], bytes]) -> Largest:
    return Largest(address, name, lambda _: {"content": body(), "headers": _JSON_HEADERS})


def _ones(count: int) -> bytes:
    return b",".join([b"1"] * count)


def _names() -> bytes:
    return b",".join(b'"k%d":1' % number for number in range(490_000))


_SOURCES = {
    "emphasis": ("Ida: Hello.\n\n---\n\n", "**a** *b* " * 25 + "\n\n"),
    "links": ("Ida: Hello.\n\n---\n\n", "[a](b) " * 35 + "\n\n"),
    "list items": ("# Scene\n", "- Ida: The river is quiet, and so is the town.\n"),
    "quotes in quotes": ("# Scene\n\nIda: Hello.\n\n", "> " * 120 + "a\n\n"),
    "paragraphs of HTML": ("<html>", "<p>Hello</p>"),
    "Word's HTML": (
        "<html>",
        '<p class=MsoNormal style="margin:0"><b><span lang=EN-GB>Ida:</span></b><span '
        "lang=EN-GB style='font-size:12.0pt'> river <o:p></o:p></span></p>\n",
    ),
    "comments of HTML": ("<html><p>a</p>", "<!-- -->"),
    "YAML": ("", f"- speaker: Ida\n  text: {'The river is quiet. ' * 12}\n"),
    "Ink": ("=== knot ===\n-> knot\n", f"a{' ' * 246}#b\n"),
    "Twee": (":: Start\n", f"({'a' * 247}\n"),
    "notes of Fountain": ("INT. HOUSE - DAY\n\nIDA\nHello.\n\n", "[[a]] " * 40 + "\n\n"),
    "messages": (
        "The weir\n" + "Ida [10:00] Hello.\n" * 3,
        "The river is quiet by the town now, she says.\n",
    ),
    "turns": ("", "[S1] Hello. "),
    "cells": ("speaker,text\n", "Ida,Hello" + ",a" * 100 + "\n"),
    "columns": ("speaker,text", ",a"),
    "carriage returns": ("Ida: Hello.", "\r"),
}
"""How files begin that are as large as any, and what follows again and again."""


def _json_files() -> Iterator[tuple[str, str]]:
    """Files of as many values as are read, and of as many bytes."""
    yield "400,000 keys", "{" + ",".join(f'"k{number}":1' for number in range(400_000)) + "}"
    items = ('{"type":"speech","speaker":"Ida","text":"Hello."}' for _ in range(90_000))
    yield "90,000 items", "[" + ",".join(items) + "]"
    yield "160,000 small items", "[" + ",".join(['{"a":1,"b":2}'] * 160_000) + "]"


def _source(kind: str) -> bytes:
    beginning, piece = _SOURCES[kind]
    return (beginning + piece * (SOURCE_BYTES // len(piece))).encode()[:SOURCE_BYTES]


def _markdown() -> str:
    """A script as a language model writes it."""
    rows = (row.partition(": ") for row in script(19_900, words=20).split("\n"))
    said = (f"**{name}:** *(softly)* {words} *now*" for name, _, words in rows)
    return "# The weir\n\n---\n\n" + "\n\n".join(said)


SPECIAL: tuple[Largest, ...] = (
    Largest(_CREATE, "20,000 lines", lambda _: _json({"text": script(LINES)})),
    Largest(
        _CREATE,
        "5,000 speakers",
        lambda _: _json({"text": script(LINES, words=5, speakers=SPEAKERS)}),
    ),
    Largest(
        _CREATE,
        "5 MB of script",
        lambda _: _json({"text": script(LINES, words=32)[:4_990_000]}),
    ),
    Largest(
        _SCRIPT,
        "20,000 new lines",
        _script(lambda: script(LINES, words=11)),
        sends_lines=True,
    ),
    Largest(
        _SCRIPT,
        "5,000 new speakers",
        _script(lambda: script(LINES, speakers=SPEAKERS)),
        sends_lines=True,
    ),
    Largest(
        _SCRIPT,
        "20,000 equal lines",
        _script(lambda: "\n".join(["Ida: Yes."] * LINES)),
        sends_lines=True,
    ),
    Largest(_SCRIPT, "18,000 changed lines", _changed, sends_lines=True),
    Largest(
        _SCRIPT,
        "18,000 like lines",
        _script(lambda: "\n".join(["Ida: " + "so it is and so it goes " * 9] * 18_000)),
        sends_lines=True,
    ),
    *map(_op, _EACH_OP),
    _one("deletes all", lambda ids: {"op": "delete", "line_ids": ids}),
    _one("sets all", lambda ids: {"op": "set", "line_ids": ids, "fields": {"language": "de"}}),
    _one("moves all", lambda ids: {"op": "move", "line_ids": ids[:-1], "after": ids[-1]}),
    _one(
        "2,000 pronunciations",
        lambda _: {
            "op": "pronounce",
            "put": [
                {"written": f"{word}{number}" if number > 9 else word, "spoken": "é" * 200}
                for number in range(200)
                for word in _WORDS
            ],
        },
    ),
    _one("replaces in all", lambda _: {"op": "replace", "find": "e", "with": "ee"}),
    _one("replaces by much", lambda _: {"op": "replace", "find": "e", "with": "😀" * 10_000}),
    _one(
        "sets a long text in all",
        lambda ids: {"op": "set", "line_ids": ids, "fields": {"text": "x" * 100_000}},
    ),
    _one(
        "sets long params in all",
        lambda ids: {
            "op": "set",
            "line_ids": ids,
            "fields": {"params": dict.fromkeys(("mood", "instruct"), "x" * 2_000)},
        },
    ),
    _raw("POST /v1/dialogs", "6,000,000 numbers", lambda: b'{"input":[%b]}' % _ones(5_900_000)),
    _raw("POST /v1/dialogs", "490,000 names", lambda: b'{"input":"a","voices":{%b}}' % _names()),
    _raw("POST /v1/audio/speech", "490,000 names", lambda: b'{"input":"a",%b}' % _names()),
    _raw(_CREATE, "4,000,000 lists", lambda: b'{"text":[%b]}' % b",".join([b"[]"] * 3_900_000)),
    _raw(_CREATE, "490,000 names", lambda: b"{%b}" % _names()),
    Largest(_IMPORT, "1,000 files", lambda _: archive(1_000)),
    Largest(_IMPORT, "16,000 takes", lambda _: archive(32_000), writes_files=True),
    Largest(_IMPORT, "100,001 files", lambda _: archive(100_002)),
    Largest(
        "POST /studio/projects/lines",
        "20,000 lines",
        lambda _: {"content": script(LINES).encode()},
    ),
    *(
        Largest(
            "POST /studio/projects/lines",
            f"5 MB of {kind}",
            lambda _, kind=kind: {"content": _source(kind), "headers": _TEXT_HEADERS},
        )
        for kind in _SOURCES
    ),
    *(
        Largest(
            "POST /studio/projects/lines",
            f"JSON of {kind}",
            lambda _, text=text: {"content": text.encode(), "params": {"name": "scene.json"}},
        )
        for kind, text in _json_files()
    ),
    Largest(
        "POST /studio/projects/lines",
        "20,000 lines of Markdown",
        lambda _: {"content": _markdown().encode()},
    ),
    _speech("mp3"),
    _speech("flac"),
    Largest(
        "POST /v1/dialogs",
        "20,000 lines",
        lambda _: _json({"input": script(LINES)}),
        speaks=True,
    ),
    *(
        Largest(
            "POST /v1/dialogs",
            f"long lines of {kind}",
            lambda _, kind=kind: _json({"input": long_script(kind)}),
            speaks=kind != "<b>",  # it holds more tags than are spoken as a whole
        )
        for kind in ("words", "Japanese", "<b>")
    ),
    Largest(
        "POST /studio/projects/{project_id}/render",
        "20,000 lines",
        lambda _: _json({}),
        speaks=True,
    ),
)
"""Requests that cost more than their size says."""

LINE_CHARS = 99_000

LONG_LINES = {
    "words": "river morning window letter garden ",
    "sentences": "The river is quiet. Who is there? ",
    "(softly)": "(softly) ",
    "(and so)": "(and so he went) ",
    "[laughs]": "[laughs] ",
    "<b>": "<b>x</b> ",
    "Japanese": "日本語の文章を、ここに書くと、長い一行になります。",
    "Thai": "ไปกรุงเทพวันนี้และพรุ่งนี้ ",
    "emoji": "😀",
    "dates": "1/2/2026 ",
    "addresses": "https://example.com/a/b?c=d ",
    "names": "Anna: hello. ",
    "quotes": '"Yes," he said. ',
    "stars": "*x* ",
    "pauses": "The river is quiet, and nobody has come to the weir for a while. [pause:1s] ",
    "pause after each word": "a [pause:1s] ",
    "letters": "a b ",
    "one word": "x",
}
"""What the lines of a project hold again and again that has as much text as any, in few lines."""


def long_script(kind: str) -> str:
    """A script of 5 MB in lines of 99,000 characters."""
    piece = LONG_LINES[kind]
    text = (piece * (LINE_CHARS // len(piece))).strip()
    rows = min(50, 4_950_000 // len(text.encode()))
    return "\n".join(f"Person {row % 3}: {text}" for row in range(rows))


_PROJECT = "/studio/projects/{project_id}"
_TEXT_FORMATS = ("txt", "fountain", "srt", "vtt", "csv", "tsv", "json", "jsonl")


def pronunciations(piece: str) -> list[dict[str, str]]:
    """As many as a project has, among them each word, letter and sign of a text."""
    words = re.findall(r"\w+|[^\w\s()\[\]<>]", piece)
    named = dict.fromkeys(["river", *words, *(f"river{number}" for number in range(2_000))])
    return [{"written": word, "spoken": f"{word}e"} for word in list(named)[:2_000]]


def phrases(piece: str) -> list[dict[str, str]]:
    """Those of up to four words of a text, which begin at each of its words and overlap."""
    words = 2 * piece.split() + ["river"]
    ends = [(start, start + size) for start in range(len(words)) for size in (1, 2, 3, 4)]
    named = dict.fromkeys(" ".join(words[start:end])[:200] for start, end in ends)
    return [{"written": phrase, "spoken": f"{phrase[:190]}e"} for phrase in list(named)[:2_000]]


def long_requests(kind: str) -> Iterator[Largest]:
    """What is done with such a project, in this order, except that it is spoken."""
    text = long_script(kind)
    piece = LONG_LINES[kind].strip()
    entry = {"written": "river", "spoken": "reever"}
    entries = pronunciations(piece)
    word = {"find": piece, "with": f"{piece[1:] or 'y'} ", "match_case": True}
    yield Largest(_CREATE, "script", lambda _: _json({"text": text}))
    yield Largest(f"GET {_PROJECT}", "")
    yield Largest(f"POST {_PROJECT}/hints", "", lambda _: _json({}))
    yield Largest(_SCRIPT.replace("PUT", "GET"), "")
    yield Largest(_SCRIPT, "last word", _script(lambda: f"{text[:-1]}y"), sends_lines=True)
    yield _one("replaces", lambda _: {"op": "replace", **word})
    yield Largest(f"POST {_PROJECT}/undo", "", lambda scene: _json(_author(scene)), True)
    yield Largest(f"GET {_PROJECT}/reading", "")
    yield Largest(f"POST {_PROJECT}/pronunciations/reach", "", lambda _: _json({"entry": entry}))
    yield _one("pronounces", lambda _: {"op": "pronounce", "put": [entry]})
    yield Largest(f"POST {_PROJECT}/hints", "pronounced", lambda _: _json({}))
    yield Largest(_SCRIPT.replace("PUT", "GET"), "pronounced")
    yield _one("pronounces all", lambda _: {"op": "pronounce", "put": entries})
    yield Largest(
        f"POST {_PROJECT}/pronunciations/reach", "of all", lambda _: _json({"entry": entries[1]})
    )
    yield Largest(f"GET {_PROJECT}", "all pronounced")
    yield Largest(f"POST {_PROJECT}/hints", "all pronounced", lambda _: _json({}))
    yield Largest(f"GET {_PROJECT}/reading", "all pronounced")
    yield _one("pronounces phrases", lambda _: {"op": "pronounce", "put": phrases(piece)})
    yield Largest(f"POST {_PROJECT}/pronunciations/reach", "of phrases", lambda _: _json({}))
    yield Largest(f"POST {_PROJECT}/hints", "phrases pronounced", lambda _: _json({}))
    yield _one("language", lambda _: {"op": "settings", "fields": {"language": "de"}})
    yield Largest(f"POST {_PROJECT}/hints", "German", lambda _: _json({}))
    for suffix in (*_TEXT_FORMATS, "tableread"):
        query = {"params": {"format": suffix}}
        yield Largest(f"GET {_PROJECT}/export", suffix, lambda _, query=query: query)
    for suffix in (*_TEXT_FORMATS, "md", ""):
        yield _reading(text, suffix)


def _reading(text: str, suffix: str) -> Largest:
    """A file of a format, as large as it may be, or pasted text."""

    def build(_: Scene) -> dict[str, Any]:
        dialog = read_dialog_text(text).dialog
        written = text.encode()
        if suffix in _TEXT_FORMATS:
            written = export_dialog(dialog, Format(suffix))
            lines = len(dialog) * SOURCE_BYTES // max(SOURCE_BYTES, len(written))
            written = export_dialog(Dialog(dialog.lines[: max(1, lines)]), Format(suffix))
        return {"content": written, "params": {"name": suffix and f"scene.{suffix}"}}

    return Largest("POST /studio/projects/lines", suffix or "pasted", build)


_LARGEST: dict[Body, Build] = {
    Body.JSON: _full,
    Body.SOUND: _sound,
    Body.FORM: lambda _: {"data": {"username": "ida", "password": "x" * 9_900}},
    Body.QUERY: lambda _: {"params": {"takes": "x" * 20_000}},
}


def general(address: str) -> Largest:
    """The largest body that a route takes, or the longest query that it could look at."""
    body = CATALOGUE[address]
    return Largest(address, body.value, _LARGEST[body])
