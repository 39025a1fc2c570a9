/** Sections of a scene: a heading and what stands below it, up to the next heading. */
import { localStore } from "../core/local_store.js";

/** @import { Line } from "../core/types" */

/**
 * @param {string[]} order @param {Map<string, Line>} lines @param {string} lineId any line of the section
 * @returns {string[]} its lines, the heading first; without a heading above it, those from the first line on
 */
export function sectionOf(order, lines, lineId) {
  const isHeading = (id) => lines.get(id)?.unspoken === "heading";
  const at = order.indexOf(lineId);
  if (at < 0) return [];
  const from = order.slice(0, at + 1).findLastIndex(isHeading);
  const after = order.slice(at + 1).findIndex(isHeading);
  return order.slice(Math.max(0, from), after < 0 ? order.length : at + 1 + after);
}

/** Which headings of a project are folded, in this browser. */
export class FoldedSections {
  #key = null;
  #folded = new Set();

  /** @param {string} projectId */
  open(projectId) {
    const key = `tableread.folded.${projectId}`;
    if (key === this.#key) return;
    this.#key = key;
    this.#folded = new Set(localStore.json(key, []));
  }

  get any() {
    return this.#folded.size > 0;
  }

  has(lineId) {
    return this.#folded.has(lineId);
  }

  /** @param {string} lineId of a heading @param {boolean} folded */
  set(lineId, folded) {
    if (folded) this.#folded.add(lineId);
    else this.#folded.delete(lineId);
    localStore.set(this.#key, JSON.stringify([...this.#folded]));
  }

  /** @param {string[]} order @param {Map<string, Line>} lines @returns {Map<string, string>} the heading that hides a line, by line */
  hidden(order, lines) {
    const found = new Map();
    if (!this.#folded.size) return found;
    let heading = null;
    for (const lineId of order) {
      if (lines.get(lineId)?.unspoken === "heading") heading = this.#folded.has(lineId) ? lineId : null;
      else if (heading) found.set(lineId, heading);
    }
    return found;
  }
}
