"""The style sheets: short, with their colours in one place, and about things that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "assets" / "page"
PARTS = ROOT / "studio" / "ui" / "blocks.py"
SHEETS = sorted(PAGE.glob("styles/*.css"))
LONGEST = 300
OF_GRADIO = {"gradio-container", "html-container", "main", "fillable", "wrap", "contain", "column"}
OF_GRADIO |= {"prose", "dark", "divider"}

pytestmark = pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)


def _rules(sheet: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)


def _named(rules: str) -> set[str]:
    selectors = "\n".join(re.findall(r"([^{}]+)\{", rules))
    return set(re.findall(r"[.#]([a-zA-Z_][\w-]*)", re.sub(r'"[^"]*"', "", selectors)))


def test_it_can_be_read_in_one_sitting(sheet):
    assert len(sheet.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_colours_are_named_in_one_place(sheet):
    if sheet.name == "colours.css":
        return
    rules = re.sub(r"[^{};]+\{", "{", _rules(sheet))
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl)a?\(", rules) == []


def test_sizes_of_text_are_named_in_one_place(sheet):
    fonts = re.findall(r"[{;\s]font(?:-size)?:\s*([^;]+);", _rules(sheet))
    assert [font for font in fonts if re.search(r"(?<!/)\b[1-9][\d.]*(?:px|r?em|pt)\b", font)] == []


def test_every_token_it_takes_is_given(sheet):
    given = "\n".join(path.read_text(encoding="utf-8") for path in SHEETS)
    # A speaker's colour is set on its row.
    missing = set(re.findall(r"var\((--[\w-]+)", _rules(sheet))) - {"--colour"}
    assert {name for name in missing if not re.search(rf"{name}:", given)} == set()


def test_it_speaks_only_of_what_the_page_has(sheet):
    sources = [*PAGE.rglob("*.js"), *PAGE.glob("html/*.html"), PARTS]
    page = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert {name for name in _named(_rules(sheet)) - OF_GRADIO if name not in page} == set()
