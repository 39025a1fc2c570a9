/** Gestures on rows by mouse and touch: press, select, drag and drop. */
import { byId } from "../core/dom.js";
import { rowAbove } from "./row_groups.js";

/** @import { Parts } from "../core/types" */

/** A drag of rows by mouse or touch: shows the drop position, and moves the rows. */
export class DraggedRows {
  #list = byId("lines");
  #parts;
  #ids = null;

  /** @param {Pick<Parts, "selection" | "commands">} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Whether rows are being dragged. */
  get any() {
    return this.#ids !== null;
  }

  /** Start to drag the selected lines, or a line that isn't selected. @param {string} lineId */
  begin(lineId) {
    const { selection } = this.#parts;
    if (!selection.ids.includes(lineId)) selection.go(lineId);
    this.#ids = selection.ids;
  }

  /** Show the drop position. @param {HTMLElement} row @param {number} y in the window */
  over(row, y) {
    const box = row.getBoundingClientRect();
    const previous = this.#pointed;
    if (previous && previous !== row) delete previous.dataset.drop;
    row.dataset.drop = y > box.top + box.height / 2 ? "below" : "above";
  }

  /** Drop the rows at the shown position. @returns {boolean} whether there was one */
  drop() {
    const [row, lineIds] = [this.#pointed, this.#ids];
    const after = row?.dataset.drop === "below" ? row : row && rowAbove(row);
    this.end();
    if (!row || !lineIds) return false;
    this.#parts.commands.move(lineIds, free(after, lineIds));
    return true;
  }

  /** End the drag. */
  end() {
    this.#ids = null;
    const pointed = this.#pointed;
    if (pointed) delete pointed.dataset.drop;
  }

  get #pointed() {
    return this.#list.querySelector("[data-drop]");
  }
}

/** The nearest row at or above it that isn't dragged itself. */
function free(row, carried) {
  let found = row;
  while (found && carried.includes(found.dataset.line)) found = rowAbove(found);
  return found?.dataset.line ?? null;
}

/** Clicks on rows, and dragging by mouse. */
export class MouseGestures {
  #list = byId("lines");
  #parts;
  #pointer = "";

  /** @param {Pick<Parts, "lines" | "selection" | "commands" | "playback" | "speakerMenu" | "recordings" | "badges" | "linePanel" | "draggedRows" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    // Safari before 18.4 reports no pointer type for a click, or a mouse.
    this.#list.addEventListener("pointerdown", ({ pointerType }) => (this.#pointer = pointerType));
    this.#list.addEventListener("click", (event) => this.#press(event));
    this.#list.addEventListener("dragstart", (event) => this.#lift(event));
    this.#list.addEventListener("dragover", (event) => this.#over(event));
    this.#list.addEventListener("drop", (event) => this.#drop(event));
    this.#list.addEventListener("dragend", () => parts.draggedRows.end());
  }

  #press(event) {
    const { lines, selection, commands, playback, speakerMenu, recordings, badges, linePanel, show } = this.#parts;
    const lineId = lines.lineOf(event.target);
    if (!lineId) return undefined;
    const on = (name) => event.target.closest(`.line-${name}`);
    if (on("play")) return playback.playLine(lineId);
    if (on("fold")) return lines.fold(lineId);
    if (on("what") || on("record") || on("comments")) return selection.go(lineId);
    if (on("remove")) return commands.delete([lineId]);
    if (on("file")) return recordings.choose(lineId);
    if (this.#pointer === "touch" && on("grip")) return this.#mark(lineId, "toggle");
    if (event.shiftKey) return this.#mark(lineId, "range");
    if (event.ctrlKey || event.metaKey) return this.#mark(lineId, "toggle");
    selection.go(lineId); // the end of a drag is no click
    if (on("speaker")) return speakerMenu.open(on("speaker"), lineId);
    if (on("takes")) return show("line");
    if (on("badges")) return linePanel.openMore();
    if (on("hint")) return badges.open();
    if (!on("text") && !on("seconds")) selection.focus();
    if (!on("text") && !on("seconds") && !on("grip")) playback.placeAt(lineId);
    return undefined;
  }

  #mark(lineId, how) {
    const { selection } = this.#parts;
    getSelection().removeAllRanges();
    selection.go(lineId, how);
    selection.focus();
  }

  #lift(event) {
    const { lines, draggedRows } = this.#parts;
    const lineId = event.target.closest?.(".line-grip") ? lines.lineOf(event.target) : null;
    if (!lineId) return;
    draggedRows.begin(lineId);
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", "");
    event.dataTransfer.setDragImage(lines.row(lineId).root, 24, 16);
  }

  #over(event) {
    const row = this.#parts.draggedRows.any && event.target.closest?.(".line");
    if (!row) return;
    event.preventDefault();
    this.#parts.draggedRows.over(row, event.clientY);
  }

  #drop(event) {
    if (this.#parts.draggedRows.any && this.#parts.draggedRows.drop()) event.preventDefault();
  }
}

const BEGINS_PX = 8;
const EDGE_PX = 48;
const STEP_PX = 9;

/** Dragging by touch: a row is dragged by its number, and the list scrolls at its ends. */
export class TouchGestures {
  #list = byId("lines");
  #lines;
  #draggedRows;
  #from = null;
  #at = null;

