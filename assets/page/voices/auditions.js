/** What voices say of a line: its first clause before the rest, kept, and the next voice's made while one is heard. */
import * as api from "../core/api.js";

/** @typedef {{speaker: string, voice: string, text: string, language: string | null}} Audition */

const MOST_BYTES = 32e6; // about 130 lines of 5 s
const CLAUSE = /^.{20,120}?(?:[,;:.!?…—](?=\s)|[、，；：。！？])/su;
const SHORTEST_REST = 12;

export class Auditions {
  /** @type {Map<string, {sound: Promise<Blob>, stop: AbortController | null, bytes: number}>} */
  #made = new Map();
  #project;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
  }

  /** The sound of a line, clause by clause; what is made for other voices stops, and the voice `next` follows. @param {Audition} wanted @param {string | null} next */
  say(wanted, next) {
    const parts = clausesOf(wanted);
    const [ahead] = next ? clausesOf({ ...wanted, voice: next }) : [];
    const needed = new Set([...parts, ahead].filter(Boolean).map(keyOf));
    for (const [key, { stop }] of this.#made) if (stop && !needed.has(key)) this.#drop(key);
    const sounds = parts.map((part) => this.#make(part));
    if (ahead) Promise.all(sounds).then(() => this.#made.has(keyOf(parts[0])) && this.#make(ahead).catch(() => null), () => null);
    for (const sound of sounds) sound.catch(() => null); // who plays it says so
    return sounds;
  }

  /** Forget all, as what voices sound like may change. */
  clear() {
    for (const key of this.#made.keys()) this.#drop(key);
  }

  #drop(key) {
    this.#made.get(key)?.stop?.abort();
    this.#made.delete(key);
  }

  /** @param {Audition} part @returns {Promise<Blob>} */
  #make(part) {
    const key = keyOf(part);
    const made = this.#made.get(key);
    if (made) return made.sound;
    const stop = new AbortController();
    const entry = { sound: api.audition(this.#project.id, part, stop.signal), stop, bytes: 0 };
    this.#made.set(key, entry);
    entry.sound.then((sound) => this.#keep(entry, sound), () => this.#made.get(key) === entry && this.#made.delete(key));
    return entry.sound;
  }

  #keep(entry, sound) {
    entry.stop = null;
    entry.bytes = sound.size;
    let bytes = [...this.#made.values()].reduce((sum, one) => sum + one.bytes, 0);
    for (const [key, one] of this.#made) {
      if (bytes <= MOST_BYTES) return;
      if (one === entry || one.stop) continue;
      bytes -= one.bytes;
      this.#made.delete(key);
    }
  }
}

/** @param {Audition} whole */
function clausesOf(whole) {
  const first = CLAUSE.exec(whole.text)?.[0] ?? whole.text;
  const rest = whole.text.slice(first.length).trim();
  return rest.length < SHORTEST_REST ? [whole] : [first, rest].map((text) => ({ ...whole, text }));
}

/** @param {Audition} part */
function keyOf({ speaker, voice, text }) {
  return JSON.stringify([speaker, voice, text]);
}
