/**
 * Marks in the text of a row where its take says something else: by the CSS Custom Highlight API, so that the
 * text that is edited stays as it is. A browser without it has the row's badge only.
 */
import { bus } from "../core/bus.js";
import { lineWordMarks } from "../document/document.js";

/** @import { Parts } from "../core/types" */

const KINDS = ["missing", "extra", "repeated", "replaced", "unlike"];

export class WordMarks {
  #parts;
  #ranges = new Map();
  #accepted = null;

  /** @param {Pick<Parts, "project" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    if (!("highlights" in CSS)) return;
    for (const kind of KINDS) CSS.highlights.set(`word-${kind}`, new Highlight());
    bus.on("project.changed", (change) => this.#change(change));
  }

  #change({ ids, order }) {
    const { accepted_takes: accepted, order: all } = this.#parts.project.view;
    const touched = order || accepted !== this.#accepted ? new Set([...all, ...this.#ranges.keys()]) : ids;
    this.#accepted = accepted;
    for (const lineId of touched) this.#mark(lineId);
  }

  #mark(lineId) {
    const { project, lines } = this.#parts;
    const marks = lineWordMarks(project.line(lineId), this.#accepted);
    if (!marks.length && !this.#ranges.has(lineId)) return;
    for (const [kind, range] of this.#ranges.get(lineId) ?? []) CSS.highlights.get(`word-${kind}`).delete(range);
    this.#ranges.delete(lineId);
    const node = lines.row(lineId)?.text.firstChild;
    const ranges = node ? marks.flatMap((mark) => rangeOf(node, mark)) : [];
    for (const [kind, range] of ranges) CSS.highlights.get(`word-${kind}`).add(range);
    if (ranges.length) this.#ranges.set(lineId, ranges);
  }
}

/** A mark as a range of a text; none where it lies outside. The studio counts code points, the DOM UTF-16 units. */
function rangeOf(node, { kind, start, end }) {
  const chars = [...node.data];
  const [from, to] = start === end ? [Math.max(0, start - 1), Math.min(chars.length, end + 1)] : [start, end];
  if (to > chars.length || !KINDS.includes(kind)) return [];
  const at = (place) => chars.slice(0, place).join("").length;
  return [[kind, new StaticRange({ startContainer: node, startOffset: at(from), endContainer: node, endOffset: at(to) })]];
}
