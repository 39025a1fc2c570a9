"""The page: its parts in the order a person meets them; their HTML is in `assets/page/html/`."""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.audio.mastering import MAX_LUFS, MIN_LUFS
from studio.ui.page_templates import render_template
from studio.ui.theme import theme

# The opening script travels as a prop, never inside the template: Gradio executes templates.
_HAND_OVER = "element.dataset.openingScript = props.opening_script;"


def create_ui(*, opening_script: str) -> gr.Blocks:
    """List the parts of the page; the modules of `assets/page/` fill them.

    Args:
        opening_script: The first project of a workspace that has none.
    """
    with gr.Blocks(title="Tableread", analytics_enabled=False, fill_width=True) as page:
        _part("header.html", "part-model")
        with gr.Row(elem_id="workbench"):
            _part("views.html", "part-views")
            _part("lines.html", "part-lines")
            gr.HTML(
                html_template=render_template("script.html"),
                js_on_load=_HAND_OVER,
                apply_default_css=False,
                elem_id="part-script",
                opening_script=opening_script,
            )
            _part("line_panel.html", "part-line")
            with gr.Column(elem_id="cast-column"):
                _part("cast_panel.html", "part-cast")
        loudness = {"min_lufs": f"{MIN_LUFS:.0f}", "max_lufs": f"{MAX_LUFS:.0f}"}
        _part("player.html", "part-player", **loudness)
    return page


def launch_look(head: str) -> dict[str, Any]:
    """Arguments for `launch()` that make the page look and load as it should.

    Args:
        head: HTML that brings the page's styles and scripts.
    """
    return {
        "theme": theme(),
        "head": head,
        "footer_links": [],
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
