/**
 * The timeline: a lane for each speaker, a ruler, the play-head, where sections begin, and notes and action.
 */
import { bus } from "../core/bus.js";
import { afterPaint, byId } from "../core/dom.js";
import { formatClock } from "../core/format.js";
import { RATE_HZ } from "../document/document.js";
import { GapGrip } from "./gap_grip.js";
import { Playlist } from "./playlist.js";
import { TimelineCard } from "./timeline_card.js";
import { drawLanes, Lanes, showLaneNames } from "./timeline_lanes.js";

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

/** A small triangle at the foot of the lanes. @param {CanvasRenderingContext2D} pen @param {number} x @param {number} foot */
function drawNote(pen, x, foot) {
  pen.beginPath();
  pen.moveTo(x - NOTE_PX, foot);
  pen.lineTo(x + NOTE_PX, foot);
  pen.lineTo(x, foot - 1.6 * NOTE_PX);
  pen.fill();
}

const RULED_PX = 48;
const STEP_S = 5;
const SPACE_STEPS = { ArrowLeft: -1, ArrowRight: 1 };
const MOST_ZOOM = 64;
const MARK_PX = 110;
const MARK_CHARS = 16;
const NOTE_PX = 5;

/** Emits "timeline.seek". */
export class Timeline {
  #root = byId("timeline");
  #canvas = byId("timeline-blocks");
  #head = byId("play-head");
  #playlist = new Playlist();
  /** @type {(speaker: string | null) => string | null} */
  #colour = () => null;
  #isDoubtful = (/** @type {import("../core/types").Line} */ _line) => false;
  #lanes = new Lanes();
  #peaks;
  #place = 0;
  #zoom = 1;
  #left = 0;
  // Cached, as reading it from the document would cause a layout at every edit.
  #size = { width: 0, height: 0 };
  #grip = new GapGrip(this);

  /** @param {import("./peak_cache.js").PeakCache} peaks */
  constructor(peaks) {
    this.#peaks = peaks;
    peaks.events.on("loaded", () => this.#later());
    new TimelineCard(this.#root, (x) => this.#noteAt(x) ?? this.lineAt(x));
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

  /** Another project begins with all of it in sight. */
  restart() {
    this.#zoom = 1;
    this.#left = 0;
  }

  /**
   * @param {Playlist} playlist
   * @param {{colour: (speaker: string) => string, isDoubtful: (line: import("../core/types").Line) => boolean}} look
   */
  show(playlist, { colour, isDoubtful }) {
    this.#playlist = playlist;
    this.#colour = colour;
    this.#isDoubtful = isDoubtful;
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

  /** @param {number} place in samples @returns {number} pixels from the timeline's left edge */
  xOf(place) {
    return (place - this.#left) * this.#scale;
  }

  /** @param {number} x in the window @returns {number} the place there, in samples */
  placeAt(x) {
    return this.#left + (x - this.#root.getBoundingClientRect().left) / this.#scale;
  }

  /** @param {number} x in the window @returns {import("../core/types").Line | null} */
  lineAt(x) {
    return this.#scale ? (this.#playlist.lines[this.#playlist.at(this.placeAt(x))] ?? null) : null;
  }

  /** @param {number} x in the window @returns {import("../core/types").Line | undefined} the note or action marked there */
  #noteAt(x) {
    const { lines, starts } = this.#playlist;
    const inside = x - this.#root.getBoundingClientRect().left;
    return lines.find(({ unspoken }, at) => unspoken && Math.abs(this.xOf(starts[at]) - inside) <= NOTE_PX);
  }

  /** Whether a take's waveform is loaded, or there is none. */
  drawn(take) {
    return this.#peaks.settled(take);
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

  #later = afterPaint(() => {
    this.#draw();
    this.move(this.#place);
  });

  #draw() {
    const ratio = window.devicePixelRatio || 1;
    const { width, height } = this.#size;
    this.#canvas.width = width * ratio;
    this.#canvas.height = height * ratio;
    const pen = this.#canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const scale = this.#scale;
    const room = height < RULED_PX ? height : height - RULER_PX;
    this.#lanes = new Lanes(this.#playlist.lines, room);
    showLaneNames(this.#lanes, this.#colour, room);
    if (!scale) return;
    const [bad, warn] = ["--bad", "--warn"].map((name) => getComputedStyle(document.body).getPropertyValue(name));
    const look = { colour: this.#colour, isDoubtful: this.#isDoubtful, peaks: this.#peaks, bad, warn };
    drawLanes(pen, this.#playlist, { lanes: this.#lanes, left: this.#left, scale, width, height: room }, look);
    if (room < height) this.#rule(pen, width, room);
    this.#marks(pen, width, room);
  }

  /** A mark with its title where a section begins, without one where there is no room; a small one for notes and action. */
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
      if (!unspoken || x < 0 || x > width) return;
      if (unspoken !== "heading") return drawNote(pen, x, height);
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

  #press(event) {
    if (!this.#playlist.total || this.#grip.press(event)) return;
    this.#root.setPointerCapture(event.pointerId);
    const seek = ({ clientX }) => this.#seek(this.placeAt(clientX));
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
