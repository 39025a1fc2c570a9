/** The one event stream of the page: a project's steps and the studio's state. A lost connection is opened again. */
import * as api from "../core/api.js";
import { Bus } from "../core/bus.js";

/** @import { ProjectBody } from "../core/types" */

const RETRY_MS = 1000;

export class EventStream {
  /** @type {Bus<import("../core/types").EventStreamEvents>} */
  events = new Bus();
  #id;
  #seq;
  #source = null;
  #timer = null;
  #left = false;
  #asked = 0;
  #isBehind;

  /**
   * @param {string} projectId @param {number} seq steps known already
   * @param {() => boolean} needed whether even a hidden tab needs them
   * @param {(body: ProjectBody) => boolean} isBehind whether more is known than a body tells
   */
  constructor(projectId, seq, needed, isBehind) {
    this.#id = projectId;
    this.#seq = seq;
    this.#isBehind = isBehind;
    // A hidden tab keeps no connection: a browser has six for all tabs of one address.
    this.#seen = () => (document.hidden && !needed() ? this.#close() : this.#open());
    document.addEventListener("visibilitychange", this.#seen);
    addEventListener("offline", this.#cutOff);
    this.#seen();
  }

  #seen;

  // A connection over a network that is gone says nothing for minutes.
  #cutOff = () => void (this.#source && this.again());

  /** Stop listening. */
  leave() {
    this.#left = true;
    document.removeEventListener("visibilitychange", this.#seen);
    removeEventListener("offline", this.#cutOff);
    this.#close();
  }

  /** Fetch the project's current state and go on from there, unless the stream was stopped meanwhile. */
  async again() {
    this.#close();
    const asked = (this.#asked += 1);
    const isOver = () => this.#left || asked !== this.#asked;
    try {
      let body = await api.readProject(this.#id);
      // It may be older than an edit that was answered meanwhile; only once, as a studio that was
      // killed may have lost its last second.
      if (!isOver() && this.#isBehind(body)) body = await api.readProject(this.#id);
      if (isOver()) return;
      this.#seq = body.seq;
      this.events.emit("body", body);
      this.#seen();
    } catch (error) {
      if (isOver()) return;
      if (error.status === 404) return this.events.emit("gone");
      if (error.status !== 429) this.events.emit("lost", error); // busy is not gone
      this.#timer = setTimeout(() => this.again(), RETRY_MS);
    }
  }

  #open() {
    if (this.#left || this.#source) return;
    const source = (this.#source = new EventSource(api.eventsUrl(this.#id, this.#seq)));
    source.onmessage = (message) => this.#take(JSON.parse(message.data));
    const opened = performance.now();
    source.onerror = () => {
      this.#close();
      // One that ends as soon as it is opened isn't opened again in a circle.
      this.#timer = setTimeout(() => this.again(), Math.max(0, opened + RETRY_MS - performance.now()));
    };
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #take(step) {
    // The state has no number of its own: what comes is how it is.
    if (step.type === "state") return this.events.emit("state", step.state);
    if (step.seq <= this.#seq) return;
    this.#seq = step.seq;
    this.events.emit("step", step);
  }
}
