"""Screenplays and models' answers, pasted or brought as files: the same lines, and a narrator."""

import pytest
from playwright.sync_api import expect
from ui_steps import saved, stored

pytestmark = pytest.mark.browser

PASTED = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
  return event.defaultPrevented;
}"""
SAID = "() => window.tableread.project.lines.map(({ speaker, text }) => [speaker, text])"

SCREENPLAY = (
    "Title: The Weir\n\nINT. WEIR - NIGHT\n\nRain. IVO waits.\n\nIVO\n(angrily)\nGet out!\n\n"
    "ANNA (V.O.)\nNo.\n\nCUT TO:\n"
)
WORDS = [["IVO", "(angrily) Get out!"], ["ANNA", "No."]]
ASIDE = ["INT. WEIR - NIGHT", "Rain. IVO waits.", "CUT TO:"]
ROWS = [[None, ASIDE[0]], [None, ASIDE[1]], *WORDS, [None, ASIDE[2]]]
NARRATED = [["Narrator", ASIDE[0]], ["Narrator", ASIDE[1]], *WORDS, ["Narrator", ASIDE[2]]]
ANSWER = (
    "Sure! Here's a short dialogue:\n\n**Ivo:** *(whispering)* How **long**?\n\n**Anna:** Long."
)
NARRATOR = ".notice[data-notice=narrator]"


def narrate(page):
    expect(page.locator(NARRATOR)).to_contain_text("3 headings, actions and directions not spoken")
    page.locator(f"{NARRATOR} .notice-act").click()
    page.wait_for_function("() => window.tableread.project.lines.every(({ speaker }) => speaker)")
    expect(page.locator(NARRATOR)).to_have_count(0)
    assert page.evaluate(SAID) == NARRATED
    saved(page)


def test_a_pasted_screenplay_is_read_and_a_narrator_is_one_press_away(page, write):
    write("", 0)
    page.evaluate("() => document.activeElement.blur()")
    assert page.evaluate(PASTED, SCREENPLAY)
    expect(page.locator("#lines .line")).to_have_count(5)
    assert page.evaluate(SAID) == ROWS
    narrate(page)
    page.keyboard.press("Control+z")  # the narrator is one step
    page.wait_for_function("() => window.tableread.project.lines.some(({ unspoken }) => unspoken)")
    assert page.evaluate(SAID) == ROWS
    saved(page)


def test_an_imported_screenplay_is_the_same_and_is_named_by_its_title(page, write, tmp_path):
    former = write("Ilse: Hush.", 1)
    path = tmp_path / "draft 3.txt"
    path.write_text(SCREENPLAY, encoding="utf-8")
    page.set_input_files("#import-file", path)
    page.wait_for_function("id => window.tableread.project.id !== id", arg=former)
    expect(page.locator("#lines .line")).to_have_count(5)
    assert page.evaluate(SAID) == ROWS
    expect(page.locator("#project-title")).to_have_text("The Weir")
    narrate(page)


SUBTITLES = (
    "1\n00:00:00,500 --> 00:00:01,000\nIvo: Hush.\n\n"
    "2\n00:00:04,250 --> 00:00:05,000\nAnna: Who?\n\n3\nodd --> time\nIvo: You.\n"
)
TIMED = "() => window.tableread.project.lines.map(({ kind, params }) => [kind, params?.start_s])"


def test_subtitles_keep_their_times_by_one_press(page, write):
    write("", 0)
    page.evaluate("() => document.activeElement.blur()")
    assert page.evaluate(PASTED, SUBTITLES)
    expect(page.locator("#lines .line")).to_have_count(5)  # with the pauses between them
    expect(page.locator(NARRATOR)).to_contain_text("These are subtitles.")
    page.locator(f"{NARRATOR} .notice-act").click()
    expect(page.locator("#lines .line")).to_have_count(3)
    assert page.evaluate(TIMED) == [["speech", 0.5], ["speech", 4.25], ["speech", None]]
    saved(page)
    starts = "() => window.tableread.player.playlist.starts"
    assert page.evaluate(starts)[:2] == [12_000, 102_000]
    page.locator(".notice[data-notice='brought:The clipboard'] .notice-act").click()
    expect(page.locator("#lines .line[aria-selected=true]")).to_contain_text("You.")


def test_a_screenplay_pasted_into_the_script_leaves_the_script_around_it(page, write):
    project = write("Ilse: Hush.", 1)
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value("Ilse: Hush.\n")
    page.locator("#script").press("Control+End")
    page.evaluate(PASTED, SCREENPLAY)
    expect(page.locator("#script")).to_have_value(
        f"Ilse: Hush.\n## {ASIDE[0]}\n#> {ASIDE[1]}\nIVO: (angrily) Get out!\nANNA: No.\n"
        f"#> {ASIDE[2]}\n"
    )
    # Unread it is six lines, too, and may have been sent.
    page.wait_for_function(
        f"(rows) => JSON.stringify(({SAID})()) === JSON.stringify(rows)",
        arg=[["Ilse", "Hush."], *ROWS],
    )
    saved(page)
    assert stored(page, project) == ["Hush.", "—", "—", "(angrily) Get out!", "No.", "—"]
    page.locator(f"{NARRATOR} .notice-act").click()
    expect(page.locator("#script")).to_have_value(
        "Ilse: Hush.\nNarrator: INT. WEIR - NIGHT\nNarrator: Rain. IVO waits.\n"
        "IVO: (angrily) Get out!\nANNA: No.\nNarrator: CUT TO:\n"
    )
    page.wait_for_function("() => window.tableread.project.lines.every(({ speaker }) => speaker)")
    saved(page)
    page.click("#views [data-view=lines]")


def test_a_model_s_answer_pasted_among_the_lines_is_its_words(page, write):
    write("Ilse: Hush.", 1)
    page.click("#lines .line-grip >> nth=0")
    assert page.evaluate(PASTED, ANSWER)
    expect(page.locator("#lines .line")).to_have_count(4)
    assert page.evaluate(SAID)[1:] == [
        [None, "Sure! Here's a short dialogue:"],
        ["Ivo", "(whispering) How long?"],
        ["Anna", "Long."],
    ]
    expect(page.locator(".notice-text", has_text="What a language model says")).to_be_visible()
    saved(page)
    written = page.locator("#lines .line-text >> nth=2")  # the caret stands in the first line said
    expect(written).to_have_text("(whispering) How long?")
    expect(written).to_be_focused()


def test_directions_are_dimmed_and_the_panel_says_what_becomes_of_them(page, write):
    write("Ivo: (whispering) How long? (and I mean it)\nAnna: Long.", 2)
    page.wait_for_function("() => CSS.highlights.get('direction')?.size === 1")
    dimmed = page.evaluate("() => [...CSS.highlights.get('direction')].map(String)")
    assert dimmed == ["(whispering)"]
    page.click("#lines .line-grip >> nth=0")
    expect(page.locator("#hints")).to_contain_text("“whispering” is a stage direction")
    page.locator("#lines .line-text").first.fill("How long?")
    page.wait_for_function("() => CSS.highlights.get('direction')?.size === 0")
    saved(page)


STORY = """The tide had gone out, and the two boats lay on the sand.

