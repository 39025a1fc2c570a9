"""Chatterbox: English, multilingual and turbo, many lines in one pass, and voice conversion."""
