"""The page: its parts from top to bottom, and its theme; the HTML is in `assets/page/html/`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import gradio as gr
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from studio.audio.formats import FILE_FORMATS
from studio.audio.mastering import MAX_LUFS, MIN_LUFS
from studio.storage.workspace import ASSETS

SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

PAPER = "#f7f5f0"
PAPER_DARK = "#14161a"
INK = "#1d2126"
INK_DARK = "#e9e6df"


def theme() -> gr.themes.Base:
    """Build the theme, with system fonts only, since the machine may have no network."""
    look = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        font=SANS,
        font_mono=MONO,
    )
    return look.set(**_page_colours(), **_controls())


def _page_colours() -> dict[str, str]:
    # Literal values, since Gradio paints these before colours.css is loaded.
    return {
        "body_background_fill": PAPER,
        "body_background_fill_dark": PAPER_DARK,
        "body_text_color": INK,
        "body_text_color_dark": INK_DARK,
    }


def _controls() -> dict[str, str]:
    both = {
        "block_background_fill": "var(--surface)",
        "block_border_color": "var(--rule)",
        "block_border_width": "1px",
        "block_label_background_fill": "var(--surface)",
        "block_label_text_color": "var(--ink-soft)",
        "block_title_text_color": "var(--ink-soft)",
        "block_shadow": "none",
        "border_color_primary": "var(--rule)",
        "background_fill_primary": "var(--surface)",
        "background_fill_secondary": "var(--paper)",
        "body_text_color_subdued": "var(--ink-soft)",
        "input_background_fill": "var(--field)",
        "input_background_fill_focus": "var(--field)",
        "input_border_width": "1px",
        "input_border_color": "var(--rule-strong)",
        "input_border_color_focus": "var(--accent)",
        "input_placeholder_color": "var(--ink-soft)",
        "button_primary_background_fill": "var(--accent)",
        "button_primary_background_fill_hover": "var(--accent-strong)",
        "button_primary_text_color": "var(--on-accent)",
        "button_primary_text_color_hover": "var(--on-accent)",
        "button_primary_border_color": "var(--accent)",
        "button_secondary_background_fill": "var(--surface)",
        "button_secondary_background_fill_hover": "var(--hover)",
        "button_secondary_text_color": "var(--ink)",
        "button_secondary_border_color": "var(--rule-strong)",
        "color_accent": "var(--accent)",
        "color_accent_soft": "var(--accent-soft)",
    }
    known = signature(gr.themes.Base.set).parameters
    dark = {f"{name}_dark": value for name, value in both.items() if f"{name}_dark" in known}
    return both | dark


_FOLDER = ASSETS / "page" / "html"
_SPRITE = "icons.svg"


def render_template(name: str, **values: object) -> str:
    """Render a template of the page, which may include others; HTML in its variables is escaped."""
    return _environment().get_template(name).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined
    )
    environment.globals |= {"icon": icon, "audio_formats": FILE_FORMATS}
    return environment


def icon(name: str) -> Markup:
    """Refer to an icon of the sprite; the control around it has the name for screen readers."""
    assert name in _icon_names(), f"no icon is called {name}"
    return Markup('<svg class="icon" aria-hidden="true"><use href="#icon-{}"></use></svg>').format(
        name
    )


@cache
def _icon_names() -> frozenset[str]:
    sprite = (_FOLDER / _SPRITE).read_text(encoding="utf-8")
    return frozenset(re.findall(r'<symbol id="icon-(\w+)"', sprite))


def create_ui(functions: Callable[[], None] | None = None) -> gr.Blocks:
    """Build the page's parts, which the modules of `assets/page/` fill.

    `functions` registers functions for Gradio's client; here, as Gradio makes a whole server each
    time that its Blocks are left.
    """
    with gr.Blocks(title="Tableread", analytics_enabled=False, fill_width=True) as page:
        _part("header.html", "part-model")
        with gr.Row(elem_id="workbench"):
            _part("views.html", "part-views")
            _part("lines.html", "part-lines")
            _part("script.html", "part-script")
            _part("line_panel.html", "part-line")
            with gr.Column(elem_id="cast-column"):
                _part("cast_panel.html", "part-cast")
        loudness = {"min_lufs": f"{MIN_LUFS:.0f}", "max_lufs": f"{MAX_LUFS:.0f}"}
        _part("player.html", "part-player", **loudness)
        if functions is not None:
            functions()
    return page


def launch_look(head: str) -> dict[str, Any]:
    """Arguments of Gradio's `launch()`: the theme, and the HTML that loads styles and scripts."""
    return {
        "theme": theme(),
        "head": head,
        "footer_links": ["api"],
        "run_history": False,
        "ssr_mode": False,
        "enable_monitoring": False,
    }


def _part(template: str, elem_id: str, **values: object) -> gr.HTML:
    return gr.HTML(
        html_template=render_template(template, **values),
        js_on_load=None,
        apply_default_css=False,
        elem_id=elem_id,
    )
