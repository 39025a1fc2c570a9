/** Hints where a person meets them: a mark on the row, the whole in the panel, a way to the next. */
import { byId, setHidden, setText } from "./dom.js";
import { doubtsOf } from "./doubts.js";
import { announce } from "./notices.js";

const SPOKEN = 3;
const GAP_PX = 12;

export class HintMarks {
  #parts;
  #doubted = new Set();
  #accepted = null;
  #shown = "";

  /** @param {object} parts project, hints, lines, selection, acts, show */
  constructor(parts) {
    this.#parts = parts;
    const { project, hints, selection, lines } = parts;
    hints.addEventListener("change", ({ detail }) => this.#changed(detail));
    project.addEventListener("change", ({ detail }) => this.#followTakes(detail));
    selection.addEventListener("change", () => this.#showPanel());
    lines.hintsOf = (lineId) => this.#of(lineId);
    byId("hints-next").addEventListener("click", () => this.#next());
    byId("take-fine").addEventListener("click", () => this.#accept());
  }

  /** Lead to the whole text of a line's hints. */
  open() {
    this.#parts.show("line");
    // Not scrollIntoView: it would move the page itself, too.
    const part = byId("hints-part");
    const pane = part.closest("#part-line");
    pane.scrollTop += part.getBoundingClientRect().bottom - pane.getBoundingClientRect().bottom + GAP_PX;
  }

  #changed({ ids }) {
    const { hints, lines, selection } = this.#parts;
    for (const lineId of ids) lines.row(lineId)?.hint(this.#of(lineId));
    this.#showCount();
    const mine = selection.ids.filter((lineId) => ids.has(lineId));
    if (mine.length) this.#showPanel();
    this.#say(mine.filter((lineId) => hints.of(lineId).length));
  }

  /** What is to be known before it is read, and about what was made of it. */
  #of(lineId) {
    return [...this.#parts.hints.of(lineId), ...this.#doubtsOf(lineId)];
  }

  #doubtsOf(lineId) {
    const { project } = this.#parts;
    return doubtsOf(project.line(lineId), project.view.accepted_takes);
  }

  /** Lines whose take became another, or was found right, are marked anew. */
  #followTakes({ ids }) {
    const { project, lines, selection } = this.#parts;
    const { accepted_takes: accepted } = project.view;
    const all = accepted === this.#accepted ? ids : project.view.order;
    this.#accepted = accepted;
    const fresh = [];
    for (const lineId of all) {
      const is = this.#doubtsOf(lineId).length > 0;
      if (!is && !this.#doubted.has(lineId)) continue;
      if (is && !this.#doubted.has(lineId)) fresh.push(lineId);
      if (is) this.#doubted.add(lineId);
      else this.#doubted.delete(lineId);
      lines.row(lineId)?.hint(this.#of(lineId));
    }
    this.#showCount();
    this.#showPanel();
    this.#say(selection.ids.filter((lineId) => fresh.includes(lineId)));
  }

  /** The take was heard and is right: it isn't marked any more. */
  #accept() {
    const { project, selection, acts } = this.#parts;
    const { take } = project.line(selection.current) ?? {};
    if (take) acts.accept(take.take_id, true);
    selection.focus();
  }

  /** What a person is at is said; a project that opens is not read out. */
  #say(lineIds) {
    const { lines } = this.#parts;
    if (!lineIds.length) return;
    const told = lineIds.slice(0, SPOKEN).map((lineId) =>
      `Line ${lines.row(lineId)?.number.textContent}: ${this.#of(lineId).join(" ")}`);
    announce(told.join(" "));
  }

  /** Lines that failed, or that have something to know. */
  get toCheck() {
    const { project, hints } = this.#parts;
    return project.lines
      .filter(({ line_id: lineId, state }) =>
        state === "failed" || hints.of(lineId).length || this.#doubted.has(lineId))
      .map(({ line_id: lineId }) => lineId);
  }

  #showCount() {
    const all = this.toCheck.length;
    setHidden(byId("hints-next"), all === 0);
    setText(byId("hints-next"), `${all} to check`);
  }

  #showPanel() {
    const { selection } = this.#parts;
    const [lineId] = selection.ids.length === 1 ? selection.ids : [null];
    const messages = lineId ? this.#of(lineId) : [];
    setHidden(byId("hints-part"), messages.length === 0);
    setHidden(byId("take-fine"), !this.#doubted.has(lineId));
    const known = JSON.stringify(messages);
    if (known === this.#shown) return;
    this.#shown = known;
    byId("hints").replaceChildren(...messages.map(item));
  }

  /** Go to the next of them, from the current one on and round. */
  #next() {
    const { project, selection } = this.#parts;
    const lines = this.toCheck;
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
