"""Scripts, dialogs and plans: pure text. No audio, no torch, no gradio."""
