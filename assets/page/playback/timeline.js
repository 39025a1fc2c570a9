/**
 * The timeline: blocks in the speakers' colours, faint until the audio exists, with waveforms and a ruler.
 */
import * as api from "../core/api.js";
import { bus, Bus } from "../core/bus.js";
import { byId, safeColour } from "../core/dom.js";
import { formatClock } from "../core/format.js";
import { RATE_HZ } from "../document/document.js";
import { GapGrip } from "./gap_grip.js";
import { Playlist } from "./playlist.js";

export const RULER_PX = 16;

const RULER_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800];
const HOUR_S = 3600;
const LABEL_PX = 90;
const TICK_PX = 4;

/**
 * @param {CanvasRenderingContext2D} pen its fill colour is the ink
 * @param {{left_s: number, px_per_s: number, width: number, top: number}} about
 */
export function drawRuler(pen, { left_s: left, px_per_s: scale, width, top }) {
  const hours = HOUR_S * Math.ceil(LABEL_PX / (HOUR_S * scale));
  const step = RULER_STEPS_S.find((seconds) => seconds * scale >= LABEL_PX) ?? hours;
  for (let at = Math.ceil(left / step) * step; (at - left) * scale < width; at += step) {
    const x = Math.round((at - left) * scale);
    pen.fillRect(x, top, 1, TICK_PX);
    const room = width - x;
    if (room > LABEL_PX / 2) pen.fillText(formatClock(at), x + 4, top + RULER_PX - 5);
  }
}

const QUIET = 24; // quieter audio isn't scaled up further

/**
 * @param {number[]} peaks lowest and highest value of each stretch, −128 to 127
 * @param {number} bars @returns {number[]} the height of each, 0 to 1
 */
export function barHeights(peaks, bars) {
  const levels = Array.from({ length: peaks.length / 2 }, (_, at) =>
    Math.max(Math.abs(peaks[2 * at]), Math.abs(peaks[2 * at + 1])));
  const most = Math.max(QUIET, ...levels);
  const height = bars < levels.length ? loudest : between;
  return Array.from({ length: bars }, (_, bar) => height(levels, bar / bars, (bar + 1) / bars) / most);
}

function loudest(levels, from, to) {
  return Math.max(...levels.slice(Math.floor(from * levels.length), Math.ceil(to * levels.length)));
}

function between(levels, from, to) {
  const last = levels.length - 1;
  const at = Math.min(last, Math.max(0, ((from + to) / 2) * levels.length - 0.5));
  const [before, after] = [Math.floor(at), Math.min(last, Math.floor(at) + 1)];
  return levels[before] + (levels[after] - levels[before]) * (at - before);
}

const BINS = 48;
const BUNDLE = 40;
const SOON_MS = 60;
const PEAKS_RETRY_MS = 5000;

/** Waveforms of the visible takes, fetched in batches when the page is idle. */
export class PeakCache {
  /** @type {Bus<import("../core/types").PeakEvents>} */
  events = new Bus();
  #known = new Map();
  #wanted = new Set();
  #asking = false;

  /** @param {string} projectId */
  constructor(projectId) {
    this.projectId = projectId;
  }

  /** Lowest and highest value of each stretch, −128 to 127; null until they are loaded. */
  of(take) {
    if (!take) return null;
    const known = this.#known.get(take.take_id);
    if (known === undefined) this.#want(take.take_id);
    return known ?? null;
  }

  /** Whether it is loaded, or there is none. */
  settled(take) {
    return this.#known.has(take.take_id);
  }

