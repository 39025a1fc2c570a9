"""Text as a voice says it: numbers, money, dates, units, abbreviations and addresses as words."""

from studio.dialog.spoken.languages import read_table
from studio.dialog.spoken.saying import Spoken, say, tell_language

__all__ = ["Spoken", "read_table", "say", "tell_language"]
