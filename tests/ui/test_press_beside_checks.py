"""From the press to the sound while takes are checked, and in turns where none is."""

import time

import numpy as np
import pytest
from ui_steps import fill, make, set_text, studio_url

pytestmark = [pytest.mark.browser, pytest.mark.campaign]
pytest.importorskip("sherpa_onnx")

ROUNDS = 20
LINES = 10
LINE = "Mara: The sailor carried water to the village, and line {} of round {} says so again."
SOUND = "() => window.tableread.player.first_sound_ms"


@pytest.fixture(scope="module")
def pages(server_of, server, browser):
    """The page of a studio that checks takes, and of one that doesn't."""
    contexts = [browser.new_context() for _ in range(2)]
    opened = []
    for context, one in zip(contexts, (server_of("listening_server.py"), server), strict=True):
        page = context.new_page()
        page.goto(one.url)
        page.wait_for_selector("body[data-tableread=ready]")
        assert page.request.post(studio_url(page, "model/timeout"), data={"seconds": 0}).ok
        opened.append(page)
    yield opened
    for context in contexts:
        context.close()


def is_checking(page):
    models = page.request.get(studio_url(page, "state")).json()["recogniser_models"]
    return any(model["active"] for model in models.values())


def press(page, number):
    """Milliseconds to the sound of a changed line, and whether the others are being checked."""
    fill(page, "\n".join(LINE.format(line, number) for line in range(LINES)), LINES)
    make(page)
    set_text(page, LINES - 1, f"Nobody has climbed the stairs in round {number}.")
    page.evaluate(
        "() => window.tableread.playback.placeAt(window.tableread.project.view.order.at(-1))"
    )
    page.evaluate("() => { window.tableread.player.first_sound_ms = null; }")  # of the last round
    checks = is_checking(page)
    page.click("#play")
    took_ms = page.wait_for_function(SOUND).json_value()
    page.evaluate("() => window.tableread.player.stop()")
    return took_ms, checks


def test_the_sound_comes_as_soon_beside_checks(pages):
    beside, without = pages
    for page in pages:
        press(page, 0)  # what is loaded with the first
    rows = []
    began_s = time.monotonic()
    for number in range(1, ROUNDS + 1):
        order = (beside, without) if number % 2 else (without, beside)
        found = {page: press(page, number) for page in order}
        rows.append((found[beside][0], found[without][0], found[beside][1]))
    with_ms, without_ms, busy = (np.array(column) for column in zip(*rows, strict=True))
    differences = np.sort(with_ms - without_ms)
    # The 6th and the 15th of 20: an interval of the median at 95 % (binomial).
    low, high = differences[[5, 14]]
    print(
        f"\n{ROUNDS} pairs in {time.monotonic() - began_s:.0f} s, checks at work in {busy.sum()}: "
        f"press to sound with checks {np.median(with_ms):.0f} ms (p90 "
        f"{np.percentile(with_ms, 90):.0f}), without {np.median(without_ms):.0f} ms (p90 "
        f"{np.percentile(without_ms, 90):.0f}); median difference {np.median(differences):+.0f} ms "
        f"({low:+.0f} to {high:+.0f})"
    )
    assert busy.any()  # not in each, as checks are quick
    assert low <= 0.1 * np.median(without_ms)
