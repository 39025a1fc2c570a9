/** The cache of audio near the play-head, streamed from the studio; evicts the least recently used line. */
import { streamLineAudio } from "../core/api.js";
import { Bus } from "../core/bus.js";
import { isSoundOf, soundKey } from "./playlist.js";

/** @import { Line } from "../core/types" */

/** The samples of one line; emits "grown" with each chunk and at the end. */
export class LinePcm {
  /** @type {Bus<import("../core/types").SoundEvents>} */
  events = new Bus();
  #samples = new Int16Array(24_000);
  #odd = null;
  #abort = new AbortController();

  /** @param {string} projectId @param {string} lineId @param {string} asked what the line sounded as then */
  constructor(projectId, lineId, asked) {
    this.asked = asked;
    /** The take that it is or becomes; null until the studio responds. */
    this.take = null;
    this.length = 0;
    this.complete = false;
    /** Whether its generation failed before the end. */
    this.cut = false;
    this.failed_at_ms = null;
    this.#read(projectId, lineId);
  }

  /** Abort the transfer; no event follows. */
  drop() {
    this.#abort.abort();
  }

  /** Drop the response, which can be fetched again later. */
  refuse() {
    this.drop();
    this.length = 0;
    this.failed_at_ms = performance.now();
  }

  /** Up to `limit` float samples from `start` on, of those that have arrived. */
  slice(start, limit) {
    const end = Math.min(this.length, start + limit);
    return Float32Array.from(this.#samples.subarray(start, end), (sample) => sample / 32_768);
  }

  async #read(projectId, lineId) {
    try {
      const response = await streamLineAudio(projectId, lineId, this.#abort.signal);
      this.take = response.headers.get("X-Take");
      const reader = response.body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        this.#append(part.value);
        this.events.emit("grown");
      }
      this.#end();
    } catch {
      if (this.#abort.signal.aborted) return;
      this.failed_at_ms = performance.now();
    }
    this.events.emit("grown");
  }

  /** Half a sample at the end marks a failed line. */
  #end() {
    this.cut = this.#odd !== null;
    this.complete = !this.cut;
    if (this.cut && !this.length) this.failed_at_ms = performance.now();
  }

  #append(bytes) {
    const whole = this.#odd ? concatBytes(this.#odd, bytes) : bytes;
    const even = whole.length - (whole.length % 2);
    this.#odd = even < whole.length ? whole.slice(even) : null;
    this.#reserve(this.length + even / 2);
    const view = new DataView(whole.buffer, whole.byteOffset, even);
    for (let at = 0; at < even; at += 2) this.#samples[this.length++] = view.getInt16(at, true);
  }

  #reserve(length) {
    if (length <= this.#samples.length) return;
    const larger = new Int16Array(Math.max(length, this.#samples.length * 2));
    larger.set(this.#samples.subarray(0, this.length));
    this.#samples = larger;
  }
}

function concatBytes(first, second) {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

const KEPT_LINES = 48;
const RETRY_MS = 500;

/** The audio of lines near the play-head. */
export class SoundCache {
  /** @type {Bus<import("../core/types").SoundEvents>} */
  events = new Bus();
  #pcm = new Map();
  /** By line, the take whose generation failed. */
  #void = new Map();
  #lineOf;

  /** @param {string | null} projectId @param {(lineId: string) => Line | undefined} lineOf a line as it is now */
  constructor(projectId, lineOf) {
    this.projectId = projectId;
    this.#lineOf = lineOf;
  }

  /** A line's audio so far; fetched if it isn't cached. @returns {LinePcm} */
  of(line) {
    const lineId = line.line_id;
    const known = this.#pcm.get(lineId);
    const pcm = known && this.#usable(known, line) ? known : this.#fetch(line);
    this.#pcm.delete(lineId);
    this.#pcm.set(lineId, pcm);
    if (this.#pcm.size > KEPT_LINES) this.#forget(this.#pcm.keys().next().value);
    return pcm;
  }

  /** The lines changed: drop audio that is outdated. */
  refresh() {
    for (const [lineId, pcm] of this.#pcm) {
      const line = this.#lineOf(lineId);
      this.#follow(pcm, line);
      if (!line || !this.#isIts(pcm, line)) this.#forget(lineId);
    }
  }

  /** Whether the scheduled part of `pcm` is still the start of its line's audio. @param {LinePcm} pcm */
  holds(pcm, line) {
    const now = this.#pcm.get(line.line_id);
    if (now === pcm) return this.#isIts(pcm, line);
    if (now && now.take !== null) return !pcm.cut && now.take === pcm.take;
    return this.#isIts(pcm, line);
  }

  clear() {
    for (const lineId of this.#pcm.keys()) this.#forget(lineId);
    this.#void.clear();
  }

  #isIts({ take }, line) {
    if (take !== null && soundKey(line) === "live" && this.#void.get(line.line_id) === take) return false;
    return isSoundOf(take, line);
  }

  /** The generation of a take failed if it isn't running any more and its line is still queued. */
  #follow(pcm, line) {
    if (!line || pcm.take === null) return;
    if (line.making === pcm.take) pcm.begun = true;
    else if (pcm.begun && soundKey(line) === "live") this.#void.set(line.line_id, pcm.take);
  }

  #usable(pcm, line) {
    const same = pcm.asked === soundKey(line);
    if (pcm.failed_at_ms !== null) return same && pcm.failed_at_ms > performance.now() - RETRY_MS;
    if (pcm.cut) return false;
    if (this.#isIts(pcm, line)) return true;
    // The studio responded with another take than the page expects, so one of them is behind.
    if (same) pcm.refuse();
    return same;
  }

  #fetch(line) {
    this.#forget(line.line_id);
    const pcm = new LinePcm(this.projectId, line.line_id, soundKey(line));
    pcm.events.on("grown", () => {
      this.#follow(pcm, this.#lineOf(line.line_id));
      this.events.emit("grown");
    });
    return pcm;
  }

  #forget(lineId) {
    this.#pcm.get(lineId)?.drop();
    this.#pcm.delete(lineId);
  }
}
