"""eSpeak NG's package: found or missed, its languages, its worker process."""

import importlib.util
import shutil
import subprocess
import sys

import psutil
import pytest

from studio.backends.espeak.backend import DraftBackend
from studio.backends.espeak.espeak_voices import Languages, Package, find_package, language_of_text
from studio.backends.espeak.worker_pool import EspeakWorker, Utterance
from studio.errors import ModelUnavailable, SpeechFailed


@pytest.fixture(scope="module")
def languages():
    return Languages(find_package().folder / "espeak-ng-data")


@pytest.mark.parametrize(
    ("code", "voice_file"),
    [
        ("en", "gmw/en-US"),
        ("en-GB", "gmw/en"),
        ("EN_us", "gmw/en-US"),
        ("de", "gmw/de"),
        ("de-AT", "gmw/de"),
        ("pt-BR", "roa/pt-BR"),
        ("zh", "sit/cmn"),
        ("zh-Hans-CN", "sit/cmn"),
        ("cmn", "sit/cmn"),
        ("no", "gmq/nb"),
    ],
)
def test_a_code_finds_its_language(languages, code, voice_file):
    assert languages.find(code).voice_file == voice_file


@pytest.mark.parametrize("code", ["tlh", "", "-", "../en", "e n"])
def test_other_codes_find_none(languages, code):
    assert languages.find(code) is None


def test_listed_codes_are_cased_and_named(languages):
    listed = languages.names_by_code()
    assert listed["pt-BR"] == "Portuguese (Brazil)"
    assert listed["en-GB-x-rp"] == "English (Received Pronunciation)"
    assert all(name and "//" not in name for name in listed.values())
    assert all(languages.find(code) for code in listed)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Good morning", "en-US"),
        ("Доброе утро, Anna", "ru"),
        ("早上好", "cmn"),
        ("おはようございます、世界", "ja"),
        ("صباح الخير", "ar"),
        ("καλημέρα", "el"),
        ("🎭 12!", "en-US"),
    ],
)
def test_a_script_tells_the_language(text, code):
    assert language_of_text(text) == code


def test_a_missing_package_names_the_remedy(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    backend = DraftBackend()
    assert "pip install espeakng-loader" in backend.unavailable()
    assert backend.capabilities.languages == {}
    with pytest.raises(ModelUnavailable, match="pip install espeakng-loader"):
        backend.load(lambda _progress: None)


def test_a_library_that_does_not_load_is_unavailable(tmp_path):
    broken = tmp_path / "libespeak-ng.so"
    broken.write_bytes(b"not a library")
    with pytest.raises(ModelUnavailable, match="can't start on this system"):
        EspeakWorker(Package(broken, tmp_path))


def test_a_process_that_cannot_start_is_unavailable(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelUnavailable, match=r"No process .* can be started"):
        EspeakWorker(find_package())


def test_a_worker_without_data_is_unavailable(tmp_path):
    with pytest.raises(ModelUnavailable, match="can't start on this system"):
        EspeakWorker(Package(find_package().library, tmp_path))


def test_data_in_a_long_folder_name_outside_ascii_are_found(tmp_path):
    folder = tmp_path / ("Bühne " * 30)
    shutil.copytree(find_package().folder / "espeak-ng-data", folder / "espeak-ng-data")
    worker = EspeakWorker(Package(find_package().library, folder))
    try:
        assert len(worker.speak(Utterance("Hello", "gmw/en-US+f1"), timeout_s=60))
    finally:
        worker.close()


def test_a_refused_voice_leaves_the_worker_usable():
    worker = EspeakWorker(find_package())
    try:
        with pytest.raises(SpeechFailed, match="Choose another language"):
            worker.speak(Utterance("Hello", "no/such"), timeout_s=60)
        assert worker.is_usable
        assert len(worker.speak(Utterance("Hello", "gmw/en-US+f1"), timeout_s=60))
    finally:
        worker.close()


def test_a_used_up_worker_ends_after_its_last_answer():
    worker = EspeakWorker(find_package())
    try:
        for _ in range(100):
            assert worker.is_usable
            worker.speak(Utterance("a", "gmw/de+f1"), timeout_s=60)
        assert not worker.is_usable
    finally:
        worker.close()


def test_workers_end_when_the_studio_is_killed():
    code = (
        "from studio.backends.espeak.backend import DraftBackend; b = DraftBackend(workers=1)\n"
        "b.load(lambda p: None); print('loaded', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as studio:
        studio.stdout.readline()
        workers = psutil.Process(studio.pid).children()
        studio.kill()
        _, alive = psutil.wait_procs(workers, timeout=60)
    assert workers
    assert not alive
