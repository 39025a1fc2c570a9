"""Quality of takes: checks, baselines of voices, and expected durations. No torch, no gradio."""
