/** Dims the stage directions in the lines' text, which no voice says. */
import { bus } from "../core/bus.js";
import { afterPaint } from "../core/dom.js";

/** @import { Parts } from "../core/types" */

const MARK = "direction";

export class DirectionMarks {
  #parts;

  /** @param {Pick<Parts, "project" | "hints" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    if (typeof Highlight === "undefined") return; // before Safari 17.2 and Firefox 140
    const soon = afterPaint(() => this.#show());
    for (const name of /** @type {const} */ (["checks.changed", "project.changed", "project.shown"])) bus.on(name, soon);
  }

  #show() {
    const { project, hints, lines } = this.#parts;
    const ranges = project.view.order.flatMap((lineId) => {
      const directions = hints.directionsOf(lineId);
      const node = directions.length ? lines.row(lineId)?.text.firstChild : null;
      // A row out of sight has no text, and what is being typed is ahead of the studio.
      return node && node.length === project.line(lineId).text.length ? directions.map((one) => rangeOf(node, one)) : [];
    });
    CSS.highlights.set(MARK, new Highlight(...ranges.filter(Boolean)));
  }
}

function rangeOf(node, { start, end }) {
  if (end > node.length) return null;
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, end);
  return range;
}
