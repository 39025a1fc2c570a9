/** What the voices would make of lines that may not be meant, by line; asked for as lines change. */
import * as api from "./project_api.js";
import { refused } from "./notices.js";

const PAUSE_MS = 300;
const MOST_LINES = 500;
const NONE = [];

/** Event "change" with `detail` {ids: Set of lines whose hints are others now}. */
export class Hints extends EventTarget {
  #project;
  #known = new Map();
  #asked = new Map();
  #ground = null;
  #timer = null;
  #turn = 0;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    super();
    this.#project = project;
    project.addEventListener("change", () => this.#soon());
    project.addEventListener("saved", () => this.#soon());
  }

  /** @param {string} lineId @returns {string[]} sentences */
  of(lineId) {
    return this.#known.get(lineId) ?? NONE;
  }

  /** The voice engine or the library changed, or another project is open: ask for all anew. */
  forget() {
    this.#asked.clear();
    this.#soon();
  }

  #soon() {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#ask();
    }, PAUSE_MS);
  }

  /** The studio answers for what it has, so unsent edits are waited for. */
  async #ask() {
    const { id, view, saving } = this.#project;
    if (!id || saving !== "saved") return;
    const ground = JSON.stringify([id, view.cast, view.settings]);
    if (ground !== this.#ground) this.#asked.clear();
    this.#ground = ground;
    const fresh = this.#changed();
    if (!fresh.length) return this.#take([], {});
    const turn = (this.#turn += 1);
    const ids = fresh.length > MOST_LINES ? null : fresh.map(([lineId]) => lineId);
    try {
      const { hints } = await api.hints(id, ids);
      if (turn !== this.#turn) return;
      for (const [lineId, about] of fresh) this.#asked.set(lineId, about);
      this.#take(ids ?? view.order, hints);
    } catch (error) {
      if (error.status && error.status !== 404) refused("The lines can't be checked", error);
    }
  }

  /** Lines that say something else than when they were asked about. */
  #changed() {
    return this.#project.lines
      .filter(({ kind }) => kind !== "silence")
      .map(({ line_id: lineId, speaker, text, language, params, path, take, spoken }) =>
        [lineId, JSON.stringify([speaker, text, language, params, path, path && !take, spoken])])
      .filter(([lineId, about]) => this.#asked.get(lineId) !== about);
  }

  #take(asked, told) {
    const ids = new Set();
    const put = (lineId, messages) => {
      if (JSON.stringify(this.of(lineId)) === JSON.stringify(messages)) return;
      if (messages.length) this.#known.set(lineId, messages);
      else this.#known.delete(lineId);
      ids.add(lineId);
    };
    for (const lineId of asked) put(lineId, told[lineId] ?? NONE);
    for (const lineId of [...this.#asked.keys(), ...this.#known.keys()]) {
      if (this.#project.line(lineId)) continue;
      this.#asked.delete(lineId); // undo may bring the line back
      put(lineId, NONE);
    }
    if (ids.size) this.dispatchEvent(new CustomEvent("change", { detail: { ids } }));
  }
}
