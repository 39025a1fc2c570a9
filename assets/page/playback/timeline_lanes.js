/** The timeline's lanes: a speaker's lines as blocks with waveforms, and marks where a line failed or is doubtful. */
import { byId, safeColour } from "../core/dom.js";
import { fold } from "../core/format.js";
import { t } from "../core/texts.js";
import { drawWave } from "./waveform.js";

/** @import { Line } from "../core/types" */

const LANE_PX = 14;
const NONE = "";

/** Which lane a line is in: speakers in the order in which they begin; those without room for one share the last. */
export class Lanes {
  /** @type {string[]} */
  names = [];
  #of = new Map();

  /** @param {Line[]} lines @param {number} height of all lanes, in pixels */
  constructor(lines = [], height = 0) {
    const most = Math.max(1, Math.floor(height / LANE_PX));
    for (const { kind, speaker } of lines) {
      if (kind === "silence") continue;
      const key = fold(speaker ?? NONE);
      if (this.#of.has(key)) continue;
      this.#of.set(key, Math.min(this.#of.size, most - 1));
      this.names.push(speaker ?? t`Recordings`);
    }
    if (this.names.length > most) this.names = [...this.names.slice(0, most - 1), t`Others`];
  }

  /** @param {Line} line @returns {number} */
  of({ speaker }) {
    return this.#of.get(fold(speaker ?? NONE)) ?? 0;
  }
}

/**
 * Write the lanes' names beside them.
 * @param {Lanes} lanes @param {(name: string) => string | null} colour @param {number} height in pixels
 */
export function showLaneNames({ names }, colour, height) {
  const list = byId("timeline-names");
  const shown = JSON.stringify([height, names.map((name) => [name, colour(name)])]);
  if (list.dataset.shown === shown) return;
  list.dataset.shown = shown;
  list.style.height = `${height}px`;
  list.replaceChildren(...names.map((name) => {
    const row = document.createElement("span");
    row.style.setProperty("--colour", safeColour(colour(name)));
    row.dir = "auto";
    row.textContent = row.title = name;
    return row;
  }));
}

const GAP_PX = 1;
const LEAST_PX = 0.75;
const FAINT = { none: 0.22, queued: 0.3, generating: 0.6, stale: 0.5 };
const WAVE_PX = 14; // a block that is narrower has none
const CORE = 0.5; // height of a line with audio whose waveform isn't shown
const MARK_PX = 5;

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {import("./playlist.js").Playlist} playlist
 * @param {{lanes: Lanes, left: number, scale: number, width: number, height: number}} view left in samples, scale in pixels a sample
 * @param {{colour: (speaker: string) => string | null, isDoubtful: (line: Line) => boolean,
 *   peaks: import("./peak_cache.js").PeakCache, bad: string, warn: string}} look
 */
export function drawLanes(pen, playlist, view, look) {
  const { lanes, left, scale, width, height } = view;
  const tall = height / Math.max(1, lanes.names.length);
  const reached = lanes.names.map(() => -Infinity);
  const marks = [];
  stripe(pen, lanes.names.length, tall, width);
  const { lines, starts, lengths } = playlist;
  for (let at = playlist.at(left); at < lines.length && (starts[at] - left) * scale <= width; at += 1) {
    const line = lines[at];
    if (line.kind === "silence") continue;
    const lane = lanes.of(line);
    const box = { left: (starts[at] - left) * scale, top: lane * tall, width: lengths[at] * scale, height: tall };
    if (line.state === "failed") marks.push({ ...box, colour: look.bad });
    else if (look.isDoubtful(line)) marks.push({ ...box, colour: look.warn });
    const end = box.left + box.width;
    // A scene of thousands of lines is drawn no longer than its width.
    if (!lengths[at] || end - reached[lane] < LEAST_PX) continue;
    reached[lane] = end;
    drawBlock(pen, line, box, look);
  }
  for (const mark of marks) drawMark(pen, mark);
}

/** Every other lane has a ground of its own, so that a line is followed to its name. */
function stripe(pen, lanes, tall, width) {
  pen.globalAlpha = 0.07;
  pen.fillStyle = getComputedStyle(pen.canvas).color;
  for (let lane = 1; lane < lanes; lane += 2) pen.fillRect(0, lane * tall, width, tall);
}

function drawBlock(pen, line, box, { colour, peaks }) {
  const width = Math.max(LEAST_PX, box.width - Math.min(GAP_PX, box.width / 6));
  const faint = FAINT[line.state];
  const known = width >= WAVE_PX && line.state !== "generating" ? peaks.of(line.take) : null;
  pen.fillStyle = safeColour(colour(line.speaker));
  pen.globalAlpha = known ? 0.2 : (faint ?? 0.8);
  const edge = Math.min(2, box.height / 8);
  const tall = known || faint !== undefined ? box.height - 2 * edge : box.height * CORE;
  pen.beginPath();
  pen.roundRect(box.left, box.top + (box.height - tall) / 2, width, tall, Math.min(3, width / 4));
  pen.fill();
  if (!known) return;
  pen.globalAlpha = faint ?? 1;
  drawWave(pen, known, { left: box.left + 1, top: box.top + edge + 1, width: width - 2, height: tall - 2 });
}

/** A triangle at the top of a line that needs somebody; a failed line has no length, and is this mark alone. */
function drawMark(pen, { left, top, height, colour }) {
  pen.globalAlpha = 1;
  pen.fillStyle = colour;
  pen.fillRect(left, top + 1, 1.5, height - 2);
  pen.beginPath();
  pen.moveTo(left, top + 1);
  pen.lineTo(left + MARK_PX + 2, top + 1);
  pen.lineTo(left, top + 1 + MARK_PX + 2);
  pen.fill();
}
