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
  /** Takes without sound when they were asked for. Once they have some, the studio sends them anew, as other objects. */
  #missing = new WeakSet();
  #wanted = new Map();
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
    if (!known && !this.#missing.has(take)) this.#want(take);
    return known ?? null;
  }

  /** Whether it is loaded, or there is none. */
  settled(take) {
    return this.#known.has(take.take_id) || this.#missing.has(take);
  }

  #want(take) {
    this.#wanted.set(take.take_id, take);
    this.#soon(SOON_MS);
  }

  #soon(wait_ms) {
    if (this.#asking) return;
    this.#asking = true;
    setTimeout(() => this.#ask(), wait_ms);
  }

  async #ask() {
    const projectId = this.#projectId;
    const bundle = [...this.#wanted.values()].slice(0, BUNDLE);
    const takeIds = bundle.map(({ take_id: takeId }) => takeId);
    takeIds.forEach((takeId) => this.#wanted.delete(takeId));
    let wait_ms = SOON_MS;
    try {
      const { peaks } = await api.readPeaks(projectId, BINS, takeIds);
      if (projectId === this.#projectId) this.#learn(bundle, peaks);
    } catch (error) {
      // What is drawn has no waveforms until they are loaded.
      if (error.status === 404 && projectId === this.#projectId) this.#learn(bundle, {});
      else if (projectId === this.#projectId) {
        bundle.forEach((take) => this.#wanted.set(take.take_id, take));
        wait_ms = PEAKS_RETRY_MS;
      }
    }
    this.#asking = false;
    if (this.#wanted.size) this.#soon(wait_ms);
  }

  #learn(takes, peaks) {
    for (const take of takes) {
      const found = peaks[take.take_id];
      if (found) this.#known.set(take.take_id, found);
      else this.#missing.add(take);
    }
    this.events.emit("loaded");
  }
}
