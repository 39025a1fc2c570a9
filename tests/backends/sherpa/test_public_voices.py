"""The public Piper voices: the list, and one that comes among those that somebody added."""

import hashlib
import re
from dataclasses import replace

import pytest
import sherpa_models
from test_own_voices import load, speak, write
from tiny_hub import TinyHub

from studio.backends.base import WeightSource
from studio.backends.sherpa.public_voices import VoiceDownload, read_public_voices
from studio.errors import BadInput, Cancelled, ModelUnavailable

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
pytest.importorskip("espeakng_loader")

JOE = "en_US-joe-medium"
PATH = "en/en_US/joe/medium/en_US-joe-medium.onnx"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "voices"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """Has a voice with random weights in Joe's place, by the digests that the list would have."""
    graph = write(tmp_path / "from", JOE, espeak={"voice": "en-us"})
    settings = graph.with_name(f"{graph.name}.json")
    hub = TinyHub({PATH: graph.read_bytes(), f"{PATH}.json": settings.read_bytes()})
    digests = {path: hashlib.md5(content).hexdigest() for path, content in hub.files.items()}

    def state(source):
        files = (one for one in source.files.values() if one.path in digests)
        sizes = {path: len(content) for path, content in hub.files.items()}
        return {
            one.path: replace(one, md5=digests[one.path], size_bytes=sizes[one.path])
            for one in files
        }

    with hub.serving(monkeypatch, tmp_path / "cache"):
        monkeypatch.setattr(WeightSource, "stated", property(state))
        yield hub


def quiet(_progress):
    """Nobody looks."""


def cached(tmp_path):
    found = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    return {path.name for path in found} - {".download.lock"}


def test_each_voice_has_bytes_and_a_checksum_and_says_its_licence():
    voices = read_public_voices()
    assert len(voices) > 150
    assert len({one.language for one in voices.values()}) > 50
    for name, one in voices.items():
        assert re.fullmatch(rf"{one.language.replace('-', '_')}-[\w]+-{one.quality}", name)
        assert one.licence
        [source] = one.sources
        assert one.size_bytes == sum(file.size_bytes for file in source.files.values())
        assert {len(file.md5) for file in source.files.values()} == {32}
        [place] = {place.hub for file in source.files.values() for place in file.places}
        assert re.fullmatch("rhasspy/piper-voices@[0-9a-f]{40}", place)
    assert {one.quality for one in voices.values()} == {"x_low", "low", "medium", "high"}
    assert voices["fr_FR-mls-medium"].speakers == 125


def test_a_voice_comes_speaks_and_leaves_no_copy(hub, folder, tmp_path):
    told = []
    download = VoiceDownload(folder, JOE)
    assert download.to_fetch() is not None
    download.fetch(told.append)
    assert download.to_fetch() is None
    assert {one.name for one in folder.iterdir()} == {f"{JOE}.onnx", f"{JOE}.onnx.json"}
    assert cached(tmp_path) == set()
    assert told[-1].fraction > 0.99
    backend = load(folder)
    assert len(speak(backend, JOE, "Good evening."))
    backend.unload()


def test_what_came_is_kept_when_it_is_stopped(hub, folder, tmp_path):
    def stop(progress):
        if (progress.fraction or 0) > 0:
            raise Cancelled

    hub.break_after[PATH] = [9_000, 0]
    with pytest.raises(ModelUnavailable, match=r"piper-voices@\w+ can't be reached; .* is kept"):
        VoiceDownload(folder, JOE).fetch(quiet)
    with pytest.raises(Cancelled):
        VoiceDownload(folder, JOE).fetch(stop)
    assert cached(tmp_path)
    assert not folder.exists()
    VoiceDownload(folder, JOE).fetch(quiet)
    assert hub.served[PATH] <= len(hub.files[PATH]) + 9_000


def test_another_file_in_its_place_is_thrown_away(hub, folder, tmp_path):
    hub.corrupt.add(PATH)
    with pytest.raises(ModelUnavailable, match="sent another file, which was thrown away"):
        VoiceDownload(folder, JOE).fetch(quiet)
    assert cached(tmp_path) == set()
    assert not folder.exists()


def test_without_a_network_it_says_so_in_a_sentence(hub, folder):
    hub.stop()
    with pytest.raises(ModelUnavailable, match=r"reached; check the network and try again \(what"):
        VoiceDownload(folder, JOE).fetch(quiet)
    hub.start()  # for the fixture's end


def test_one_that_the_studio_cant_read_says_why(hub, folder, tmp_path, monkeypatch):
    kokoro = sherpa_models.kokoro_graph()
    hub.files[PATH] = kokoro
    facts = WeightSource.stated.fget

    def state(source):
        found = facts(source)
        found[PATH] = replace(found[PATH], md5=hashlib.md5(kokoro).hexdigest())
        return found

    monkeypatch.setattr(WeightSource, "stated", property(state))
    with pytest.raises(BadInput, match=f"^{JOE}.onnx is no Piper voice, or broken"):
        VoiceDownload(folder, JOE).fetch(quiet)
    assert not folder.exists()
