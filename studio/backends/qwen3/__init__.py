"""Qwen3-TTS: cloned, preset and described voices."""
