from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator

import av
import numpy as np
import pytest
import soundfile
from fastapi.testclient import TestClient
from gated import GatedDraft
from independent_meter import lufs
from mutagen.id3 import ID3
from PIL import Image
from scenes import OpenStudio
from speech_client import FORMATS, app_of, duration_s, events_of
from wandering import WanderingDraft

from studio.audio.clip import STUDIO_RATE_HZ
from studio.services.studio import Studio

LONG_SCRIPT = (
    "Ida: The lamp is still burning, and nobody has climbed the stairs since Tuesday.\n"
    "Tom: Did you really think that I would not notice?"
)
SCRIPT = "Ida: Good evening.\n[pause:500ms]\nTom: Is it?\nIda:\nTom: Well."


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    with TestClient(app_of(studio)) as client:
        yield client


def rendered(client: TestClient, **body: object) -> dict:
    answer = client.post("/v1/dialogs", json={"input": SCRIPT, "stream": True} | body)
    assert answer.status_code == 201, answer.text
    return events_of(answer.text)[-1]["dialog"]


def test_progress_comes_as_events_and_the_end_tells_all(client: TestClient) -> None:
    answer = client.post("/v1/dialogs", json={"input": SCRIPT, "stream": True})
    created, *steps, done = events_of(answer.text)
    assert created["type"] == "dialog.created"
    assert {step["segment"] for step in steps} == set(range(5))
    assert done["type"] == "dialog.done"
    assert done["dialog"]["finished"] == done["dialog"]["segments"] == 5
    assert [failure["line"] for failure in done["dialog"]["failed"]] == [4]


@pytest.mark.parametrize("audio_format", FORMATS)
def test_where_every_line_failed_there_is_no_audio(client: TestClient, audio_format: str) -> None:
    dialog = rendered(client, input="Ida: [sigh]\n[pause:2s]\nTom: [sigh]")
    assert [one["line"] for one in dialog["failed"]] == [1, 3]
    answer = client.get(f"/v1/dialogs/{dialog['id']}/audio?format={audio_format}")
    assert answer.status_code == 409
    message = answer.json()["error"]["message"]
    assert message.startswith("Every line failed, so there is no sound to save. Line 1: ")


def test_without_a_stream_the_job_is_asked(client: TestClient) -> None:
    begun = client.post("/v1/dialogs", json={"input": SCRIPT}).json()
    last = events_of(client.get(f"/v1/dialogs/{begun['id']}/events").text)[-1]
    assert client.get(f"/v1/dialogs/{begun['id']}").json() == last["dialog"]


@pytest.mark.parametrize("audio_format", FORMATS)
def test_the_audio_comes_in_every_format(client: TestClient, audio_format: str) -> None:
    dialog = rendered(client)
    answer = client.get(f"/v1/dialogs/{dialog['id']}/audio?format={audio_format}")
    assert duration_s(answer.content, audio_format) == pytest.approx(dialog["audio_s"], abs=0.1)


@pytest.mark.parametrize("audio_format", ["wav", "mp3", "pcm"])
def test_the_audio_comes_at_the_loudness_that_was_wished(
    client: TestClient, audio_format: str
) -> None:
    dialog = rendered(client, input=LONG_SCRIPT, loudness=-21.5, even_voices=True)
    data = client.get(f"/v1/dialogs/{dialog['id']}/audio?format={audio_format}").content
    samples = (
        np.frombuffer(data, dtype="<i2") / 32_768
        if audio_format == "pcm"
        else soundfile.read(io.BytesIO(data))[0]
    )
    found = lufs(samples, STUDIO_RATE_HZ)
    assert found == pytest.approx(-21.5, abs=0.5)


def test_its_files_carry_a_cover(client: TestClient) -> None:
    dialog = rendered(client)
    address, drawn = f"/v1/dialogs/{dialog['id']}", io.BytesIO()
    Image.new("RGB", (8, 8), "teal").save(drawn, "PNG")
    image = drawn.getvalue()
    assert client.put(f"{address}/cover", content=b"no image").status_code == 400
    assert not ID3(io.BytesIO(client.get(f"{address}/audio?format=mp3").content)).getall("APIC")
    assert client.put(f"{address}/cover", content=image).status_code == 204
    [picture] = ID3(io.BytesIO(client.get(f"{address}/audio?format=mp3").content)).getall("APIC")
    assert (picture.mime, picture.data) == ("image/png", image)
    assert client.put("/v1/dialogs/0/cover", content=image).status_code == 404


