"""The remote backend on one server: the contract, and each fault."""

from __future__ import annotations

import logging
import threading
import time

import numpy as np
import psutil
import pytest
from contract import CHECKS, LINE, request_for, whole
from ports import reserve_port
from remote_process import START_S, serving

from studio.audio.clip import resample
from studio.backends.options import BackendOptions, RemoteOptions
from studio.backends.remote.backend import RemoteBackend
from studio.errors import Cancelled, ModelUnavailable, SpeechFailed

KEY = "sk-tableread-0123456789"


@pytest.fixture(scope="module")
def both():
    with serving("custom", "plain") as servers:
        yield servers


@pytest.fixture
def server(both):
    """Speaks as vLLM-Omni does."""
    both[0].reset()
    return both[0]


@pytest.fixture
def plain(both):
    """Speaks as OpenAI's own API does."""
    both[1].reset()
    return both[1]


@pytest.fixture
def remote():
    """Makes loaded backends and unloads them at the end."""
    made = []

    def make(*urls, load=True, **options):
        options = {"retry_s": 0.02, "patience_s": 60, **options}
        made.append(RemoteBackend(BackendOptions(remote=RemoteOptions(urls=urls, **options))))
        if load:
            made[-1].load(lambda _progress: None)
        return made[-1]

    yield make
    for backend in made:
        backend.unload()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", ["server", "plain"])
def test_contract(check, kind, remote, request):
    check(remote(request.getfixturevalue(kind).url))


class TestLoading:
    def test_without_an_address_it_says_how_to_give_one(self, remote):
        backend = remote(load=False)
        assert "TTS_REMOTE_URLS" in backend.unavailable()
        with pytest.raises(ModelUnavailable, match="TTS_REMOTE_URLS"):
            backend.load(lambda _: None)

    def test_before_it_is_loaded_it_asks_nobody(self, remote):
        backend = remote(f"http://127.0.0.1:{reserve_port()}", load=False)
        assert backend.unavailable() is None
        assert backend.capabilities.cloning
        with pytest.raises(ModelUnavailable, match="Load"):
            whole(backend.speak(request_for(backend)))

    def test_a_server_that_is_not_there(self, remote):
        port = reserve_port()
        with pytest.raises(ModelUnavailable, match=rf"127\.0\.0\.1:{port} can't be reached"):
            remote(f"http://127.0.0.1:{port}/v1")

    def test_something_else_at_the_address(self, remote, server):
        with pytest.raises(ModelUnavailable, match="No speech server"):
            remote(f"{server.url}/somewhere")

    def test_a_model_that_the_server_lacks(self, remote, server):
        with pytest.raises(ModelUnavailable, match="no model “mystery”, only Qwen/Qwen3"):
            remote(server.url, model="mystery")

    def test_a_server_that_is_loading_its_model(self, remote, server):
        server.set("/down", down=True)
        with pytest.raises(ModelUnavailable, match="503: The model is loading"):
            remote(server.url)

    @pytest.mark.parametrize("given", ["wrong-key-wrong-key", None])
    def test_a_key_is_wanted(self, remote, server, given):
        server.set("/key", key=KEY)
        with pytest.raises(ModelUnavailable, match="TTS_REMOTE_KEY") as caught:
            remote(server.url, key=given) if given else remote(f"http://a:b@{server.url[7:]}")
        assert "wrong-key" not in str(caught.value)

    def test_the_key_is_sent(self, remote, server):
        server.set("/key", key=KEY)
        backend = remote(server.url, key=KEY)
        assert len(whole(backend.speak(request_for(backend))))

    def test_what_it_tells_of_the_servers(self, remote, server, plain):
        told = []
        backend = remote(server.url, load=False)
        backend.load(lambda progress: told.append(progress.message))
        assert "1.7B-CustomVoice is ready on 127.0.0.1" in told[-1]
        can = backend.capabilities
        assert [preset.preset_id for preset in can.presets] == ["vivian", "ryan", "uncle_fu"]
        assert can.languages["de"] == "German"
        assert not can.cloning
        assert can.builtin_voice
        assert "CustomVoice" in backend.revision

    def test_slots_are_those_of_all_servers(self, remote, server, plain):
        assert remote(server.url, plain.url, concurrency=3).capabilities.slots == 6

    def test_unload_frees_connections_and_thread(self, remote, server):
        backend = remote(server.url)
        chunks = backend.speak(request_for(backend))
        next(chunks)
        chunks.close()
        backend.unload()
        assert "speech servers" not in {thread.name for thread in threading.enumerate()}
        here = psutil.Process()
        assert not [
            one
            for one in here.net_connections("tcp")
            if one.raddr
            and one.raddr.port == server.port
            and one.status == "ESTABLISHED"
            and one.fd != -1
            and not _is_control(server, one)
        ]


