"""Small voices are downloaded, checked, refused with one clear message, and removed."""

import json
import subprocess

import pytest
import sherpa_models
from contract import LINE, whole
from sherpa_backends import make

from studio.backends.base import SpeechRequest
from studio.backends.hub.weights import discard_weights
from studio.backends.sherpa.catalogue import (
    CATALOGUE,
    DownloadableModel,
    find_folders,
)
from studio.errors import Cancelled, ModelUnavailable
from studio.voices.speaker import Voice

pytest.importorskip("sherpa_onnx")
onnx = pytest.importorskip("onnx")


def quiet(_progress):
    """Nobody looks."""


def install(model, progress):
    return DownloadableModel(model).fetch(progress)


def test_a_voice_is_installed_found_and_removed(name, serve):
    model = CATALOGUE[name]
    serve(sherpa_models.FILES[name]())
    assert find_folders(model) == ()
    reports = []
    folder = install(model, reports.append)
    assert find_folders(model)[0] == folder
    assert any(path in one.message for one in reports for path in model.sources[0].needs)
    assert max(one.fraction or 0 for one in reports) <= 1
    sources = DownloadableModel(model).weight_sources
    discard_weights(sources)
    assert find_folders(model) == ()
    discard_weights(sources)


CUTS = [
    cut if cut in {0, 1, 10, 19} else pytest.param(cut, marks=pytest.mark.campaign)
    for cut in range(20)
]


@pytest.mark.parametrize("cut", CUTS)
def test_a_download_that_breaks_anywhere_goes_on(cut, serve):
    files = sherpa_models.piper()
    path = "en_US-libritts_r-medium.onnx"
    hub = serve(files)
    # The second break, at which nothing new has come, ends the download.
    hub.break_after[path] = [len(files[path]) * cut // 20, 0][not cut :]
    with pytest.raises(ModelUnavailable, match=r"can't be reached .* \(what has come is kept\)"):
        install(CATALOGUE["piper"], quiet)
    assert find_folders(CATALOGUE["piper"]) == ()
    install(CATALOGUE["piper"], quiet)
    assert hub.served[path] == len(files[path])
    backend = make("piper")
    backend.load(quiet)
    assert len(whole(backend.speak(SpeechRequest(LINE, backend.condition(Voice("Ada"))))))
    backend.unload()


def test_a_download_is_cancelled_and_goes_on(serve):
    serve(sherpa_models.piper())

    def stop(_progress):
        raise Cancelled

    with pytest.raises(Cancelled):
        install(CATALOGUE["piper"], stop)
    assert find_folders(CATALOGUE["piper"]) == ()
    assert install(CATALOGUE["piper"], quiet)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        (one.name, need.split("|")[0])
        for one in CATALOGUE.values()
        for source in one.sources
        for need in source.needs
    ],
)
def test_a_file_whose_checksum_doesnt_fit_is_refused(name, path, serve):
    hub = serve(sherpa_models.FILES[name]())
    hub.corrupt.add(path)
    with pytest.raises(ModelUnavailable, match=rf"{path} .* thrown away"):
        install(CATALOGUE[name], quiet)
    assert find_folders(CATALOGUE[name]) == ()
    hub.corrupt.clear()
    assert install(CATALOGUE[name], quiet)


def refusal(name, files, serve):
    """What is said of a model when it is loaded."""
    serve(files)
    backend = make(name)
    with pytest.raises(ModelUnavailable) as refused:
        backend.load(quiet)
    backend.unload()
    return str(refused.value)


def of_a_newer_format(model):
    model.ir_version = 99


def of_newer_operators(model):
    model.opset_import[0].version = 99


@pytest.mark.parametrize("change", [of_a_newer_format, of_newer_operators])
def test_a_model_of_a_newer_format_is_refused(change, name, serve):
    files = sherpa_models.FILES[name]()
    for path in files:
        if path.endswith(".onnx"):
            model = onnx.load_from_string(files[path])
            change(model)
            files[path] = model.SerializeToString()
    said = refusal(name, files, serve)
    runtime = "ONNX Runtime" if name in sherpa_models.GRAPHS else "sherpa-onnx"
    assert f"of a newer format than this version of {runtime} reads" in said
    assert said.endswith("Update the studio.")


def test_a_model_of_another_rate_is_refused(serve):
    said = refusal("supertonic", sherpa_models.supertonic(rate_hz=24_000), serve)
    assert "speaks at 24,000 Hz and isn't Supertonic 3, which speaks at 44,100 Hz" in said


def of_another_family():
    return {**sherpa_models.kokoro(), "kokoro-v1.0.int8.onnx": sherpa_models.piper_graph(2)}


def without_styles():
    return {**sherpa_models.kokoro(), "voices-v1.0.bin": b"PK\x03\x04 and no more"}


def with_text_for_a_model():
    return {**sherpa_models.kokoro(), "kokoro-v1.0.int8.onnx": b"not a model"}


def with_odd_tokens():
    return {**sherpa_models.piper(), "tokens.txt": b"ab 1\n"}


def with_broken_settings():
    return {**sherpa_models.supertonic(), "tts.json": json.dumps({"ae": {}}).encode()}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("kokoro", of_another_family),
        ("kokoro", without_styles),
        ("kokoro", with_text_for_a_model),
        ("piper", with_odd_tokens),
        ("supertonic", with_broken_settings),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_a_broken_model_is_refused_and_ends_nothing(name, files, serve):
    """sherpa-onnx itself ends the process for most of these."""
    said = refusal(name, files(), serve)
    assert "can't be loaded" in said or "is broken" in said
    assert said.endswith("Remove it and download it again.")


def test_a_model_is_checked_once_and_again_when_a_byte_of_it_changes(serve, monkeypatch):
    serve(sherpa_models.supertonic())
    folder = install(CATALOGUE["supertonic"], quiet)
    checks, run = [], subprocess.run

    def noted(command, **how):
        checks.append(command)
        return run(command, **how)

    monkeypatch.setattr(subprocess, "run", noted)

    def start():
        backend = make("supertonic")
        backend.load(quiet)
        backend.unload()
        return len(checks)

    assert [start(), start()] == [1, 1]
    settings = (folder / "tts.json").resolve()
    settings.write_bytes(settings.read_bytes().replace(b": ", b":\t", 1))
    assert [start(), start()] == [2, 2]
    for note in folder.glob(".tableread-checked-*"):
        note.write_bytes(b"")  # as a power cut may leave it
    assert [start(), start()] == [3, 3]
    discard_weights(DownloadableModel(CATALOGUE["supertonic"]).weight_sources)
    assert not folder.exists()


def test_a_model_that_fails_its_check_is_checked_each_time(serve):
    serve(with_broken_settings())
    install(CATALOGUE["supertonic"], quiet)
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="can't be loaded"):
            make("supertonic").load(quiet)
