"""Chatterbox with many lines in one pass: T3 on the common decoding core, then S3Gen."""
