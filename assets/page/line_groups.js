/** Lines by what is so of them and by who says them, in the order of the dialog. */
import { fold } from "./format.js";

/** Worth a way to: what a person has to do something about first. */
const STATES = [
  ["failed", "Failed", ({ state }) => state === "failed"],
  ["check", "To check", null],
  ["none", "No sound", ({ state, kind }) => state === "none" && kind !== "silence"],
  ["stale", "Changed", ({ state }) => state === "stale"],
  ["locked", "Locked", ({ locked }) => Boolean(locked)],
];

/**
 * @typedef {{key: string, label: string, colour: string | null, ids: Set<string>}} Group
 * @param {object[]} lines @param {Array<{name: string, colour: string}>} speakers
 * @param {string[]} toCheck ids of lines with something to know
 * @returns {Group[]} first the states, then the speakers; some may have no line
 */
export function groupsOf(lines, speakers, toCheck) {
  const states = STATES.map(([name, label, holds]) => {
    const ids = new Set(holds ? idsOf(lines.filter(holds)) : toCheck);
    return { key: `state:${name}`, label, colour: null, ids };
  });
  const voices = new Map(speakers.map(({ name, colour }) => {
    return [fold(name), { key: speakerKey(name), label: name, colour, ids: new Set() }];
  }));
  for (const { line_id: lineId, speaker } of lines) voices.get(fold(speaker ?? ""))?.ids.add(lineId);
  return [...states, ...voices.values()];
}

/** @param {string} name of a speaker */
export function speakerKey(name) {
  return `speaker:${fold(name)}`;
}

function idsOf(lines) {
  return lines.map(({ line_id: lineId }) => lineId);
}
