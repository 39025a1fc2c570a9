/** Hints where a person meets them: a mark on the row, the whole in the panel, a way to the next. */
import { byId, setHidden, setText } from "./dom.js";
import { announce } from "./notices.js";

const SPOKEN = 3;

export class HintMarks {
  #parts;

  /** @param {object} parts project, hints, lines, selection, show */
  constructor(parts) {
    this.#parts = parts;
    const { project, hints, selection, lines } = parts;
    hints.addEventListener("change", ({ detail }) => this.#changed(detail));
    project.addEventListener("change", () => this.#showCount());
    selection.addEventListener("change", () => this.#showPanel());
    lines.hintsOf = (lineId) => hints.of(lineId);
    byId("hints-next").addEventListener("click", () => this.#next());
  }

  /** Lead to the whole text of a line's hints. */
  open() {
    this.#parts.show("line");
    // Not scrollIntoView: it would move the page itself, too.
    const pane = byId("hints-part").closest("#part-line");
    pane.scrollTop = pane.scrollHeight;
  }

  #changed({ ids }) {
    const { hints, lines, selection } = this.#parts;
    for (const lineId of ids) lines.row(lineId)?.hint(hints.of(lineId));
    this.#showCount();
    const mine = selection.ids.filter((lineId) => ids.has(lineId));
    if (mine.length) this.#showPanel();
    this.#say(mine.filter((lineId) => hints.of(lineId).length));
  }

  /** What a person is at is said; a project that opens is not read out. */
  #say(lineIds) {
    const { hints, lines } = this.#parts;
    if (!lineIds.length) return;
    const told = lineIds.slice(0, SPOKEN).map((lineId) =>
      `Line ${lines.row(lineId)?.number.textContent}: ${hints.of(lineId).join(" ")}`);
    announce(told.join(" "));
  }

  /** Lines that failed, or that have something to know. */
  get #open() {
    const { project, hints } = this.#parts;
    return project.lines
      .filter(({ line_id: lineId, state }) => state === "failed" || hints.of(lineId).length)
      .map(({ line_id: lineId }) => lineId);
  }

  #showCount() {
    const all = this.#open.length;
    setHidden(byId("hints-next"), all === 0);
    setText(byId("hints-next"), `${all} to check`);
  }

  #showPanel() {
    const { hints, selection } = this.#parts;
    const messages = selection.ids.length === 1 ? hints.of(selection.ids[0]) : [];
    setHidden(byId("hints-part"), messages.length === 0);
    byId("hints").replaceChildren(...messages.map(item));
  }

  /** Go to the next of them, from the current one on and round. */
  #next() {
    const { project, selection } = this.#parts;
    const lines = this.#open;
    const { order } = project.view;
    const at = order.indexOf(selection.current);
    const next = lines.find((lineId) => order.indexOf(lineId) > at) ?? lines[0];
    if (!next) return;
    selection.go(next);
    selection.focus();
  }
}

function item(message) {
  const row = document.createElement("li");
  setText(row, message);
  row.dir = "auto";
  return row;
}
