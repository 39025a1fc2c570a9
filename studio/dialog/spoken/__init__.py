"""Text as a voice says it: numbers, money, dates, units, abbreviations and addresses as words."""

from studio.dialog.spoken.saying import Place, Spoken, say, tell_language

__all__ = ["Place", "Spoken", "say", "tell_language"]