  #want(takeId, wait_ms = SOON_MS) {
    this.#wanted.add(takeId);
    if (this.#asking) return;
    this.#asking = true;
    setTimeout(() => this.#ask(), wait_ms);
  }

  async #ask() {
    const bundle = [...this.#wanted].slice(0, BUNDLE);
    bundle.forEach((takeId) => this.#wanted.delete(takeId));
    let wait_ms = SOON_MS;
    try {
      const { peaks } = await api.readPeaks(this.projectId, BINS, bundle);
      bundle.forEach((takeId) => this.#known.set(takeId, peaks[takeId] ?? null));
      this.events.emit("loaded");
    } catch (error) {
      // Blocks are drawn without waveforms until they are loaded.
      if (error.status === 404) bundle.forEach((takeId) => this.#known.set(takeId, null));
      else {
        bundle.forEach((takeId) => this.#wanted.add(takeId));
        wait_ms = PEAKS_RETRY_MS;
      }
    }
    this.#asking = false;
    if (this.#wanted.size) this.#want(this.#wanted.values().next().value, wait_ms);
  }
}

const GAP_PX = 1;
const FAINT = { none: 0.22, queued: 0.3, generating: 0.6, stale: 0.5, failed: 0.15 };
const WAVE_PX = 14;
const BAR_PX = 3; // with the gap after it
const CORE = 0.4; // height of a line with audio whose waveform isn't shown
const RULED_PX = 48;
const STEP_S = 5;
const SPACE_STEPS = { ArrowLeft: -1, ArrowRight: 1 };
const MOST_ZOOM = 64;
const LEAST_PX = 3;
const MARK_PX = 110;
const MARK_CHARS = 16;

/** Emits "timeline.seek". */
export class Timeline {
  #root = byId("timeline");
  #canvas = byId("timeline-blocks");
  #head = byId("play-head");
  #playlist = new Playlist();
  /** @type {(speaker: string | null) => string | null} */
  #colour = () => null;
  #peaks = null;
  #place = 0;
  #zoom = 1;
  #left = 0;
  #drawn = false;
  // Cached, as reading it from the document would cause a layout at every edit.
  #size = { width: 0, height: 0 };
  #grip = new GapGrip(this);

  constructor() {
    new ResizeObserver(([{ contentRect }]) => {
      this.#size = contentRect;
      this.#later();
    }).observe(this.#root);
    new MutationObserver(() => this.#later()).observe(document.body, { attributeFilter: ["class"] });
    this.#root.addEventListener("pointerdown", (event) => this.#press(event));
    this.#root.addEventListener("keydown", (event) => this.#key(event));
    this.#root.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    byId("zoom-in").addEventListener("click", () => this.#setZoom(this.#zoom * 2));
    byId("zoom-out").addEventListener("click", () => this.#setZoom(this.#zoom / 2));
  }

  /** Another project begins with all of it in sight. @param {PeakCache} peaks of the open project */
  use(peaks) {
    this.#peaks = peaks;
    this.#zoom = 1;
    this.#left = 0;
    peaks.events.on("loaded", () => this.#later());
  }

  /** @param {Playlist} playlist @param {(speaker: string) => string} colour */
  show(playlist, colour) {
    this.#playlist = playlist;
    this.#colour = colour;
    this.#root.setAttribute("aria-valuemax", String(Math.round(playlist.total / RATE_HZ)));
    this.#later();
  }

  /** What is shown. */
  get playlist() {
    return this.#playlist;
  }

  get px_per_sample() {
    return this.#scale;
  }

  /** @param {number} clientX of a pointer @returns {number} the place in samples */
  placeOf(clientX) {
    return this.#left + (clientX - this.#root.getBoundingClientRect().left) / this.#scale;
  }

  /** @param {number} place in samples @returns {number} pixels from the timeline's left edge */
  xOf(place) {
    return (place - this.#left) * this.#scale;
  }

  /** Whether a take's waveform is loaded, or there is none. */
  drawn(take) {
    return this.#peaks?.settled(take) ?? false;
  }

  /** @param {number} place in samples */
  move(place) {
    this.#place = place;
    const x = (place - this.#left) * this.#scale;
    if (this.#zoom > 1 && (x < 0 || x > this.#size.width * 0.9)) return this.#scrollTo(place);
    this.#head.style.transform = `translateX(${x}px)`;
    const second = String(Math.floor(place / RATE_HZ));
    if (this.#root.getAttribute("aria-valuenow") === second) return;
    this.#root.setAttribute("aria-valuenow", second);
    this.#root.setAttribute("aria-valuetext", formatClock(place / RATE_HZ));
  }

  get #scale() {
    return this.#playlist.total ? (this.#size.width * this.#zoom) / this.#playlist.total : 0;
  }

  #scrollTo(place) {
    const shown = this.#playlist.total / this.#zoom;
    const left = Math.min(Math.max(0, place - shown * 0.1), this.#playlist.total - shown);
    if (left === this.#left) return;
    this.#left = left;
    this.#later();
  }

  #setZoom(zoom) {
    this.#zoom = Math.min(Math.max(1, zoom), MOST_ZOOM);
    this.#left = 0;
    this.#scrollTo(this.#place);
    this.#later();
  }

  #wheel(event) {
    if (!event.ctrlKey && this.#zoom === 1) return;
    event.preventDefault();
    if (event.ctrlKey) return this.#setZoom(this.#zoom * (event.deltaY < 0 ? 1.25 : 0.8));
    const shown = this.#playlist.total / this.#zoom;
    const moved = this.#left + (event.deltaX + event.deltaY) / this.#scale;
    this.#left = Math.min(Math.max(0, moved), this.#playlist.total - shown);
    this.#later();
  }

  #later() {
    if (this.#drawn) return;
    this.#drawn = true;
    requestAnimationFrame(() => {
      this.#drawn = false;
      this.#draw();
      this.move(this.#place);
    });
  }

  #draw() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.#size;
    this.#canvas.width = width * ratio;
    this.#canvas.height = height * ratio;
    const pen = this.#canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const scale = this.#scale;
    if (!scale) return;
    const room = height < RULED_PX ? height : height - RULER_PX;
    for (const { line, start, end } of this.#blocks(width / scale, LEAST_PX / scale)) {
      this.#block(pen, line, (start - this.#left) * scale, (end - start) * scale, room);
    }
    if (room < height) this.#rule(pen, width, room);
    this.#marks(pen, width, room);
  }

  /** A mark with its title where a section begins; titles without room are left out. */
  #marks(pen, width, height) {
    const { lines, starts } = this.#playlist;
    const { color, fontFamily } = getComputedStyle(this.#canvas);
    const plate = getComputedStyle(document.body).backgroundColor;
    pen.globalAlpha = 1;
    pen.fillStyle = color;
    pen.font = `600 11px ${fontFamily}`;
    let free = 0;
    lines.forEach(({ unspoken, text }, at) => {
      const x = Math.round((starts[at] - this.#left) * this.#scale);
      if (unspoken !== "heading" || x < 0 || x > width) return;
      pen.fillRect(x, 0, 1, height);
      if (x < free || width - x < MARK_PX) return;
      const shown = text.length > MARK_CHARS ? `${text.slice(0, MARK_CHARS)}…` : text;
      pen.fillStyle = plate;
      pen.fillRect(x + 1, 0, pen.measureText(shown).width + 6, 14);
      pen.fillStyle = color;
      pen.fillText(shown, x + 4, 11);
      free = x + MARK_PX;
    });
  }

  #rule(pen, width, top) {
    const { color, fontFamily } = getComputedStyle(this.#canvas);
    pen.globalAlpha = 1;
    pen.fillStyle = color;
    pen.font = `11px ${fontFamily}`;
    drawRuler(pen, { left_s: this.#left / RATE_HZ, px_per_s: this.#scale * RATE_HZ, width, top });
  }

  /** The visible blocks, in samples; lines that are too short share one of at least `least`. */
  *#blocks(shown, least) {
    const { lines, starts, lengths } = this.#playlist;
    const right = this.#left + shown;
    let shared = [];
    for (let at = this.#playlist.at(this.#left); at < lines.length && starts[at] <= right; at += 1) {
      if (lines[at].kind === "silence" || !lengths[at]) continue;
      const short = lengths[at] < least;
      if (shared.length && !short) yield this.#shared(shared);
      shared = short ? [...shared, at] : [at];
      if (starts[at] + lengths[at] - starts[shared[0]] < least) continue;
      yield this.#shared(shared);
      shared = [];
    }
    if (shared.length) yield this.#shared(shared);
  }

  /** One block for several lines; successive blocks show different lines, so that every speaker is visible. */
  #shared(indices) {
    const { lines, starts, lengths } = this.#playlist;
    const [first, last] = [indices[0], indices.at(-1)];
    const turn = Math.floor(last / indices.length) % indices.length;
    return { line: lines[indices[turn]], start: starts[first], end: starts[last] + lengths[last] };
  }

  #block(pen, line, left, length, height) {
    const width = Math.max(0.75, length - Math.min(GAP_PX, length / 6));
    const faint = FAINT[line.state];
    const peaks = width >= WAVE_PX && faint !== 0.6 ? this.#peaks?.of(line.take) : null;
    pen.fillStyle = safeColour(this.#colour(line.speaker));
    pen.globalAlpha = peaks ? 0.18 : (faint ?? 0.8);
    const tall = peaks || faint !== undefined ? height - 6 : height * CORE;
    pen.beginPath();
    pen.roundRect(left, (height - tall) / 2, width, tall, Math.min(4, width / 4));
    pen.fill();
    pen.globalAlpha = faint ?? 1;
    if (peaks) this.#wave(pen, peaks, left, width, height);
  }

  /** Bars of the same width for all lines, whatever their length. */
  #wave(pen, peaks, left, width, height) {
    barHeights(peaks, Math.max(1, Math.floor(width / BAR_PX))).forEach((share, bar) => {
      const tall = Math.max(1, share * (height - 10));
      pen.fillRect(left + bar * BAR_PX, (height - tall) / 2, BAR_PX - 1, tall);
    });
  }

  #press(event) {
    if (!this.#playlist.total || this.#grip.press(event)) return;
    this.#root.setPointerCapture(event.pointerId);
    const seek = ({ clientX }) => this.#seek(this.placeOf(clientX));
    seek(event);
    this.#root.onpointermove = seek;
    this.#root.onpointerup = () => (this.#root.onpointermove = null);
  }

  #key(event) {
    if (event.key === "Escape") return void (this.#grip.letGo() && event.stopPropagation());
    if (event.altKey && event.key in SPACE_STEPS) {
      this.#grip.step(this.#place, SPACE_STEPS[event.key]);
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    const steps = { ArrowLeft: -STEP_S, ArrowRight: STEP_S, PageUp: -30, PageDown: 30 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) this.#seek(this.#place + steps[event.key] * RATE_HZ);
    else if (event.key === "Home") this.#seek(0);
    else if (event.key === "End") this.#seek(this.#playlist.total);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #seek(place) {
    bus.emit("timeline.seek", Math.min(Math.max(0, place), this.#playlist.total));
  }
}
