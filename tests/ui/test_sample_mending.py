"""A sample that is in the library is trimmed and repaired, kept or left, and brought back."""

import numpy as np
import pytest
import soundfile
from ui_steps import add_voice, violations
from voice_like import voice_like

from studio.voices.library import SpeakerLibrary

pytestmark = pytest.mark.browser

RATE_HZ = 24_000
EDITOR = "#sample-editor:not([hidden]):not([aria-busy=true])"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def poor(tmp_path):
    """A quiet voice with two seconds of silence before and behind."""
    silence = np.zeros(2 * RATE_HZ, dtype=np.float32)
    path = tmp_path / "poor.wav"
    clip = np.concatenate([silence, 0.03 * voice_like(6).samples, silence])
    soundfile.write(path, clip, RATE_HZ)
    return path


@pytest.fixture
def keep(page, server, poor):
    """Puts a poor sample into the library and opens its voice."""

    def kept(name):
        add_voice(server.url, server.workspace, name, sample=poor, transcript="Hello there.")
        entry = page.locator("#library .voice", has=page.locator(".voice-name", has_text=name))
        entry.locator(".voice-open").click()
        page.wait_for_selector("#voice-panel[open]")
        return SpeakerLibrary(server.workspace / "speakers")

    yield kept
    page.evaluate("() => document.querySelectorAll('dialog[open]').forEach((one) => one.close())")


def mend(page):
    page.click("#voice-samples .sample-mend")
    page.wait_for_selector(EDITOR)


def sample_length(page, text):
    page.wait_for_selector(f"#voice-samples .sample-length:text-is('{text}')")


def test_a_kept_sample_is_repaired_heard_kept_and_brought_back(page, keep):
    library = keep("Curlew")
    path = library.find("Curlew").sample
    before = path.read_bytes()
    mend(page)
    assert page.input_value("#sample-transcript") == "Hello there."
    for id_ in ("sample-new", "sample-source", "sample-consent-label", "sample-mood-label"):
        assert page.is_hidden(f"#{id_}")
    found = page.locator("#sample-problems .found[data-code=quiet]")
    found.wait_for()
    page.click("#sample-repair")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    assert "of silence" in page.inner_text("#sample-steps")
    assert page.inner_text("#sample-figures thead .after") == "after"
    assert violations(page, ["#sample-panel"]) == []
    page.click("#sample-repair")
    page.wait_for_selector("#sample-repaired", state="hidden")
    page.click("#sample-repair")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    page.click("#speaker-add")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('Sample changed')")
    assert path.read_bytes() != before
    page.click("#voice-samples .sample-undo")
    page.wait_for_selector("#voice-panel .sheet-message:has-text('is unchanged again')")
    sample_length(page, "10.0 s")
    assert path.read_bytes() == before
    assert page.is_hidden("#voice-samples .sample-undo")
    page.keyboard.press("Escape")
    page.wait_for_selector("#voice-panel", state="hidden")


def test_a_kept_sample_is_trimmed_by_keys_and_left_as_it_is_without_a_word(page, keep):
    library = keep("Godwit")
    path = library.find("Godwit").sample
    before = path.read_bytes()
    mend(page)
    page.focus("#sample-wave .wave-start")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    page.wait_for_selector(EDITOR)
    page.keyboard.press("Escape")
    page.wait_for_selector("#sample-panel", state="hidden")
    assert path.read_bytes() == before
    mend(page)
    page.focus("#sample-wave .wave-start")
    page.keyboard.press("PageUp")
    page.wait_for_selector(EDITOR)
    page.fill("#sample-transcript", "There.")
    page.click("#speaker-add")
    sample_length(page, "9.0 s")
    assert library.find("Godwit").transcript == "There."


def test_a_hostile_name_is_shown_as_typed_while_its_sample_is_mended(page, keep):
    keep(HOSTILE)
    mend(page)
    assert page.inner_text("#sample-title") == f"Trim or clean up the main sample of {HOSTILE}"


def test_a_sample_whose_file_is_gone_says_what_to_do(page, keep):
    library = keep("Whimbrel")
    library.find("Whimbrel").sample.unlink()
    page.click("#voice-samples .sample-mend")
    page.wait_for_selector("#sample-panel .sheet-message:has-text('Choose a recording again')")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel .sheet-message:has-text('close this panel')")
