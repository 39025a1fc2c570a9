"""What Gradio's own client may call, what it gets, and what it may not."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import gradio
import httpx
import numpy as np
import pytest
import soundfile
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from serving import serving
from voice_like import voice_like

from studio.audio.formats import FILE_SUFFIXES
from studio.audio.loudness import measure_file_loudness

pytestmark = pytest.mark.slow

SCRIPT = "Ida: Good evening.\nTom: (whispering) How long?\n\n[pause:1s]\n\nIda: Not long."


@pytest.fixture(scope="module")
def http(tmp_path_factory) -> Iterator[httpx.Client]:
    with serving(tmp_path_factory.mktemp("gradio") / "workspace") as (http, _):
        yield http


@pytest.fixture(scope="module")
def client(http: httpx.Client, tmp_path_factory) -> Iterator[Client]:
    downloads = tmp_path_factory.mktemp("downloads")
    client = Client(str(http.base_url), verbose=False, download_files=downloads)
    yield client
    client.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sent") / "me.wav"
    soundfile.write(path, voice_like(6.0).samples, 24_000)
    return path


def test_it_speaks_into_a_file_that_an_audio_component_takes(client: Client) -> None:
    spoken = client.predict("Good evening.", "Ida", 7, api_name="/speak")
    samples, rate_hz = soundfile.read(spoken)
    assert len(samples) / rate_hz > 0.3
    shown = gradio.Audio().postprocess(spoken)
    assert shown is not None
    assert shown.orig_name == "speech.wav"
    again = client.predict(text="Good evening.", voice="Ida", seed=7, api_name="/speak")
    assert np.array_equal(soundfile.read(again)[0], samples)


def test_a_script_becomes_one_file(client: Client) -> None:
    path, about = client.predict(SCRIPT, voices="Tom = Ida", seed=3, api_name="/dialog")
    samples, rate_hz = soundfile.read(path)
    assert about["lines"] == 3
    assert about["failed"] == []
    assert about["audio_s"] == pytest.approx(len(samples) / rate_hz, abs=0.001)
    levelled, _ = client.predict(SCRIPT, loudness="podcast", audio_format="mp3", api_name="/dialog")
    assert levelled.endswith(".mp3")
    assert measure_file_loudness(Path(levelled)).lufs == pytest.approx(-16, abs=0.5)


def test_a_voice_is_added_from_a_recording_with_consent(client: Client, recording: Path) -> None:
    with pytest.raises(AppError, match="may use this voice"):
        client.predict(handle_file(recording), "Vera", api_name="/add_voice")
    name = client.predict(handle_file(recording), "Vera", consent=True, api_name="/add_voice")
    assert name == "Vera"
    voices = client.predict(api_name="/voices")
    assert {"id": "Vera", "name": "Vera", "kind": "speaker", "languages": []} in voices


def test_a_recording_is_measured_and_levelled(client: Client, recording: Path) -> None:
    path, levels = client.predict(handle_file(recording), "-20", api_name="/loudness")
    assert levels["before"]["lufs"] == pytest.approx(measure_file_loudness(recording).lufs, abs=0.3)
    assert levels["after"]["lufs"] == pytest.approx(-20, abs=0.5)
    assert measure_file_loudness(Path(path)).lufs == pytest.approx(-20, abs=0.5)


def test_a_refusal_has_its_words(client: Client) -> None:
    with pytest.raises(AppError, match="Nothing to say"):
        client.predict("[sigh]", "Ida", None, api_name="/speak")
    with pytest.raises(AppError, match="is no loudness"):
        client.predict(SCRIPT, loudness="thunder", api_name="/dialog")
    with pytest.raises(AppError, match="names no voice"):
        client.predict(SCRIPT, voices="Tom", api_name="/dialog")
    with pytest.raises(AppError, match="Send the recording as a file"):
        client.predict(None, "Vera", consent=True, api_name="/add_voice")
    for given, said in (
        ({"text": 5}, "argument text is a text; 5 "),
        ({"text": "Hi.", "voice": None}, "argument voice is a text; None "),
        ({"text": "Hi.", "voice": "Ida", "seed": "abc"}, "seed abc can't be used"),
    ):
        with pytest.raises(AppError, match=said):
            client.predict(**given, api_name="/speak")
    with pytest.raises(AppError, match="isn't here any more"):
        client.predict("https://example.com/a.wav", "Vera", consent=True, api_name="/add_voice")


def test_every_function_has_types_and_nothing_else_is_offered(client: Client) -> None:
    offered = client.view_api(return_format="dict", print_info=False)
    types = {
        name: (
            [one["python_type"]["type"] for one in about["parameters"]],
            [one["python_type"]["type"] for one in about["returns"]],
        )
        for name, about in offered["named_endpoints"].items()
    }
    formats = f"Literal{list(FILE_SUFFIXES)}"
    anything = "dict(str, Any)"
    assert types == {
        "/speak": (["str", "str", "None | int"], ["filepath"]),
        "/dialog": (["str", "str", "None | int", "str", formats], ["filepath", anything]),
        "/voices": ([], [f"list[{anything}]"]),
        "/add_voice": (["filepath", "str", "bool", "str"], ["str"]),
        "/loudness": (["filepath", "str", formats], ["filepath", anything]),
    }
    assert offered["unnamed_endpoints"] == {}


def test_a_file_is_known_by_a_key_and_by_no_path(client: Client, http: httpx.Client) -> None:
    raw = Client(str(http.base_url), verbose=False, download_files=False)
    said = raw.predict("Good evening.", "Ida", 7, api_name="/speak")
    raw.close()
    assert said["path"].startswith("spoken/")
    assert said["url"].endswith(f"/gradio_api/file={said['path']}")
    assert http.get(said["url"]).headers["content-type"] == "audio/wav"
    _, key, name = said["path"].split("/")
    for other in (f"spoken/{key[:-1]}x/{name}", "spoken/x/speech.wav", f"spoken/../{name}"):
        assert http.get(f"/gradio_api/file={other}").status_code == 404


CALLS = {
    "call": {"data": ["Good evening.", "Ida", 7]},
    "call/v2": {"text": "Good evening.", "voice": "Ida", "seed": 7},
}


@pytest.mark.parametrize("way", CALLS)
def test_as_the_curl_tab_of_its_api_page_says(http: httpx.Client, way: str) -> None:
    asked = http.post(f"/gradio_api/{way}/speak", json=CALLS[way]).raise_for_status()
    stream = http.get(f"/gradio_api/{way}/speak/{asked.json()['event_id']}", timeout=60)
    assert stream.text.startswith("event: complete")
    made = json.loads(stream.text.split("data: ")[1].splitlines()[0])[0]
    sound = http.get(made["url"]).raise_for_status()
    assert len(soundfile.read(io.BytesIO(sound.content))[0]) > 7_000


@pytest.mark.parametrize("way", CALLS)
def test_no_call_names_a_file_elsewhere(http: httpx.Client, way: str) -> None:
    named = {"url": "http://127.0.0.1:1/x.wav", "path": "http://127.0.0.1:1/x.wav"}
    named |= {"meta": {"_type": "gradio.FileData"}}
    body = {"data": [named]} if way == "call" else {"text": named}
    assert http.post(f"/gradio_api/{way}/speak", json=body).status_code == 400
    if way == "call/v2":
        for wrong in ({}, {"words": "Hello."}):
            assert http.post("/gradio_api/call/v2/speak", json=wrong).status_code == 400
    known = CALLS[way]
    assert http.post(f"/gradio_api/{way}/nothing", json=known).status_code == 404


def test_an_unknown_event_gets_an_answer_and_leaves_no_traceback(tmp_path: Path) -> None:
    with serving(tmp_path / "workspace") as (http, process):
        for address, told in (
            ("call/speak/abc", "event: error\n"),
            ("call/v2/speak/abc", "event: error\n"),
            ("queue/data?session_hash=unknown", '"session_not_found":true'),
        ):
            answer = http.get(f"/gradio_api/{address}")
            assert told in answer.text
        refused = {"data": [None, "Vera", True, ""]}
        event_id = http.post("/gradio_api/call/add_voice", json=refused).json()["event_id"]
        assert "as a file" in http.get(f"/gradio_api/call/add_voice/{event_id}").text
        assert "Traceback" not in process.said()


def test_a_call_that_lacks_arguments_is_refused_and_what_it_said_isnt_logged(
    tmp_path: Path,
) -> None:
    said = "a private sentence " * 1_000
    with serving(tmp_path / "workspace") as (http, process):
        called = http.post("/gradio_api/call/speak", json={"data": [said]})
        queued = {"data": [said], "fn_index": 0, "session_hash": "here"}
        joined = http.post("/gradio_api/queue/join", json=queued)
        for answer in (called, joined):
            assert answer.status_code == 400
            assert "takes 3 arguments; 1 came" in answer.text
        assert "private" not in process.said()
