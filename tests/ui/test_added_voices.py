"""A trained Piper voice is dropped, heard and removed; a public one is found and downloaded.

`TABLEREAD_TRAINED` names a folder with `piper`: Joe's .onnx with its .onnx.json. The tests' hub has
them too, at the address of the real one.
"""

import json
import os
from pathlib import Path

import pytest
from playwright.sync_api import expect
from ui_steps import fill, open_picker, studio_url, violations

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
import sherpa_models

pytestmark = [pytest.mark.browser, pytest.mark.slow]

JOE = "en_US-joe-medium"
TRAINED = Path(os.environ.get("TABLEREAD_TRAINED", "nowhere")) / "piper"
FILES = [TRAINED / f"{JOE}.onnx", TRAINED / f"{JOE}.onnx.json"]
GRAPH = f"en/en_US/joe/medium/{JOE}.onnx"

CARRIER = """() => {
  const field = document.createElement("input");
  Object.assign(field, { type: "file", multiple: true, hidden: true, id: "carrier" });
  document.body.append(field);
}"""
DROP = """selector => {
  const dataTransfer = new DataTransfer();
  for (const file of document.getElementById("carrier").files) dataTransfer.items.add(file);
  for (const type of ["dragover", "drop"]) {
    const event = new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer });
    document.querySelector(selector).dispatchEvent(event);
  }
}"""


@pytest.fixture(scope="module")
def hub_files():
    if not all(file.is_file() for file in FILES):
        pytest.skip(f"no trained Piper voice is here: TABLEREAD_TRAINED names no folder with {JOE}")
    return {GRAPH: FILES[0].read_bytes(), f"{GRAPH}.json": FILES[1].read_bytes()}


@pytest.fixture(scope="module")
def server(first_start):
    return first_start(TESTS_REAL_WEIGHTS="1")


@pytest.fixture(scope="module")
def own(window):
    """The voices of one's own, in the panel of voice engines."""
    fill(window, "Ann: Good morning, Bob.", 1)
    window.evaluate(CARRIER)
    return window.locator("#voice-files-own .backend")


@pytest.fixture
def drop(window, own):
    """Drops files on the page."""

    def dropped(files, place="#model-panel"):
        window.set_input_files("#carrier", files)
        window.evaluate(DROP, place)

    return dropped


def refused(window, text):
    window.locator(f".notice[data-notice=refused]:has-text('{text}')").wait_for()


def files(server):
    """Of voices, and what an upload or a download would leave."""
    folders = [server.workspace / "voices", server.workspace / "uploads"]
    folders.append(server.workspace.with_name("cache"))
    found = (path for one in folders for path in one.rglob("*") if path.is_file())
    return {path.name for path in found} - {".download.lock"}


def remove(window, own):
    own.locator("[data-act=remove]").click()
    assert f"Remove {JOE}.onnx from this machine?" in window.inner_text("#remove-engine")
    window.click("#remove-engine [value=remove]")
    expect(own).to_have_count(0)


def test_a_dropped_voice_is_heard_in_the_picker_and_removed(window, own, drop, server):
    drop(FILES, "#part-lines")  # wherever it's dropped
    expect(own).to_have_count(1)
    expect(own).to_contain_text("American English, 1 voice")
    expect(window.locator("[data-passing]")).to_contain_text(f"{JOE}.onnx added: 1 voice.")
    assert files(server) == {file.name for file in FILES}
    window.keyboard.press("Escape")
    open_picker(window, "Ann")
    window.select_option("#picker-engine", "piper")
    joe = f"engine/piper/{JOE}"
    window.click(f".pick[data-key='{joe}'] .pick-open")
    window.wait_for_selector(f"#voice-picker[data-heard='{joe}']")
    window.wait_for_selector("#voice-picker [aria-busy=true]", state="detached")
    window.keyboard.press("Escape")
    window.click("#model-chip")
    remove(window, own)
    assert files(server) == set()


