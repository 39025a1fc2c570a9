"""Sample checks and the speaker library on disk. No torch, no gradio."""
