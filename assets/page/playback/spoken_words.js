/** The word that is being said is highlighted in its row; Alt and a click on a word plays from it. */
import { byId } from "../core/dom.js";
import { wordAt, WordCache, wordOf } from "./word_cache.js";

/** @import { Parts } from "../core/types" */

const MARK = "spoken";

/** Shows the word that is being said, and plays from a word. */
export class SpokenWords {
  #parts;
  #cache = new WordCache(null);
  #shown = null;

  /** @param {Pick<Parts, "project" | "player" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    const list = byId("lines");
    // Before the caret goes there.
    list.addEventListener("mousedown", (event) => this.#press(event), true);
    list.addEventListener("click", (event) => isOnText(event) && event.stopPropagation(), true);
  }

  /** Another project is shown. */
  load(projectId) {
    this.#cache = new WordCache(projectId);
    this.show();
  }

  /** Highlight the word at the play-head while it plays. */
  show() {
    const { player, project, lines } = this.#parts;
    const lineId = player.playing ? player.line_id : null;
    const line = lineId ? project.line(lineId) : null;
    const known = line ? this.#cache.of(line) : null;
    const word = known ? wordAt(known, player.place - player.playlist.startOf(lineId)) : null;
    this.#mark(word, known, word ? lines.row(lineId) : null);
  }

  #mark(word, known, row) {
    if (word === this.#shown) return;
    this.#shown = word;
    if (typeof Highlight === "undefined") return;
    const node = row?.text?.firstChild;
    // While somebody types, the text isn't the one that is heard.
    if (!word || !node || row.text.textContent !== known.text) return void CSS.highlights.delete(MARK);
    const range = new Range();
    range.setStart(node, word.from);
    range.setEnd(node, word.to);
    CSS.highlights.set(MARK, new Highlight(range));
  }

  #press(event) {
    if (!isOnText(event)) return;
    const lineId = this.#parts.lines.lineOf(event.target);
    const offset = offsetAt(event);
    if (!lineId || offset === null) return;
    event.preventDefault();
    event.stopPropagation();
    this.play(lineId, offset);
  }

  /** Play on from the word at the caret; nothing if the caret is in no line's text. */
  playFromCaret() {
    const { lines } = this.#parts;
    const { focusNode, focusOffset } = getSelection();
    const text = focusNode?.parentElement?.closest?.(".line-text");
    const lineId = text && lines.lineOf(text);
    if (lineId) this.play(lineId, focusOffset);
  }

  /** Play on from the word at an offset of a line's text; a line without a take isn't played. */
  async play(lineId, offset) {
    const { player, project } = this.#parts;
    const line = project.line(lineId);
    if (!line) return;
    player.unlock();
    const known = await this.#cache.wait(line);
    const word = known ? wordOf(known, offset) : null;
    if (word) await player.playFrom(lineId, null, word.start);
  }
}

function isOnText(event) {
  return event.altKey && event.button === 0 && Boolean(event.target.closest?.(".line-text"));
}

/** The offset in a text under the pointer; null if there is none. */
function offsetAt({ clientX, clientY }) {
  if (document.caretPositionFromPoint) return document.caretPositionFromPoint(clientX, clientY)?.offset ?? null;
  return document.caretRangeFromPoint?.(clientX, clientY)?.startOffset ?? null; // Safari
}