def _is_control(server, connection):
    """The test's own connection to the server."""
    pool = server.control._transport._pool
    streams = [one._connection._network_stream for one in pool.connections]
    ports = [one.get_extra_info("client_addr")[1] for one in streams]
    return connection.laddr.port in ports


FAULTS = {
    "an error": {"status": 500, "body": '{"error": {"message": "CUDA error"}}'},
    "a bad gateway": {"status": 502, "body": "<html>nginx</html>", "content_type": "text/html"},
    "full": {"status": 429, "headers": {"Retry-After": "0"}},
    "full for now": {"status": 503, "headers": {"Retry-After": "0"}},
    "no audio but JSON": {"status": 200, "body": '{"ok": true}'},
    "no audio but a page": {"status": 200, "body": "<p>Sign in", "content_type": "text/html"},
    "a WAV without samples": {"status": 200, "body": "RIFF", "content_type": "audio/wav"},
    "nothing": {"status": 200, "body": "", "content_type": "audio/pcm"},
    "breaks off at once": {"cut": 0.0, "then": "break"},
    "breaks off in the middle": {"cut": 0.5, "then": "break"},
    "breaks off at the end": {"cut": 1.0, "then": "break"},
    "ends inside a sample": {"cut": 0.5, "odd_bytes": 1},
    "ends far too early": {"cut": 0.1},
}


class TestFaults:
    @pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
    @pytest.mark.parametrize("kind", ["server", "plain"])
    def test_a_line_is_rendered_once_all_the_same(self, fault, kind, remote, request):
        server = request.getfixturevalue(kind)
        backend = remote(server.url)
        sound = whole(backend.speak(request_for(backend)))
        server.faults(fault)
        again = whole(backend.speak(request_for(backend)))
        assert np.array_equal(again, sound)
        assert len(server.requests) == 3

    @pytest.mark.parametrize("name", ["an error", "no audio but a page", "ends far too early"])
    def test_a_fault_that_stays_fails_the_line_with_its_reason(self, name, remote, server):
        backend = remote(server.url)
        server.faults(*[FAULTS[name]] * 20)
        reason = {
            "an error": "127.0.0.1:.* answered 500: CUDA error",
            "no audio but a page": "answered with text/html.* instead of audio",
            "ends inside a sample": {"cut": 0.5, "odd_bytes": 1},
            "ends far too early": r"sent only 0\.\d s",
        }
        with pytest.raises(SpeechFailed, match=reason[name]):
            whole(backend.speak(request_for(backend)))
        server.faults()
        assert len(whole(backend.speak(request_for(backend))))

    def test_truncated_wav_is_noticed_by_its_own_length(self, remote, plain):
        backend = remote(plain.url)
        plain.faults(*[{"cut": 0.9}] * 20)
        with pytest.raises(SpeechFailed, match="isn't whole"):
            whole(backend.speak(request_for(backend)))

    def test_being_full_is_waited_for_and_is_no_fault(self, remote, server):
        backend = remote(server.url)
        server.faults(*[FAULTS["full"]] * 9)
        assert len(whole(backend.speak(request_for(backend))))
        assert len(server.requests) == 10

    def test_it_rests_as_long_as_the_server_says(self, remote, server):
        backend = remote(server.url)
        server.faults({"status": 429, "headers": {"Retry-After": "1"}})
        began_s = time.monotonic()
        assert len(whole(backend.speak(request_for(backend))))
        assert time.monotonic() - began_s >= 0.99

    @pytest.mark.parametrize(
        ("status", "says"), [(400, "answered 400: Bad voice"), (401, "TTS_REMOTE_KEY")]
    )
    def test_a_refusal_is_not_tried_again(self, status, says, remote, server):
        backend = remote(server.url)
        server.faults({"status": status, "body": '{"error": {"message": "Bad voice."}}'})
        with pytest.raises(SpeechFailed, match=says):
            whole(backend.speak(request_for(backend)))
        assert len(server.requests) == 1

    def test_another_sound_cannot_be_joined(self, remote, server):
        backend = remote(server.url)
        server.faults({"cut": 0.5, "then": "break"}, {"other_sound": True})
        chunks = backend.speak(request_for(backend))
        with pytest.raises(SpeechFailed, match=r"broke off after \d\.\d s, and a second try"):
            whole(chunks)

    def test_a_line_that_takes_too_long(self, remote, server):
        backend = remote(server.url, timeout_s=1, patience_s=START_S)
        server.faults(*[{"hold_first": True}] * 20)
        with pytest.raises(SpeechFailed, match="took more than 1 s"):
            whole(backend.speak(request_for(backend)))
        server.wait_for(in_flight=0)

    def test_another_rate_is_brought_to_the_studios(self, remote, plain):
        backend = remote(plain.url)
        plain.faults({"rate_hz": 12_000})
        half = whole(backend.speak(request_for(backend)))
        sound = whole(backend.speak(request_for(backend)))
        wanted = whole(resample(iter([sound[::2]]), 12_000, 24_000))
        assert len(half) == len(wanted)
        assert np.max(np.abs(half - np.clip(wanted, -1, 1))) < 1e-4


