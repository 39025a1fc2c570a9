/** The word that is being said is highlighted in its row; Alt and a click on a word plays from it. */
import * as api from "../core/api.js";
import { byId } from "../core/dom.js";
import { RATE_HZ } from "../document/document.js";

/** @import { Parts } from "../core/types" */

const MARK = "spoken";
const MOST_KEPT = 500;
/** A failed request for words is repeated at the earliest after this. */
const REST_MS = 10_000;

/** A word of a take: offsets in its text, in UTF-16 units, and samples. @typedef {{from: number, to: number, start: number, end: number}} SpokenWord */
/** @typedef {{text: string, words: SpokenWord[]}} SpokenText */

/** The words of takes, fetched when they are first needed. */
export class WordCache {
  #projectId;
  /** @type {Map<string, SpokenText | number | null>} by take; null while it is fetched, or when that failed */
  #known = new Map();

  /** @param {string | null} projectId */
  constructor(projectId) {
    this.#projectId = projectId;
  }

  /** The words of a line's take; null if they aren't here yet, or never will be. @returns {SpokenText | null} */
  of({ line_id: lineId, kind, state, take }) {
    if (kind !== "speech" || !take || !["ready", "stale"].includes(state)) return null;
    const known = this.#known.get(take.take_id);
    if (known === undefined || (typeof known === "number" && performance.now() - known > REST_MS)) {
      this.#fetch(lineId, take.take_id);
      return null;
    }
    return typeof known === "number" ? null : known;
  }

  /** The words of a line's take, as soon as they are here. @returns {Promise<SpokenText | null>} */
  async wait(line) {
    const known = this.of(line);
    if (known || !line.take) return known;
    await this.#fetch(line.line_id, line.take.take_id);
    return this.of(line);
  }

  async #fetch(lineId, takeId) {
    this.#known.set(takeId, null);
    if (this.#known.size > MOST_KEPT) this.#known.delete(this.#known.keys().next().value);
    try {
      const { text, words } = await api.readWords(this.#projectId, lineId, takeId);
      this.#known.set(takeId, { text, words: inUnits(text, words) });
    } catch {
      // Playback goes on without; the words may be there later.
      this.#known.set(takeId, performance.now());
    }
  }
}

/** The studio counts code points, the page UTF-16 units. @returns {SpokenWord[]} */
export function inUnits(text, words) {
  const units = [0];
  for (const char of text) units.push(units.at(-1) + char.length);
  const samples = (ms) => Math.round((ms * RATE_HZ) / 1000);
  return words.map(([from, to, start, end]) => ({ from: units[from], to: units[to], start: samples(start), end: samples(end) }));
}

/** The word at a sample: until the next one begins, the one that was said last. @returns {SpokenWord | null} */
export function wordAt({ words }, sample) {
  let low = 0;
  let high = words.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle].start <= sample) low = middle + 1;
    else high = middle;
  }
  return words[low - 1] ?? null;
}

/** The word at an offset of the text, or the next one. @returns {SpokenWord | null} */
export function wordOf({ words }, offset) {
  return words.find(({ to }) => offset <= to) ?? words.at(-1) ?? null;
}

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
