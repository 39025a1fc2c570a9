/** A render in progress, as the server tells it; the server owns it and outlives the tab. */
import * as api from "./api.js";

const RETRY_MS = 1500;
const AUDIBLE = new Set(["started", "generated", "saved"]);
const OVER = new Set(["failed", "cancelled"]);

/**
 * Events: "change" at most once a frame after segments changed (`detail` is the set of their
 * indices), "settled" when the job has ended, "lost" when the server knows it no more.
 */
export class Job extends EventTarget {
  #source = null;
  #changed = new Set();
  #scheduled = false;

  /** @param {object} snapshot @param {string} text the script it was made from */
  constructor(snapshot, text) {
    super();
    this.id = snapshot.job_id;
    this.text = text;
    this.notices = snapshot.notices;
    this.#adopt(snapshot);
  }

  get running() {
    return this.state === "running";
  }

  /** Whether its audio is being made or exists. */
  audible(segmentIdx) {
    return AUDIBLE.has(this.segments[segmentIdx].state);
  }

  /** Whether it will never have audio. */
  over(segmentIdx) {
    return OVER.has(this.segments[segmentIdx].state);
  }

  /** Listen for changes until the job has ended. */
  follow() {
    if (!this.running) return this.#tell("settled");
    this.#source = new EventSource(api.eventsUrl(this.id, this.seq));
    this.#source.onmessage = (message) => this.#take(JSON.parse(message.data));
    this.#source.onerror = () => this.#reattach();
  }

  /** Stop listening; the render itself goes on. */
  leave() {
    this.#source?.close();
    this.#source = null;
  }

  async cancel() {
    const snapshot = await api.cancelJob(this.id);
    // The stream of events may have been quicker than this answer.
    if (snapshot.seq < this.seq) return;
    this.#adopt(snapshot);
    this.#touchAll();
    if (!this.running) this.#settle();
  }

  #adopt(snapshot) {
    this.state = snapshot.state;
    this.segments = snapshot.segments;
    this.summary = snapshot.summary;
    this.backend = snapshot.backend;
    this.seq = snapshot.seq;
  }

  #take(event) {
    if (event.seq <= this.seq) return;
    this.seq = event.seq;
    if (event.type === "job") return this.#finish(event);
    const segment = this.segments[event.segment_idx];
    segment.state = event.state;
    segment.message = event.message ?? segment.message;
    segment.samples = event.samples ?? segment.samples;
    this.#touch(event.segment_idx);
  }

  #finish(event) {
    this.state = event.state;
    this.summary = event.summary;
    if (!this.running) this.#settle();
  }

  #settle() {
    this.leave();
    this.#flush();
    this.#tell("settled");
  }

  async #reattach() {
    if (!this.#source) return;
    this.leave();
    try {
      this.#adopt(await api.job(this.id));
      this.#touchAll();
      this.follow();
    } catch (error) {
      if (error.status === 404) return this.#giveUp();
      this.#source = { close: () => clearTimeout(timer) };
      const timer = setTimeout(() => this.#reattach(), RETRY_MS);
    }
  }

  /** The server was started again without it: nothing of it can be fetched any more. */
  #giveUp() {
    this.state = "lost";
    for (const segment of this.segments) {
      Object.assign(segment, { state: "cancelled", samples: null });
    }
    this.#tell("lost");
    this.#touchAll();
  }

  #touchAll() {
    this.segments.forEach((_, segmentIdx) => this.#touch(segmentIdx));
  }

  #touch(segmentIdx) {
    this.#changed.add(segmentIdx);
    if (this.#scheduled) return;
    this.#scheduled = true;
    requestAnimationFrame(() => this.#flush());
  }

  #flush() {
    this.#scheduled = false;
    if (!this.#changed.size) return;
    const detail = this.#changed;
    this.#changed = new Set();
    this.dispatchEvent(new CustomEvent("change", { detail }));
  }

  #tell(name) {
    this.dispatchEvent(new Event(name));
  }
}
