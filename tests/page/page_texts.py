"""The page's texts and their translations, and those of what the studio says.

    python tests/page/page_texts.py                   lists what a catalogue lacks or has too much
    python tests/page/page_texts.py --list            prints every text of the page, in English
    python tests/page/page_texts.py --update          takes out what no text needs any more
    python tests/page/page_texts.py --add de F        adds the translations of a JSON file
    python tests/page/page_texts.py --add server/de F adds those of what the studio says

A text of the page is what `core/texts.js` looks up: t`…` and the nouns of formatCount in the
scripts, and what the HTML says. `server_texts.py` reads those of the studio.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from server_texts import list_all_texts, server_texts

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from studio.audio.formats import FILE_FORMATS  # noqa: E402

PAGE = ROOT / "assets" / "page"
ATTRIBUTES = frozenset({"aria-label", "title", "placeholder", "alt", "data-empty"})
_LETTERS = re.compile(r"[^\W\d_]{2}")
_STRING = re.compile(r'"([^"]+)"')
_JINJA = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)


def texts_of_html(html: str) -> Iterator[str]:
    """What a template says, in the order of its places."""
    parser = _Reader()
    parser.feed(_JINJA.sub("", html))
    parser.close()
    return iter(parser.found)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_name = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # Keys of the keyboard and names of languages are the same everywhere.
        self._is_name = tag in {"kbd", "style", "script"} or "lang" in dict(attrs)
        self.found += [
            " ".join(said.split()) for name, said in attrs if name in ATTRIBUTES and said
        ]

    def handle_endtag(self, tag: str) -> None:
        self._is_name = False

    def handle_data(self, data: str) -> None:
        said = " ".join(data.split())
        if not self._is_name and _LETTERS.search(said):
            self.found.append(said)


def texts_of_script(code: str) -> Iterator[str]:
    """What a module says: its t`…`, and both forms of its counted nouns."""
    for match in re.finditer(r"(?<![\w.])t`", code):
        yield _template(code, match.end())[0]
    for match in re.finditer(r"\bformatCount\(", code):
        nouns = [_STRING.fullmatch(one) for one in _arguments(code, match.end())[1:]]
        forms = [noun[1] for noun in nouns if noun]
        yield from (f"{{0}} {form}" for form in [*forms, *(f"{one}s" for one in forms[:1])][:2])


def _arguments(code: str, at: int) -> list[str]:
    """The arguments of a call, as code, from the place after its parenthesis."""
    found, begin, depth = [], at, 0
    while depth or code[at] != ")":
        if code[at] == "`":
            at = _template(code, at + 1)[1]
            continue
        if code[at] in "\"'":
            at = code.index(code[at], at + 1)
        elif code[at] == "," and not depth:
            found.append(code[begin:at].strip())
            begin = at + 1
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(code[at], 0)
        at += 1
    return [*found, code[begin:at].strip()]


def _template(code: str, at: int) -> tuple[str, int]:
    """The key of the template that begins at a place, and where it ends."""
    key, values = "", 0
    while code[at] != "`":
        if code.startswith("${", at):
            key, values = f"{key}{{{values}}}", values + 1
            at = _after_value(code, at + 2)
        elif code[at] == "\\":
            key, at = key + {"n": "\n"}.get(code[at + 1], code[at + 1]), at + 2
        else:
            key, at = key + code[at], at + 1
    return key, at + 1


def _after_value(code: str, at: int) -> int:
    depth = 1
    while depth:
        if code[at] == "`":
            at = _template(code, at + 1)[1]
            continue
        if code[at] in "\"'":
            at = code.index(code[at], at + 1)
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
    return at


def page_texts() -> dict[str, str]:
    """Every text of the page, with a file that says it."""
    found: dict[str, str] = {}
    for path in sorted(PAGE.rglob("*.html")):
        for said in texts_of_html(path.read_text(encoding="utf-8")):
            found.setdefault(said, path.name)
    for one in FILE_FORMATS:  # a name of letters is the same everywhere
        if "," in one.encoding.title:
            found.setdefault(one.encoding.title, "formats.py")
    for path in sorted(PAGE.rglob("*.js")):
        for said in texts_of_script(path.read_text(encoding="utf-8")):
            found.setdefault(said, path.name)
    return found


def read_catalogue(name: str) -> dict[str, str]:
    """Translations by English text: "de" has the page's, "server/de" the studio's."""
    path = PAGE / "texts" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_catalogue(name: str, texts: dict[str, str]) -> None:
    """Write a catalogue in the order of its texts."""
    path = PAGE / "texts" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    held = {text: texts[text] for text in _known(name) if text in texts}
    path.write_text(json.dumps(held, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _known(name: str) -> list[str]:
    """The texts that a catalogue may have."""
    if "/" not in name:
        return [*page_texts()]
    return [*server_texts(), *sorted(list_all_texts() - server_texts().keys())]


def languages() -> list[str]:
    """The languages that there are catalogues of."""
    return sorted(path.stem for path in (PAGE / "texts").glob("*.json"))


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--add", nargs=2, metavar=("CATALOGUE", "FILE"))
    asked = parser.parse_args()
    if asked.list:
        print(
            "\n".join(
                f"{place}\t{json.dumps(text, ensure_ascii=False)}"
                for text, place in page_texts().items()
            )
        )
    elif asked.add:
        name, file = asked.add
        new = json.loads(Path(file).read_text(encoding="utf-8"))
        write_catalogue(name, read_catalogue(name) | new)
    elif asked.update:
        for name in _names():
            write_catalogue(name, read_catalogue(name))
    else:
        for name in _names():
            needed, there = (server_texts() if "/" in name else page_texts()), read_catalogue(name)
            lacks = [f"{name}\tlacks\t{text}" for text in needed if text not in there]
            extra = [f"{name}\thas\t{text}" for text in there.keys() - set(_known(name))]
            print("\n".join([*lacks, *extra]), end="\n" if lacks or extra else "")


def _names() -> list[str]:
    return [*languages(), *(f"server/{one}" for one in languages())]


if __name__ == "__main__":
    main()