class TestStopping:
    def test_the_first_chunk_comes_before_the_server_is_done(self, remote, server):
        backend = remote(server.url)
        server.faults({"cut": 0.5, "then": "hold"})
        chunks = backend.speak(request_for(backend))
        assert len(next(chunks))
        server.wait_for(in_flight=1)
        chunks.close()

    def test_a_closed_line_ends_on_the_server_too(self, remote, server):
        backend = remote(server.url)
        server.faults({"cut": 0.5, "then": "hold"})
        chunks = backend.speak(request_for(backend))
        next(chunks)
        chunks.close()
        server.wait_for(in_flight=0)

    def test_a_cancelled_line_ends_though_the_server_is_silent(self, remote, server):
        backend = remote(server.url)
        server.faults({"hold_first": True})
        stop = threading.Event()
        chunks = backend.speak(request_for(backend, cancelled=stop.is_set))
        stopper = threading.Thread(target=lambda: (server.wait_for(in_flight=1), stop.set()))
        stopper.start()
        with pytest.raises(Cancelled):
            next(chunks)
        stopper.join()
        server.wait_for(in_flight=0)


class TestSecrets:
    def test_neither_key_nor_recording_is_told(self, remote, server, caplog):
        server.set("/key", key=KEY)
        caplog.set_level(logging.DEBUG)
        backend = remote(f"http://ida:pass%40word@{server.url[7:]}", key=KEY)
        recording = "data:audio/wav;base64," + "QUJD" * 200
        body = f'{{"error": {{"message": "Key {KEY} sent {recording} wrongly"}}}}'
        server.faults({"status": 400, "body": body})
        caplog.clear()  # what steered the server is no part of the backend
        with pytest.raises(SpeechFailed, match="Key … sent … wrongly") as caught:
            whole(backend.speak(request_for(backend)))
        told = f"{caught.value} {caplog.text} {backend.revision} {backend!r}"
        for secret in (KEY, "QUJDQUJD", "pass@word", "pass%40word"):
            assert secret not in told

    def test_a_long_line_is_within_what_planning_allows(self, remote, server):
        backend = remote(server.url)
        text = (LINE + " ") * 9
        assert len(text) < backend.capabilities.max_chars
        assert len(whole(backend.speak(request_for(backend, text)))) > 24_000