def test_voices_of_two_and_of_904_speakers_are_in_the_picker(window, own, drop, server, tmp_path):
    for speakers, name in ((2, "de_DE-two-low"), (904, "de_DE-many-low")):
        graph = tmp_path / f"{name}.onnx"
        graph.write_bytes(sherpa_models.piper_graph(speakers))
        symbols = dict.fromkeys(sherpa_models.IPA)
        known = json.loads(FILES[1].read_text("utf-8")) | {
            "espeak": {"voice": "de"},
            "language": {"code": "de_DE"},
            "num_speakers": speakers,
            "phoneme_id_map": {char: [number] for number, char in enumerate(symbols)},
        }
        graph.with_name(f"{graph.name}.json").write_text(json.dumps(known), "utf-8")
        drop([graph, graph.with_name(f"{graph.name}.json")])
        expect(own.locator(f"text={speakers} voices")).to_be_visible()
    assert violations(window, ["#model-panel"]) == []
    window.keyboard.press("Escape")
    open_picker(window, "Ann")
    window.select_option("#picker-engine", "piper")
    expect(window.locator("#picker-count")).to_contain_text("906")
    last = "engine/piper/de_DE-many-low:904"
    window.fill("#picker-search", "Many: 904")
    window.click(f".pick[data-key='{last}'] .pick-open")
    window.wait_for_selector(f"#voice-picker[data-heard='{last}']")
    window.keyboard.press("Escape")
    window.wait_for_selector("#voice-picker", state="hidden")
    window.click("#model-chip")
    for name in ("de_DE-many-low", "de_DE-two-low"):
        one = own.filter(has_text=name)
        one.locator("[data-act=remove]").click()
        window.click("#remove-engine [value=remove]")
        expect(one).to_have_count(0)


def test_an_upload_is_cancelled(window, own, drop, server):
    slow = window.context.new_cdp_session(window)
    about = {"offline": False, "latency": 0, "downloadThroughput": -1}
    slow.send("Network.emulateNetworkConditions", about | {"uploadThroughput": 2_000_000})
    drop(FILES)
    window.wait_for_function(
        "() => document.querySelector('#voice-files-sending progress').value > 0"
    )
    window.click("#voice-files-sending button")
    window.wait_for_selector("#voice-files-sending", state="hidden")
    slow.send("Network.emulateNetworkConditions", about | {"uploadThroughput": -1})
    slow.detach()
    assert window.locator(".notice[data-notice=refused]").count() == 0
    expect(own).to_have_count(0)
    assert files(server) == set()


def test_what_is_no_voice_is_refused_in_the_usual_notice(window, own, drop, server, tmp_path):
    stray = tmp_path / "x.onnx"
    stray.write_bytes(b"no graph")
    drop([stray])
    refused(window, "x.onnx comes without x.onnx.json: add both files of the voice.")
    settings = tmp_path / "x.onnx.json"
    settings.write_bytes(FILES[1].read_bytes())
    drop([stray, settings])
    refused(window, "x.onnx is no Piper voice, or broken.")
    with stray.open("wb") as file:
        file.truncate(201_000_000)
    drop([stray, settings])
    refused(window, "This is larger than the 200 MB that are taken here.")
    expect(own).to_have_count(0)
    assert files(server) == set()


def test_a_public_voice_is_found_by_its_language_and_downloaded(window, own, hub, server):
    window.fill("#voice-files-search", "american")
    languages = window.locator("#voice-files-public > details")
    expect(languages).to_have_count(1)
    languages.locator("summary").first.click()
    joe = window.locator(f".backend[data-engine={JOE}]")
    expect(joe).to_contain_text("Licence: CC0 1.0")
    hub.hold_after[GRAPH] = 9_000_000
    joe.locator("[data-act=download]:text-is('Download (63 MB)')").click()
    joe.locator("progress").wait_for()
    joe.locator("[data-act=cancel]").click()
    hub.hold_after.clear()
    joe.locator("[data-act=download]").wait_for()
    assert files(server) == set()
    joe.locator("[data-act=download]").click()
    expect(own).to_have_count(1)
    expect(joe).to_contain_text("On this machine")
    assert files(server) == {file.name for file in FILES}
    engines = window.request.get(studio_url(window, "state")).json()["backends"]
    assert {one["name"]: one["presets"] for one in engines}["piper"] == 1
    remove(window, own)


def test_without_a_network_the_list_shows_and_a_download_says_why(window, own, hub):
    hub.status = 503
    joe = window.locator(f".backend[data-engine={JOE}]")
    hub.stop()
    joe.locator("[data-act=download]").click()
    joe.locator(".backend-note:has-text('can\\'t be reached; check the network')").wait_for()
    joe.locator("[data-act=cancel]").click()
    joe.locator("[data-act=download]:text-is('Download (63 MB)')").wait_for()
