"""The page's handlers and files fit what Gradio and the browser do with them."""

import inspect
import re
import shutil
import subprocess
from pathlib import Path

import gradio as gr
import pytest

from studio.server.page_assets import PageAssets
from studio.ui.blocks import create_ui, launch_look

PAGE = Path(__file__).resolve().parents[2] / "assets" / "page"
ASSETS = PageAssets(PAGE.parent)
SCRIPTS = sorted(PAGE.rglob("*.js"))


@pytest.fixture
def page() -> gr.Blocks:
    return create_ui()


def test_every_handler_takes_exactly_what_it_is_wired_to(page):
    for wired in (wired for wired in page.fns.values() if wired.fn is not None):
        parameters = inspect.signature(wired.fn).parameters.values()
        assert all(one.kind is one.KEYWORD_ONLY for one in parameters), wired.name
        assert {one.name for one in parameters} == set(wired.input_parameter_names), wired.name


def test_no_handler_is_offered_to_the_outside(page):
    assert {wired.api_visibility for wired in page.fns.values()} <= {"private"}


def test_templates_hold_nothing_that_gradio_would_execute(page):
    for block in page.blocks.values():
        if isinstance(block, gr.HTML):
            assert not re.search(r"\$\{|\{\{|`", block.html_template)


def test_every_style_sheet_is_sent_once():
    joined = ASSETS.joined_styles()
    sheets = [path.read_text(encoding="utf-8") for path in PAGE.glob("styles/*.css")]
    assert all(sheet in joined for sheet in sheets)
    assert len(joined) == sum(map(len, sheets)) + len(sheets) - 1


def test_launch_takes_the_look(page):
    assert set(launch_look(ASSETS.head)) <= set(inspect.signature(page.launch).parameters)


def test_the_look_names_no_other_host():
    sources = [ASSETS.head, ASSETS.preload, launch_look(ASSETS.head)["theme"]._get_theme_css()]
    sources += [path.read_text(encoding="utf-8") for path in PAGE.rglob("*.*")]
    foreign = r"""https?://(?!www\.w3\.org/2000/svg)|@import (?!\{)|url\((?!["']?data:)"""
    assert not any(re.search(foreign, source) for source in sources)


def test_page_scripts_write_text_and_never_markup():
    for script in SCRIPTS:
        banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
        assert not re.search(banned, script.read_text(encoding="utf-8")), script.name


def test_no_two_modules_show_a_notice_of_one_name():
    shown = [
        (name, path.name)
        for path in SCRIPTS
        for name in set(re.findall(r"[nN]otice\(\"([\w-]+)\", \{\s*\w", path.read_text("utf-8")))
    ]
    names = [name for name, _ in shown]
    assert len(names) > 10
    assert sorted(names) == sorted(set(names)), sorted(shown)


def test_page_modules_import_only_names_that_exist():
    exports = {path: set(_exported(path.read_text(encoding="utf-8"))) for path in SCRIPTS}
    for path in SCRIPTS:
        text = path.read_text(encoding="utf-8")
        for names, source in re.findall(r"(?m)^import \{([^}]+)\} from \"([\w./]+)\"", text):
            wanted = {name.strip() for name in names.split(",") if name.strip()}
            assert wanted <= exports[(path.parent / source).resolve()], f"{path.name}: {source}"


def _exported(text: str) -> list[str]:
    return re.findall(r"export (?:async )?(?:function|class|const) (\w+)", text)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_page_scripts_are_well_formed(script, tmp_path):
    module = tmp_path / f"{script.stem}.mjs"
    module.write_bytes(script.read_bytes())
    checked = subprocess.run(["node", "--check", module], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr
