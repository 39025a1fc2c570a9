"""Qwen3-TTS: cloned, preset and described voices, one line at a time or many in one pass."""
