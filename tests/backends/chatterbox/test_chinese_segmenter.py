"""Word boundaries for Chinese: their model is fetched once, checked, and used."""

from __future__ import annotations

import hashlib
import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("spacy_pkuseg", reason="the model packages are not installed")

import spacy_pkuseg
from chatterbox_checkpoint import checkpoint
from spacy_pkuseg.config import Config
from tiny_hub import COMMIT, TinyHub

from studio.backends.base import LoadProgress
from studio.backends.chatterbox.backend import ChatterboxBackend
from studio.backends.chatterbox.variants import (
    MULTILINGUAL,
    fetch_segmenter,
    load_segmenter,
    segmenter_folder,
)
from studio.backends.options import BackendOptions
from studio.errors import Cancelled

pytestmark = pytest.mark.models

NAME = "spacy_ontonotes"
ZIP = f"{NAME}.zip"
SENTENCES = "今天 天气 很 好 。\n我 喜欢 中国 。\n你好 世界 。\n" * 5


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> bytes:
    """A small model of the segmenter's own training, as it is handed out."""
    folder = tmp_path_factory.mktemp("segmenter")
    (folder / "said.utf8").write_text(SENTENCES, "utf-8")
    said = str(folder / "said.utf8")
    random.seed(1)  # the training shuffles
    spacy_pkuseg.train(said, said, str(folder / "model"), train_iter=2)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted((folder / "model").iterdir()):
            archive.write(path, path.name)
    return content.getvalue()


@pytest.fixture
def server(packed, tmp_path: Path, monkeypatch) -> Iterator[TinyHub]:
    server = TinyHub({ZIP: packed})
    endpoint = server.start()
    monkeypatch.setenv("PKUSEG_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(Config.model_urls, NAME, f"{endpoint}/resolve/{COMMIT}/{ZIP}")
    monkeypatch.setitem(Config.model_hash, NAME, hashlib.sha256(packed).hexdigest())
    yield server
    server.stop()


def test_it_is_fetched_once_and_finds_words(server: TinyHub) -> None:
    told: list[LoadProgress] = []
    assert load_segmenter() is None
    fetch_segmenter(told.append)
    assert any("Downloading" in progress.message for progress in told)
    assert load_segmenter().cut("今天天气很好。") == ["今天", "天气", "很", "好", "。"]
    asked = server.requests
    fetch_segmenter(told.append)
    assert server.requests == asked
    assert [path.name for path in segmenter_folder().parent.iterdir()] == [NAME]


def test_what_came_before_a_stop_is_kept(server: TinyHub, packed: bytes) -> None:
    server.break_after[ZIP] = [len(packed), len(packed) // 2, 0, 0]  # the first asks for the size
    fetch_segmenter(lambda _progress: None)
    assert load_segmenter() is None
    server.served.clear()
    fetch_segmenter(lambda _progress: None)
    assert load_segmenter() is not None
    assert server.served[ZIP] <= len(packed) + len(packed) // 2 + 1


def test_it_can_be_stopped(server: TinyHub) -> None:
    def stop(_progress: LoadProgress) -> None:
        raise Cancelled("stop")

    with pytest.raises(Cancelled):
        fetch_segmenter(stop)
    assert load_segmenter() is None


@pytest.mark.parametrize("fault", ["other bytes", "not there", "no server"])
def test_without_it_the_voice_is_loaded_all_the_same(server: TinyHub, fault, caplog) -> None:
    if fault == "other bytes":
        server.corrupt.add(ZIP)
    elif fault == "not there":
        server.status = 404
    else:
        server.stop()
        server.start()  # elsewhere
    fetch_segmenter(lambda _progress: None)
    assert load_segmenter() is None
    assert "Chinese is read without word boundaries" in caplog.text


def test_no_network_is_asked_where_that_is_forbidden(server: TinyHub, monkeypatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    fetch_segmenter(lambda _progress: None)
    assert server.requests == 0


def test_the_model_reads_words_apart(server: TinyHub, tmp_path_factory) -> None:
    from chatterbox.models.tokenizers import MTLTokenizer

    from studio.backends.chatterbox.chatterbox_model import _offline_tokenizer

    folder = checkpoint("chatterbox-multilingual", tmp_path_factory)

    def tokens() -> list[int]:
        with _offline_tokenizer(folder):
            tokenizer = MTLTokenizer(str(folder / "grapheme_mtl_merged_expanded_v1.json"))
        return tokenizer.encode("你好世界", language_id="zh")

    without = tokens()
    fetch_segmenter(lambda _progress: None)
    assert len(tokens()) == len(without) + 1  # the space between 你好 and 世界


def test_a_loaded_voice_says_what_chinese_lacks_until_it_is_fetched(server: TinyHub) -> None:
    backend = ChatterboxBackend(MULTILINGUAL, BackendOptions())
    assert backend.lacks("zh") is None  # its load may fetch it
    backend._model = object()
    assert "without word boundaries" in str(backend.lacks("zh-Hant"))
    assert backend.lacks("ja") is None
    fetch_segmenter(lambda _progress: None)
    assert backend.lacks("zh") is None
