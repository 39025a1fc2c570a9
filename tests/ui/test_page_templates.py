"""The page's HTML files: all used, filled safely, with icons that exist."""

import re
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from studio.ui.blocks import create_ui, icon, render_template

HTML = Path(__file__).resolve().parents[2] / "assets" / "page" / "html"


def test_what_is_put_into_a_template_is_escaped():
    filled = render_template("sound_form.html", min_lufs="<b>", max_lufs='"x"')
    assert "<b>" not in filled
    assert 'max="&#34;x&#34;"' in filled


def test_a_value_that_is_missing_is_a_fault():
    with pytest.raises(UndefinedError):
        render_template("sound_form.html", min_lufs="-30")


def test_an_icon_that_is_not_drawn_is_a_fault():
    with pytest.raises(AssertionError):
        icon("unicorn")


def test_the_page_holds_every_file_and_every_id_once():
    page = create_ui()
    html = "\n".join(getattr(block, "html_template", "") for block in page.blocks.values())
    ids = re.findall(r'\bid="([\w-]+)"', html)
    assert len(ids) == len(set(ids))
    for path in HTML.iterdir():
        own = re.findall(r'\bid="([\w-]+)"', path.read_text(encoding="utf-8"))
        assert own, path.name
        assert set(own) <= set(ids), path.name
