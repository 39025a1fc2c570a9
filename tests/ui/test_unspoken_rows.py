"""Headings, notes and action: rows that aren't spoken, kept, folded and played by section."""

import re

import pytest
from playwright.sync_api import expect
from ui_steps import line_ids, make, reopened, saved, studio_url, texts, violations

pytestmark = pytest.mark.browser

SCRIPT = (
    "## Act One\n# who is she?\nMara: One.\n#> She sits.\nTomas: Two.\n## Act Two\nMara: Three."
)
FORMS = """Mara: First.
Title: Screenplaytitle
= Synopsis
INT. HOUSE - NIGHT
Somebody enters.

IVO
(wryly)
Dialogue one.

@McZorble
Forced name.

!Forced action
~Lyric
> TRANSITION:
> Centred <
[[Bracketnote]]
/* Boneyard */
===
.FORCEDSCENE

*Emphasis* and [link] text
- Listpoint
- Mara: Bulleted
> Quoted
| Speaker | Text |
|---|---|
| Mara | Cell |
**Tom:** Bold
**Tom**
Underneath
```
Codeblock
```
1. Numbered

1
00:00:01,000 --> 00:00:02,000
MARA: Captioncue
WEBVTT Header
NOTE Captionnote
00:01.000 --> 00:02.000
<v Mara>Voicetag

[12:01] Mara: Chatmessage
[S1] Turnone [S2] Turntwo (laughs)
<Person1>Tagged</Person1>
[alice] Bracketed [/alice]

ACT TWO
SCENE 2. Moorland
ALGERNON.  Gutenberg said
[Stagedirection]
IVO. (aside) Asidewords
MUSIC: Strings
[SFX: door]

## Heading
# Remark
#> Action
Tom (whispering): Parenthesis
[Tom | mood:angry | lang:de] Attributes
[pause:2s]
\\Literal: text
Tom:
Nameabove
"""
ROWS = ["Act One", "who is she?", "One.", "She sits.", "Two.", "Act Two", "Three."]


def visible(page):
    return page.locator("#lines .line:visible").count()


def heading(page, number):
    return page.locator("#lines .line[data-unspoken=heading]").nth(number)


def test_what_is_typed_into_the_script_is_there_after_a_reload(page, write):
    write("Mara: One.", 1)
    page.click("#views [data-view=script]")
    page.fill("#script", SCRIPT)
    page.click("#views [data-view=lines]")
    page.wait_for_function("n => document.querySelectorAll('#lines .line').length === n", arg=7)
    saved(page)
    assert texts(page) == ROWS
    reopened(page)
    page.wait_for_function("n => document.querySelectorAll('#lines .line').length === n", arg=7)
    assert texts(page) == ROWS
    page.click("#views [data-view=script]")
    expect(page.locator("#script")).to_have_value(f"{SCRIPT}\n")
    page.click("#views [data-view=lines]")


def test_constructs_of_every_form_that_are_typed_are_there_after_a_reload(page, write):
    write("Mara: One.", 1)
    page.click("#views [data-view=script]")
    page.fill("#script", FORMS)
    page.click("#views [data-view=lines]")
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length > 20")
    saved(page)
    reopened(page)
    page.wait_for_function("() => document.querySelectorAll('#lines .line').length > 20")
    rows = [*texts(page), *page.locator("#lines .line-speaker").all_inner_texts()]
    badges = page.locator("#lines .line-badge").all_text_contents()
    there = set(re.findall(r"\w{3,}", " ".join([*rows, *badges]).casefold()))
    written = set(re.findall(r"\w{3,}", FORMS.casefold())) - {"mood", "lang", "pause"}
    assert written - there == set()


def test_a_note_is_written_in_its_row_and_undone(page, write):
    write(SCRIPT, 7)
    page.locator("#lines .line[data-unspoken=note] .line-text").click()
    expect(page.locator("#line-title")).to_have_text("Note")
    page.keyboard.press("End")
    page.keyboard.type(" A stranger.")
    page.keyboard.press("Escape")
    saved(page)
    assert texts(page)[1] == "who is she? A stranger."
    page.locator("#lines .line[data-unspoken=note] .line-what").select_option("action")
    expect(page.locator("#lines .line[data-unspoken=note]")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(page.locator("#lines .line[data-unspoken=note]")).to_have_count(1)
    page.keyboard.press("Control+z")
    expect(page.locator("#lines .line[data-unspoken=note] .line-text")).to_have_text("who is she?")


def test_a_heading_is_added_by_a_key_and_numbers_stay_those_of_lines(page, write):
    write("Mara: One.\nTomas: Two.", 2)
    page.evaluate(
        "() => { const { selection, project } = window.tableread;"
        " selection.go(project.view.order[0]); selection.focus(); }"
    )
    page.keyboard.press("h")
    page.keyboard.type("Later")
    page.keyboard.press("Escape")
    saved(page)
    assert texts(page) == ["One.", "Later", "Two."]
    assert page.locator("#lines .line-number:visible").all_inner_texts() == ["1", "2"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.textContent") == "Two."


def test_a_folded_section_hides_its_lines_until_one_is_gone_to(page, write):
    write(SCRIPT, 7)
    heading(page, 0).locator(".line-fold").click()
    assert visible(page) == 3
    reopened(page)
    page.wait_for_function("n => document.querySelectorAll('#lines .line').length === n", arg=7)
    assert visible(page) == 3
    page.evaluate(
        "() => { const { selection, project } = window.tableread;"
        " selection.go(project.view.order[2]); selection.focus(); }"
    )
    assert visible(page) == 7


def test_a_section_is_made_and_played_alone(page, write):
    project = write(SCRIPT, 7)
    page.evaluate(
        "() => { window.ended = false;"
        " window.tableread.bus.on('player.ended', () => (window.ended = true)); }"
    )
    heading(page, 0).hover()
    heading(page, 0).locator(".line-play").click()
    page.wait_for_function(
        "() => ['One.', 'Two.'].every((text) => window.tableread.project.lines"
        ".find((line) => line.text === text).state === 'ready')"
    )
    body = page.request.get(studio_url(page, f"projects/{project}")).json()
    states = {line["text"]: line["state"] for line in body["lines"]}
    assert states["Three."] == "none"
    page.wait_for_function("() => window.ended")
    assert page.evaluate("() => window.tableread.player.line_id") in line_ids(page)[:6]
    laid = page.evaluate("() => [...window.tableread.player.laid.keys()]")
    assert laid == [line_ids(page)[2], line_ids(page)[4]]


def test_rows_that_are_not_spoken_have_no_fault_for_axe(page, write):
    write(SCRIPT, 7)
    assert violations(page, "#lines-view") == []


def test_notes_and_action_are_marked_on_the_timeline(page, write):
    write(SCRIPT, 7)
    make(page)
    x, y = page.evaluate(
        """() => {
          const { timeline } = window.tableread;
          const { lines, starts } = timeline.playlist;
          const { left, top } = document.querySelector('#timeline').getBoundingClientRect();
          const idx = lines.findIndex(({ unspoken }) => unspoken === 'action');
          return [left + timeline.xOf(starts[idx]), top + 20];
        }"""
    )
    page.mouse.move(x + 2, y)
    expect(page.locator("#timeline-card-name")).to_have_text("Not spoken")
    expect(page.locator("#timeline-card-text")).to_have_text("She sits.")
    page.mouse.move(x + 20, y)
    expect(page.locator("#timeline-card-text")).to_have_text("Two.")
