"""The peer of `bench page`: an editor of dialog made of Gradio's own components alone."""

from __future__ import annotations

from functools import partial

# The peer is Gradio as it comes; it is no part of the page, so it stands with its benchmark.
import gradio as gr

from benchmarks.page_timing import NAMES, line_text


def plain_editor(lines: int) -> gr.Blocks:
    """Rows of a name, a text and three buttons, drawn by `gr.render` from a list of pairs."""
    with gr.Blocks(analytics_enabled=False) as page:
        dialog = gr.State([(NAMES[n % 4], line_text(n)) for n in range(lines)])

        @gr.render(inputs=dialog)  # type: ignore[untyped-decorator]
        def draw(rows: list[tuple[str, str]]) -> None:
            for at, (name, text) in enumerate(rows):
                with gr.Row():
                    gr.Dropdown(NAMES, value=name, show_label=False, scale=1)
                    field = gr.Textbox(
                        text, show_label=False, interactive=True, elem_classes="plain-text"
                    )
                    # Not `change`: a redraw changes every field after the row, and each would ask.
                    field.input(partial(_typed, at), [dialog, field], None, show_progress="hidden")
                    for label, change in _CHANGES.items():
                        button = gr.Button(label, scale=1, elem_classes=f"plain-{label}")
                        button.click(partial(change, at), dialog, dialog, show_progress="hidden")

    return page


def _typed(at: int, rows: list[tuple[str, str]], text: str) -> None:
    rows[at] = (rows[at][0], text)


def _insert(at: int, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [*rows[: at + 1], (NAMES[0], f"New at {len(rows)}."), *rows[at + 1 :]]


def _delete(at: int, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return rows[:at] + rows[at + 1 :]


def _move(at: int, rows: list[tuple[str, str]]) -> list[tuple[str, str]]:
    others = rows[:at] + rows[at + 1 :]
    return [*others[: at + 1], rows[at], *others[at + 1 :]]


_CHANGES = {"insert": _insert, "delete": _delete, "move": _move}
