"""What the studio says is shown in the page's language, and what users wrote stays as it is."""

import pytest
from playwright.sync_api import expect
from ui_steps import fill, make, open_settings

pytestmark = pytest.mark.browser

SCRIPT = "Mara: All is well here.\nTomas: I saw a heron in the marsh.\nMara: Good night."
PASTED = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.activeElement.dispatchEvent(event);
}"""
NAMES = "The disk is full: hello\nThe disk is full: bye\nthe disk is full: again"


@pytest.fixture(scope="module")
def server(server_of):
    """A studio whose voice goes on with a hum behind some lines."""
    return server_of("wandering_server.py")


@pytest.fixture(scope="module")
def window(open_window):
    return open_window(locale="de-AT")


def test_why_a_take_is_doubtful(page):
    fill(page, SCRIPT, 3)
    make(page)
    page.click("#hints-next")
    expect(page.locator("#hints")).to_contain_text("Nach dem letzten Wort geht es noch ")
    expect(page.locator("#takes .take-text")).to_contain_text(" s weiter.")


def test_a_notice_of_a_paste_keeps_the_names_as_they_are(page):
    fill(page, "", 0)
    page.evaluate("() => document.activeElement.blur()")
    page.evaluate(PASTED, NAMES)
    notice = page.locator(".notice[data-kind=warning]", has_text="The disk is full")
    expect(notice).to_contain_text(
        "„the disk is full“ (Zeile 3) gilt als „The disk is full“ (Zeile 1): Namen"
    )


def test_an_error(page, tmp_path):
    path = tmp_path / "The disk is full. Free some space.pdf"
    path.write_bytes(b"%PDF-1.7 " + bytes(40))
    open_settings(page)
    page.set_input_files("#import-file", path)
    expect(page.locator(".notice[data-kind=error] .notice-text")).to_have_text(
        f"„{path.name}“ ist beschädigt. Im Programm öffnen, aus dem es stammt, und neu speichern."
    )


def test_settings_of_the_engine(page):
    fill(page, SCRIPT, 3)
    page.click("#lines .line-number >> nth=0")
    expect(page.locator(".param-label", has_text="Tonhöhe")).to_have_count(1)
