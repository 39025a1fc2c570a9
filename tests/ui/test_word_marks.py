"""Words that a take says otherwise are underlined in the row, until somebody finds them right."""

import pytest
from playwright.sync_api import expect
from slipping import SLIPS
from ui_steps import make, set_text

pytestmark = pytest.mark.browser
pytest.importorskip("sherpa_onnx")

SCRIPT = "\n".join(f"Mara: {line}" for line in ("The sailor carried water.", *SLIPS))

MARKED = """() => Object.fromEntries([...CSS.highlights]
    .filter(([name, marks]) => name.startsWith("word-") && marks.size)
    .map(([name, marks]) => [name.slice(5), [...marks].map((range) => {
      const { data } = range.startContainer;
      return data.slice(range.startOffset, range.endOffset);
    })]))"""


@pytest.fixture(scope="module")
def server(server_of):
    """A studio whose voice leaves words out, and which hears it."""
    return server_of("slipping_server.py")


def marked(page, expected):
    page.wait_for_function(
        f"(expected) => JSON.stringify(({MARKED})()) === JSON.stringify(expected)", arg=expected
    )


def test_wrong_words_are_underlined_where_they_stand(page, write):
    write(SCRIPT, 5)
    make(page)
    whole = [*SLIPS][3].removesuffix(".")
    everything = {
        "missing": ["still"], "repeated": ["has climbed"], "replaced": ["silver"],
        "unlike": [whole],
    }  # fmt: skip
    marked(page, everything)
    page.wait_for_function(
        "() => document.querySelector('#hints-next').textContent === '4 to check'"
    )
    page.click("#lines .line-number >> nth=1")
    expect(page.locator("#hints")).to_contain_text("“still” is missing.")
    expect(page.locator("#takes .take-text")).to_contain_text("Heard: ")

    page.focus("#take-fine")
    page.keyboard.press("Enter")
    marked(page, {name: words for name, words in everything.items() if name != "missing"})
    page.click("#undo")
    marked(page, everything)

    set_text(page, 2, "Nobody has climbed anything.")
    marked(page, {name: words for name, words in everything.items() if name != "repeated"})
