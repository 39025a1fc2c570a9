/** Who speaks, each in a place of their own: the dialog's order changes as lines change hands. */
import { fold } from "./format.js";

export class CastOrder {
  #project;
  #id = null;
  #names = [];
  #of = null;
  #ordered = [];

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
  }

  /** Those who speak, in the order in which they came into the page. @returns {Array<object>} */
  get speakers() {
    const { id, view: { speakers } } = this.#project;
    if (id !== this.#id) this.#names = [];
    if (id === this.#id && speakers === this.#of) return this.#ordered;
    this.#id = id;
    const byName = new Map(speakers.map((speaker) => [fold(speaker.name), speaker]));
    const kept = this.#names.filter((name) => byName.has(name));
    this.#names = [...new Set([...kept, ...byName.keys()])];
    this.#of = speakers;
    this.#ordered = this.#names.map((name) => byName.get(name));
    return this.#ordered;
  }

  /** @param {number} place from 1 @returns {string | undefined} a name */
  name(place) {
    return this.speakers[place - 1]?.name;
  }
}
