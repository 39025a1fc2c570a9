"""The first minutes without a card: `python launch.py`, and a natural voice reads."""

import json
import shutil
import sys
import time
from contextlib import suppress

import httpx
import psutil
import pytest
from serving import ROOT
from ui_steps import fill, studio_url, violations

from benchmarks.first_start import LEFT_BEHIND, base_python
from studio.backends.hub.weight_places import _find_wheel
from studio.backends.sherpa.catalogue import CATALOGUE
from studio.setup.pip import PackageIndex

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
import sherpa_models

pytestmark = pytest.mark.browser

MODEL = "kokoro-v1.0.int8.onnx"
WITHIN_S = 60
MOST_CLICKS = 4

COUNT_CLICKS = """() => {
  window.clicks = 0;
  addEventListener("click", ({ isTrusted }) => { window.clicks += isTrusted; }, true);
}"""
"""From now on `window.clicks` is how often a person clicked."""

ALL_READ = """() => {
  const lines = window.tableread.project.lines.filter(({ kind }) => kind === "speech");
  return lines.length > 0 && lines.every(({ take }) => take?.backend === "kokoro");
}"""


class FairClock:
    """Seconds that these tests take, their studio and browser with them, on a machine of their own.

    They are those in which their processes worked, and those in which the machine had nothing to
    do, so that waiting counts too; never more than passed.
    """

    def __init__(self):
        self._began_s = time.monotonic()
        self._spent_s = self._read_s()

    def read_s(self):
        return min(time.monotonic() - self._began_s, self._read_s() - self._spent_s)

    @staticmethod
    def _read_s():
        ours = [psutil.Process(), *psutil.Process().children(recursive=True)]
        worked_s = 0.0
        for one in ours:
            with suppress(psutil.Error):  # it has ended, and counts as its parent's
                worked_s += sum(one.cpu_times()[:4])
        return worked_s + psutil.cpu_times().idle / psutil.cpu_count()


@pytest.fixture(scope="module")
def hub_files():
    return sherpa_models.FILES["kokoro"]()


@pytest.fixture(scope="module")
def clock():
    return FairClock()


@pytest.fixture(scope="module")
def server(clock, first_start):
    """A studio of its own that has nothing but the draft voice, and logs what it imports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPROFILEIMPORTTIME", "1")
        return first_start()


def card(page, name):
    return page.locator(f".backend[data-engine={name}]")


def imported(server):
    """The packages that a studio has imported."""
    said = server.workspace.with_name("server.log").read_text(encoding="utf-8")
    rows = [row for row in said.splitlines() if row.startswith("import time:")]
    return {row.rpartition("|")[2].strip().partition(".")[0] for row in rows}


def read_by_one_button(page):
    """From the page to a scene that the new voice has read; how many clicks that takes."""
    page.evaluate(COUNT_CLICKS)
    page.click("#start-example")
    page.click("[data-example=the-lift]")
    page.locator("#lines .line").nth(2).wait_for()
    notice = page.locator(".notice[data-notice=draft]")
    button = notice.locator(".notice-act")
    assert button.inner_text() == "Download Kokoro (91 MB)"
    assert "Licence: Apache-2.0" in notice.inner_text()
    button.click()
    page.wait_for_selector("#model-title:text-is('Kokoro')")
    page.wait_for_function(ALL_READ)
    page.evaluate("() => window.tableread.player.stop()")
    notice.wait_for(state="detached")
    return page.evaluate("() => window.clicks")


def test_one_button_brings_a_natural_voice_that_reads_the_scene(window, server, clock, capsys):
    clicks = read_by_one_button(window)
    took_s = clock.read_s()
    with capsys.disabled():
        print(f"\nfrom `python launch.py` to the scene in {took_s:.1f} s, {clicks} click(s)")
    assert 1 <= clicks <= MOST_CLICKS
    assert took_s <= WITHIN_S
    assert "onnxruntime" in imported(server)
    assert not imported(server) & {"torch", "transformers", "sherpa_onnx"}


@pytest.fixture
def open_at(browser):
    """Opens the page of a studio of a test's own."""
    contexts = []

    def opened(server):
        contexts.append(browser.new_context(viewport={"width": 1440, "height": 900}))
        page = contexts[-1].new_page()
        page.goto(server.url)
        page.wait_for_selector("body[data-tableread=ready]")
        return page

    yield opened
    for context in contexts:
        context.close()


def test_its_card_says_how_fast_it_is_here_and_tries_a_line(window):
    page = window
    page.click("#model-chip")
    kokoro = card(page, "kokoro")
    kokoro.locator(".backend-speed:text-matches('^[0-9.]+ s of speech a second$')").wait_for()
    with page.expect_response("**/try") as answer:
        kokoro.locator("[data-act=try]").click()
    assert answer.value.ok
    asked = answer.value.request.post_data_json
    first = page.evaluate(
        "() => window.tableread.project.lines.find((one) => one.kind === 'speech').text"
    )
    assert asked["engine"] == "kokoro"
    assert first.startswith(asked["text"])


def test_licences_stand_before_the_download_and_what_forbids_trade_first(window):
    zipvoice = card(window, "zipvoice")
    text = zipvoice.inner_text().splitlines()
    assert text[0] == "Not for commercial use."
    assert any("CC BY-NC 4.0" in line for line in text)
    assert "Download (184 MB)" in text
    assert "pip" not in window.inner_text("#backends").lower().split()
    assert "TTS_" not in window.inner_text("#backends")


