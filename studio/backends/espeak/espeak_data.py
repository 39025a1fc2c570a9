"""Where eSpeak NG's package lies, and what its data say of languages."""

from __future__ import annotations

import importlib.util
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studio.errors import ModelUnavailable

PACKAGE = "espeakng-loader"
REMEDY = f"Install it with: pip install {PACKAGE}"

_LISTED_CODE = re.compile(r"[a-z]{2,3}(-[A-Z]{2})?")

_DEFAULT_CODE = "en-US"

# The language of most text in a script; scripts that many languages share, Latin first of all,
# say too little and get the default.
_LANGUAGE_OF_SCRIPT = {
    "ARABIC": "ar", "ARMENIAN": "hy", "BENGALI": "bn", "CJK": "cmn", "CYRILLIC": "ru",
    "DEVANAGARI": "hi", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el", "GUJARATI": "gu",
    "GURMUKHI": "pa", "HANGUL": "ko", "HEBREW": "he", "HIRAGANA": "ja", "KANNADA": "kn",
    "KATAKANA": "ja", "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si",
    "TAMIL": "ta", "TELUGU": "te", "THAI": "th",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Package:
    """The library file and the folder that holds `espeak-ng-data`."""

    library: Path
    folder: Path


@dataclass(frozen=True, slots=True)
class Language:
    """One language that eSpeak NG reads; `voice_file` is below its `lang` folder."""

    code: str
    name: str
    voice_file: str


class Languages:
    """eSpeak NG's languages, found by BCP-47 code."""

    def __init__(self, data: Path) -> None:
        """Read the voice files below `data` / "lang" (about 140 small ones, 10 ms)."""
        self._by_code: dict[str, tuple[int, Language]] = {}
        for file in sorted((data / "lang").rglob("*")):
            if file.is_file():
                self._add(file, data)
        american = self._by_code.get(_DEFAULT_CODE.lower())
        if american:  # plain "en" means what a line without a language gets
            self._by_code["en"] = american

    def names_by_code(self) -> dict[str, str]:
        """Codes worth offering, each with its language's English name, in order of the names."""
        cased = {_format_code(code): found.name for code, (_, found) in self._by_code.items()}
        own = {found.code for _, found in self._by_code.values()}
        offered = {
            code: name
            for code, name in cased.items()
            if code in own or _LISTED_CODE.fullmatch(code)
        }
        return dict(sorted(offered.items(), key=lambda item: (item[1], item[0])))

    def find(self, code: str) -> Language | None:
        """The language of a code, or of its longest known beginning (RFC 4647 look-up)."""
        parts = code.replace("_", "-").casefold().split("-")
        for length in range(len(parts), 0, -1):
            found = self._by_code.get("-".join(parts[:length]))
            if found:
                return found[1]
        return None

    def _add(self, file: Path, data: Path) -> None:
        # Two of the files carry comments in an old Chinese encoding.
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        dictionary = _value(lines, "dictionary", file.name.partition("-")[0])
        if not (data / f"{dictionary}_dict").is_file():
            return  # announced by eSpeak NG, but silent: Faroese and Karakalpak in 1.52
        name = _value(lines, "name", file.name).split("//")[0].strip()
        voice_file = file.relative_to(data / "lang").as_posix()
        language = Language(_format_code(file.name), name, voice_file)
        for code, priority in _codes(lines):
            key = code.casefold()
            if key not in self._by_code or priority < self._by_code[key][0]:
                self._by_code[key] = (priority, language)
        self._by_code[file.name.casefold()] = (0, language)


def find_package() -> Package:
    """Find the package without loading the library.

    Raises:
        ModelUnavailable: It isn't installed, or lacks its library or data.
    """
    if importlib.util.find_spec("espeakng_loader") is None:
        raise ModelUnavailable(f"The package {PACKAGE} is missing. {REMEDY}")
    import espeakng_loader

    library = Path(espeakng_loader.get_library_path())
    folder = library.parent
    if not library.is_file() or not (folder / "espeak-ng-data" / "phontab").is_file():
        raise ModelUnavailable(
            f"The package {PACKAGE} in {folder} is incomplete. "
            f"Install it anew with: pip install --force-reinstall {PACKAGE}"
        )
    return Package(library, folder)


def language_of_text(text: str) -> str:
    """The code for text whose language nobody gave, by the script of most of its letters.

    Japanese mixes scripts, so any kana decides for it; Latin letters and mixed scripts with
    several languages get the script's most spoken one, which may be wrong: give the language.
    """
    scripts = Counter(_scripts(text))
    if scripts["HIRAGANA"] + scripts["KATAKANA"] > 0 and scripts["CJK"] > 0:
        return "ja"
    most = max(scripts, key=lambda script: scripts[script], default="LATIN")
    return _LANGUAGE_OF_SCRIPT.get(most, _DEFAULT_CODE)


def _scripts(text: str) -> Iterator[str]:
    for char in text:
        if char.isalpha():
            yield unicodedata.name(char, "").partition(" ")[0]


def _value(lines: list[str], key: str, default: str) -> str:
    return next((line[len(key) + 1 :] for line in lines if line.startswith(f"{key} ")), default)


def _codes(lines: list[str]) -> Iterator[tuple[str, int]]:
    for line in lines:
        if line.startswith("language "):
            code, *priority = line.split()[1:3]
            yield code, int(priority[0]) if priority and priority[0].isdigit() else 5


def _format_code(code: str) -> str:
    """A code as BCP-47 writes it: de, pt-BR, es-419, fa-Latn, en-GB-x-rp."""
    public, private_mark, private = code.lower().partition("-x-")
    first, *rest = public.split("-")
    return "-".join([first, *(_format_code_part(part) for part in rest)]) + private_mark + private


def _format_code_part(part: str) -> str:
    if len(part) == 2:
        return part.upper()
    return part.title() if len(part) == 4 else part
