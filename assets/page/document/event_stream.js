/** The event stream of a project; a lost connection is opened again. */
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
    this.#seen();
  }

  #seen;

  /** Listen no more. */
  leave() {
    this.#left = true;
    document.removeEventListener("visibilitychange", this.#seen);
    this.#close();
  }

  /** Ask for the project as it stands, and go on from there; who has left meanwhile gets no event. */
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
      this.#timer = setTimeout(() => this.again(), RETRY_MS);
    }
  }

  #open() {
    if (this.#left || this.#source) return;
    const source = (this.#source = new EventSource(api.eventsUrl(this.#id, this.#seq)));
    source.onmessage = (message) => this.#take(JSON.parse(message.data));
    source.onerror = () => this.again();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #take(step) {
    if (step.seq <= this.#seq) return;
    this.#seq = step.seq;
    this.events.emit("step", step);
  }
}
