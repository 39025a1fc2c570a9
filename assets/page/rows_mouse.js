/** The rows under the hand: press, mark, drag. */
import { byId } from "./dom.js";

export class RowsMouse {
  #list = byId("lines");
  #parts;
  #pointer = "";

  /** @param {object} parts lines, selection, acts, reading, speakerMenu, recordings, hintMarks, lifted, show */
  constructor(parts) {
    this.#parts = parts;
    // Safari before 18.4 doesn't tell of a click what pressed, or tells a mouse.
    this.#list.addEventListener("pointerdown", ({ pointerType }) => (this.#pointer = pointerType));
    this.#list.addEventListener("click", (event) => this.#press(event));
    this.#list.addEventListener("dragstart", (event) => this.#lift(event));
    this.#list.addEventListener("dragover", (event) => this.#over(event));
    this.#list.addEventListener("drop", (event) => this.#drop(event));
    this.#list.addEventListener("dragend", () => parts.lifted.end());
  }

  #press(event) {
    const { lines, selection, acts, reading, speakerMenu, recordings, hintMarks, show } = this.#parts;
    const lineId = lines.lineOf(event.target);
    if (!lineId) return undefined;
    const on = (name) => event.target.closest(`.line-${name}`);
    if (on("play")) return reading.playLine(lineId);
    if (on("remove")) return acts.delete([lineId]);
    if (on("file")) return recordings.choose(lineId);
    if (this.#pointer === "touch" && on("grip")) return this.#mark(lineId, "toggle");
    if (event.shiftKey) return this.#mark(lineId, "range");
    if (event.ctrlKey || event.metaKey) return this.#mark(lineId, "toggle");
    if (!selection.ids.includes(lineId) || !on("grip")) selection.go(lineId);
    if (on("speaker")) return speakerMenu.open(on("speaker"), lineId);
    if (on("takes")) return show("line");
    if (on("hint")) return hintMarks.open();
    if (!on("text") && !on("seconds")) selection.focus();
    if (!on("text") && !on("seconds") && !on("grip")) reading.placeAt(lineId);
    return undefined;
  }

  #mark(lineId, how) {
    const { selection } = this.#parts;
    getSelection().removeAllRanges();
    selection.go(lineId, how);
    selection.focus();
  }

  #lift(event) {
    const { lines, lifted } = this.#parts;
    const lineId = event.target.closest?.(".line-grip") ? lines.lineOf(event.target) : null;
    if (!lineId) return;
    lifted.begin(lineId);
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", "");
    event.dataTransfer.setDragImage(lines.row(lineId).root, 24, 16);
  }

  #over(event) {
    const row = this.#parts.lifted.any && event.target.closest?.(".line");
    if (!row) return;
    event.preventDefault();
    this.#parts.lifted.over(row, event.clientY);
  }

  #drop(event) {
    if (this.#parts.lifted.any && this.#parts.lifted.drop()) event.preventDefault();
  }
}
