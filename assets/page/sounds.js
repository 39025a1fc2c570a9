/** Fetched sound of lines near the play-head; the least lately used makes room. */
import { LinePcm } from "./pcm.js";
import { soundOf } from "./playlist.js";

const KEPT_LINES = 48;
const RETRY_MS = 1000;

/** Event "grow" when more of a line has arrived. */
export class Sounds extends EventTarget {
  #pcm = new Map();

  /** @param {string | null} projectId */
  constructor(projectId) {
    super();
    this.projectId = projectId;
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

  clear() {
    for (const lineId of this.#pcm.keys()) this.#forget(lineId);
  }

  /** What was heard live is the take that came of it. */
  #usable(pcm, line) {
    if (pcm.failed_at_ms !== null) return pcm.failed_at_ms > performance.now() - RETRY_MS;
    const sound = soundOf(line);
    if (pcm.sound === "live" && line.state === "ready") pcm.sound = sound;
    return pcm.sound === sound;
  }

  #fetch(line) {
    this.#forget(line.line_id);
    const pcm = new LinePcm(this.projectId, line.line_id, soundOf(line));
    pcm.addEventListener("grow", () => this.dispatchEvent(new Event("grow")));
    return pcm;
  }

  #forget(lineId) {
    this.#pcm.get(lineId)?.drop();
    this.#pcm.delete(lineId);
  }
}
