"""The page's pure modules, by node's own runner; and the names of its events."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "assets" / "page"
TESTS = sorted(Path(__file__).parent.glob("*.test.js"))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_pure_modules_do_what_their_tests_say():
    run = subprocess.run(["node", "--test", *TESTS], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr


def test_every_event_of_the_page_is_declared_emitted_and_listened_for():
    types = (PAGE / "core" / "types.d.ts").read_text(encoding="utf-8")
    declared = set(re.findall(r'^  "([\w.]+)":', types, re.MULTILINE))
    code = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.rglob("*.js"))
    # A batch that was given up names its event by how it was.
    given_up = re.findall(r"this\.#dropped\((.*)\);", code)
    emitted = set(re.findall(r'\bbus\.emit\("([\w.]+)"', code))
    emitted |= set(re.findall(r'"(project\.\w+)"', "\n".join(given_up)))
    assert emitted == declared
    assert set(re.findall(r'\bbus\.on\("([\w.]+)"', code)) == declared
