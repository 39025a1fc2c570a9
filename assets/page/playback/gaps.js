/** The gap before each line, as the studio lays them out (`studio/dialog/gaps.py`), and how a person changes it. */
/** @import { Line, Params, ProjectSettings } from "../core/types" */

export const GAP = "gap_s";
/** The parameter with the second of the scene in which a line begins. */
export const START = "start_s";
export const MOST_GAP_S = 30;
/** Of new projects. */
export const NATURAL_GAP_S = 0.35;

const SECTION_GAPS = 3;
const LEAST_SHARE = 0.7;
const SPREAD = 0.6;
const LARGEST_HALF = 0xffff;
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});
const encoder = new TextEncoder();
/** How even the gap before each line is, 0 to 1; lines are immutable. @type {WeakMap<Line, number>} */
const EVENNESS = new WeakMap();

/**
 * @param {Line[]} lines in order @param {ProjectSettings} settings of the project
 * @param {(line: Line) => number | null} gapOf of a line's character; null for the project's
 * @returns {number[]} seconds before each line
 */
export function gapsBefore(lines, { gap_s: usual = 0 }, gapOf = () => null) {
  let followsSound = false;
  let beginsSection = false;
  return lines.map((line) => {
    if (line.unspoken) {
      beginsSection ||= line.unspoken === "heading";
      return 0;
    }
    if (line.kind === "silence") {
      followsSound = false;
      return 0;
    }
    const gap = followsSound ? (ownGap(line) ?? spreadGap((gapOf(line) ?? usual) * (beginsSection ? SECTION_GAPS : 1), line)) : 0;
    followsSound = true;
    beginsSection = false;
    return gap;
  });
}

/** The gap that a line sets for itself. @param {Pick<Line, "params">} line @returns {number | null} */
export function ownGap({ params }) {
  const value = params?.[GAP];
  return typeof value === "number" ? value : null;
}

/** A line's parameters with another gap, or without one of its own. @param {Params | undefined} params @param {number | null} gap @returns {Params} */
export function withGap(params, gap) {
  const { [GAP]: _, ...others } = params ?? {};
  return gap === null ? others : { ...others, [GAP]: gap };
}

function spreadGap(usual, line) {
  const whole = usual * 1000 * (LEAST_SHARE + SPREAD * evenness(line)) + 0.5;
  return Math.floor(whole) / 1000;
}

function evenness(line) {
  let known = EVENNESS.get(line);
  if (known === undefined) {
    const mark = crc32(line.text);
    const hasText = line.kind === "speech" && line.text !== "";
    known = hasText ? ((mark >>> 16) + (mark & LARGEST_HALF)) / (2 * LARGEST_HALF) : 0.5;
    EVENNESS.set(line, known);
  }
  return known;
}

function crc32(text) {
  let sum = 0xffffffff;
  for (const byte of encoder.encode(text)) sum = CRC_TABLE[(sum ^ byte) & 0xff] ^ (sum >>> 8);
  return ~sum >>> 0;
}

/**
 * What stands between a line and the sound before it: its gap, or the pause that is a line of its own.
 * @param {import("./playlist.js").Playlist} playlist @param {number} at index of a line
 * @returns {{line: Line, pause: Line | null, from: number, to: number} | null} in samples; null before the first sound
 */
export function spaceBefore({ lines, starts, lengths }, at) {
  const line = lines[at];
  if (!line || line.kind === "silence") return null;
  let before = at - 1;
  while (before >= 0 && lines[before].unspoken) before -= 1;
  if (before < 0) return null;
  const pause = lines[before].kind === "silence" ? lines[before] : null;
  const from = starts[before] + (pause ? 0 : lengths[before]);
  return { line, pause, from, to: starts[at] };
}

/** The second of the scene in which a line begins; null if it only follows. @param {Pick<Line, "params">} line @returns {number | null} */
export function ownStart({ params }) {
  const value = params?.[START];
  return typeof value === "number" ? value : null;
}

/** The edit that makes a space so long. @param {NonNullable<ReturnType<typeof spaceBefore>>} space @param {number} seconds @param {number} from_s where it begins */
export function spaceEdit({ line, pause }, seconds, from_s) {
  const isTimed = !pause && ownStart(line) !== null;
  const params = isTimed ? { ...line.params, [START]: Math.round(1000 * (from_s + seconds)) / 1000 } : withGap(line.params, seconds);
  const fields = pause ? { duration_s: seconds } : { params };
  return { op: "set", line_ids: [(pause ?? line).line_id], fields };
}
