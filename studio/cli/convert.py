"""`convert` writes a script in another format, `spoken` its text as a voice says it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from studio.cli.arguments import STANDARD, check_script
from studio.cli.render import print_report, read_content, read_script
from studio.dialog.formats.dialog_file import (
    Format,
    ImportOptions,
    export_dialog,
    export_notices,
    format_of_suffix,
)
from studio.dialog.pronunciation import IN_WORDS
from studio.dialog.spoken import tell_language
from studio.errors import SettingError
from studio.storage.disk import open_atomic


def run_convert(arguments: argparse.Namespace) -> int:
    """Convert a script; what the new format leaves out is said on standard error.

    Returns:
        0; the output is whole or, after an error, as it was before.

    Raises:
        BadInput: The script can't be read, or no format is known for the output.
    """
    check_script(arguments)
    output: Path = arguments.output
    format_ = _choose_format(output, arguments.format)
    parsed = read_script(arguments.script, ImportOptions(arguments.narrator))
    print_report((*parsed.notices, *export_notices(parsed.dialog, format_)))
    written = export_dialog(parsed.dialog, format_)
    if output == STANDARD:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
        return 0
    with open_atomic(output) as file:
        file.write(written)
    return 0


def run_spoken(arguments: argparse.Namespace) -> int:
    """Print each row of a text as it is spoken."""
    check_script(arguments)
    text = read_content(arguments.script, "cut it into parts").decode("utf-8-sig", "replace")
    language = arguments.language or tell_language(text) or "en"
    for row in text.splitlines():
        print(IN_WORDS.spoken(row, language))
    return 0


def _choose_format(output: Path, named: str | None) -> Format:
    found = Format(named) if named else format_of_suffix(output.name)
    if found is None:
        names = ", ".join(f".{one}" for one in Format)
        raise SettingError(
            f"“{output}” doesn't say in which format to write. End the name in {names}, or name "
            "one with --format."
        )
    return found
