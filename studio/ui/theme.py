"""The look of Gradio's own parts; colours come from colours.css, so both sides change together."""

from __future__ import annotations

from inspect import signature

import gradio as gr

SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

PAPER = "#f7f5f0"
PAPER_DARK = "#14161a"
INK = "#1d2126"
INK_DARK = "#e9e6df"


def theme() -> gr.themes.Base:
    """Make the theme; system fonts only, since the machine may have no network."""
    look = gr.themes.Base(
        primary_hue=gr.themes.colors.teal,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_md,
        font=SANS,
        font_mono=MONO,
    )
    return look.set(**_page_colours(), **_controls())


def _page_colours() -> dict[str, str]:
    # Plain values: Gradio paints them before colours.css has arrived.
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
