"""Where each Chatterbox model's weights are looked for, and what tells them apart."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tiny_hub import TinyHub, safetensors

from studio.backends.base import WeightSource
from studio.backends.chatterbox.variants import (
    ENGLISH,
    MULTILINGUAL,
    TURBO,
    VARIANTS,
    ChatterboxVariant,
    resolve_source,
)
from studio.backends.hub.weights import fetch_weights, identify_weights
from studio.backends.options import BackendOptions


def folder_of(variant: ChatterboxVariant, path: Path) -> Path:
    path.mkdir()
    for number, need in enumerate(variant.needs):
        (path / need.partition("|")[0]).write_bytes(bytes([number]) * 300_000)
    return path


def test_a_folder_counts_for_the_model_that_is_in_it(tmp_path: Path) -> None:
    options = BackendOptions(chatterbox_model=str(folder_of(TURBO, tmp_path / "turbo")))
    assert resolve_source(TURBO, options) == options.chatterbox_model
    assert resolve_source(ENGLISH, options) == ENGLISH.source
    assert resolve_source(MULTILINGUAL, options) == MULTILINGUAL.source


def test_each_model_may_have_a_folder_of_its_own(tmp_path: Path) -> None:
    options = BackendOptions("a/english", "b/turbo", "c/multilingual")
    assert [resolve_source(one, options) for one in (ENGLISH, TURBO, MULTILINGUAL)] == [
        *("a/english", "b/turbo", "c/multilingual"),
    ]


@pytest.mark.parametrize("name", ["t3_mtl23ls_v2.safetensors", "t3_mtl23ls_v3.safetensors"])
def test_a_folder_counts_for_the_multilingual_model_in_either_version(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).touch()
    options = BackendOptions(chatterbox_model=str(tmp_path))
    assert resolve_source(MULTILINGUAL, options) == str(tmp_path)
    assert resolve_source(ENGLISH, options) == ENGLISH.source


@pytest.mark.parametrize("source", ["nowhere/at/all", "somebody/fine-tune", "somebody/it@v2"])
def test_what_can_not_be_looked_into_counts_for_all(source: str) -> None:
    assert {resolve_source(one, BackendOptions(chatterbox_model=source)) for one in VARIANTS} == {
        source
    }


def test_the_name_of_another_model_on_the_hub_does_not_count() -> None:
    options = BackendOptions(chatterbox_model=f"{TURBO.source}@main")
    assert resolve_source(TURBO, options) == f"{TURBO.source}@main"
    assert resolve_source(ENGLISH, options) == ENGLISH.source


def test_weights_that_are_touched_or_copied_stay_the_same(tmp_path: Path) -> None:
    folder = folder_of(ENGLISH, tmp_path / "model")
    before = identify_weights(folder, ENGLISH.needs)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert identify_weights(folder, ENGLISH.needs) == before
    copied = Path(shutil.copytree(folder, tmp_path / "copy", copy_function=shutil.copyfile))
    assert identify_weights(copied, ENGLISH.needs) == before


def test_other_weights_of_the_same_size_are_others(tmp_path: Path) -> None:
    folder = folder_of(ENGLISH, tmp_path / "model")
    before = identify_weights(folder, ENGLISH.needs)
    path = folder / "ve.safetensors"
    path.write_bytes(b"x" * 300_000)
    os.utime(path, (2, 2))  # a clock may be coarser than a test is quick
    assert identify_weights(folder, ENGLISH.needs) != before


def test_a_new_download_of_the_multilingual_model_is_the_third_version(
    tmp_path: Path, monkeypatch
) -> None:
    second, third = (f"t3_mtl23ls_v{version}.safetensors" for version in (2, 3))
    names = {need for need in MULTILINGUAL.needs if not need.startswith("t3_")}
    hub = TinyHub({**dict.fromkeys(names, b"{}"), second: safetensors(2), third: safetensors(3)})
    with hub.serving(monkeypatch, tmp_path):
        source = WeightSource(MULTILINGUAL.source, tuple(MULTILINGUAL.needs))
        folder = fetch_weights(source, lambda _: None)
    assert {path.name for path in folder.iterdir()} == names | {third}


def test_versions_of_the_multilingual_model_are_told_apart(tmp_path: Path) -> None:
    """The note that keeps an identity for copies of a folder follows the version, too."""
    folder = folder_of(MULTILINGUAL, tmp_path / "model")
    third = folder / "t3_mtl23ls_v3.safetensors"
    second = third.with_name("t3_mtl23ls_v2.safetensors")
    third.rename(second)
    before = identify_weights(folder, MULTILINGUAL.needs)
    third.write_bytes(b"3" * second.stat().st_size)
    assert identify_weights(folder, MULTILINGUAL.needs) != before
    third.unlink()
    assert identify_weights(folder, MULTILINGUAL.needs) == before


def test_it_begins_as_what_takes_were_known_by(tmp_path: Path) -> None:
    """Name, size and time of each file, so that no take becomes outdated."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name, content in (("b.bin", b"22"), ("a.bin", b"1")):
        (folder / name).write_bytes(content)
        os.utime(folder / name, ns=(5, 5_000))
    assert identify_weights(folder, ("a.bin", "b.bin")) == "1c103642c4d01d19"


def test_a_folder_that_cannot_be_written_to_counts_by_time(tmp_path: Path) -> None:
    folder = folder_of(ENGLISH, tmp_path / "model")
    (folder / ".tableread-identity.json").mkdir()  # nobody can write a file there
    before = identify_weights(folder, ENGLISH.needs)
    assert identify_weights(folder, ENGLISH.needs) == before
    os.utime(folder / "ve.safetensors", (1, 1))
    assert identify_weights(folder, ENGLISH.needs) != before
