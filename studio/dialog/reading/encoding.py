"""Decodes bytes: UTF-8, UTF-16 and UTF-32 with or without a BOM, and older code pages."""

from __future__ import annotations

import codecs

import charset_normalizer
import regex

from studio.dialog.model import MAX_LINES, MAX_SCRIPT_BYTES
from studio.dialog.reading.building import ImportNotices
from studio.dialog.reading_limits import MAX_TEXT_LINES
from studio.errors import ScriptError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose BOM it starts with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SIGNATURES = {
    b"%PDF-": (
        "“{}” is a PDF, not a text file. Copy its text into the editor, or save it as plain text "
        "and import that."
    ),
    b"{\\rtf": (
        "“{}” is formatted text (RTF), not a text file. Save it as plain text (UTF-8) and import "
        "that."
    ),
    b"PK\x03\x04": (
        "“{}” is an archive, or a document of another kind than Word's, OpenDocument's or EPUB's. "
        "Save it as plain text (UTF-8) and import that."
    ),
    b"\xd0\xcf\x11\xe0": (
        "“{}” is an old Office document. Save it as DOCX, XLSX or plain text (UTF-8) and import "
        "that."
    ),
}
_XML = regex.compile(rb"\s*<\?xml\b", regex.IGNORECASE)
_XML_OF_TURNS = regex.compile(
    rb"<(?:speaker|character)>|\s(?:speaker|character|who)=", regex.IGNORECASE
)
_MOST_HEAD = 20_000
_CONTROLS = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_WESTERN_SIGNS = frozenset("«»“”‘’„‚‹›–—…€£°·¿¡§©®™•\xa0´½¼¾²³")
_WESTERN_LETTERS = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüÿßœÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜŸŒ")
_SIGN_IN_A_WORD = regex.compile(r"\p{L}[£¿¡²³¼½¾§©®°·]\p{L}|£\p{L}")
_MAX_WESTERN_SHARE = 0.4
_CODE_PAGES = [
    "cp1250", "cp1251", "cp932", "gb18030", "big5", "cp949", "cp1253", "cp1254", "cp1255",
    "cp1256", "cp1257", "koi8_r", "mac_roman",
]  # fmt: skip
_FOREIGN_LINE = (
    "This line is not UTF-8 like the rest; it is read as Windows-1252. Check its accents."
)
_GUESSED_BYTES = 200_000
_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def decode_text(data: bytes, name: str, remarks: ImportNotices) -> str:
    """Decode a file; a guessed encoding becomes a notice.

    Args:
        data: The whole file.
        name: Its name, for messages.
        remarks: Gets the notice, at the first line concerned.

    Raises:
        ScriptError: It is too large, empty or not a text file.
    """
    if len(data) > MAX_SCRIPT_BYTES:
        raise ScriptError(
            f"“{name}” has more than {MAX_SCRIPT_BYTES // 1_000_000} MB, the most that a dialog may"
            " have. Divide it into parts."
        )
    _refuse_documents(data, name)
    text = _decoded(data, name, remarks)
    if "\0" in text:
        raise _no_text(name)
    if _count_breaks(text) > MAX_TEXT_LINES:
        raise ScriptError(
            f"“{name}” has more than {MAX_TEXT_LINES:,} lines of text; a dialog has at most "
            f"{MAX_LINES:,}. Divide it into parts."
        )
    if not text.strip():
        raise ScriptError(
            f"“{name}” is empty: it holds no lines. Write at least one, "
            "such as “Anna: Good evening.”"
        )
    return text


def _count_breaks(text: str) -> int:
    """How many line breaks of any kind a text has, as `splitlines` would divide it."""
    return sum(map(text.count, _LINE_BREAKS)) - text.count("\r\n")


def _refuse_documents(data: bytes, name: str) -> None:
    for signature, message in _SIGNATURES.items():
        if data.startswith(signature):
            raise ScriptError(message.format(name))
    head = data[:_MOST_HEAD].removeprefix(codecs.BOM_UTF8)
    if _XML.match(head) and not _XML_OF_TURNS.search(head):
        raise ScriptError(
            f"“{name}” is an XML file. Export the script as Fountain, SRT or plain text "
            "and import that."
        )


def _decoded(data: bytes, name: str, remarks: ImportNotices) -> str:
    marked = next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)
    encoding = marked or _unmarked_wide(data) or "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        if not encoding.startswith("utf-8"):
            raise _no_text(name) from error
    if b"\0" in data:
        raise _no_text(name)
    body = data.removeprefix(codecs.BOM_UTF8)
    return _mixed(body, remarks) or _guessed(body, name, remarks)


def _unmarked_wide(data: bytes) -> str | None:
    """UTF-16 or UTF-32 without a BOM, detected by the positions of zero bytes."""
    sample = data[:4096]
    zeros = [sample[start::4].count(0) / max(1, len(sample) // 4) for start in range(4)]
    if len(data) % 4 == 0 and (min(zeros[1:]) > 0.3 or min(zeros[:3]) > 0.3):
        return "utf-32-le" if zeros[0] < zeros[3] else "utf-32-be"
    odd, even = min(zeros[1], zeros[3]), min(zeros[0], zeros[2])
    if len(data) % 2 == 0 and (odd > 0.3 or even > 0.3):
        return "utf-16-le" if odd > even else "utf-16-be"
    return None


def _mixed(data: bytes, remarks: ImportNotices) -> str | None:
    """Decode UTF-8 with some lines in Windows-1252, as in a file joined from others."""
    lines = data.split(b"\n")
    texts: list[str] = []
    foreign: list[int] = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(line.decode())
        except UnicodeDecodeError:
            texts.append(line.decode("cp1252", "replace"))
            foreign.append(number)
    if 2 * len(foreign) > sum(not line.isascii() for line in lines):
        return None
    for number in foreign:
        remarks.add(_FOREIGN_LINE, number)
    return "\n".join(texts)


def _guessed(data: bytes, name: str, remarks: ImportNotices) -> str:
    """Decode with the older code page under which the text is the most plausible."""
    text, encoding = data.decode("cp1252", "replace"), "cp1252"
    if not _is_western(text):
        found = charset_normalizer.from_bytes(data[:_GUESSED_BYTES], cp_isolation=_CODE_PAGES)
        best = found.best()
        encoding = best.encoding if best else encoding
        text = data.decode(encoding, "replace")
    if _CONTROLS.search(text):
        raise _no_text(name)
    first_foreign = next(idx for idx, byte in enumerate(data) if byte > 127)
    title = encoding.upper().replace("CP125", "Windows-125")
    remarks.add(
        f"“{name}” is not UTF-8. It is read as {title}, which is a guess: check the letters with "
        "accents. To be sure, save it as UTF-8 in a text editor and import it again.",
        data.count(b"\n", 0, first_foreign) + 1,
    )
    return text


def _is_western(text: str) -> bool:
    """Whether text looks like a western language: some accented letters, no rare signs."""
    foreign = [char for char in text if not char.isascii()]
    letters = sum(char in _WESTERN_LETTERS for char in foreign)
    signs = sum(char in _WESTERN_SIGNS for char in foreign)
    ascii_letters = sum(char.isascii() and char.isalpha() for char in text)
    is_sparse = letters <= _MAX_WESTERN_SHARE * (letters + ascii_letters)
    is_usual = letters + signs == len(foreign) and not _SIGN_IN_A_WORD.search(text)
    return is_usual and is_sparse


def _no_text(name: str) -> ScriptError:
    return ScriptError(
        f"“{name}” is not a text file, so it can't be a dialog. "
        "Save the document as plain text (UTF-8) and import that."
    )
