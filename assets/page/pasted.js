/** Text pasted into a row: a piece of a script becomes lines, anything else stays text. */
import { newId } from "./dialog.js";
import { fold } from "./format.js";

const NAMED = /^([^:：.!?,;"“”]{1,60})[:：]\s*(\S.*)$/;
const BRACKETED = /^\[([^[\]|]+\|[^[\]]*\]|audio:[^\]]+\]$)/;
const PAUSE = /^\[pause:(\d+(?:\.\d+)?)s\]$/i;
const LONGEST_PAUSE_S = 300;

/**
 * @param {string} text @param {string[]} names that speak already
 * @returns {object[] | null} lines; null when not every row of it is somebody's
 */
export function pastedLines(text, names) {
  const known = new Map(names.map((name) => [fold(name), name]));
  const rows = text.split(/\r?\n/).map((row) => row.trim()).filter(Boolean);
  const lines = rows.map((row) => lineOf(row, known));
  const isScript = lines.length > 1 && lines.every(Boolean) && lines[0].kind === "speech";
  return isScript ? lines : null;
}

/**
 * Whether rows with settings, recordings or odd names among them are a script all the same; the
 * studio reads what they say.
 */
export function isScript(text) {
  const rows = text.split(/\r?\n/).map((row) => row.trim()).filter(Boolean);
  const isRow = (row) => BRACKETED.test(row) || PAUSE.test(row) || NAMED.test(row);
  return rows.length > 1 && rows.every(isRow) && rows.some((row) => BRACKETED.test(row));
}

function lineOf(row, known) {
  const [, seconds] = PAUSE.exec(row) ?? [];
  if (seconds && Number(seconds) <= LONGEST_PAUSE_S) {
    return { line_id: newId(), kind: "silence", duration_s: Number(seconds) };
  }
  const [, name, text] = NAMED.exec(row) ?? [];
  if (!name || name.trimStart().startsWith("[")) return null;
  return { line_id: newId(), kind: "speech", speaker: known.get(fold(name)) ?? name.trim(), text };
}