def test_its_files_carry_the_scripts_title_unless_another_is_given(client: TestClient) -> None:
    dialog = rendered(client, input=f"# The Weir\n\n{SCRIPT}")
    for given, title in (({}, "The Weir"), ({"title": "Act Two"}, "Act Two")):
        answer = client.get(f"/v1/dialogs/{dialog['id']}/audio", params={"format": "mp3"} | given)
        assert ID3(io.BytesIO(answer.content))["TIT2"].text == [title]


def test_a_dialog_of_silence_has_no_loudness(client: TestClient) -> None:
    items = [{"type": "silence", "duration": 1}]
    dialog = rendered(client, input=items, loudness="podcast")
    for audio_format in ("wav", "opus"):
        answer = client.get(f"/v1/dialogs/{dialog['id']}/audio?format={audio_format}")
        assert answer.status_code == 400
        assert "Save it at the original level" in answer.json()["error"]["message"]


def test_the_document_tells_of_the_loudness(client: TestClient) -> None:
    body = client.get("/v1/openapi.json").json()["components"]["schemas"]["DialogBody"]
    names, lufs = body["properties"]["loudness"]["anyOf"]
    assert names["enum"] == ["rendered", "podcast", "audiobook", "broadcast"]
    assert (lufs["minimum"], lufs["maximum"]) == (-30, -9)
    assert body["properties"]["even_voices"]["type"] == "boolean"


def test_the_document_tells_of_the_errors(client: TestClient) -> None:
    paths = client.get("/v1/openapi.json").json()["paths"]
    told = paths["/dialogs/{dialog_id}/audio"]["get"]["responses"]
    assert told["409"]["description"] == "The state of things forbids it now."
    assert told["429"]["description"].startswith("Too much is waiting")
    errors = {"400", "401", "403", "404", "405", "408", "409", "413", "422", "429"}
    assert told.keys() >= errors | {"500", "503", "507"}


def test_each_segment_says_when_it_reached_each_step(client: TestClient) -> None:
    dialog = rendered(client, input="Ida: One.\n[pause:1s]\nTom: Two.")
    steps = [list(one["at_s"]) for one in dialog["timestamps"]]
    spoken = ["planned", "queued", "started", "generated", "saved"]
    assert steps == [spoken, ["planned", "saved"], spoken]
    assert [one["line"] for one in dialog["timestamps"]] == [1, 2, 3]
    latest_s = max(one["at_s"]["saved"] for one in dialog["timestamps"])
    assert 0 < dialog["device_busy_s"] <= latest_s
    for one in dialog["timestamps"]:
        at_s = list(one["at_s"].values())
        assert at_s == sorted(at_s)


def test_items_and_voices_by_name(client: TestClient, studio: Studio) -> None:
    studio.speakers.add("Grandmother")
    items = [
        {"type": "speech", "speaker_id": "Ida", "text": "Good evening."},
        {"type": "silence", "duration": 0.5},
    ]
    heard = [
        client.get(f"/v1/dialogs/{dialog['id']}/audio?format=pcm").content
        for dialog in (
            rendered(client, input=items),
            rendered(client, input=items, voices={"Ida": "Grandmother"}),
        )
    ]
    assert heard[0] != heard[1]


def test_a_dialog_is_stopped_and_forgotten(open_studio: OpenStudio) -> None:
    studio = open_studio(GatedDraft())
    with TestClient(app_of(studio)) as client:
        dialog_id = client.post("/v1/dialogs", json={"input": SCRIPT}).json()["id"]
        assert client.get(f"/v1/dialogs/{dialog_id}/audio").status_code == 409
        assert client.delete(f"/v1/dialogs/{dialog_id}").json()["deleted"] is True
        assert client.delete(f"/v1/dialogs/{dialog_id}").status_code == 404
        assert client.get(f"/v1/dialogs/{dialog_id}").status_code == 404
    assert studio.engine.renderer.queued == 0
    assert list((studio.options.workspace / "readings").iterdir()) == []


