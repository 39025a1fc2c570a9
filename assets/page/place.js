/**
 * Where the person was in a project, for the next visit: the line, and the play-head. The studio
 * keeps it for their other devices; what this browser keeps stands where the studio has nothing newer.
 */
import { PERSON } from "./person.js";
import * as api from "./project_api.js";
import { stored } from "./stored.js";

const KEY = "tableread.places";
const KEPT = 30;
const EVERY_MS = 2000;

export class Place {
  #parts;
  /** The number of the place that the studio is known to have. */
  #number = 0;
  #told = "";
  #timer = null;

  /** @param {object} parts project, selection, player, lines, projects */
  constructor(parts) {
    this.#parts = parts;
    const { selection, player, projects } = parts;
    selection.addEventListener("change", () => this.#soon());
    player.addEventListener("change", () => this.#soon());
    addEventListener("pagehide", () => this.#leave(true));
    document.addEventListener("visibilitychange", () => document.hidden && this.#leave(true));
    projects.addEventListener("closing", () => this.#leave(false));
    projects.addEventListener("opened", ({ detail }) => this.#come(detail.place));
  }

  get #here() {
    const { selection, player } = this.#parts;
    return { line: selection.current, heard: player.line_id };
  }

  #soon() {
    this.#timer ??= setTimeout(() => this.#tell(false), EVERY_MS);
  }

  #leave(last) {
    const { project } = this.#parts;
    if (!project.id) return;
    const places = new Map(stored.json(KEY, []));
    places.delete(project.id);
    places.set(project.id, { ...this.#here, number: this.#number });
    stored.set(KEY, JSON.stringify([...places].slice(-KEPT)));
    this.#tell(last);
  }

  async #tell(last) {
    clearTimeout(this.#timer);
    this.#timer = null;
    const { id } = this.#parts.project;
    const { line, heard } = this.#here;
    const place = { line_id: line, heard, by: PERSON };
    const words = JSON.stringify([id, place]);
    if (!id || words === this.#told) return;
    this.#told = words;
    try {
      const { number } = await api.leavePlace(id, place, last);
      if (id === this.#parts.project.id) this.#number = number;
    } catch {
      this.#told = ""; // this browser has it, and the next move tells the studio again
    }
  }

  /** @param {{line_id: string | null, heard: string | null, by: string, number: number} | null} kept by the studio */
  #come(kept) {
    const { project, selection, player, lines } = this.#parts;
    const own = new Map(stored.json(KEY, [])).get(project.id);
    const isNewer = kept && (!own || (kept.by !== PERSON && kept.number > (own.number ?? 0)));
    const { line, heard } = isNewer ? { line: kept.line_id, heard: kept.heard } : (own ?? {});
    const known = (lineId) => (project.line(lineId) ? lineId : null);
    this.#number = kept?.number ?? 0;
    selection.go(known(line));
    if (known(heard)) player.seek(player.playlist.startOf(heard));
    if (known(line) ?? known(heard)) lines.reveal(known(line) ?? heard, { calm: true });
    this.#told = JSON.stringify([project.id, { line_id: selection.current, heard: player.line_id, by: PERSON }]);
  }
}
