/** Fetches the waveforms of takes as they come into sight. */
import * as api from "../core/api.js";
import { Bus } from "../core/bus.js";

const BINS = 48;
const BUNDLE = 40;
const SOON_MS = 60;
const PEAKS_RETRY_MS = 5000;

/** Waveforms of the takes in sight, fetched in batches; timeline, rows and the list of takes share them. */
export class PeakCache {
  /** @type {Bus<import("../core/types").PeakEvents>} */
  events = new Bus();
  #projectId = null;
  #known = new Map();
  #wanted = new Set();
  #asking = false;

  /** Another project was opened: its takes' waveforms are wanted now. @param {string} projectId */
  open(projectId) {
    this.#projectId = projectId;
    this.#known.clear();
    this.#wanted.clear();
  }

  /** Lowest and highest value of each stretch, −128 to 127; null until they are loaded. */
  of(take) {
    if (!take) return null;
    const known = this.#known.get(take.take_id);
    if (known === undefined) this.#want(take.take_id);
    return known ?? null;
  }

  /** Whether it is loaded, or there is none. */
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
    const projectId = this.#projectId;
    const bundle = [...this.#wanted].slice(0, BUNDLE);
    bundle.forEach((takeId) => this.#wanted.delete(takeId));
    let wait_ms = SOON_MS;
    try {
      const { peaks } = await api.readPeaks(projectId, BINS, bundle);
      if (projectId === this.#projectId) this.#learn(bundle, peaks);
    } catch (error) {
      // What is drawn has no waveforms until they are loaded.
      if (error.status === 404 && projectId === this.#projectId) this.#learn(bundle, {});
      else if (projectId === this.#projectId) {
        bundle.forEach((takeId) => this.#wanted.add(takeId));
        wait_ms = PEAKS_RETRY_MS;
      }
    }
    this.#asking = false;
    if (this.#wanted.size) this.#want(this.#wanted.values().next().value, wait_ms);
  }

  #learn(takeIds, peaks) {
    takeIds.forEach((takeId) => this.#known.set(takeId, peaks[takeId] ?? null));
    this.events.emit("loaded");
  }
}
