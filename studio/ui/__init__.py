"""The page: Gradio Blocks, one file per part; its browser code is in `assets/page/`."""
