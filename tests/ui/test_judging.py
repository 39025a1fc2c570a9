"""The page says, beside the setting that uses them, how good the checks are on one's own takes."""

import re

import pytest
from spoken_lines import iter_texts
from ui_steps import make, open_settings, reopened, violations

pytestmark = pytest.mark.browser

LINES = [f"Mara: {text}" for _, text in zip(range(9), iter_texts("en"), strict=False)]


def result(page, words):
    page.wait_for_function(
        "words => document.getElementById('judge-result').textContent.includes(words)",
        arg=words,
        timeout=300_000,  # what plants faults and looks for them waits for whatever else is made
    )
    return page.inner_text("#judge-result")


def test_the_checks_are_judged_and_it_stays_said(page, write):
    write("\n".join(LINES), 9)
    make(page)
    open_settings(page)
    page.click("#judge")
    said = result(page, "Tested just now")
    found, planted = map(int, re.search(r"found (\d+) of (\d+) faults planted", said).groups())
    assert planted == 9 * 6
    assert 9 * 2 <= found < planted
    missed = re.search(r"None was found of: (.*?)\.", said)[1].split("; ")
    assert page.inner_text("#judge") == "Test the checks"
    page.click("#judge-details summary")
    rows = page.locator("#judge-rows tr").all_inner_texts()
    assert len(rows) == 6
    [pitch] = [row for row in rows if "2 semitones higher or lower" in row]
    assert pitch.split("\t")[0].startswith("Mara")
    assert re.fullmatch(r"\d+ \(\d+ to \d+\)", pitch.split("\t")[2])
    none = [row.split("\t")[1] for row in rows if row.split("\t")[2].startswith("0 ")]
    assert missed == none
    assert violations(page, ["#judge-part"]) == []
    reopened(page)
    result(page, "of 54 faults planted")


def test_a_script_that_was_never_read_says_what_is_needed(page, write):
    write("\n".join(LINES[:3]), 3)
    assert page.inner_text("#judge-result") == ""
    open_settings(page)
    page.click("#judge")
    result(page, "at least 8 ready lines of one voice in one language are needed")
    assert page.is_hidden("#judge-details")
