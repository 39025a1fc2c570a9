"""The documentation holds together: links, length, and the variables that it lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CONFIGURATION = ROOT / "docs" / "operate" / "configuration.md"

MOST_README_LINES = 200
VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
OURS = re.compile(r"(TABLEREAD|TTS|MODEL|CHATTERBOX|QWEN3_TTS|PKUSEG|SPACES?|GRADIO_SERVER)_\w+")
READ_BY_LIBRARIES = {"HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE", "HF_TOKEN"}
INTERNAL = {
    "TABLEREAD_MADE_VENV_S",  # from the launcher to the process that it starts
}


def prose(page: Path) -> str:
    """A page without blocks of code; brackets inside spans of code are no links, so they go."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`([^`\n]*)`", lambda span: re.sub(r"[\[\]()]", "", span[1]), text)


def links(page: Path) -> Iterator[str]:
    """Where a page's links go, those to other sites left out."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z][a-z+.-]*:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE):
        written = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = base = re.sub(r"[^\w\- ]", "", written).strip().replace(" ", "-")
        number = 0
        while slug in found:
            number += 1
            slug = f"{base}-{number}"
        found.add(slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_anchor_resolves(page: Path) -> None:
    assert not [target for target in links(page) if not resolves(target, page)]


def resolves(target: str, page: Path) -> bool:
    path, _, anchor = target.partition("#")
    there = (page.parent / path).resolve() if path else page
    if not (there.is_relative_to(ROOT) and there.exists()):
        return False
    return not anchor or anchor in anchors(there)


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    reached, ahead = set(), [README]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        there = [(page.parent / link.partition("#")[0]).resolve() for link in links(page)]
        ahead += [page for page in there if page.suffix == ".md" and page.is_file()]
    assert not set(PAGES) - reached


def test_the_readme_is_short() -> None:
    assert len(README.read_text("utf-8").splitlines()) <= MOST_README_LINES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    """Tests that stand behind a statement, and the launcher's own files."""
    named = re.findall(r"\btests/[\w/]+\.py\b", page.read_text("utf-8"))
    assert not [path for path in named if not (ROOT / path).is_file()]


def test_files_of_the_engines_table_exist() -> None:
    text = (ROOT / "docs" / "develop" / "engine.md").read_text("utf-8")
    names = set(re.findall(r"`(test_\w+\.py)", text))
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert names
    assert not names - there


def documented() -> set[str]:
    """Variables in the first column of the tables."""
    rows = re.findall(r"^\| (`[^|]*`) \|", CONFIGURATION.read_text("utf-8"), re.MULTILINE)
    return {name for row in rows for name in VARIABLE.findall(row)}


def named_in(*files: Path) -> set[str]:
    """Every string of the code that is written like a variable of the environment."""
    quoted = re.compile(rf"""["']({VARIABLE.pattern})["']""")
    return {name for file in files for name in quoted.findall(file.read_text("utf-8"))}


PRODUCT = [ROOT / "launch.py", *(ROOT / "studio").rglob("*.py")]
TESTS = [file for file in (ROOT / "tests").rglob("*.py") if file != Path(__file__)]


def test_every_documented_variable_is_read_by_the_code() -> None:
    names = documented()
    assert len(names) > 30
    assert not names - named_in(*PRODUCT, *TESTS) - READ_BY_LIBRARIES


def test_every_variable_of_the_code_is_documented() -> None:
    names = {name for name in named_in(*PRODUCT) if OURS.fullmatch(name)}
    assert not names - INTERNAL - documented()
