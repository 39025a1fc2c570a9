"""Reading what servers send: sound, errors, models and documents."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import httpx
import numpy as np
import pytest
import soundfile
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from studio.audio.clip import resample
from studio.backends.remote.discovery import (
    OPENAI_FIELDS,
    VLLM_OMNI_FIELDS,
    SpeechTask,
    discover_capabilities,
    request_shape,
    task_of,
)
from studio.backends.remote.server_faults import (
    Busy,
    Declined,
    Garbled,
    Refused,
    Unreachable,
    check_audio,
    fault_of,
    retry_after_s,
    words_of,
)
from studio.backends.remote.speech_request import Address
from studio.backends.remote.speech_server import SpeechReader, request_fault

SOUND = (0.4 * np.sin(np.arange(4_800) / 7)).astype(np.float32)


def wav(samples=SOUND, rate_hz=24_000, subtype="PCM_16"):
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, subtype=subtype, format="WAV")
    return file.getvalue()


def read(data, cuts=()):
    reader, places = SpeechReader(), [0, *sorted(cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    return np.concatenate([*(reader.feed(piece) for piece in pieces), reader.finish()])


class TestSound:
    @given(st.lists(st.integers(0, 9_600), max_size=8), st.booleans())
    @settings(max_examples=60)
    def test_it_is_the_same_in_whatever_pieces_it_comes(self, cuts, as_wav):
        data = wav() if as_wav else wav()[44:]
        assert np.array_equal(read(data, cuts), read(data))
        assert len(read(data)) == len(SOUND)
        assert np.max(np.abs(read(data) - SOUND)) < 1e-4

    @given(st.integers(8_000, 48_000), st.lists(st.integers(0, 9_600), max_size=4))
    @settings(max_examples=25)
    def test_another_rate_is_exact(self, rate_hz, cuts):
        one = read(wav(rate_hz=rate_hz), cuts)
        wanted = np.concatenate(list(resample(iter([read(wav())]), rate_hz, 24_000)))
        assert len(one) == len(wanted)
        assert np.max(np.abs(one - np.clip(wanted, -1, 1))) < 1e-3

    def test_two_channels_are_mixed(self):
        both = np.stack([SOUND, np.zeros_like(SOUND)], axis=1)
        assert np.max(np.abs(read(wav(both)) - SOUND / 2)) < 1e-4

    @pytest.mark.parametrize("told", [0, 0x7FFF_FFFF, 0xFFFF_FFFF])
    def test_a_stream_that_does_not_know_its_length(self, told):
        data = bytearray(wav())
        data[40:44] = told.to_bytes(4, "little")
        assert len(read(bytes(data))) == len(SOUND)

    def test_what_follows_the_samples_is_no_sound(self):
        assert len(read(wav() + b"LIST\x04\x00\x00\x00abcd")) == len(SOUND)

    @pytest.mark.parametrize(
        ("data", "says"),
        [
            (b"", "isn't whole"),
            (b"RIF", "isn't whole"),
            (wav()[:30], "isn't whole"),
            (wav()[:-2], "isn't whole"),
            (wav()[44:-1], "isn't whole"),
            (wav(SOUND[:0]), "isn't whole|no audio"),
            (wav(subtype="PCM_24"), "24 bits"),
            (wav(subtype="FLOAT"), "32 bits"),
            (wav(rate_hz=7_999), "7999 samples a second"),
            (wav(rate_hz=384_000), "384000 samples a second"),
            (b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd", "without a format"),
        ],
    )
    def test_what_is_no_whole_sound(self, data, says):
        with pytest.raises(Garbled, match=says):
            read(data)

    @given(st.binary(max_size=200))
    @settings(max_examples=200)
    def test_whatever_comes_is_sound_or_garbled(self, rest):
        for data in (rest, b"RIFF" + rest, wav()[:12] + rest):
            with suppress(Garbled):
                assert np.isfinite(read(data)).all()


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "headers", "kind"),
        [
            (429, {}, Busy),
            (503, {"retry-after": "3"}, Busy),
            (503, {}, Unreachable),
            (502, {}, Unreachable),
            (500, {}, Garbled),
            (408, {}, Garbled),
            (400, {}, Declined),
            (401, {}, Declined),
            (404, {}, Declined),
            (301, {}, Declined),
        ],
    )
    def test_each_status_has_its_meaning(self, status, headers, kind):
        fault = fault_of(status, headers, b'{"error": {"message": "Why."}}', ())
        assert type(fault) is kind
        assert str(fault).startswith(f"answered {status}: Why")

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b'{"error": {"message": "No\\n voice."}}', "No voice"),
            (b'{"detail": "No voice."}', "No voice"),
            (b"No voice.", "No voice"),
            (b"<html><body>No voice.", ""),
            (b"", ""),
            (b"\xff\xfe", "\ufffd\ufffd"),
        ],
    )
    def test_its_words_are_found(self, body, words):
        assert words_of(body, ()) == words

    def test_its_words_are_bounded(self):
        assert len(words_of(b"word " * 1_000, ())) <= 300
        assert words_of(b"sent " + b"A" * 5_000, ()) == "sent …"

    def test_when_to_come_back(self):
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
        assert retry_after_s({"retry-after": "7"}) == 7
        assert 50 < retry_after_s({"retry-after": later}) <= 60
        assert retry_after_s({"retry-after": "soon"}) is None
        assert retry_after_s({}) is None

    def test_a_broken_connection_tells_no_url(self):
        fault = request_fault(httpx.ReadError("http://ida:secret@host"))
        assert "secret" not in str(fault)

    def test_what_is_audio(self):
        for kind in ("audio/wav", "audio/pcm;rate=24000", "application/octet-stream"):
            check_audio({"content-type": kind})
        for headers in ({"content-type": "text/html"}, {}):
            with pytest.raises(Garbled):
                check_audio(headers)


class TestAddress:
    @pytest.mark.parametrize(
        ("written", "url", "document"),
        [
            ("http://h:1", "http://h:1/v1", "http://h:1/openapi.json"),
            ("http://h:1/", "http://h:1/v1", "http://h:1/openapi.json"),
            ("https://h/v1/", "https://h/v1", "https://h/openapi.json"),
            ("http://h/pre/v2", "http://h/pre/v2", "http://h/pre/openapi.json"),
            ("http://[::1]:8/v1", "http://[::1]:8/v1", "http://[::1]:8/openapi.json"),
        ],
    )
    def test_base_urls_as_people_write_them(self, written, url, document):
        address = Address.read(written)
        assert address.url == url
        assert address.documents()[0] == document

    def test_a_password_is_kept_apart(self):
        address = Address.read("http://ida:p%40ss@h:1/v1")
        assert address.credentials == ("ida", "p@ss")
        assert address.display_name == "h:1"
        assert "p@ss" not in repr(address)


class Base(BaseModel):
    input: str
    voice: str | None = None


class Extended(Base):
    seed: int | None = None


def document_of(model):
    app = FastAPI()

    def speech(body: model) -> None: ...

    speech.__annotations__["body"] = model
    app.post("/v1/audio/speech")(speech)
    return app.openapi()


class TestDocuments:
    def test_the_fields_of_a_request(self):
        shape = request_shape(json.dumps(document_of(Extended)).encode())
        assert shape.fields == {"input", "voice", "seed"}
        assert shape.required == {"input"}

    def test_a_document_without_the_version_in_its_paths(self):
        document = document_of(Base)
        document["paths"] = {"/audio/speech": document["paths"]["/v1/audio/speech"]}
        assert request_shape(json.dumps(document).encode()).fields == {"input", "voice"}

    def test_a_schema_built_on_another(self):
        document = document_of(Base)
        document["components"]["schemas"]["Base"] = {
            "allOf": [
                {"properties": {"input": {}}, "required": ["input"]},
                {"$ref": "#/components/schemas/Voiced"},
            ]
        }
        document["components"]["schemas"]["Voiced"] = {"properties": {"voice": {}}}
        shape = request_shape(json.dumps(document).encode())
        assert shape.fields == {"input", "voice"}

    @pytest.mark.parametrize(
        "body", [b"", b"[]", b"{}", b'{"paths": {"/v1/audio/speech": {"post": {}}}}', b"\xff"]
    )
    def test_what_tells_nothing(self, body):
        assert request_shape(body) is None

    def test_one_that_refers_to_itself(self):
        document = document_of(Base)
        document["components"]["schemas"]["Base"] = {"$ref": "#/components/schemas/Base"}
        assert request_shape(json.dumps(document).encode()) is None


def asked(pages, wanted=None):
    """What is made of a server that has these pages."""

    async def get(url):
        page = pages.get(url.removeprefix("http://h/").partition("?")[0])
        if isinstance(page, Exception):
            raise page
        return None if page is None else json.dumps(page).encode()

    return asyncio.run(
        discover_capabilities(
            get, base="http://h/v1", documents=("http://h/openapi.json",), wanted=wanted
        )
    )


MODELS = {"data": [{"id": "Qwen/Qwen3-TTS-12Hz-1.7B-Base"}]}


class TestAsking:
    def test_a_server_without_document_that_lists_uploaded_voices(self):
        can = asked({"v1/models": MODELS, "v1/audio/voices": {"voices": [], "uploaded_voices": []}})
        assert can.fields == VLLM_OMNI_FIELDS
        assert can.task is SpeechTask.BASE
        assert can.clones

    def test_a_server_that_tells_nothing_gets_openais_fields(self):
        can = asked({"v1/models": MODELS})
        assert can.fields == OPENAI_FIELDS
        assert can.task is None
        assert not can.clones
        assert "alloy" in can.presets

    @pytest.mark.parametrize(
        "voices",
        [
            {"voices": ["ida", "tom"]},
            {"voices": [{"voice_id": "ida"}, {"id": "tom"}]},
            {"data": [{"name": "ida"}, {"name": "tom"}, {"name": "tom"}]},
        ],
    )
    def test_voices_in_each_of_their_forms(self, voices):
        can = asked({"v1/models": MODELS, "v1/audio/voices": voices})
        assert can.presets == ("ida", "tom")

    def test_pages_that_a_server_keeps_to_itself_are_done_without(self):
        hidden = {"v1/audio/voices": Refused("answered 403"), "openapi.json": Garbled("broke")}
        assert asked({"v1/models": MODELS} | hidden).fields == OPENAI_FIELDS
        with pytest.raises(Unreachable):
            asked({"v1/models": MODELS, "openapi.json": Unreachable("is gone")})

    def test_one_of_many_models_is_chosen(self):
        models = {"data": [{"id": "gpt-9"}, {"id": "gpt-9-mini-tts"}, {"id": "whisper"}]}
        assert asked({"v1/models": models}).model == "gpt-9-mini-tts"
        assert asked({"v1/models": models}, "whisper").model == "whisper"
        with pytest.raises(Refused, match=r"no model “mystery”, only gpt-9, "):
            asked({"v1/models": models}, "mystery")

    def test_a_studio_is_not_asked_for_its_own_servers(self):
        models = {"data": [{"id": "remote"}, {"id": "qwen3"}]}
        assert asked({"v1/models": models}).model == "qwen3"

    def test_a_server_that_lists_nothing_needs_a_model(self):
        assert asked({}, "tts-1").model == "tts-1"
        with pytest.raises(Refused, match="TTS_REMOTE_MODEL"):
            asked({})

    def test_something_else_is_no_speech_server(self):
        with pytest.raises(Refused, match="check its URL"):
            asked({"v1/models": ["a", "b"]})

    @pytest.mark.parametrize(
        ("names", "task"),
        [
            (("Qwen/Qwen3-TTS-12Hz-1.7B-CustomVoice",), SpeechTask.CUSTOM_VOICE),
            (("tts", "/models/qwen3-tts-voice_design/"), SpeechTask.VOICE_DESIGN),
            (("tts", "/models/Qwen3-TTS-Base/snapshots/2026"), SpeechTask.BASE),
            (("fishaudio/s2-base",), None),
            (("",), None),
        ],
    )
    def test_the_kind_of_a_checkpoint(self, names, task):
        assert task_of(names, VLLM_OMNI_FIELDS) is task
        assert task_of(names, OPENAI_FIELDS) is None
