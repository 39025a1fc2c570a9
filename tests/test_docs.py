"""The documentation holds together: links, length, variables, and what is generated from code."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

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


PATH = re.compile(r"\b(?:studio|benchmarks|assets|docs)/[\w./-]*\w\.\w+")
MODULE = re.compile(r"\bstudio(?:\.\w+)+")
ROW = re.compile(r"^\|([^|]+)\|[^|]+\|((?: *`[\w/]+/`,?)+) *\|$", re.MULTILINE)
NAME = re.compile(r"[A-Z]\w*[a-z]\w*|_?[a-z]+(?:_[a-z]+)+")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_and_modules_that_are_named_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not [path for path in PATH.findall(text) if not (ROOT / path).exists()]
    assert not [name for name in MODULE.findall(text) if not is_module(name)]


def is_module(name: str) -> bool:
    """Whether a dotted name is a package or a module, or something in a module."""
    path = ROOT.joinpath(*name.split("."))
    return (
        path.is_dir()
        or path.with_suffix(".py").is_file()
        or path.parent.with_suffix(".py").is_file()
    )


def test_names_of_the_glossary_are_where_it_says() -> None:
    """Our words in the first column are in the code of the folders in the third."""
    rows = ROW.findall((ROOT / "docs" / "develop" / "glossary.md").read_text("utf-8"))
    assert len(rows) > 50
    missing = []
    for ours, where in rows:
        folders = [
            ROOT / folder if folder.startswith("assets") else ROOT / "studio" / folder
            for folder in re.findall(r"`([^`]+)`", where)
        ]
        assert all(folder.is_dir() for folder in folders), where
        found = (path for folder in folders for path in folder.rglob("*"))
        files = (path for path in found if path.parent.name != "__pycache__")
        code = "\n".join(path.read_text("utf-8") for path in files if path.is_file())
        names = (name for span in re.findall(r"`([^`]+)`", ours) for name in NAME.findall(span))
        missing += [name for name in names if not re.search(rf"\b{name}\b", code)]
    assert not missing


def test_files_of_the_engines_table_exist() -> None:
    text = (ROOT / "docs" / "develop" / "engine.md").read_text("utf-8")
    names = set(re.findall(r"`((?:\w+/)*test_\w+\.py)", text))
    assert names
    assert not [name for name in names if not (ROOT / "tests" / "backends" / name).is_file()]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_blocks_are_as_the_code_has_them(generator: ModuleType) -> None:
    stale = [
        path.name
        for path, blocks in generator.pages().items()
        if generator.written(path.read_text("utf-8"), blocks) != path.read_text("utf-8")
    ]
    assert not stale, "run: python docs/generate.py"


def test_every_marked_block_is_generated(generator: ModuleType) -> None:
    marked = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"<!-- generated: (\w+) -->", page.read_text("utf-8"))
    }
    assert marked == {(path, name) for path, names in generator.pages().items() for name in names}


def test_a_generated_block_replaces_what_stood_there(generator: ModuleType) -> None:
    page = "a\n<!-- generated: t -->\nold\n<!-- end -->\nb"
    table = generator.table(("x", "y"), [("1|2", "3")])
    new = generator.written(page, {"t": lambda: table})
    assert new == (
        "a\n<!-- generated: t -->\n\n| x | y |\n|---|---|\n| 1\\|2 | 3 |\n\n<!-- end -->\nb"
    )
    assert generator.written(new, {"t": lambda: table}) == new
    with pytest.raises(ValueError, match="'u' stands there 0 times"):
        generator.written(page, {"u": lambda: table})


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
