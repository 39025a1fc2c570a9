/**
 * The last position in a project, for the next visit: the line, and the play-head. The studio
 * stores it for other devices; this browser's own applies if the studio has nothing newer.
 */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { CLIENT_ID, localStore } from "../core/local_store.js";

/** @import { Parts, Position } from "../core/types" */

const POSITIONS_KEY = "tableread.places";
const KEPT = 30;
const EVERY_MS = 2000;

export class LastPosition {
  #parts;
  /** The number of the last position that the studio has. */
  #number = 0;
  #sent = "";
  #timer = null;

  /** @param {Pick<Parts, "project" | "selection" | "player" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("selection.changed", () => this.#soon());
    bus.on("player.changed", () => this.#soon());
    addEventListener("pagehide", () => this.#leave(true));
    document.addEventListener("visibilitychange", () => document.hidden && this.#leave(true));
    bus.on("project.closing", () => this.#leave(false));
    bus.on("project.shown", ({ place }) => this.#restore(place));
  }

  get #position() {
    const { selection, player } = this.#parts;
    return { line: selection.current, heard: player.line_id };
  }

  #soon() {
    this.#timer ??= setTimeout(() => this.#send(false), EVERY_MS);
  }

  #leave(last) {
    const { project } = this.#parts;
    if (!project.id) return;
    const places = new Map(localStore.json(POSITIONS_KEY, []));
    places.delete(project.id);
    places.set(project.id, { ...this.#position, number: this.#number });
    localStore.set(POSITIONS_KEY, JSON.stringify([...places].slice(-KEPT)));
    this.#send(last);
  }

  async #send(last) {
    clearTimeout(this.#timer);
    this.#timer = null;
    const { id } = this.#parts.project;
    const { line, heard } = this.#position;
    const place = { line_id: line, heard, by: CLIENT_ID };
    const words = JSON.stringify([id, place]);
    if (!id || words === this.#sent) return;
    this.#sent = words;
    try {
      const { number } = await api.savePosition(id, place, last);
      if (id === this.#parts.project.id) this.#number = number;
    } catch {
      this.#sent = ""; // this browser has it, and the next one is sent again
    }
  }

  /** @param {Position | null} kept by the studio */
  #restore(kept) {
    const { project, selection, player, lines } = this.#parts;
    const own = new Map(localStore.json(POSITIONS_KEY, [])).get(project.id);
    const isNewer = kept && (!own || (kept.by !== CLIENT_ID && kept.number > (own.number ?? 0)));
    const { line, heard } = isNewer ? { line: kept.line_id, heard: kept.heard } : (own ?? {});
    const known = (lineId) => (project.line(lineId) ? lineId : null);
    this.#number = kept?.number ?? 0;
    selection.go(known(line));
    if (known(heard)) player.seek(player.playlist.startOf(heard));
    if (known(line) ?? known(heard)) lines.reveal(known(line) ?? heard, { calm: true });
    this.#sent = JSON.stringify([project.id, { line_id: selection.current, heard: player.line_id, by: CLIENT_ID }]);
  }
}
