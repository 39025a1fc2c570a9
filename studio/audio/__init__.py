"""Clips, files and the timeline. No torch, no gradio."""
