"""Chatterbox: English, multilingual and turbo, and voice conversion."""
