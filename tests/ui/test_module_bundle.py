"""Modules joined into one script: in order, with what they import, and with a map back."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from studio.server.module_bundle import bundle_modules, locate_modules

PAGE = Path(__file__).resolve().parents[2] / "assets" / "page"
SOURCES = {
    "main.js": (
        '/** Starts. */\nimport { twice } from "./core/sums.js";\n'
        'import * as text from "./core/text.js";\n\nconsole.log(text.shout(String(twice(21))));\n'
    ),
    "core/sums.js": "export const two = 2;\nexport function twice(n) {\n  return two * n;\n}\n",
    "core/text.js": (
        'import { two } from "./sums.js";\n\n'
        "export async function later() {}\nexport class Loud {}\n"
        'export const shout = (word) => `${word}${"!".repeat(two)}`;\n'
    ),
    "unused.js": "throw new Error();\n",
}


def _places(source_map: str) -> list[tuple[str, int] | None]:
    """Where each line of a bundle comes from."""
    record = json.loads(source_map)
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    source = line = 0
    places: list[tuple[str, int] | None] = []
    for segment in record["mappings"].split(";"):
        if not segment:
            places.append(None)
            continue
        numbers, shift, value = [], 0, 0
        for digit in map(digits.index, segment):
            value |= (digit & 31) << shift
            shift += 5
            if not digit & 32:
                numbers.append(-(value >> 1) if value & 1 else value >> 1)
                shift = value = 0
        source, line = source + numbers[1], line + numbers[2]
        places.append((record["sources"][source], line))
    return places


def test_every_module_stands_after_those_that_it_imports():
    bundle = bundle_modules(SOURCES, "main.js", map_name="x.map")
    places = locate_modules(bundle.code)
    assert [path for _, path in places] == ["core/sums.js", "core/text.js", "main.js"]
    assert bundle.code.index("twice(n)") < places[1][0] < bundle.code.index("later()")
    assert not re.search(r"^(?:import|export) ", bundle.code, re.MULTILINE)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_it_does_what_its_modules_do(tmp_path):
    script = tmp_path / "bundle.mjs"
    script.write_text(bundle_modules(SOURCES, "main.js", map_name="x.map").code, encoding="utf-8")
    run = subprocess.run(["node", script], capture_output=True, text=True, check=True)
    assert run.stdout == "42!!\n"


def test_the_map_leads_each_line_to_its_own():
    bundle = bundle_modules(SOURCES, "main.js", map_name="x.map")
    for line, place in zip(bundle.code.split("\n"), _places(bundle.source_map), strict=False):
        if place is None:
            continue
        path, number = place
        own = SOURCES[path].split("\n")[number]
        assert own.startswith("import ") or own.removeprefix("export ") == line


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("core/sums.js", 'import { shout } from "./text.js";\nexport const two = 2;\n'),
        ("core/text.js", 'import { nothing } from "../nowhere.js";\n'),
    ],
)
def test_a_circle_and_a_missing_module_are_faults(path, code):
    with pytest.raises(ValueError, match=r"import"):
        bundle_modules(SOURCES | {path: code}, "main.js", map_name="x.map")


def test_the_page_uses_only_what_can_be_joined():
    sources = {
        path.relative_to(PAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in PAGE.rglob("*.js")
        if path.parent.name != "reading"  # modules of pages of their own
    }
    bundle = bundle_modules(sources, "main.js", map_name="x.map")
    assert not re.search(r"^\s*(?:import|export)\b(?! ?=)", bundle.code, re.MULTILINE)
    plain = re.sub(r"/\*.*?\*/", "", bundle.code, flags=re.DOTALL)
    assert not re.search(r"(?<!#)\bimport\(", plain)
    assert set(json.loads(bundle.source_map)["sources"]) == set(sources)