@pytest.mark.parametrize(
    "body",
    [
        {"input": "# no dialog at all"},
        {"input": []},
        {"input": [{"type": "dance"}]},
        {"input": "Ida: Hi.\nTom: [pause:10h] Well."},
        {"input": 7},
        {"input": SCRIPT, "voices": {"Ida": ""}},
        {"input": SCRIPT, "colour": "red"},
        {"input": SCRIPT, "loudness": "loud"},
        {"input": SCRIPT, "loudness": "-16"},
        {"input": SCRIPT, "loudness": -31},
        {"input": SCRIPT, "loudness": True},
        {"input": SCRIPT, "even_voices": "yes"},
    ],
)
def test_what_is_no_dialog_is_refused(client: TestClient, body: dict) -> None:
    answer = client.post("/v1/dialogs", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_an_audio_line_reads_no_file(client: TestClient) -> None:
    items = [
        {"type": "speech", "speaker_id": "Ida", "text": "Good evening."},
        {"type": "audio", "path": "door.wav"},
    ]
    (failure,) = rendered(client, input=items)["failed"]
    assert "can't be used here" in failure["message"]


def test_a_dialog_of_weeks_of_silence_is_refused(client: TestClient) -> None:
    items = [{"type": "silence", "duration": 300}] * 20_000
    answer = client.post("/v1/dialogs", json={"input": items})
    assert answer.status_code == 400
    assert "1,667 hours" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("script", "named"),
    [
        ("\n".join(["Ida: " + "<b>x</b> " * 10_000] * 6), "at most 100,000 pauses, tags"),
        ("\n".join(["Ida: " + "a [pause:10ms] " * 6_000] * 5), "60,000 pieces; 50,000"),
    ],
)
def test_a_dialog_of_nothing_but_tags_or_pauses_is_refused(
    client: TestClient, script: str, named: str
) -> None:
    answer = client.post("/v1/dialogs", json={"input": script})
    assert answer.status_code == 400
    assert named in answer.json()["error"]["message"]


@pytest.mark.parametrize("place", ["text", "language", "speaker_id", "type", "other"])
def test_half_a_character_is_the_callers_fault(client: TestClient, place: str) -> None:
    item = {"type": "speech", "speaker_id": "A", "text": "hi"} | {place: "\ud800"}
    answer = client.post("/v1/dialogs", content=json.dumps({"input": [item]}))
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_files_lie_in_the_workspace_while_they_are_sent(client: TestClient, studio: Studio) -> None:
    dialog = rendered(client)
    answer = client.get(f"/v1/dialogs/{dialog['id']}/audio?format=wav")
    assert answer.status_code == 200
    exports = studio.options.workspace / "exports"
    assert list(exports.iterdir()) == []


def test_a_doubtful_line_is_spoken_again_and_each_try_can_be_read_and_heard(
    open_studio: OpenStudio,
) -> None:
    with TestClient(app_of(open_studio(WanderingDraft()))) as client:
        script = "Ida: Follow the brook.\nTom: Yes."
        dialog = rendered(client, input=script, tries=3)
        assert dialog["doubtful"] == []
        first, second = dialog["tries"]
        assert (first["line"], first["number"], first["kinds"]) == (1, 1, ["tail"])
        assert first["score"] == 1
        assert not first["used"]
        assert (second["number"], second["score"], second["used"]) == (2, 0, True)
        url = f"/v1/dialogs/{dialog['id']}/segments/0/tries"
        sounds = [client.get(f"{url}/{number}") for number in (1, 2)]
        durations_s = [duration_s(one.content, "wav") for one in sounds]
        assert durations_s[0] == pytest.approx(durations_s[1] + 2.0, abs=0.1)
        assert client.get(f"{url}/3").status_code == 404
        assert client.get(f"{url}/0").status_code == 404
        assert client.get(url.replace("/0/", "/7/") + "/1").status_code == 404
        once = rendered(client, input=script)
        assert once["tries"] == []


@pytest.mark.parametrize("tries", [0, 5, "2", 1.5, True])
def test_tries_of_a_dialog_are_one_to_four(client: TestClient, tries: object) -> None:
    assert client.post("/v1/dialogs", json={"input": SCRIPT, "tries": tries}).status_code == 400


@pytest.mark.parametrize("audio_format", FORMATS)
def test_panned_characters_make_the_audio_stereo(client: TestClient, audio_format: str) -> None:
    dialog = rendered(client, input=LONG_SCRIPT, characters={"ida": {"pan": -1}, "Tom": {"pan": 1}})
    at = f"/v1/dialogs/{dialog['id']}/audio?format={audio_format}"
    sides = decode_sides(client.get(at).content, audio_format)
    third = sides.shape[1] // 3
    for side, begins in [(0, slice(0, third)), (1, slice(2 * third, None))]:
        powers = np.sum(sides[:, begins].astype(np.float64) ** 2, axis=1)
        assert powers[side] > 1_000 * powers[1 - side]
    assert dialog["audio_s"] == pytest.approx(sides.shape[1] / 24_000, abs=0.1)


def decode_sides(data: bytes, audio_format: str) -> np.ndarray:
    """float32 [2, samples]."""
    if audio_format == "pcm":
        return np.frombuffer(data, dtype="<i2").reshape(-1, 2).T.astype(np.float32) / 32_768
    as_floats = av.AudioResampler(format="fltp", layout="stereo", rate=24_000)
    with av.open(io.BytesIO(data)) as container:
        assert container.streams.audio[0].channels == 2
        frames = [one for frame in container.decode(audio=0) for one in as_floats.resample(frame)]
    return np.concatenate([frame.to_ndarray() for frame in frames], axis=1)