  /** @param {Pick<Parts, "lines" | "draggedRows">} parts */
  constructor({ lines, draggedRows }) {
    this.#lines = lines;
    this.#draggedRows = draggedRows;
    this.#list.addEventListener("pointerdown", (event) => this.#touch(event));
    this.#list.addEventListener("pointermove", (event) => this.#move(event));
    this.#list.addEventListener("pointerup", (event) => this.#leave(event, true));
    this.#list.addEventListener("pointercancel", (event) => this.#leave(event, false));
    // The end of a drag isn't a press on the number.
    this.#list.addEventListener("click", (event) => this.#carried(event), true);
  }

  #touch({ pointerType, pointerId, target, clientX, clientY }) {
    if (this.#at) return; // a second finger
    const lineId = pointerType === "touch" && target.closest(".line-grip") ? this.#lines.lineOf(target) : null;
    this.#from = lineId && { lineId, pointerId, x: clientX, y: clientY, moved: false };
  }

  #move({ pointerId, clientX, clientY }) {
    const from = this.#from;
    if (!from || from.pointerId !== pointerId) return;
    if (!from.moved && Math.hypot(clientX - from.x, clientY - from.y) < BEGINS_PX) return;
    if (!from.moved) {
      from.moved = true;
      this.#list.setPointerCapture(pointerId);
      this.#draggedRows.begin(from.lineId);
    }
    const rolls = this.#at !== null;
    this.#at = { x: clientX, y: clientY };
    if (!rolls) this.#roll();
  }

  /** Each frame: show the drop position, and scroll while the finger is at an end of the list. */
  #roll() {
    if (!this.#at) return;
    const view = this.#list.getBoundingClientRect();
    const { x, y } = this.#at;
    if (y < view.top + EDGE_PX) this.#list.scrollBy({ top: -STEP_PX });
    if (y > view.bottom - EDGE_PX) this.#list.scrollBy({ top: STEP_PX });
    const inside = Math.min(Math.max(y, view.top + 1), view.bottom - 1);
    const row = document.elementFromPoint(x, inside)?.closest("#lines .line");
    if (row) this.#draggedRows.over(row, inside);
    requestAnimationFrame(() => this.#roll());
  }

  #leave({ pointerId }, lands) {
    if (this.#from?.pointerId !== pointerId) return;
    this.#at = null;
    if (!this.#from.moved) this.#from = null;
    else if (lands) this.#draggedRows.drop();
    else this.#draggedRows.end();
  }

  #carried(event) {
    if (!this.#from?.moved || !event.detail) return;
    this.#from = null;
    event.stopPropagation();
  }
}
