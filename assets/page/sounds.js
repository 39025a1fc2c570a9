/** Fetched sound of lines near the play-head; the least lately used makes room. */
import { LinePcm } from "./pcm.js";
import { isSoundOf, soundOf } from "./playlist.js";

const KEPT_LINES = 48;
const RETRY_MS = 500;

/** Event "grow" when more of a line has arrived. */
export class Sounds extends EventTarget {
  #pcm = new Map();
  /** By line, the take that was being made of it and was given up. */
  #void = new Map();
  #lineOf;

  /** @param {string | null} projectId @param {(lineId: string) => object | undefined} lineOf a line as it is now */
  constructor(projectId, lineOf) {
    super();
    this.projectId = projectId;
    this.#lineOf = lineOf;
  }

  /** A line's sound as far as it is here; asked for when it isn't. @returns {LinePcm} */
  of(line) {
    const lineId = line.line_id;
    const known = this.#pcm.get(lineId);
    const pcm = known && this.#usable(known, line) ? known : this.#fetch(line);
    this.#pcm.delete(lineId);
    this.#pcm.set(lineId, pcm);
    if (this.#pcm.size > KEPT_LINES) this.#forget(this.#pcm.keys().next().value);
    return pcm;
  }

  /** The lines changed: what is no longer their sound is let go. */
  refresh() {
    for (const [lineId, pcm] of this.#pcm) {
      const line = this.#lineOf(lineId);
      this.#follow(pcm, line);
      if (!line || !this.#isIts(pcm, line)) this.#forget(lineId);
    }
  }

  /** Whether what was laid of `pcm` still is how its line begins. @param {LinePcm} pcm */
  holds(pcm, line) {
    const now = this.#pcm.get(line.line_id);
    if (now === pcm) return this.#isIts(pcm, line);
    if (now && now.take !== null) return !pcm.cut && now.take === pcm.take;
    return this.#isIts(pcm, line);
  }

  clear() {
    for (const lineId of this.#pcm.keys()) this.#forget(lineId);
    this.#void.clear();
  }

  #isIts({ take }, line) {
    if (take !== null && soundOf(line) === "live" && this.#void.get(line.line_id) === take) return false;
    return isSoundOf(take, line);
  }

  /** A take that was being made and no longer is, of a line that still waits, was given up. */
  #follow(pcm, line) {
    if (!line || pcm.take === null) return;
    if (line.making === pcm.take) pcm.begun = true;
    else if (pcm.begun && soundOf(line) === "live") this.#void.set(line.line_id, pcm.take);
  }

  #usable(pcm, line) {
    const same = pcm.asked === soundOf(line);
    if (pcm.failed_at_ms !== null) return same && pcm.failed_at_ms > performance.now() - RETRY_MS;
    if (pcm.cut) return false;
    if (this.#isIts(pcm, line)) return true;
    // The studio answered with something else than the page knows of: one of them is behind.
    if (same) pcm.refuse();
    return same;
  }

  #fetch(line) {
    this.#forget(line.line_id);
    const pcm = new LinePcm(this.projectId, line.line_id, soundOf(line));
    pcm.addEventListener("grow", () => {
      this.#follow(pcm, this.#lineOf(line.line_id));
      this.dispatchEvent(new Event("grow"));
    });
    return pcm;
  }

  #forget(lineId) {
    this.#pcm.get(lineId)?.drop();
    this.#pcm.delete(lineId);
  }
}