def test_a_voice_in_use_stays_and_another_is_removed_after_a_question(window):
    page = window
    kokoro = card(page, "kokoro")
    assert kokoro.locator("[data-act=remove]").is_disabled()
    answer = page.request.delete(studio_url(page, "engines/kokoro/weights"))
    assert answer.status == 409
    assert "is the voice engine now" in json.loads(answer.text())["error"]["message"]
    card(page, "draft").locator("input").check()
    page.wait_for_selector("#model-title:text-matches('Draft')")
    kokoro.locator("[data-act=remove]").click()
    page.click("#remove-engine [value=keep]")
    assert kokoro.locator("[data-act=try]").is_visible()
    kokoro.locator("[data-act=remove]").click()
    page.click("#remove-engine [value=remove]")
    kokoro.locator("[data-act=download]").wait_for()
    assert kokoro.locator("[data-act=try]").is_hidden()


@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_wrong_with_the_cards(open_page, look):
    page = open_page(color_scheme=look)
    page.click("#model-chip")
    card(page, "kokoro").wait_for()
    assert violations(page, ["#model-panel", "#notices"]) == []


def test_the_scene_is_offered_again_in_a_voice_that_came_meanwhile(first_start, hub, open_at):
    """Somebody has heard it in the draft voice by then."""
    hub.hold_after[MODEL] = 1_000
    page = open_at(first_start(TABLEREAD_INSTALL_VOICES="true"))
    notice = page.locator(".notice[data-notice=draft]")
    notice.locator(".notice-title:text-is('Downloading Kokoro.')").wait_for()
    assert notice.locator(".notice-act").inner_text() == "Pause"
    fill(page, "Ann: Is anybody there?\nBob: Only the wind.", 2)
    page.click("#play")
    page.wait_for_function(ALL_READ.replace("kokoro", "draft"))
    page.evaluate("() => window.tableread.player.stop()")
    hub.hold_after.clear()
    page.wait_for_selector("#model-title:text-is('Kokoro')")
    button = notice.locator(".notice-act:text-is('Regenerate 2 lines with Kokoro')")
    button.click()
    page.wait_for_function(ALL_READ)
    page.evaluate("() => window.tableread.player.stop()")
    notice.wait_for(state="detached")


def test_who_has_chosen_another_meanwhile_keeps_it(first_start, hub, open_at):
    hub.hold_after[MODEL] = 1_000
    page = open_at(first_start(TABLEREAD_INSTALL_VOICES="true"))
    page.locator(".notice-title:text-is('Downloading Kokoro.')").wait_for()
    chosen = page.request.post(studio_url(page, "backend"), data={"name": "draft"})
    assert chosen.ok
    hub.hold_after.clear()
    page.click("#model-chip")
    card(page, "kokoro").locator("[data-act=try]").wait_for()
    assert page.inner_text("#model-title").startswith("Draft voice")


def has_real_weights():
    """Whether the index that pip is configured with has what Kokoro is made of."""
    (cast,) = CATALOGUE["kokoro"].sources[0].files["cast"].places
    with httpx.Client(follow_redirects=True, timeout=20) as client:
        try:
            _find_wheel(client, PackageIndex.of_pip(), cast.wheels[0].name)
        except Exception:  # noqa: BLE001 - whatever it is, there is none
            return False
    return True


NATURAL_WITHIN_S = 90

HEARD = """() => {
  const { player, project } = window.tableread;
  const spoken = project.lines.find(({ kind }) => kind === "speech");
  return spoken?.take?.backend === "kokoro" && player.playing && player.clock_s > 0.1;
}"""


def hear_a_natural_line(clock, server, page, capsys):
    """Nobody presses anything but Play."""
    page.set_default_timeout(600_000)
    up_s = clock.read_s()
    fill(page, "Ann: Is anybody there?\nBob: Only the wind.", 2)
    page.wait_for_selector("#model-title:text-is('Kokoro')")
    ready_s = clock.read_s()
    page.click("#play")
    page.wait_for_function(HEARD)
    took_s = clock.read_s()
    page.evaluate("() => window.tableread.player.stop()")
    with capsys.disabled():
        print(f"\nup in {up_s:.1f} s, Kokoro here in {ready_s:.1f} s, heard in {took_s:.1f} s")
    assert not page.locator(".notice[data-notice=draft]").is_visible()
    assert took_s <= NATURAL_WITHIN_S


REAL = {
    "TESTS_REAL_WEIGHTS": "1",
    "TABLEREAD_INSTALL_VOICES": "true",
    "HF_ENDPOINT": "http://127.0.0.1:9",
}


def test_a_trained_voice_is_heard_by_play_alone(first_start, open_at, capsys):
    """From an index of packages and no hub."""
    if not has_real_weights():
        pytest.skip("no package index here has Kokoro's weights")
    clock = FairClock()
    server = first_start(**REAL)
    hear_a_natural_line(clock, server, open_at(server), capsys)


@pytest.mark.campaign
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform == "win32", reason="it needs a Python that makes environments")
def test_the_same_of_a_fresh_clone_with_nothing_installed(tmp_path, first_start, open_at, capsys):
    """Packages come from where pip gets them, and how long that takes is printed."""
    if not has_real_weights():
        pytest.skip("no package index here has Kokoro's weights")
    clone = tmp_path / "clone"
    shutil.copytree(ROOT, clone, ignore=LEFT_BEHIND)
    clock = FairClock()
    server = first_start([base_python(), str(clone / "launch.py")], **REAL)
    hear_a_natural_line(clock, server, open_at(server), capsys)
    assert not list((clone / ".venv").glob("lib/python*/site-packages/torch"))
