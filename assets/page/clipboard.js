/** Copy, cut and paste of marked lines, as the studio's own script. */
import { scriptOf } from "./copied.js";
import { byId } from "./dom.js";
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
  }

  /** @returns {boolean} whether lines are on the clipboard now */
  #copy(event, done) {
    const { project, selection } = this.#parts;
    const { ids } = selection;
    if (!isFree(event) || !ids.length || !getSelection().isCollapsed) return false;
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
  const isShown = byId("lines-view").checkVisibility();
  if (event.defaultPrevented || document.querySelector("dialog[open]") || !isShown) return false;
  return !document.activeElement?.closest(OTHERS);
}
