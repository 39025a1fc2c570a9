/** The dialog as rows. An edit touches its own rows; what is out of sight is never laid out. */
import { byId, setHidden } from "./dom.js";
import { fold } from "./format.js";
import { Row } from "./row.js";

const LOOKS = 8;
const STILL_MS = 100;

/** Draws the project and says which line an element belongs to. */
export class Lines {
  #list = byId("lines");
  #rows = new Map();
  #shown = [];
  #colours = new Map();
  #heard = null;
  #followed = false;
  /** The line that is being scrolled to. */
  #aim = null;
  #sounding = null;
  #project;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    this.hintsOf = () => [];
    project.addEventListener("change", ({ detail }) => this.#change(detail));
  }

  /** @param {string} lineId @returns {Row | undefined} */
  row(lineId) {
    return this.#rows.get(lineId);
  }

  /** @param {EventTarget} element @returns {string | null} the line it stands in */
  lineOf(element) {
    return element instanceof Element ? (element.closest(".line")?.dataset.line ?? null) : null;
  }

  colour(speaker) {
    return this.#colours.get(fold(speaker ?? ""));
  }

  /** Mark the line being spoken and keep it in view. @param {string | null} lineId */
  follow(lineId, { reveal = true } = {}) {
    const row = this.#rows.get(lineId) ?? null;
    if (row === this.#heard && reveal === this.#followed) return;
    this.#heard?.root.removeAttribute("aria-current");
    [this.#heard, this.#followed] = [row, reveal];
    row?.root.setAttribute("aria-current", "true");
    if (row && reveal) this.reveal(lineId);
  }

  /** Turn the button of one line into pause, that of the line before back into play. */
  sounding(lineId) {
    const row = this.#rows.get(lineId) ?? null;
    if (row === this.#sounding) return;
    this.#sounding?.play?.setAttribute("aria-pressed", "false");
    row?.play?.setAttribute("aria-pressed", "true");
    this.#sounding = row;
  }

  /**
   * Scroll a line into view, unless it is there. Heights of rows never laid out are guesses, so
   * where it lands is looked at again.
   */
  reveal(lineId, { calm = false, looks = LOOKS } = {}) {
    const row = this.#rows.get(lineId);
    if (looks === LOOKS) this.#aim = lineId;
    if (!row || this.#aim !== lineId || (looks === LOOKS && this.#isSeen(row))) return;
    const view = this.#list.getBoundingClientRect();
    const by = this.#isSeen(row) ? 0 : row.root.getBoundingClientRect().top - view.top - view.height / 3;
    const still = calm || Math.abs(by) > view.height || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const again = () => looks && this.reveal(lineId, { calm: true, looks: looks - 1 });
    if (by) this.#list.scrollBy({ top: by, behavior: still ? "auto" : "smooth" });
    if (still) requestAnimationFrame(again);
    else this.#afterScroll(again);
  }

  /** Safari before 26.2 doesn't say that a scroll has ended: there it has when the list stands still. */
  #afterScroll(then) {
    if ("onscrollend" in window) return this.#list.addEventListener("scrollend", then, { once: true });
    const place = this.#list.scrollTop;
    return setTimeout(() => (this.#list.scrollTop === place ? then() : this.#afterScroll(then)), STILL_MS);
  }

  /** The person moves the list: it goes nowhere by itself any more. */
  letGo() {
    this.#aim = null;
  }

  /** Whether a line is in view. @param {string} lineId */
  sees(lineId) {
    const row = this.#rows.get(lineId);
    return row !== undefined && this.#isSeen(row);
  }

  #isSeen(row) {
    const box = row.root.getBoundingClientRect();
    const view = this.#list.getBoundingClientRect();
    return box.top >= view.top + 8 && box.bottom <= view.bottom - 24;
  }

  #change({ ids, order, meta }) {
    const recoloured = meta && this.#learnColours();
    if (order) this.#arrange();
    const touched = recoloured ? this.#rows.keys() : ids;
    for (const lineId of touched) this.#write(lineId);
  }

  #learnColours() {
    const before = JSON.stringify([...this.#colours]);
    this.#colours = new Map(
      this.#project.view.speakers.map(({ name, colour }) => [fold(name), colour]),
    );
    return JSON.stringify([...this.#colours]) !== before;
  }

  #write(lineId) {
    const line = this.#project.line(lineId);
    if (line) this.#rows.get(lineId)?.write(line, this.colour(line.speaker));
  }

  /** Rows in the dialog's order; those that stand right are not moved, so focus stays. */
  #arrange() {
    const { order, lines } = this.#project.view;
    for (const lineId of this.#shown) if (!lines.has(lineId)) this.#forget(lineId);
    let next = this.#list.firstElementChild;
    for (const lineId of order) {
      const root = (this.#rows.get(lineId) ?? this.#grow(lines.get(lineId))).root;
      if (root === next) next = next.nextElementSibling;
      else if (next?.nextElementSibling === root) {
        this.#list.append(next);
        next = root.nextElementSibling;
      } else this.#list.insertBefore(root, next);
    }
    this.#shown = order;
    this.#renumber();
    setHidden(byId("lines-empty"), order.length > 0);
    this.#list.setAttribute("aria-rowcount", String(order.length));
  }

  #forget(lineId) {
    this.#rows.get(lineId)?.root.remove();
    this.#rows.delete(lineId);
  }

  #grow(line) {
    const row = new Row(line);
    this.#rows.set(line.line_id, row);
    row.write(line, this.colour(line.speaker));
    row.hint(this.hintsOf(line.line_id));
    return row;
  }

  #renumber() {
    let number = 0;
    for (const lineId of this.#shown) {
      const row = this.#rows.get(lineId);
      if (row.kind !== "silence") number += 1;
      row.renumber(number);
    }
  }
}
