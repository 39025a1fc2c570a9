/** A list of rows with several controls each: one row is in the Tab order, and arrow keys lead to the others. */
import { focusedElement } from "./dom.js";

const CONTROLS = "a, button";

export class RowFocus {
  #list;
  #main;

  /** @param {HTMLElement} list @param {string} main selector of the control that arrow keys lead to */
  constructor(list, main) {
    this.#list = list;
    this.#main = main;
    list.addEventListener("keydown", (event) => this.#key(event));
    list.addEventListener("focusin", () => this.mark());
  }

  get #rows() {
    return /** @type {HTMLElement[]} */ ([...this.#list.children]).filter((row) => !row.hidden);
  }

  /** Put a row into the Tab order: that one, the one with the focus, or the first that is shown. @param {Element} [wanted] */
  mark(wanted) {
    const rows = this.#rows;
    const chosen = wanted ?? rows.find((row) => row.contains(focusedElement())) ?? rows[0];
    for (const control of this.#list.querySelectorAll(CONTROLS)) {
      /** @type {HTMLElement} */ (control).tabIndex = chosen?.contains(control) ? 0 : -1;
    }
  }

  #key(event) {
    const rows = this.#rows;
    const here = rows.findIndex((row) => row.contains(event.target));
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: rows.length - 1 }[event.key];
    const row = event.target.matches("input") ? undefined : rows[to];
    if (!row) return;
    event.preventDefault();
    event.stopPropagation();
    /** @type {HTMLElement} */ (row.querySelector(this.#main)).focus();
  }
}
