/** Copy, cut and paste of marked lines, as the studio's own script. */
import { scriptOf } from "./copied.js";
import { byId, isLaidOut } from "./dom.js";
import { count } from "./format.js";
import { announce } from "./notices.js";

/** Where the browser's own clipboard is meant: a button pressed before has no use for one. */
const OTHERS = 'input, textarea, select, [contenteditable], [role="menu"]';

export class Clipboard {
  #parts;

  /** @param {object} parts project, selection, acts, arriving */
  constructor(parts) {
    this.#parts = parts;
    document.addEventListener("copy", (event) => this.#copy(event, "copied"));
    document.addEventListener("cut", (event) => this.#copy(event, "cut") && parts.acts.delete());
    document.addEventListener("paste", (event) => this.#paste(event));
    // Safari asks before: where only text could be copied, and none is marked, its keys would do nothing.
    for (const name of ["beforecopy", "beforecut"]) {
      document.addEventListener(name, (event) => this.#copies(event) && event.preventDefault());
    }
    document.addEventListener("beforepaste", (event) => isFree(event) && event.preventDefault());
  }

  /** Whether it is marked lines that are meant. */
  #copies(event) {
    return isFree(event) && this.#parts.selection.ids.length > 0 && getSelection().isCollapsed;
  }

  /** @returns {boolean} whether lines are on the clipboard now */
  #copy(event, done) {
    const { project, selection } = this.#parts;
    const { ids } = selection;
    if (!this.#copies(event)) return false;
    event.preventDefault();
    event.clipboardData.setData("text/plain", scriptOf(ids.map((lineId) => project.line(lineId))));
    announce(`${count(ids.length, "line")} ${done}.`);
    return true;
  }

  #paste(event) {
    const text = event.clipboardData?.getData("text/plain");
    if (!isFree(event) || !text?.trim()) return;
    event.preventDefault();
    this.#parts.arriving.text(text);
  }
}

function isFree(event) {
  const isShown = isLaidOut(byId("lines-view"));
  if (event.defaultPrevented || document.querySelector("dialog[open]") || !isShown) return false;
  return !document.activeElement?.closest(OTHERS);
}
