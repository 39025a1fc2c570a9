"""The page: its parts in the order a person meets them."""

from __future__ import annotations

from typing import Any

import gradio as gr

from studio.ui import editor, line, model, player, speakers
from studio.ui.theme import theme

_STYLES = (
    "colours",
    "window",
    "controls",
    "fields",
    "header",
    "project_menu",
    "editor",
    "line_rows",
    "pauses",
    "goto_bar",
    "line_panel",
    "cast_panel",
    "pronunciations",
    "library_panel",
    "sheet",
    "sample_panel",
    "player_panel",
    "sound_form",
    "medium",
    "narrow",
    "touch",
)
"""Style sheets in the order in which they may override each other."""

_HEAD = "\n".join(
    (
        '<meta name="color-scheme" content="light dark">',
        *(
            f'<link rel="stylesheet" href="studio/assets/page/styles/{name}.css">'
            for name in _STYLES
        ),
        '<script type="module" src="studio/assets/page/main.js"></script>',
    )
)


def create_ui(*, opening_script: str) -> gr.Blocks:
    """List the parts of the page.

    Args:
        opening_script: The first project of a workspace that has none.
    """
    with gr.Blocks(title="Tableread", analytics_enabled=False, fill_width=True) as page:
        model.build()
        with gr.Row(elem_id="workbench"):
            editor.build(opening_script)
            line.build()
            with gr.Column(elem_id="cast-column"):
                speakers.build()
        player.build()
    return page


def launch_look() -> dict[str, Any]:
    """Arguments for `launch()` that make the page look and load as it should.

    Addresses are relative to the page's base, so that a root path or a share link works.
    """
    return {
        "theme": theme(),
        "head": _HEAD,
        "footer_links": [],
        "run_history": False,
        "ssr_mode": False,
        "enable_monitoring": False,
    }
