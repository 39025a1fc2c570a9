"""The panels of voices: what a person wrote is shown as typed, and everything can be used."""

import json
import shutil

import pytest
from ui_steps import NAMELESS, violations

pytestmark = pytest.mark.browser

HOSTILE = ("<img src=x onerror=alert(1)>", "${7*7}", "{{x}}", "\\u{")


@pytest.fixture
def hostile(server):
    """Voices whose every text is one that a careless page would execute."""
    folders = []
    for idx, text in enumerate(HOSTILE):
        folder = server.workspace / "speakers" / f"hostile{idx}"
        folder.mkdir(parents=True)
        record = {"name": text, "colour": "#046bd0", "tags": [text], "description": text}
        record["preset"] = text
        (folder / "speaker.json").write_text(json.dumps(record), encoding="utf-8")
        folders.append(folder)
    yield
    for folder in folders:
        shutil.rmtree(folder)


def test_hostile_texts_are_shown_as_typed_wherever_a_voice_is(
    open_page, hostile, recording, tmp_path
):
    page = open_page()
    # A studio's first voices are there, too, where no test before has removed them.
    page.wait_for_function(
        "() => document.querySelectorAll('#library [data-id^=hostile]').length === 4"
    )
    for text in HOSTILE:
        name = page.locator(".voice-name").get_by_text(text, exact=True)
        row = page.locator("#library .voice", has=name)
        assert row.locator(".voice-name").inner_text() == text
        assert row.locator(".voice-labels").inner_text() == text
        row.locator(".voice-open").click()
        page.wait_for_selector("#voice-panel[open]")
        assert page.inner_text("#voice-title") == text
        assert page.input_value("#voice-labels") == text
        assert page.input_value("#voice-description") == text
        page.click("#voice-sample-add")
        assert page.inner_text("#sample-title") == f"Set a voice for {text}"
        named = tmp_path / f"{text.replace('/', '')}.wav"
        shutil.copy(recording, named)
        page.set_input_files("#sample-source input[type=file]", named)
        page.wait_for_selector("#sample-editor:not([hidden])")
        assert page.inner_text("#sample-state") == f"“{named.name}”, 6.0 s"
        page.keyboard.press("Escape")
        page.wait_for_selector("#sample-panel", state="hidden")
        page.click("#voice-remove")
        page.wait_for_selector("#confirm[open]")
        assert page.inner_text("#confirm-title") == f"Remove {text}?"
        page.click("#confirm button[value=keep]")
        page.click("#voice-panel .sheet-close")
        page.wait_for_selector("#voice-panel", state="hidden")


def test_the_question_before_a_removal_is_not_asked_of_a_panel_that_was_left(open_page, hostile):
    page = open_page()
    held = []
    page.route("**/studio/projects", lambda route: held.append(route))
    page.evaluate(
        """() => {
            const title = document.querySelector("#confirm-title");
            window.asked = [];
            const note = () => window.asked.push(title.textContent);
            new MutationObserver(note).observe(title, { childList: true, subtree: true });
        }"""
    )
    for folder in ("hostile1", "hostile2"):
        page.click(f"#library [data-id={folder}] .voice-open")
        page.wait_for_selector("#voice-panel[open]")
        with page.expect_request("**/studio/projects"):
            page.click("#voice-remove")
        if folder == "hostile1":
            page.keyboard.press("Escape")
            page.wait_for_selector("#voice-panel", state="hidden")
    for route in held:
        with page.expect_response("**/studio/projects"):
            route.continue_()
    page.wait_for_selector("#confirm[open]")
    page.wait_for_function("() => window.asked.at(-1) === 'Remove {{x}}?'")
    assert page.evaluate("() => window.asked") == ["Remove {{x}}?"]


@pytest.mark.parametrize("look", ["light", "dark"])
def test_panels_have_names_and_contrast_and_fit_a_phone(open_page, recording, look):
    page = open_page(color_scheme=look)
    page.click("#voice-new")
    page.set_input_files("#sample-source input[type=file]", recording)
    page.wait_for_selector("#sample-editor:not([hidden]):not([aria-busy=true])")
    page.click("#sample-repair")
    page.wait_for_selector("#sample-repaired:not([hidden])")
    assert page.evaluate(NAMELESS) == []
    assert violations(page, [".sheet[open]"]) == []
    page.fill("#speaker-name", f"Shrike in the {look}")
    page.check("#sample-consent")
    page.click("#speaker-add")
    page.wait_for_selector("#sample-panel", state="hidden")
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("#views [data-view=cast]")
    page.click(f"#library .voice:has-text('in the {look}') .voice-open")
    page.wait_for_selector("#voice-panel[open]")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
    assert page.evaluate("() => document.querySelector('#voice-panel').scrollWidth") <= 390
    assert page.evaluate(NAMELESS) == []
    assert violations(page, [".sheet[open]"]) == []
