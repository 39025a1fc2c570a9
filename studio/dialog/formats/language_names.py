"""Languages as people write them into a table."""

from __future__ import annotations

_CODES = {
    "ar": "arabic العربية",
    "da": "danish dansk",
    "de": "german deutsch",
    "el": "greek ελληνικά",
    "en": "english englisch anglais inglés",
    "es": "spanish español castellano spanisch",
    "fi": "finnish suomi",
    "fr": "french français französisch",
    "he": "hebrew עברית",
    "hi": "hindi हिन्दी",
    "it": "italian italiano italienisch",
    "ja": "japanese 日本語",
    "ko": "korean 한국어",
    "nl": "dutch nederlands",
    "no": "norwegian norsk",
    "pl": "polish polski",
    "pt": "portuguese português",
    "ru": "russian русский",
    "sv": "swedish svenska",
    "sw": "swahili kiswahili",
    "tr": "turkish türkçe",
    "uk": "ukrainian українська",
    "zh": "chinese mandarin 中文",
}
_BY_NAME = {name: code for code, names in _CODES.items() for name in names.split()}


def code_of(written: str) -> str:
    """The BCP-47 code of a language's name; anything else comes back as it is."""
    return _BY_NAME.get(written.strip().casefold(), written)
