"""A recording that comes in is transcribed and denoised; the user's own words stay."""

import numpy as np
import pytest
import soundfile
from playwright.sync_api import expect
from ui_steps import violations

from studio.audio.analysis import measure_levels
from studio.audio.clip import STUDIO_RATE_HZ
from studio.audio.decode import decode
from studio.backends.base import SpeechRequest
from studio.backends.espeak.backend import DraftBackend
from studio.voices.library import SpeakerLibrary
from studio.voices.speaker import Voice

pytestmark = pytest.mark.browser
pytest.importorskip("sherpa_onnx")

TEXT = "the lamp is still burning and nobody has climbed the stairs"
EDITOR = "#sample-editor:not([hidden]):not([aria-busy=true])"


@pytest.fixture(scope="module")
def server(server_of):
    return server_of("listening_server.py")


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """The draft voice in a quiet room, and in a hiss."""
    backend = DraftBackend(workers=1)
    backend.load(lambda _: None)
    voice = backend.condition(Voice("Ida"))
    speech = np.concatenate(list(backend.speak(SpeechRequest(TEXT, voice, language="en"))))
    backend.unload()
    speech = np.pad(speech, STUDIO_RATE_HZ // 3)
    hiss = np.random.default_rng(4).normal(size=len(speech)) * 0.003
    folder = tmp_path_factory.mktemp("recordings")
    soundfile.write(folder / "quiet.wav", speech, STUDIO_RATE_HZ)
    soundfile.write(folder / "noisy.wav", speech + hiss, STUDIO_RATE_HZ)
    return folder


@pytest.fixture
def choose(page, recordings):
    """Opens the panel of a new voice with a recording."""

    def chosen(name, file_name="quiet.wav"):
        page.click("#voice-new")
        page.fill("#speaker-name", name)
        page.set_input_files("#sample-source .source-file", recordings / file_name)
        page.wait_for_selector(EDITOR)

    yield chosen
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")


def noise_db(path):
    return measure_levels(decode(path)).noise_db


def test_the_words_are_filled_in_and_can_be_edited(page, server, choose):
    choose("Heron")
    field = page.locator("#sample-transcript")
    expect(field).not_to_have_value("")
    expect(page.locator("#sample-words-note")).to_contain_text("written by a recogniser")
    assert violations(page, ["#sample-panel"]) == []
    field.fill("My own words.")
    page.locator("#sample-wave .wave-start").focus()
    page.keyboard.press("Shift+ArrowRight")
    page.wait_for_selector(EDITOR)
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel", state="hidden")
    library = SpeakerLibrary(server.workspace / "speakers")
    assert library.get("Heron").transcript == "My own words."


def test_noise_is_taken_out_and_both_recordings_can_be_heard_and_used(page, server, choose):
    choose("Curlew", "noisy.wav")
    page.click("#sample-denoise")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    assert "noise taken out" in page.inner_text("#sample-steps")
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel", state="hidden")
    library = SpeakerLibrary(server.workspace / "speakers")
    curlew = library.get("Curlew")
    clean_db = noise_db(curlew.sample)
    assert clean_db < noise_db(curlew.formers[0].path) - 15
    entry = page.locator("#library .voice", has=page.locator(".voice-name", has_text="Curlew"))
    if page.is_hidden("#voice-panel"):
        entry.locator(".voice-open").click()
    original = page.locator("#voice-samples .sample-original")
    original.click()
    expect(original).to_have_attribute("aria-pressed", "true")
    assert page.is_hidden("#voice-samples .sample-undo")
    page.click("#voice-samples .sample-exchange")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('to the other recording')")
    assert noise_db(library.get("Curlew").sample) > clean_db + 15
    page.click("#voice-samples .sample-exchange")
    page.wait_for_function(
        "() => document.querySelector('#voice-samples .sample-exchange:enabled') !== null"
    )
    assert violations(page, ["#voice-panel"]) == []


def test_what_is_said_isnt_known_and_the_field_stays_empty(page, choose):
    page.route(
        "**/words",
        lambda route: route.fulfill(
            json={"transcript": None, "language": "de", "note": "No recogniser is installed."}
        ),
    )
    choose("Plover")
    expect(page.locator("#sample-words-note")).to_have_text("No recogniser is installed.")
    expect(page.locator("#sample-transcript")).to_have_value("")
    expect(page.locator("#sample-language")).to_have_value("de")
    page.unroute("**/words")
