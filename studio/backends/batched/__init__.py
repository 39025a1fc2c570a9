"""Many lines of Qwen3-TTS decoded together, one frame of all of them at a time."""
