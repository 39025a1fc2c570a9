"""The word that is being said is shown while it plays, and playback begins at a word."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from ui_steps import make

pytestmark = pytest.mark.browser

SPOKEN = """() => {
  const [range] = CSS.highlights.get("spoken") ?? [];
  return range ? range.toString() : null;
}"""
WATCH = """() => {
  const { bus, player } = window.tableread;
  window.spokenWords = [];
  window.begun = null;
  window.ended = false;
  const unfollow = bus.on("player.changed", () => {
    const { line_id: lineId, playing, place, playlist } = player;
    if (playing) window.begun ??= [lineId, (place - playlist.startOf(lineId)) / 24000];
  });
  const look = () => {
    const [range] = CSS.highlights.get("spoken") ?? [];
    const word = range?.toString();
    if (word && window.spokenWords.at(-1) !== word) window.spokenWords.push(word);
    window.ended = window.begun !== null && !player.playing;
    if (window.ended) unfollow();
    else requestAnimationFrame(look);
  };
  look();
}"""
"""From now on: where the next playback begins, the words shown in it, and its end."""
TEXT = "#lines .line >> nth={} >> css=.line-text"
FIRST = "The lamp is still burning, and nobody has climbed the stairs since Tuesday."


@pytest.fixture
def scene(page, write):
    write(f"Mara: {FIRST}\nTomas: Is it late already?", 2)
    make(page)
    page.wait_for_function("() => window.tableread.project.lines.every(({ take }) => take)")
    yield page
    page.evaluate("() => window.tableread.player.stop()")
    page.evaluate("() => document.activeElement?.blur()")


def line_ids(page) -> list[str]:
    return page.evaluate("() => window.tableread.project.view.order")


def words_of(page, number: int) -> list[list[int]]:
    return page.evaluate(
        """async (number) => {
          const { project } = window.tableread;
          const { line_id: lineId, take } = project.lines[number];
          const at = `studio/projects/${project.id}/takes/${lineId}/${take.take_id}/words`;
          return (await (await fetch(at)).json()).words;
        }""",
        number,
    )


def press_word(page, number: int, word: str, **how: object) -> None:
    """Click in the middle of a word of a line."""
    box = page.evaluate(
        """([number, word]) => {
          const node = document.querySelectorAll("#lines .line-text")[number].firstChild;
          const range = new Range();
          range.setStart(node, node.data.indexOf(word));
          range.setEnd(node, node.data.indexOf(word) + word.length);
          const { left, top, width, height } = range.getBoundingClientRect();
          return [left + width / 2, top + height / 2];
        }""",
        [number, word],
    )
    for key in how.get("keys", ()):
        page.keyboard.down(key)
    page.mouse.click(*box)
    for key in how.get("keys", ()):
        page.keyboard.up(key)


def test_each_word_is_shown_while_it_is_said(scene):
    words_of(scene, 0)
    first = line_ids(scene)[0]
    scene.evaluate(WATCH)
    scene.evaluate("id => void window.tableread.playback.playLine(id)", first)
    scene.wait_for_function("() => window.ended")
    seen = scene.evaluate("() => window.spokenWords")
    said = FIRST.replace(",", "").rstrip(".").split()
    assert len(seen) >= 6, "a busy browser may leave words out"
    left = iter(said)
    assert all(word in left for word in seen), f"{seen} isn't in the order of the text"
    assert scene.evaluate(SPOKEN) is None


def test_alt_and_a_click_on_a_word_plays_from_it(scene):
    starts = {word[0]: word[2] / 1000 for word in words_of(scene, 0)}
    scene.evaluate(WATCH)
    press_word(scene, 0, "climbed", keys=["Alt"])
    scene.wait_for_function("() => window.spokenWords.length")
    line_id, at_s = scene.evaluate("() => window.begun")
    assert line_id == line_ids(scene)[0]
    assert at_s >= starts[FIRST.index("climbed")] - 0.01
    assert not scene.evaluate("() => document.activeElement.matches('.line-text')")


def test_a_plain_click_writes_and_plays_nothing(scene):
    press_word(scene, 0, "climbed")
    scene.keyboard.type("x")
    assert "x" in scene.inner_text(TEXT.format(0))
    assert not scene.evaluate("() => window.tableread.player.playing")


def test_alt_enter_plays_from_the_word_at_the_caret(scene):
    starts = {word[0]: word[2] / 1000 for word in words_of(scene, 1)}
    press_word(scene, 1, "late")
    scene.evaluate(WATCH)
    scene.keyboard.press("Alt+Enter")
    scene.wait_for_function("() => window.begun")
    line_id, at_s = scene.evaluate("() => window.begun")
    assert line_id == line_ids(scene)[1]
    assert at_s >= starts[6] - 0.01
    assert scene.inner_text(TEXT.format(1)) == "Is it late already?"


def test_words_of_a_text_that_is_being_changed_aren_t_shown(scene):
    words_of(scene, 0)
    scene.click(TEXT.format(0))
    scene.keyboard.press("End")
    scene.keyboard.type(" And")
    scene.evaluate("id => void window.tableread.playback.playLine(id)", line_ids(scene)[1])
    scene.evaluate("() => window.tableread.player.stop()")
    scene.evaluate(WATCH)
    scene.evaluate("id => void window.tableread.player.playFrom(id, id)", line_ids(scene)[0])
    scene.wait_for_function("() => window.ended")
    assert scene.evaluate("() => window.spokenWords") == []


@pytest.mark.parametrize(
    ("item", "suffix"),
    [
        ("WebVTT by sentence", "sentences.vtt"),
        ("TextGrid", "TextGrid"),
        ("Words and mouth shapes", "words.json"),
        ("Rhubarb TSV", "rhubarb.zip"),
    ],
)
def test_files_of_words_are_saved_from_the_script_s_menu(scene, item, suffix):
    scene.click("#views [data-view=script]")
    scene.click("#export")
    with scene.expect_download() as saved:
        scene.click(f"#export-menu >> text={item}")
    path = Path(saved.value.path())
    assert saved.value.suggested_filename == f"Scene.{suffix}"
    if suffix == "rhubarb.zip":
        assert zipfile.ZipFile(path).namelist() == ["01-Mara.tsv", "02-Tomas.tsv"]
    else:
        assert "burning" in path.read_text("utf-8")
    scene.click("#views [data-view=lines]")
