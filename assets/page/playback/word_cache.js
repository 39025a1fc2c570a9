/** The words of takes, with the places in their text and their sound. */
import * as api from "../core/api.js";
import { RATE_HZ } from "../document/document.js";

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
