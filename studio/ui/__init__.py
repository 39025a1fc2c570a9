"""The page: Gradio Blocks, put together from the HTML in `assets/page/html/`."""
