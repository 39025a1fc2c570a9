/** Rows that are carried to another place, by mouse or finger: where they would land is shown. */
import { byId } from "./dom.js";

export class Lifted {
  #list = byId("lines");
  #parts;
  #ids = null;

  /** @param {object} parts selection, acts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Whether rows are carried. */
  get any() {
    return this.#ids !== null;
  }

  /** Take up the marked lines, or one that isn't among them. @param {string} lineId */
  begin(lineId) {
    const { selection } = this.#parts;
    if (!selection.ids.includes(lineId)) selection.go(lineId);
    this.#ids = selection.ids;
  }

  /** Show where they would land. @param {Element} row @param {number} y in the window */
  over(row, y) {
    const box = row.getBoundingClientRect();
    const former = this.#pointed;
    if (former && former !== row) delete former.dataset.drop;
    row.dataset.drop = y > box.top + box.height / 2 ? "below" : "above";
  }

  /** Put them where it is shown. @returns {boolean} whether it was shown */
  drop() {
    const [row, lineIds] = [this.#pointed, this.#ids];
    const after = row?.dataset.drop === "below" ? row : row?.previousElementSibling;
    this.end();
    if (!row || !lineIds) return false;
    this.#parts.acts.move(lineIds, free(after, lineIds));
    return true;
  }

  /** Carry nothing any more. */
  end() {
    this.#ids = null;
    const pointed = this.#pointed;
    if (pointed) delete pointed.dataset.drop;
  }

  get #pointed() {
    return this.#list.querySelector("[data-drop]");
  }
}

/** The nearest row at or above that isn't carried itself. */
function free(row, carried) {
  let found = row;
  while (found && carried.includes(found.dataset.line)) found = found.previousElementSibling;
  return found?.dataset.line ?? null;
}
