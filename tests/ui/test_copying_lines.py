"""Lines on the clipboard: the studio's own script, which comes back in with all it says."""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, line_ids, saved, stored, texts

from studio.dialog.formats.dialog_file import read_dialog_text

pytestmark = pytest.mark.browser

SCENE = (
    'Mara: One.\n[pause:0.5s]\n[Tomas | lang:de | mood:"very sad" | speed:1.2 | seed:7] Zwei.\n'
    "Ilse: Three."
)
HELD = """() => window.tableread.project.lines.map(
  ({ kind, speaker, text, language, seed, params }) =>
    ({ kind, speaker, text, language, seed, params }))"""

# The event that the browser makes of the key, with a clipboard of the test's own.
CARRIED = """kind => {
  const clipboardData = new DataTransfer();
  const event = new ClipboardEvent(kind, { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  return event.defaultPrevented ? clipboardData.getData('text/plain') : null;
}"""
PASTED = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  return event.defaultPrevented;
}"""
ODD = [
    {"speaker": "Mara", "text": "One: two."},
    {"speaker": "Dr. O'Hara: no", "text": "[laugh] Yes."},
    {"speaker": "laugh", "text": "Hm."},
    {"speaker": "pause 3", "text": "# no comment"},
    {"speaker": "ليلى", "text": "نعم.", "language": "ar"},
    {"speaker": "# 1", "text": "\\ a"},
    {"speaker": "A b c d e f", "text": "", "params": {"mood": "true"}},
    {"speaker": "Ida", "text": "x", "params": {"instruct": 'say "a|b] [c" – now', "speed": 1e-7}},
    {"speaker": "Ida", "text": "x", "seed": 0, "params": {"loud": True, "n": 12}},
]
PATHS = ["door.wav", "a [b]|c.wav", ' "q".wav', "türe 1.wav", "x\u2028y.wav"]


def mark(page, first, last):
    page.evaluate(
        """([first, last]) => {
          const { selection, project } = window.tableread;
          selection.go(project.view.order[first]);
          selection.go(project.view.order[last], 'range');
          selection.focus();
        }""",
        [first, last],
    )


def caret(page):
    """The row whose text the caret stands in and where, and what is selected."""
    return page.evaluate(
        """() => [document.activeElement.closest('.line-text')?.closest('.line').dataset.line,
          getSelection().focusOffset, window.tableread.selection.ids]"""
    )


def lines_are(page, number):
    expect(page.locator("#lines .line")).to_have_count(number)
    saved(page)


def test_the_keys_copy_and_paste_lines_with_all_they_say(page, write):
    project = write(SCENE, 4)
    mark(page, 0, 2)
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")
    lines_are(page, 7)
    held = page.evaluate(HELD)
    assert held[3:6] == held[:3]
    assert held[6]["text"] == "Three."
    assert caret(page) == [line_ids(page)[3], 0, []]
    page.keyboard.press("Control+z")
    lines_are(page, 4)
    assert stored(page, project) == ["One.", "—", "Zwei.", "Three."]


def test_what_is_cut_goes_into_another_project(page, write):
    first = write(SCENE, 4)
    mark(page, 1, 2)
    page.keyboard.press("Control+x")
    lines_are(page, 2)
    assert stored(page, first) == ["One.", "Three."]
    write("Heron: Here.", 1)
    mark(page, 0, 0)
    page.keyboard.press("Control+v")
    lines_are(page, 3)
    held = page.evaluate(HELD)[2]
    assert (held["speaker"], held["language"], held["seed"]) == ("Tomas", "de", 7)
    assert held["params"] == {"mood": "very sad", "speed": 1.2}


def test_what_is_copied_is_the_script_that_the_studio_reads(page, write):
    write("Mara: One.", 1)
    lines = [{"kind": "speech", **one} for one in ODD]
    lines += [{"kind": "audio", "path": path} for path in PATHS]
    lines += [{"kind": "silence", "duration_s": seconds} for seconds in (0, 0.25, 1, 300)]
    text = page.evaluate(
        "async (lines) => (await import(new URL('studio/assets/page/document/script_text.js',"
        " document.baseURI))).serializeLines(lines)",
        lines,
    )
    read = list(read_dialog_text(text).dialog)
    assert len(read) == len(lines)
    said = [(one.speaker, one.text, one.language, one.seed) for one in read[: len(ODD)]]
    wanted = [(one["speaker"], one["text"], one.get("language"), one.get("seed")) for one in ODD]
    assert said == wanted
    assert [dict(one.params) for one in read[: len(ODD)]] == [one.get("params", {}) for one in ODD]
    assert [one.path for one in read[len(ODD) : -4]] == PATHS
    assert [one.duration_s for one in read[-4:]] == [0, 0.25, 1, 300]


def test_text_that_is_typed_keeps_the_browsers_own_clipboard(page, write):
    write(SCENE, 4)
    mark(page, 0, 2)
    assert page.evaluate(CARRIED, "copy").startswith("Mara: One.\n")
    page.click("#lines .line-text >> nth=0")
    assert page.evaluate(CARRIED, "copy") is None
    assert page.evaluate(CARRIED, "cut") is None
    assert page.evaluate(PASTED, "Heron: New.") is False
    assert len(line_ids(page)) == 4


def test_a_button_pressed_before_keeps_no_lines_from_the_clipboard(page, write):
    write(SCENE, 4)
    mark(page, 0, 0)
    page.focus("#views [data-view=lines]")
    assert page.evaluate(CARRIED, "copy") == "Mara: One.\n"
    assert page.evaluate(PASTED, "Heron: New.\nMara: Newer.")
    lines_are(page, 6)
    assert texts(page)[:3] == ["One.", "New.", "Newer."]


def test_what_is_pasted_while_the_script_is_shown_goes_into_it(page, write):
    project = write("", 0)
    page.click("#views [data-view=script]")
    page.wait_for_selector("#script:not([readonly])")
    assert page.evaluate("() => document.activeElement.id") != "script"
    assert page.evaluate(PASTED, "Heron: New.")
    expect(page.locator("#script")).to_have_value("Heron: New.")
    expect(page.locator("#script")).to_be_focused()
    page.wait_for_function("() => window.tableread.project.lines.length === 1")
    saved(page)
    assert stored(page, project) == ["New."]
    page.click("#views [data-view=lines]")


def test_prose_without_names_goes_to_the_narrator(page, write):
    write(SCENE, 4)
    mark(page, 0, 0)
    assert page.evaluate(PASTED, "It was a dark night.") is True
    lines_are(page, 5)
    assert texts(page)[1] == "It was a dark night."
    expect(page.locator(".notice-text", has_text="it goes to “Narrator”")).to_be_visible()


def test_rows_with_settings_pasted_into_a_text_become_lines(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    page.click("#lines .line-text >> nth=0")
    page.evaluate(
        """text => {
          const carried = new DataTransfer();
          carried.setData('text/plain', text);
          const about = { inputType: 'insertFromPaste', dataTransfer: carried };
          document.activeElement.dispatchEvent(
            new InputEvent('beforeinput', { ...about, bubbles: true, cancelable: true }));
        }""",
        "[Ilse | lang:de] Zwei.\n[audio: door.wav]",
    )
    lines_are(page, 4)
    assert texts(page) == ["One.", "Zwei.", "door.wav", "Two."]


def test_hostile_words_are_pasted_as_typed(page, write):
    write("Mara: One.", 1)
    mark(page, 0, 0)
    page.evaluate(PASTED, "[<img src=x onerror=alert(1)> |] <script>alert(2)</script> ${7*7}")
    lines_are(page, 2)
    assert texts(page)[1] == "<script>alert(2)</script> ${7*7}"


@pytest.mark.campaign
@pytest.mark.timeout(600)
def test_5000_lines_are_copied_and_pasted(page):
    fill(page, "\n".join(f"[Mara | speed:1.2] Line {n}." for n in range(5_000)), 5_000)
    mark(page, 0, 4_999)
    copied_ms = page.evaluate(
        "kind => { const began = performance.now(); (" + CARRIED + ")(kind);"
        " return performance.now() - began; }",
        "copy",
    )
    print(f"5,000 lines copied in {copied_ms:.0f} ms")
    page.keyboard.press("Control+c")
    page.keyboard.press("Control+v")
    expect(page.locator("#lines .line")).to_have_count(10_000, timeout=120_000)
    saved(page)


def test_what_is_pasted_again_follows_what_was_pasted_before(page, write):
    write(SCENE, 4)
    mark(page, 0, 0)
    page.keyboard.press("Control+c")
    mark(page, 3, 3)
    page.keyboard.press("Control+v")
    lines_are(page, 5)
    expect(page.locator("#lines .line-text:focus")).to_have_text("One.")
    page.keyboard.press("Control+v")
    lines_are(page, 6)
    assert texts(page) == ["One.", "—", "Zwei.", "Three.", "One.", "One."]
    assert caret(page) == [line_ids(page)[5], 0, []]
    page.keyboard.type("No")
    page.keyboard.press("Control+v")  # the caret stands in a word now
    expect(page.locator("#lines .line-text:focus")).to_have_text("NoMara: One. One.")
