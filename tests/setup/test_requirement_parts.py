from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_index import REPO

from studio.errors import SetupFailed
from studio.setup.requirements import Part, Pin, read_parts, standing_pins

_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,4})?", fullmatch=True)
_PINS = st.builds(Pin, _NAMES, st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){0,3}", fullmatch=True))


def _write(folder: Path, text: str) -> Path:
    path = folder / "requirements.txt"
    path.write_text(text)
    return path


def test_parts_are_read_with_sizes_and_what_goes_without_dependencies(tmp_path):
    path = _write(
        tmp_path,
        "# Words about it.\n\n# part: studio\n# disk: 600 MB\na==1.0\n# why b\nb==2.1.post1\n"
        "# part: models\n# download: 2900 MB\nc==3\n# no-deps: d-e==0.1.7\n",
    )
    assert read_parts(path) == {
        "studio": Part("studio", (Pin("a", "1.0"), Pin("b", "2.1.post1")), disk_bytes=600_000_000),
        "models": Part(
            "models", (Pin("c", "3"),), (Pin("d-e", "0.1.7"),), download_bytes=2_900_000_000
        ),
    }


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("# part: a\nx>=1\n", "line 2: 'x>=1' is not written as name==version"),
        ("x==1\n", "line 1: 'x==1' stands before"),
        ("# part: a\n# disk: much\n", "line 2: write 'disk: 600 MB'"),
        ("# part: a\n# no-deps: x\n", "line 2: 'x' is not written"),
    ],
)
def test_a_line_that_says_nothing_is_named(tmp_path, text, place):
    with pytest.raises(SetupFailed, match=r"requirements\.txt, ") as caught:
        read_parts(_write(tmp_path, text))
    assert place in str(caught.value)


def test_an_absent_file_is_one_message(tmp_path):
    with pytest.raises(SetupFailed, match="can't be read"):
        read_parts(tmp_path / "none.txt")


@given(st.lists(_PINS, max_size=8), st.lists(_PINS, max_size=3))
def test_what_is_written_is_read(tmp_path_factory, pins, alone):
    lines = ["# part: p", *map(str, pins), *(f"# no-deps: {pin}" for pin in alone)]
    path = _write(tmp_path_factory.mktemp("parts"), "\n".join(lines))
    assert read_parts(path) == {"p": Part("p", tuple(pins), tuple(alone))}


def test_missing_compares_versions_of_all_packages():
    part = Part("p", (Pin("a", "1"), Pin("b", "2")), (Pin("c", "3"),))
    held = {"a": "1", "b": "1"}
    assert part.missing(held.get) == (Pin("b", "2"), Pin("c", "3"))


def test_missing_looks_into_the_running_environment():
    pytest_pin = Pin("pytest", metadata.version("pytest"))
    part = Part("p", (pytest_pin, Pin("no-such-package-anywhere", "1")))
    assert part.missing() == (Pin("no-such-package-anywhere", "1"),)


def test_fingerprint_follows_packages_and_not_their_order():
    a, b = Pin("a", "1"), Pin("b", "2")
    assert Part("p", (a, b)).fingerprint() == Part("p", (b, a)).fingerprint()
    assert Part("p", (a, b)).fingerprint() != Part("p", (a,), (b,)).fingerprint()
    assert Part("p", (a,)).fingerprint() != Part("p", (Pin("a", "2"),)).fingerprint()


def test_standing_pins_follow_what_a_package_brought():
    names = {pin.name for pin in standing_pins([Pin("pytest", "0")])}
    assert {"pytest", "pluggy", "iniconfig"} <= names
    assert "colorama" not in names or metadata.version("colorama")
    assert "pip" not in names


def test_the_projects_own_files_hold_the_parts_the_launcher_needs():
    parts = read_parts(REPO / "requirements.txt") | read_parts(REPO / "tests" / "requirements.txt")
    assert set(parts) == {"studio", "models", "tests", "audit"}
    pins = [pin for part in parts.values() for pin in (*part.pins, *part.no_deps)]
    assert len({(pin.name, pin.version) for pin in pins}) == len({pin.name for pin in pins})
    assert all(len(part.pins) == len({pin.name for pin in part.pins}) for part in parts.values())
    assert [pin.name for pin in parts["models"].no_deps] == ["chatterbox-tts"]