@pytest.mark.parametrize("pan", [1.5, -2, "left"])
def test_a_pan_that_cant_be_is_refused(client: TestClient, pan: object) -> None:
    body = {"input": SCRIPT, "characters": {"Ida": {"pan": pan}}}
    assert client.post("/v1/dialogs", json=body).status_code == 400


@pytest.mark.parametrize(("level_db", "status"), [(12, 201), (12.5, 400), (-30, 201), (-30.5, 400)])
def test_a_level_is_at_most_12_db_more_or_30_less(
    client: TestClient, level_db: float, status: int
) -> None:
    body = {"input": "[pause:1s]", "characters": {"Ida": {"level_db": level_db}}}
    assert client.post("/v1/dialogs", json=body).status_code == status


def test_subtitles_keep_their_times(client: TestClient) -> None:
    text = (
        "1\n00:00:02,500 --> 00:00:03,000\nIda: Who goes there, at this time of night?\n\n"
        "2\n00:00:03,100 --> 00:00:04,000\nTom: Me.\n\n"
        "3\n00:00:09,000 --> 00:00:10,000\nIda: Oh.\n"
    )
    dialog = rendered(client, input=text, fit=True)
    assert [(one["segment"], one["kinds"]) for one in dialog["doubtful"]] == [(0, ["over"])]
    answer = client.get(f"/v1/dialogs/{dialog['id']}/audio", params={"zip": "lines"})
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        rows = json.loads(archive.read("manifest.json"))["segments"]
    assert [rows[idx]["start_s"] for idx in (0, 2)] == [2.5, 9.0]
    item = {"type": "speech", "speaker_id": "Ida", "text": "Hm?"}
    assert client.post("/v1/dialogs", json={"input": [item | {"start_s": -1}]}).status_code == 400


def test_a_zip_has_the_names_of_another_program(client: TestClient) -> None:
    said = {"type": "speech", "speaker_id": "Ida", "text": "Who goes there?"}
    items = [
        said | {"id": "VO_1", "file": "barks/guard.wav", "max_duration": 0.5},
        said | {"params": {"id": "VO_2", "max_duration": 90}},
    ]
    dialog = rendered(client, input=items)
    assert [(one["line"], one["kinds"]) for one in dialog["doubtful"]] == [(1, ["over"])]
    at = f"/v1/dialogs/{dialog['id']}/audio"
    for names, wanted in (("{file}", "barks/guard.wav VO_2.wav"), ("{id}", "VO_1.wav VO_2.wav")):
        answer = client.get(at, params={"zip": "lines", "names": names})
        with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
            assert archive.namelist() == ["scene.wav", *wanted.split(), "manifest.json"]
            rows = json.loads(archive.read("manifest.json"))["segments"]
        assert [row["id"] for row in rows] == ["VO_1", "VO_2"]
    refused = client.post("/v1/dialogs", json={"input": [said | {"max_duration": "short"}]})
    assert refused.status_code == 400
    assert "max_duration is the most seconds" in refused.text


def test_a_zip_has_the_lines_with_captions_and_what_podcasts_have(client: TestClient) -> None:
    dialog = rendered(client, input=LONG_SCRIPT, gap_s=0.5)
    at = f"/v1/dialogs/{dialog['id']}/audio"
    wanted = {"zip": "lines", "captions": True, "podcast": True, "names": "{number}-{speaker}"}
    answer = client.get(at, params=wanted)
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = set(archive.namelist())
        captions = archive.read("scene.srt").decode()
        scene, _ = soundfile.read(io.BytesIO(archive.read("scene.wav")))
    assert names == {
        *("0001-Ida.wav", "0002-Tom.wav", "scene.wav", "manifest.json", "scene.srt", "scene.vtt"),
        "transcript.json",
    }
    assert len(scene) / STUDIO_RATE_HZ == pytest.approx(dialog["audio_s"], abs=0.001)
    texts = [cue.split("\n")[2:] for cue in captions.strip().split("\n\n")]
    assert max(len(row) for rows in texts for row in rows) <= 42
    tracks = client.get(at, params={"zip": "tracks"})
    with zipfile.ZipFile(io.BytesIO(tracks.content)) as archive:
        assert "scene.rpp" in archive.namelist()
    low, high = (client.get(at, params={"format": "mp3", "bitrate": kbps}) for kbps in (64, 192))
    assert 2 * len(low.content) < len(high.content)
    wrong = {"bitrate": {"format": "mp3", "bitrate": 65}, "names": {"zip": "lines", "names": "x"}}
    for param, given in wrong.items():
        refused = client.get(at, params=given)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