“We should have left at noon,” said Anna.

“You wanted to eat first,” Ivo answered.

She laughed, and pushed at the nearer boat with her foot. “It isn't moving,” said Anna.

“Then we wait,” said Ivo, and sat down on the rope.
"""


def test_a_pasted_story_is_said_by_its_people_or_by_one_narrator(page, write):
    write("", 0)
    page.evaluate("() => document.activeElement.blur()")
    assert page.evaluate(PASTED, STORY)
    page.wait_for_function("() => window.tableread.project.lines.length > 4")
    said = page.evaluate(SAID)
    assert ["Anna", "“We should have left at noon,”"] in said
    assert ["Ivo", "“Then we wait,”"] in said
    assert {name for name, _ in said} == {"Narrator", "Anna", "Ivo"}
    saved(page)
    expect(page.locator(NARRATOR)).to_contain_text("4 quotations")
    page.get_by_role("button", name="Read by one narrator").click()
    page.wait_for_function(
        "() => window.tableread.project.lines.every(({ speaker }) => speaker === 'Narrator')"
    )
    words = " ".join(text for _, text in page.evaluate(SAID))
    assert words.split() == STORY.split()
    page.keyboard.press("Control+z")
    page.wait_for_function(
        "() => window.tableread.project.lines.some((one) => one.speaker === 'Ivo')"
    )
    assert page.evaluate(SAID) == said
    saved(page)


UNSURE = """() => {
  const { lines } = window.tableread.project;
  return lines.filter(({ params }) => params?.unsure).map(({ text }) => text);
}"""
UNKNOWN = (
    "Anna: We should have left at noon.\nIvo: You wanted to eat first.\n"
    "[Narrator | unsure:true] “Who is there?”\nNarrator: The tide had gone out.\n"
    "[Narrator | unsure:true] “The tide is back!”\n"
)


def test_quotations_of_nobody_are_walked_through_by_their_numbers(page, write):
    write("", 0)
    page.evaluate("() => document.activeElement.blur()")
    assert page.evaluate(PASTED, UNKNOWN)
    page.wait_for_function("() => window.tableread.project.lines.length > 4")
    unsure = page.evaluate(UNSURE)
    assert unsure == ["“Who is there?”", "“The tide is back!”"]
    saved(page)
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    current = "() => window.tableread.project.line(window.tableread.selection.current)?.text"
    assert page.evaluate(current) == unsure[0]
    expect(page.locator(".line-badge[data-badge=unsure]")).to_have_count(2)
    ivo = page.evaluate(
        "() => window.tableread.project.view.speakers.findIndex(({ name }) => name === 'Ivo')"
    )
    page.keyboard.press(str(ivo + 1))
    assert page.evaluate(current) == unsure[1]
    page.keyboard.press("0")
    page.locator("#field-speaker").fill("Ferryman")
    page.keyboard.press("Enter")
    page.wait_for_function(f"() => !({UNSURE})().length")
    said = page.evaluate(SAID)
    assert ["Ivo", unsure[0]] in said
    assert ["Ferryman", unsure[1]] in said
    saved(page)
    page.reload()
    page.wait_for_function("() => window.tableread?.project?.lines.length > 4")
    assert page.evaluate(SAID) == said
    assert page.evaluate(UNSURE) == []
