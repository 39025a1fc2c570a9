"""The locks hold all that the requirements need, with hashes, and nothing else."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tiny_index import REPO

from studio.errors import SetupFailed
from studio.setup.lock import PIP_PIN, Lock, locks_of
from studio.setup.requirements import Part, Pin, read_parts

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PARTS = read_parts(REPO / "requirements.txt") | read_parts(REPO / "tests" / "requirements.txt")
STUDIO = ("studio",)
MODELS = ("studio", "models-torch", "models", "models-alone")
TESTS = ("studio", "tests")
ENTRY = re.compile(
    r"(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+?))?"
    r"(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n"
)
EXCUSED = {"chatterbox-tts"}
"""Names older versions of what it runs with; see requirements.txt."""


def entries(path: Path) -> list[re.Match[str]]:
    """A file's entries; it holds nothing else but comments, an index's address least of all."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    found = list(ENTRY.finditer(text))
    assert "".join(match[0] for match in found) == text, f"{path} has something else"
    return found


def locked(python: str, files: tuple[str, ...]) -> dict[str, str]:
    """Version by package; fails if one stands there twice."""
    found = [one for file in files for one in entries(REPO / "locks" / python / f"{file}.txt")]
    versions = {one["name"]: one["version"] for one in found}
    assert len(versions) == len(found)
    return versions


def test_there_is_a_lock_for_each_python():
    folders = {path.name for path in (REPO / "locks").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(PYTHONS)
    assert locks_of(REPO).name in PYTHONS


@pytest.mark.parametrize("python", PYTHONS)
def test_locks_hold_the_requirements(python):
    for part in PARTS.values():
        Lock(REPO / "locks" / python, part).check()


@pytest.mark.parametrize("python", PYTHONS)
def test_what_two_parts_install_has_one_version(python):
    models = locked(python, MODELS)
    for files in (TESTS, ("audit",), ("build",)):
        for name, version in locked(python, files).items():
            assert models.get(name, version) == version


@pytest.mark.parametrize("python", PYTHONS)
def test_sources_are_the_exception(python):
    """A package without a wheel is built on the user's machine."""
    alone = locked(python, ("models-alone",))
    assert set(alone) == {"chatterbox-tts", "sox"}
    assert "setuptools" in locked(python, ("models",)), "it builds sox"


def test_the_pip_that_shows_its_progress_is_locked():
    assert [(one["name"], one["version"]) for one in entries(REPO / "locks" / "pip.txt")] == [
        ("pip", PIP_PIN.version)
    ]


def _wishes(name: str, version: str) -> list[Requirement]:
    """What an installed package needs here; nothing if another version or none is installed."""
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return []
    if found.version.partition("+")[0] != version or name in EXCUSED:
        return []
    wishes = [Requirement(text) for text in found.requires or ()]
    return [one for one in wishes if one.marker is None or one.marker.evaluate({"extra": ""})]


@pytest.mark.parametrize("files", [STUDIO, MODELS, TESTS], ids=["studio", "models", "tests"])
def test_a_lock_holds_all_that_its_packages_need(files):
    """Since pip resolves nothing, what is missing here would be missing at run time."""
    versions = locked(locks_of(REPO).name, files)
    for name, version in versions.items():
        for wish in _wishes(name, version):
            held = versions.get(canonicalize_name(wish.name))
            assert held is not None, f"{name} needs {wish}"
            assert wish.specifier.contains(held, prereleases=True), f"{name} needs {wish}"


def test_what_tests_import_is_in_the_locks_that_they_install():
    """Without the model packages every module is collected that doesn't ask for one of them."""
    held = locked(locks_of(REPO).name, TESTS)
    packages = metadata.packages_distributions()
    tests = REPO / "tests"
    for path in [*tests.glob("*.py"), *tests.rglob("test_*.py")]:
        text = path.read_text("utf-8")
        if "importorskip(" in text:
            continue
        for name in re.findall(r"(?m)^(?:import|from) (\w+)", text):
            bringing = {canonicalize_name(one) for one in packages.get(name, ())}
            assert not bringing or bringing & held.keys(), f"{path} imports {name}"


@pytest.mark.parametrize("files", [STUDIO, TESTS], ids=["studio", "tests"])
def test_nothing_is_left_of_a_requirement_that_went(files):
    paths = [locks_of(REPO) / f"{file}.txt" for file in files]
    here = [
        one
        for path in paths
        for one in entries(path)
        if one["marker"] is None or Marker(one["marker"]).evaluate()
    ]
    if any(_version(one["name"]) != one["version"] for one in here):
        pytest.skip("other versions than the locked ones are installed")
    versions = [one["name"] for one in here]
    wished = {canonicalize_name(pin.name) for file in files for pin in PARTS[file].pins}
    for name in versions:
        for text in metadata.requires(name) or ():
            wished.add(canonicalize_name(Requirement(text).name))
    assert set(versions) <= wished


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _lock(folder: Path, **files: str) -> Lock:
    for name, text in files.items():
        (folder / f"{name.replace('_', '-')}.txt").write_text(text)
    return Lock(folder, Part("models", (Pin("torch", "2.0"), Pin("tiny", "1"))))


def test_a_requirement_that_is_locked_at_another_version_is_named(tmp_path):
    lock = _lock(tmp_path, models="tiny==2 --hash=sha256:00\n", models_torch="torch==2.0\n")
    with pytest.raises(SetupFailed, match=r"name tiny==1, and .*models\.txt doesn't.*refresh\.py"):
        lock.check()
    _lock(tmp_path, models="Tiny==1 --hash=sha256:00\n").check()


@pytest.mark.parametrize(
    ("version", "wishes", "brings_torch"),
    [
        (None, (), True),
        ("1.9", (), True),
        ("2.0", ("jinja2", 'nvidia_cublas==1; platform_system == "Linux"'), True),
        ("2.0+cpu", ("jinja2",), False),
        ("2.0+cu126", ("nvidia-cublas-cu12==12",), False),
    ],
)
def test_a_torch_from_elsewhere_is_kept_and_brings_no_cuda(
    tmp_path, monkeypatch, version, wishes, brings_torch
):
    if version:
        info = tmp_path / f"torch-{version}.dist-info"
        info.mkdir()
        needs = "".join(f"Requires-Dist: {wish}\n" for wish in wishes)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n{needs}"
        )
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    lock = _lock(tmp_path, models="tiny==1\n", models_torch="torch==2.0\nnvidia-cublas==1\n")
    (arguments,) = lock.installs(whole=True)
    assert (str(tmp_path / "models-torch.txt") in arguments) == brings_torch
    assert str(tmp_path / "models.txt") in arguments


def test_pip_checks_hashes_resolves_nothing_and_builds_nothing_but_what_stands_alone(tmp_path):
    lock = _lock(tmp_path, models="tiny==1\n", models_torch="torch==2.0\n", models_alone="a==1\n")
    together, alone = lock.installs(whole=True)
    assert {"--require-hashes", "--no-deps"} <= {*together} & {*alone}
    assert together[together.index("--only-binary") + 1] == ":all:"
    assert "--no-build-isolation" in alone
    assert "--require-hashes" in lock.pip_upgrade()


def test_an_environment_that_somebody_else_resolved_keeps_its_dependencies(tmp_path):
    installed = Pin("pytest", metadata.version("pytest"))
    lock = Lock(tmp_path, Part("models", (installed,)))
    (tmp_path / "models-alone.txt").write_text("a==1\n")
    assert len(list(lock.installs(whole=True))) == 2
    (alone,) = lock.installs(whole=False)
    assert str(tmp_path / "models-alone.txt") in alone
