/** Waveforms in rows: drawn as rows come into sight, of peaks that the timeline uses too. */
import { bus } from "../core/bus.js";
import { afterPaint, byId, setHidden } from "../core/dom.js";
import { isPending } from "../document/document.js";
import { paintWave } from "../playback/waveform.js";

/** @import { Parts } from "../core/types" */

const MARGIN = "120px 0px";

export class RowWaves {
  #parts;
  #watched = new Set();
  #seen = new Set();
  /** What is drawn, by line: the take with its colour. */
  #drawn = new Map();
  /** Lines that were being made: what they become appears in motion. */
  #coming = new Set();
  /** Where the browser doesn't tell which rows it lays out (Safari before 18). @type {IntersectionObserver | null} */
  #observer = null;

  /** @param {Pick<Parts, "project" | "lines" | "peaks">} parts */
  constructor(parts) {
    this.#parts = parts;
    const list = byId("lines");
    if (CSS.supports("content-visibility", "auto")) {
      // An observer of our own would look at each row at each frame.
      list.addEventListener("contentvisibilityautostatechange", (/** @type {any} */ { target, skipped }) =>
        this.#look(target, !skipped));
    } else {
      const look = (entries) => entries.forEach(({ target, isIntersecting }) => this.#look(target, isIntersecting));
      this.#observer = new IntersectionObserver(look, { root: list, rootMargin: MARGIN });
    }
    bus.on("project.changed", (change) => this.#change(change));
    parts.peaks.events.on("loaded", this.#soon);
    addEventListener("resize", () => this.#resize());
    bus.on("density.changed", () => this.#resize());
  }

  #change({ ids, order, meta }) {
    const { project } = this.#parts;
    if (order) this.#watch();
    for (const lineId of ids) {
      const line = project.line(lineId);
      if (line && isPending(line)) this.#coming.add(lineId);
    }
    if (meta || [...ids].some((lineId) => this.#seen.has(lineId))) this.#soon();
  }

  /** Watch the rows of new lines, and forget those of deleted ones. */
  #watch() {
    const { project, lines } = this.#parts;
    for (const lineId of this.#watched) if (!project.line(lineId)) this.#forget(lineId);
    for (const lineId of project.view.order) {
      if (this.#watched.has(lineId) || !lines.row(lineId)?.wave) continue;
      this.#watched.add(lineId);
      this.#observer?.observe(/** @type {any} */ (lines.row(lineId).root));
    }
  }

  #forget(lineId) {
    for (const known of [this.#watched, this.#seen, this.#coming, this.#drawn]) known.delete(lineId);
  }

  #look(row, isSeen) {
    if (!row.dataset.line) return; // a group of rows
    if (isSeen) this.#seen.add(row.dataset.line);
    else this.#seen.delete(row.dataset.line);
    this.#soon();
  }

  #resize() {
    this.#drawn.clear();
    this.#soon();
  }

  #soon = afterPaint(() => this.#seen.forEach((lineId) => this.#draw(lineId)));

  #draw(lineId) {
    const { project, lines, peaks } = this.#parts;
    const [line, row] = [project.line(lineId), lines.row(lineId)];
    if (!line || !row?.wave || document.body.dataset.density === "compact") return; // where they have no room
    const known = line.take && !isPending(line) ? peaks.of(line.take) : null;
    setHidden(row.wave, known === null);
    if (!known) {
      delete row.wave.dataset.drawn;
      return void this.#drawn.delete(lineId);
    }
    const about = `${line.take.take_id} ${row.colour}`;
    if (this.#drawn.get(lineId) === about) return;
    // Read last, as it may need a layout.
    const size = { width: row.wave.clientWidth, height: row.wave.clientHeight };
    if (!size.width) return;
    this.#drawn.set(lineId, about);
    paintWave(row.wave, known, row.colour, size);
    row.wave.dataset.drawn = "true";
    row.wave.classList.toggle("fresh", this.#coming.delete(lineId));
  }
}
