/** The selection: the current line, and the lines selected with it. */
import { bus } from "../core/bus.js";
import { byId } from "../core/dom.js";

const CONTROLS = "button, select, input";

/** The current line and the selected ones; emits "selection.changed". */
export class Selection {
  #project;
  #lines;
  #anchor = null;
  #marked = new Set();

  /** @param {import("../document/project.js").Project} project @param {import("./line_list.js").LineList} lines */
  constructor(project, lines) {
    this.#project = project;
    this.#lines = lines;
    this.current = null;
    bus.on("project.changed", ({ order }) => order && this.#prune());
    // Tab leads from a row to what it has, which grows while it is worked on; Escape leads back.
    byId("lines").addEventListener("focusin", ({ target }) => target.matches(".line") && admitControls(target, true));
    byId("lines").addEventListener("keydown", (event) => this.#leave(event));
  }

  /** The selected lines in the dialog's order. @returns {string[]} */
  get ids() {
    const { lines, order } = this.#project.view;
    if (this.#marked.size < 2) return [...this.#marked].filter((lineId) => lines.has(lineId));
    return order.filter((lineId) => this.#marked.has(lineId));
  }

  /** Go to a line. @param {string | null} lineId @param {"only" | "range" | "toggle"} how */
  go(lineId, how = "only") {
    const before = this.#marked;
    if (how === "range" && this.#anchor) this.#marked = new Set(this.#between(this.#anchor, lineId));
    else if (how === "toggle") this.#marked = toggled(before, lineId);
    else this.#marked = new Set(lineId ? [lineId] : []);
    if (how !== "range") this.#anchor = lineId;
    this.#show(before, lineId);
  }

  /** Select all lines that a filter shows. */
  all() {
    const before = this.#marked;
    this.#marked = new Set(this.#lines.listed);
    this.#show(before, this.current);
  }

  /** Select exactly these lines. @param {string[]} lineIds @param {string | null} current one of them, else the last */
  set(lineIds, current = lineIds.at(-1) ?? null) {
    const before = this.#marked;
    this.#marked = new Set(lineIds);
    this.#anchor = current;
    this.#show(before, current);
  }

  /** Focus the current line's row. */
  focus() {
    // First, as a row that is folded or filtered out can't be focused.
    if (this.current) this.#lines.reveal(this.current, { calm: true });
    this.#lines.row(this.current)?.root.focus({ preventScroll: true });
  }

  /**
   * The next of some lines after the current one, wrapping around.
   * @param {Set<string>} lineIds @param {1 | -1} by @returns {string | undefined}
   */
  nextOf(lineIds, by) {
    const { order } = this.#project.view;
    const at = order.indexOf(this.current);
    const from = by > 0 ? at + 1 : Math.max(at, 0);
    const round = [...order.slice(from), ...order.slice(0, from)];
    const isOne = (lineId) => lineIds.has(lineId);
    return by > 0 ? round.find(isOne) : round.findLast(isOne);
  }

  /** @param {number} by lines from the current one; without one, from the row that Tab leads to @returns {string | null} */
  neighbour(by) {
    const order = this.#lines.listed;
    const at = order.indexOf(this.current);
    if (at < 0) return this.#first(order, by);
    return order[Math.min(Math.max(0, at + by), order.length - 1)] ?? null;
  }

  #first(order, by) {
    const focused = this.#lines.lineOf(document.activeElement);
    if (Number.isFinite(by) && order.includes(focused)) return focused;
    const fromTop = Number.isFinite(by) ? by > 0 : by < 0;
    return order.at(fromTop ? 0 : -1) ?? null;
  }

  #between(from, to) {
    const { order } = this.#project.view;
    const [first, last] = [order.indexOf(from), order.indexOf(to)].sort((a, b) => a - b);
    return order.slice(Math.max(0, first), last + 1);
  }

  #prune() {
    const { lines, order } = this.#project.view;
    const kept = [...this.#marked].filter((lineId) => lines.has(lineId));
    if (kept.length === this.#marked.size && (this.current === null || lines.has(this.current))) {
      return this.#rove(this.current ?? order[0]);
    }
    const before = this.#marked;
    this.#marked = new Set(kept);
    if (!lines.has(this.#anchor)) this.#anchor = kept[0] ?? null;
    this.#show(before, lines.has(this.current) ? this.current : (kept[0] ?? null));
  }

  #show(before, current) {
    for (const lineId of before) if (!this.#marked.has(lineId)) this.#mark(lineId, false);
    for (const lineId of this.#marked) this.#mark(lineId, true);
    this.current = current;
    this.#rove(current ?? this.#project.view.order[0]);
    bus.emit("selection.changed");
  }

  #mark(lineId, marked) {
    this.#lines.row(lineId)?.root.setAttribute("aria-selected", String(marked));
  }

  #leave(event) {
    if (event.key !== "Escape" || event.defaultPrevented || !event.target.matches(CONTROLS)) return;
    event.preventDefault(); // what follows would mean the row
    this.focus();
  }

  /** Only one row at a time is in the Tab order. */
  #rove(lineId) {
    if (this.stop === lineId) return;
    const previous = this.#lines.row(this.stop);
    if (previous) {
      previous.root.tabIndex = -1;
      admitControls(previous.root, false);
    }
    const row = this.#lines.row(lineId);
    if (row) row.root.tabIndex = 0;
    this.stop = lineId;
  }
}

/** Take the controls of a row into the Tab order, or out of it. @param {Element} row @param {boolean} are */
function admitControls(row, are) {
  for (const control of row.querySelectorAll(CONTROLS)) /** @type {HTMLElement} */ (control).tabIndex = are ? 0 : -1;
}

function toggled(marked, lineId) {
  const next = new Set(marked);
  if (!next.delete(lineId)) next.add(lineId);
  return next;
}
