"""Voices: the speaker library, its samples and their checks, and the cast. No torch, no gradio."""
