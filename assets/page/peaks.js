/** Waveforms of the takes that are shown, asked for in bundles when nothing else is to do. */
import * as api from "./project_api.js";

const BINS = 48;
const BUNDLE = 40;
const SOON_MS = 60;
const RETRY_MS = 5000;

/** Event "change" when more of them have come. */
export class Peaks extends EventTarget {
  #known = new Map();
  #wanted = new Set();
  #asking = false;

  /** @param {string} projectId */
  constructor(projectId) {
    super();
    this.projectId = projectId;
  }

  /** Lowest and highest value of each stretch, −128 to 127; null until they have come. */
  of(take) {
    if (!take) return null;
    const known = this.#known.get(take.take_id);
    if (known === undefined) this.#want(take.take_id);
    return known ?? null;
  }

  /** Whether it has come, or none is to be had. */
  settled(take) {
    return this.#known.has(take.take_id);
  }

  #want(takeId, wait_ms = SOON_MS) {
    this.#wanted.add(takeId);
    if (this.#asking) return;
    this.#asking = true;
    setTimeout(() => this.#ask(), wait_ms);
  }

  async #ask() {
    const bundle = [...this.#wanted].slice(0, BUNDLE);
    bundle.forEach((takeId) => this.#wanted.delete(takeId));
    let wait_ms = SOON_MS;
    try {
      const { peaks } = await api.peaks(this.projectId, BINS, bundle);
      bundle.forEach((takeId) => this.#known.set(takeId, peaks[takeId] ?? null));
      this.dispatchEvent(new Event("change"));
    } catch (error) {
      // A timeline without waveforms is still a timeline: its blocks stand for them until then.
      if (error.status === 404) bundle.forEach((takeId) => this.#known.set(takeId, null));
      else {
        bundle.forEach((takeId) => this.#wanted.add(takeId));
        wait_ms = RETRY_MS;
      }
    }
    this.#asking = false;
    if (this.#wanted.size) this.#want(this.#wanted.values().next().value, wait_ms);
  }
}
