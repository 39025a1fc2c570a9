/** The position of each line on the timeline, in samples; unknown lengths are estimated. */
import { RATE_HZ } from "../document/document.js";
import { gapsBefore, ownStart } from "./gaps.js";

/** @import { Line, ProjectSettings } from "../core/types" */

const DEFAULT_SAMPLES_PER_CHAR = RATE_HZ / 15;
const LEAST_SAMPLES = RATE_HZ / 2;
const SURE_CHARS = 200;

/** Lines in order, with their positions. Immutable; a change makes a new one. */
export class Playlist {
  /** @param {Line[]} lines @param {ProjectSettings} settings of their project @param {(line: Line) => number | null} [gapOf] of a character */
  constructor(lines = [], settings = {}, gapOf = undefined) {
    this.lines = lines;
    const perChar = samplesPerChar(lines);
    this.lengths = lines.map((line) => lineSamples(line, perChar));
    this.starts = [];
    /** Samples of silence before each line; its start is after them. */
    this.gaps = gapsBefore(lines, settings, gapOf).map((gap) => Math.round(gap * RATE_HZ));
    this.total = 0;
    this.#index = new Map();
    lines.forEach((line, at) => {
      this.#index.set(line.line_id, at);
      const start = ownStart(line);
      if (start !== null) this.gaps[at] = Math.max(0, Math.round(start * RATE_HZ) - this.total);
      else if (!this.total) this.gaps[at] = 0; // the scene begins with sound
      this.total += this.gaps[at];
      this.starts.push(this.total);
      this.total += this.lengths[at];
    });
    this.exact = lines.every(isKnown);
  }

  #index;

  /** @param {string} lineId @returns {number} -1 when it isn't there */
  indexOf(lineId) {
    return this.#index.get(lineId) ?? -1;
  }

  startOf(lineId) {
    return this.starts[this.indexOf(lineId)] ?? 0;
  }

  gapBefore(lineId) {
    return this.gaps[this.indexOf(lineId)] ?? 0;
  }

  /** @returns {number} index of the line at `place` samples, or of the one before a gap */
  at(place) {
    let low = 0;
    let high = this.starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    while (low > 0 && this.lengths[low] === 0) low -= 1;
    return low;
  }
}

/** Whether it has audio, or is queued to get some. */
export function isComing({ state, kind, take }) {
  if (kind === "silence") return true;
  return ["queued", "generating", "ready"].includes(state) || (state === "stale" && Boolean(take));
}

/** Whether its audio can be fetched without waiting. */
export function isAudible({ state, kind }) {
  return kind !== "silence" && ["generating", "ready", "stale"].includes(state);
}

/** What identifies a line's audio: its take, or the one that is being generated. */
export function soundKey({ state, take }) {
  if (state === "queued" || state === "generating") return "live";
  return take?.take_id ?? state;
}

/**
 * Whether a take is a line's current audio. While a line is generated, that is any take but the
 * previous one, until the studio names it. @param {string | null} takeId null if not known yet
 */
export function isSoundOf(takeId, line) {
  if (takeId === null) return true;
  if (soundKey(line) !== "live") return takeId === line.take?.take_id;
  return line.making ? takeId === line.making : takeId !== line.take?.take_id;
}

function isKnown(line) {
  return line.kind === "silence" || line.state === "ready" || !isComing(line);
}

function lineSamples(line, perChar) {
  if (line.kind === "silence") return line.samples ?? 0;
  if ((line.state === "ready" || line.state === "stale") && line.samples) return line.samples;
  if (line.state === "failed" || !line.text?.trim()) return 0;
  return Math.max(LEAST_SAMPLES, Math.round(line.text.length * perChar));
}

function samplesPerChar(lines) {
  let samples = 0;
  let chars = 0;
  for (const line of lines) {
    if (line.kind !== "speech" || line.state !== "ready" || !line.samples) continue;
    samples += line.samples;
    chars += line.text.length;
  }
  return chars > SURE_CHARS ? samples / chars : DEFAULT_SAMPLES_PER_CHAR;
}
