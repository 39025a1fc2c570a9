"""The page: Gradio Blocks, assembled from the HTML in `assets/page/html/`."""
