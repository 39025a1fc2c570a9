"""Downloads from a hub on this machine, with everything that goes wrong on the way."""

from __future__ import annotations

import errno
import shutil
import threading

import huggingface_hub
import pytest
from tiny_hub import COMMIT, TinyHub, safetensors

from studio.backends.base import WeightSource
from studio.backends.hub import download as hub_module
from studio.backends.hub.download import blob_path
from studio.backends.hub.weights import fetch_weights, is_local, to_fetch, weights_at_hand
from studio.errors import Cancelled, ModelUnavailable

NAME = "ada/voice"
NEEDS = ("config.json", "*.safetensors")
FILES = {
    "config.json": b'{"layers": 2}',
    "model.safetensors": safetensors(3_000_000),
    "codec/model.safetensors": safetensors(500_000),
    "README.md": b"not needed",
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = TinyHub(dict(FILES))
    with hub.serving(monkeypatch, tmp_path / "cache"):
        yield hub


def fetch(source=NAME, progress=lambda _: None, needs=NEEDS):
    return fetch_weights(WeightSource(source, tuple(needs)), progress)


def content(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


NEEDED = {path: FILES[path] for path in FILES if path != "README.md"}


class TestDownload:
    def test_all_that_is_needed_comes_once_and_is_then_at_hand(self, hub):
        assert weights_at_hand(NAME, NEEDS) is None
        assert "choose it by name" in to_fetch(NAME, NEEDS)
        folder = fetch()
        assert content(folder) == NEEDED
        assert weights_at_hand(NAME, NEEDS) == folder
        assert to_fetch(NAME, NEEDS) is None
        asked = hub.requests
        hub.stop()
        assert fetch() == folder
        assert hub.requests == asked

    @pytest.mark.parametrize(
        ("there", "fetched"),
        [
            (("new.bin", "old.bin"), {"new.bin"}),
            (("old.bin",), {"old.bin"}),
            (("new.bin",), {"new.bin"}),
        ],
    )
    def test_of_alternatives_the_first_that_the_hub_has_comes(self, hub, there, fetched):
        hub.files = dict.fromkeys(there, b"weights")
        folder = fetch(needs=["new.bin|old.bin"])
        assert set(content(folder)) == fetched

    def test_an_alternative_that_is_here_is_not_replaced(self, hub):
        needs = ["new.bin|old.bin"]
        hub.files = {"old.bin": b"weights"}
        folder = fetch(needs=needs)
        hub.files["new.bin"] = b"others"
        assert fetch(needs=needs) == folder
        assert set(content(folder)) == {"old.bin"}

    def test_an_alternative_in_the_cache_stays_when_other_files_are_fetched(self, hub):
        hub.files = {"old.bin": b"weights", "config.json": b"{}"}
        fetch(needs=["old.bin"])
        hub.files["new.bin"] = b"others"
        needs = ["new.bin|old.bin", "config.json"]
        folder = fetch(needs=needs)
        assert set(content(folder)) == {"old.bin", "config.json"}

    def test_where_no_alternative_is_there_all_are_named(self, hub, tmp_path):
        for source in (NAME, str(tmp_path)):
            with pytest.raises(ModelUnavailable, match=r"no file new\.bin or old\.bin;"):
                fetch(source, needs=["new.bin|old.bin"])

    def test_the_hubs_own_library_finds_it_too(self, hub):
        folder = fetch()
        found = huggingface_hub.try_to_load_from_cache(
            NAME, "model.safetensors", cache_dir=huggingface_hub.constants.HF_HUB_CACHE
        )
        assert found == str(folder / "model.safetensors")

    def test_what_the_hubs_own_library_has_is_not_downloaded(self, hub):
        folder = fetch()
        hub.served.clear()
        (folder / "config.json").unlink()
        fetch()
        assert hub.served == {}, "the blob was still there"

    def test_a_commit_can_be_named(self, hub):
        assert fetch(f"{NAME}@{COMMIT}").name == COMMIT
        assert weights_at_hand(NAME, NEEDS) is None, "the default branch may be another commit"
        assert weights_at_hand(f"{NAME}@{COMMIT}", NEEDS) is not None

    @pytest.mark.parametrize("revision", [COMMIT, "refs/pr/1"])
    def test_a_revision_may_stand_behind_the_name(self, hub, revision):
        source = f"{NAME}@{revision}"
        assert not is_local(source)
        assert to_fetch(source, NEEDS) is not None
        assert fetch(source).name == COMMIT
        assert to_fetch(source, NEEDS) is None
        assert weights_at_hand(NAME, NEEDS) is None

    def test_progress_tells_bytes_file_and_speed_and_ends_whole(self, hub, monkeypatch):
        monkeypatch.setattr("studio.backends.hub.download._REPORT_EVERY_S", 0.0)
        told = []
        fetch(progress=told.append)
        fractions = [one.fraction for one in told if one.fraction is not None]
        assert fractions == sorted(fractions)
        assert fractions[-1] == 1.0
        assert "Downloading model.safetensors: " in told[-1].message
        assert " of 4 MB, " in told[-1].message
        assert told[-1].message.endswith(" MB/s")


class TestInterruption:
    def test_a_broken_connection_is_taken_up_where_it_broke(self, hub):
        hub.break_after["model.safetensors"] = [1_000_000, 700_000]
        assert content(fetch()) == NEEDED
        assert hub.served["model.safetensors"] == len(FILES["model.safetensors"])

    def test_a_connection_that_brings_nothing_more_ends_and_the_next_try_goes_on(self, hub):
        hub.break_after["model.safetensors"] = [1_000_000, 0]
        with pytest.raises(ModelUnavailable, match="what has come is kept"):
            fetch()
        assert weights_at_hand(NAME, NEEDS) is None
        assert content(fetch()) == NEEDED
        assert hub.served["model.safetensors"] == len(FILES["model.safetensors"])

    def test_cancel_stops_it_and_the_next_try_goes_on(self, hub, monkeypatch):
        monkeypatch.setattr("studio.backends.hub.download._REPORT_EVERY_S", 0.0)

        def cancel_at_half(progress):
            if (progress.fraction or 0) > 0.5:
                raise Cancelled("The load was stopped.")

        with pytest.raises(Cancelled):
            fetch(progress=cancel_at_half)
        served_before = sum(hub.served.values())
        partial = next((hub_module.model_folder(NAME) / "blobs").glob("*.partial"))
        assert partial.stat().st_size > 1_000_000
        starts_at = partial.stat().st_size
        hub.served.clear()
        assert content(fetch()) == NEEDED
        assert sum(hub.served.values()) == len(FILES["model.safetensors"]) - starts_at
        assert served_before

    def test_two_at_once_download_it_once(self, hub):
        threads = [threading.Thread(target=fetch) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert hub.served == {path: len(body) for path, body in NEEDED.items()}


class TestRefusal:
    @pytest.mark.parametrize(
        ("status", "code", "message"),
        [
            (404, None, "has no model ada/voice"),
            (404, "RepoNotFound", "has no model ada/voice"),
            (404, "RevisionNotFound", "no such revision"),
            (401, None, "sign in"),
            (403, "GatedRepo", "accept them"),
            (503, None, "answered 503"),
        ],
    )
    def test_each_answer_has_its_remedy_and_the_next_try_works(self, hub, status, code, message):
        hub.status, hub.error_code = status, code
        with pytest.raises(ModelUnavailable, match=message):
            fetch()
        hub.status = hub.error_code = None
        assert content(fetch()) == NEEDED

    def test_a_hub_that_is_not_there(self, hub):
        hub.stop()
        with pytest.raises(ModelUnavailable, match="check the network") as caught:
            fetch()
        assert "from the hub's cache on another machine" in str(caught.value)

    def test_offline_by_setting(self, hub, monkeypatch):
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        huggingface_hub.close_session()
        try:
            with pytest.raises(ModelUnavailable, match="HF_HUB_OFFLINE forbids"):
                fetch()
        finally:
            huggingface_hub.close_session()

    def test_a_file_that_is_refused_though_the_model_is_listed(self, hub, monkeypatch):
        listing = hub_module._listing

        def then_refused(*arguments):
            answer = listing(*arguments)
            hub.status, hub.error_code = 403, "GatedRepo"
            return answer

        monkeypatch.setattr(hub_module, "_listing", then_refused)
        with pytest.raises(ModelUnavailable, match="accept them"):
            fetch()

    def test_a_file_that_arrives_broken_is_thrown_away(self, hub):
        hub.corrupt.add("model.safetensors")
        with pytest.raises(ModelUnavailable, match=r"model\.safetensors arrived broken"):
            fetch()
        hub.corrupt.clear()
        assert content(fetch()) == NEEDED

    def test_a_model_of_another_kind(self, hub):
        del hub.files["config.json"]
        with pytest.raises(ModelUnavailable, match=r"has no file config\.json"):
            fetch()

    def test_paths_that_lead_out_of_the_cache(self, hub):
        hub.files["../../outside.safetensors"] = safetensors(10)
        with pytest.raises(ModelUnavailable, match="HF_ENDPOINT"):
            fetch()


class TestDisk:
    def test_no_room_is_seen_before_the_download(self, hub, monkeypatch):
        usage = shutil.disk_usage(".")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
        with pytest.raises(ModelUnavailable, match=r"0\.0 GB free; make room"):
            fetch()
        assert hub.served == {}

    def test_a_disk_that_fills_up(self, hub, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(hub_module, "_stream", full)
        blobs = hub_module.model_folder(NAME) / "blobs"
        with pytest.raises(ModelUnavailable, match=r"disk is full.*HF_HOME"):
            fetch()
        assert list(blobs.iterdir()) == [], "what has come of it isn't kept on a full disk"
        monkeypatch.undo()

    def test_a_broken_file_in_the_cache_is_downloaded_again(self, hub):
        folder = fetch()
        whole = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(whole[:1000])
        hub.served.clear()
        assert content(fetch()) == NEEDED
        assert hub.served == {"model.safetensors": len(whole)}

    def test_without_links_the_files_are_copies(self, hub, monkeypatch, tmp_path):
        def refused(*_):
            raise OSError("links need a privilege")

        monkeypatch.setattr("pathlib.Path.symlink_to", refused)
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs" / "e").write_bytes(b"weights")
        blob_path(tmp_path, COMMIT, "codec/model.bin", etag="e")
        assert (tmp_path / "snapshots" / COMMIT / "codec" / "model.bin").read_bytes() == b"weights"


class TestLocalFolder:
    @pytest.fixture
    def folder(self, tmp_path):
        for path, body in NEEDED.items():
            (tmp_path / "voice" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "voice" / path).write_bytes(body)
        return tmp_path / "voice"

    def test_it_is_taken_as_it_is(self, folder):
        assert fetch(str(folder)) == folder
        assert weights_at_hand(str(folder), NEEDS) == folder

    def test_a_missing_file_is_named(self, folder):
        (folder / "config.json").unlink()
        assert weights_at_hand(str(folder), NEEDS) is None
        assert "put the model's files there" in to_fetch(str(folder), NEEDS)
        with pytest.raises(ModelUnavailable, match=r"has no file config\.json; copy"):
            fetch(str(folder))

    def test_a_missing_shard_is_named(self, folder):
        index = {"weight_map": {"a": "part-1.safetensors", "b": "part-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(str(index).replace("'", '"'))
        (folder / "part-1.safetensors").write_bytes(safetensors(10))
        with pytest.raises(ModelUnavailable, match=r"part-2\.safetensors"):
            fetch(str(folder), needs=["*.safetensors*"])

    @pytest.mark.parametrize(
        "body", [b"", b"short", b"\xff" * 100, safetensors(100)[:-1], b"\4" + bytes(7) + b"null"]
    )
    def test_a_broken_file_is_named(self, folder, body):
        (folder / "model.safetensors").write_bytes(body)
        with pytest.raises(ModelUnavailable, match=r"model\.safetensors is broken or cut short"):
            fetch(str(folder))

    @pytest.mark.parametrize("source", ["./nowhere", "/no/where", "~/nowhere/at/all", "a/b/c"])
    def test_a_folder_that_is_not_there(self, source):
        with pytest.raises(ModelUnavailable, match="isn't there; correct its path"):
            fetch(source)

    def test_a_name_that_is_none(self, hub):
        with pytest.raises(ModelUnavailable, match="neither a folder nor a model's name"):
            fetch("what is this?")
